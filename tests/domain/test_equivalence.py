"""Are two schedules the same? Against lists of what is visited, made with integers only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from random import Random

import pytest
from tests.domain.generate import Recipe, Size, recipe

from texpr.affine.expr import IntoExpr, Sym, expr, sym
from texpr.affine.facts import Known, multiple_of
from texpr.domain import DomainGraph
from texpr.domain.equivalence import by_rule as same_by_rule
from texpr.domain.equivalence import decide as equivalence
from texpr.domain.equivalence.by_isl import sizes_that_differ
from texpr.domain.equivalence.decide import Difference, Different, Nothing, Open, Same, compare, first_difference
from texpr.domain.iteration import Iteration, Notion, listing
from texpr.domain.iterdomain import Bound, high
from texpr.domain.transforms.swizzle import Custom
from texpr.domain.validity import NOTHING, every_bound
from texpr.presburger.isl.raw import Undecided

Visit = tuple[int, ...] | None
A, B, C, n = sym("a"), sym("b"), sym("c"), sym("n")

SCHEDULE_1 = """\
T[0, 0], T[0, 1], T[0, 2] , T[0, 3]
T[0, 4], T[0, 5], T[0, 6] , T[0, 7]
T[1, 0], T[1, 1], T[1, 2] , T[1, 3]
T[1, 4], T[1, 5], T[1, 6] , T[1, 7]
"""

SCHEDULE_2 = """\
T[0, 0], T[0, 1], T[0, 2] , T[0, 3]
T[0, 4], T[1, 0], T[1, 1] , T[1, 2]
T[1, 3], T[1, 4], T[2, 0] , T[2, 1]
"""


def schedules(outer: IntoExpr, inner: IntoExpr, factor: IntoExpr) -> tuple[Iteration, Iteration]:
    """split then merge: [I1 · ⌈I2 / f⌉, f]; merge then split: [⌈I1 · I2 / f⌉, f]."""
    whole = DomainGraph.of(("I1", outer), ("I2", inner))
    one = whole.split("I2", factor, ("o", "t")).merge("I1", "o", "m")
    other = whole.merge("I1", "I2", "q").split("q", factor, ("m", "t"))
    return Iteration(one), Iteration(other)


def visited(outer: int, inner: int, factor: int) -> tuple[list[Visit], list[Visit]]:
    """The same two, as plain loops."""
    pieces = -(-inner // factor)
    one: list[Visit] = []
    for m, t in product(range(outer * pieces), range(factor)):
        i1, i2 = m // pieces, m % pieces * factor + t
        one.append((i1, i2) if i2 < inner else None)
    other: list[Visit] = []
    for m, t in product(range(-(-outer * inner // factor)), range(factor)):
        q = m * factor + t
        other.append((q // inner, q % inner) if q < outer * inner else None)
    return one, other


def canonical(visits: list[Visit], by: Notion) -> list[Visit]:
    found = visits if by is Notion.POSITION else [v for v in visits if v is not None]
    match by:
        case Notion.SET:
            return sorted(set(found))
        case Notion.MULTISET:
            return sorted(found)
        case _:
            return found


def named(found: list[Visit], place: int) -> tuple[int, ...] | Nothing:
    return Nothing.END if place >= len(found) else Nothing.HOLE if found[place] is None else found[place]


def agrees(verdict: Same | Different | Open, one: list[Visit], other: list[Visit], by: Notion, sizes: dict[Sym, int]) -> None:
    """The verdict is the truth, and its witness the first difference."""
    first, second = canonical(one, by), canonical(other, by)
    if first == second:
        assert isinstance(verdict, Same)
        return
    place = next((k for k, (x, y) in enumerate(zip(first, second, strict=False)) if x != y), min(len(first), len(second)))
    assert verdict == Different(Difference(place, named(first, place), named(second, place), sizes))


# The case study


def test_the_listings_of_the_case_study() -> None:
    one, other = schedules(2, 5, 4)
    assert listing(one.graph, "T") == SCHEDULE_1.replace(" ,", ",")
    assert listing(other.graph, "T") == SCHEDULE_2.replace(" ,", ",")


def test_the_case_study_differs_first_where_one_has_a_hole() -> None:
    one, other = schedules(2, 5, 4)
    verdict = compare(one, other)
    assert verdict == Different(Difference(5, Nothing.HOLE, (1, 0), {}))
    assert str(verdict.witness) == "at 5: a hole, and [1, 0]"
    assert all(compare(one, other, by) == Same("enumeration") for by in (Notion.SET, Notion.MULTISET, Notion.ORDER))


def test_a_divisible_factor_makes_them_equal() -> None:
    one, other = schedules(2, 8, 4)
    assert listing(one.graph, "T") == listing(other.graph, "T")
    assert compare(one, other) == Same("enumeration")


# Merge and Split


@pytest.mark.parametrize("outer", range(17))
def test_merge_and_split_commute_exactly_where_the_theorem_says(outer: int) -> None:
    for inner, factor in product(range(17), range(1, 17)):
        one, other = visited(outer, inner, factor)
        assert (one == other) == (inner % factor == 0 or outer <= 1)
        if one != other:
            assert next(k for k, (x, y) in enumerate(zip(one, other, strict=False)) if x != y) == inner


@pytest.mark.parametrize("outer", [0, 1, 2, 5])
def test_merge_and_split_are_compared_by_enumeration(outer: int) -> None:
    for inner, factor in product(range(13), range(1, 14)):
        found = first_difference(*schedules(outer, inner, factor), Notion.POSITION, {})
        agrees(Same("") if found is None else Different(found), *visited(outer, inner, factor), Notion.POSITION, {})


def check_merge_and_split(outer: int, extents: range, factors: range) -> None:
    for inner, factor in product(extents, factors):
        one, other = schedules(outer, inner, factor)
        for by in Notion:
            agrees(compare(one, other, by), *visited(outer, inner, factor), by, {})
        commute = same_by_rule.merge_and_split_commute(
            sym("a") * 0 + outer, sym("a") * 0 + inner, sym("a") * 0 + factor, NOTHING
        )
        assert commute == (visited(outer, inner, factor)[0] == visited(outer, inner, factor)[1])


@pytest.mark.parametrize("outer", [1, 3])
def test_merge_and_split_are_compared_by_isl(outer: int) -> None:
    check_merge_and_split(outer, range(0, 9, 2), range(1, 6))


@pytest.mark.long
@pytest.mark.parametrize("outer", range(17))
def test_merge_and_split_up_to_16(outer: int) -> None:
    check_merge_and_split(outer, range(17), range(1, 17))


@pytest.mark.long
@pytest.mark.parametrize("outer", [0, 1, 2, 3, 7, 16, 33, 64])
def test_merge_and_split_up_to_64(outer: int) -> None:
    for inner, factor in product(range(65), range(1, 65)):
        found = first_difference(*schedules(outer, inner, factor), Notion.POSITION, {})
        expected = None if inner % factor == 0 or outer <= 1 else Difference(inner, Nothing.HOLE, (1, 0), {})
        assert found == expected


def _named(value: object) -> str | None:
    """The same name in every process: what is known has none of its own."""
    return None if isinstance(value, Known) else str(value)


@pytest.mark.parametrize(
    ("outer", "inner", "factor", "known", "by"),
    [
        (A, 8, 4, NOTHING, "isl"),
        (1, B, 4, NOTHING, "Merge and Split"),
        (A, 4 * B, 4, NOTHING, "Merge and Split"),
        (A, B, 4, Known({}, [multiple_of(B, 4)]), "Merge and Split"),
        (A, B * n, n, NOTHING, "Merge and Split"),
        (1, B, n, NOTHING, "Merge and Split"),
        (A, B, n, Known({Sym("a"): (0, 1)}), "Merge and Split"),
    ],
    ids=_named,
)
def test_symbolic_schedules_that_are_equal(outer: IntoExpr, inner: IntoExpr, factor: IntoExpr, known: Known, by: str) -> None:
    assert compare(*schedules(outer, inner, factor), known=known) == Same(by)


@pytest.mark.parametrize(
    ("outer", "inner", "factor", "known"),
    [
        (A, 5, 4, NOTHING),
        (A, B, 4, NOTHING),
        (A, B, 4, Known({}, [multiple_of(B, 2)])),
        (A, B, n, NOTHING),
        (2, B, n, Known({Sym("b"): (3, None)})),
        (A, 2 * B, 4 * n, NOTHING),
    ],
    ids=_named,
)
def test_symbolic_schedules_that_differ(outer: IntoExpr, inner: IntoExpr, factor: IntoExpr, known: Known) -> None:
    one, other = schedules(outer, inner, factor)
    verdict = compare(one, other, known=known)
    assert isinstance(verdict, Different)
    assert verdict.witness is not None
    sizes = verdict.witness.sizes
    assert all(fact.evaluate(sizes) >= 0 for fact in known.nonnegatives())
    concrete = [expr(each).evaluate(sizes) for each in (outer, inner, factor)]
    agrees(verdict, *visited(*concrete), Notion.POSITION, dict(sizes))


@pytest.mark.parametrize("inner", range(1, 8))
def test_merge_and_split_for_every_outer_extent(inner: int) -> None:
    """By isl, with the outer extent free; the least one that tells the two apart is 2."""
    for factor in range(1, 9):
        verdict = compare(*schedules(A, inner, factor))
        different = Different(Difference(inner, Nothing.HOLE, (1, 0), {Sym("a"): 2}))
        assert verdict == (different if inner % factor else Same("isl"))
        assert compare(*schedules(A, inner, factor), known=Known({Sym("a"): (None, 1)})) == Same("isl")


def test_order_needs_no_divisibility() -> None:
    one, other = schedules(A, B, n)
    assert compare(one, other, Notion.ORDER) == Same("Order kept")
    assert compare(one, other, Notion.MULTISET) == Same("Every item once")
    turned = Iteration(other.graph.reorder("t", "m"))
    assert compare(one, turned, Notion.SET) == Same("Every item once")
    assert isinstance(compare(one, turned, Notion.ORDER), Different)


def test_deeper_schedules_are_rewritten() -> None:
    whole = DomainGraph.of(("x", A), ("y", B), ("z", 8 * C))
    one = whole.split("z", 4, ("o", "t")).merge("y", "o", "m").merge("x", "m", "w").split("w", 2, ("p", "r"))
    other = whole.merge("y", "z", "u").merge("x", "u", "v").split("v", 4, ("w", "t")).split("w", 2, ("p", "r"))
    assert [d.sym.name for d in one.leaves] == ["p", "r", "t"]
    assert compare(Iteration(one), Iteration(other)) == Same("Merge and Split")


def test_an_outer_split_of_nothing() -> None:
    """Its inner extent is 0, and nothing is divided by that."""
    none = DomainGraph.of(("x", 0), ("y", A)).split("x", 3, ("o", "t"), outer=True)
    assert same_by_rule.same_by_rule(Iteration(none), Iteration(none), Notion.POSITION, NOTHING) == "Merge and Split"


def test_what_no_theorem_and_no_small_size_tells_stays_open() -> None:
    how = Custom(sym("i"), sym("i"), Sym("o"), Sym("i"))
    whole = DomainGraph.of(("x", A), ("y", B)).merge("x", "y", "q").split("q", n, ("m", "t"))
    assert compare(Iteration(whole), Iteration(whole.swizzle("m", "t", how, ("k", "l")))) == Open()


def test_more_positions_than_are_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = schedules(1 << 12, 5000, 64)
    assert compare(one, other) == Different(Difference(5000, Nothing.HOLE, (1, 0), {}))
    monkeypatch.setattr(equivalence, "MOST_POSITIONS", 1 << 15)
    late = DomainGraph.of(("i", 1 << 30))
    assert compare(Iteration(late), Iteration(late.resize("i", 0, -1))) == Different(None)


def test_other_logical_domains_are_refused() -> None:
    with pytest.raises(ValueError, match="different logical domains"):
        compare(schedules(2, 5, 4)[0], schedules(2, 6, 4)[0])


def test_too_few_predicates_show_as_a_multiset() -> None:
    """`i0 < 15` alone prints 19 items of figure 1, and all 15 of them."""
    whole = DomainGraph.of(("i0", 15))
    loop = whole.split("i0", 6, ("i1", "i2")).split("i1", 2, ("i3", "i4")).split("i2", 4, ("i5", "i6"))
    one, other = Iteration(whole), Iteration(loop, (high(loop["i0"]),))
    assert compare(one, other, Notion.SET) == Same("enumeration")
    assert compare(one, other, Notion.MULTISET) == Different(Difference(7, (7,), (6,), {}))
    assert compare(one, Iteration(loop, (high(loop["i0"]), high(loop["i2"]))), Notion.ORDER) == Same("enumeration")
    with pytest.raises(Undecided, match="how often"):
        sizes_that_differ(other, Iteration(loop, (high(loop["i0"]), high(loop["i1"]))), Notion.MULTISET, NOTHING)


# Random pairs


def fixed(made: Recipe) -> Recipe:
    """The recipe with a number for each of its named sizes."""
    logical = tuple((name, Size("", (s.values[min(1, len(s.values) - 1)],))) for name, s in made.logical)
    return Recipe(logical, made.steps)


def sequence(iteration: Iteration) -> list[Visit]:
    """What is visited, index by index, with integers."""
    graph, found = iteration.graph, list[Visit]()
    index = graph.indices()
    kept = every_bound(graph) if iteration.kept is None else iteration.kept
    for point in product(*(range(leaf.extent.constant) for leaf in graph.leaves)):
        leaves = dict(zip((leaf.sym for leaf in graph.leaves), point, strict=True))
        at = {s: e.evaluate(leaves) for s, e in index.items()}
        item = tuple(at[d.sym] for d in graph.logical)
        found.append(item if all(b.margin(sym(b.domain.sym.name)).evaluate(at) >= 0 for b in kept) else None)
    return found


def walked(made: Recipe, graph: DomainGraph) -> list[Visit]:
    """What is visited, from the recipe alone: each item put where it lies."""
    extents = made.extents({})
    order = {at: k for k, at in enumerate(product(*(range(extents[leaf.sym.name]) for leaf in graph.leaves)))}
    found: list[Visit] = [None] * len(order)
    for at in made.walk({}):
        found[order[tuple(at[leaf.sym.name] for leaf in graph.leaves)]] = tuple(at[name] for name, _ in made.logical)
    return found


def variants(made: Recipe, random: Random) -> Iterator[tuple[Iteration, list[Visit]]]:
    """Schedules of one logical domain: fewer steps, other orders of the leaves, fewer comparisons."""
    for count in sorted(random.sample(range(len(made.steps) + 1), min(3, len(made.steps) + 1))):
        part = Recipe(made.logical, made.steps[:count])
        graph = part.graph()
        yield Iteration(graph), walked(part, graph)
        names = [leaf.sym.name for leaf in graph.leaves]
        graph = graph.reorder(*random.sample(names, len(names)))
        bounds: tuple[Bound, ...] = tuple(b for b in every_bound(graph) if random.random() < 0.8)
        yield Iteration(graph, bounds), sequence(Iteration(graph, bounds))


def check(seed: int, statistics: Counter[str], solver: float = 1.0) -> None:
    random = Random(seed)
    for (one, first), (other, second) in combinations(variants(fixed(recipe(seed)), random), 2):
        for by in Notion:
            verdict = compare(one, other, by)
            agrees(verdict, first, second, by, {})
            equal = canonical(first, by) == canonical(second, by)
            theorem = same_by_rule.same_by_rule(one, other, by, NOTHING)
            assert theorem is None or equal
            statistics[theorem or "no theorem"] += 1
            if random.random() < solver:
                try:
                    assert (sizes_that_differ(one, other, by, NOTHING) is None) == equal
                    statistics[f"isl: {'equal' if equal else 'different'}"] += 1
                except Undecided:
                    statistics["isl: undecided"] += 1


def test_random_pairs() -> None:
    statistics: Counter[str] = Counter()
    for seed in range(5):
        check(seed, statistics, solver=0.05)
    assert all(statistics[each] for each in ("isl: equal", "isl: different", "Every item once")), statistics


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1120, 4))
def test_more_random_pairs(seed: int) -> None:
    statistics: Counter[str] = Counter()
    for each in range(seed, seed + 4):
        check(each, statistics, solver=0.3)
    assert statistics["isl: undecided"] < statistics["isl: equal"] + statistics["isl: different"]


# Planted


def test_a_weaker_premise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With "the factor divides the product" in place of "divides the inner extent", equal is said of what is not."""

    def wrong(outer: object, inner: object, factor: object, known: Known) -> bool:
        return True

    monkeypatch.setattr(same_by_rule, "merge_and_split_commute", wrong)
    one, other = schedules(2, 6, 4)
    theorem = same_by_rule.same_by_rule(one, other, Notion.POSITION, NOTHING)
    assert theorem == "Merge and Split"
    with pytest.raises(AssertionError):
        agrees(Same(theorem), *visited(2, 6, 4), Notion.POSITION, {})
