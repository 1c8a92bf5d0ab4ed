"""Weak and strong correctness: who needs which fill, and reductions that really run over filled holes."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from texpr.affine.expr import Expr, Sym, sym
from texpr.affine.facts import Known, multiple_of
from texpr.domain import DomainGraph
from texpr.domain.correctness import landing as landings
from texpr.domain.correctness.holes import WEAK, Consumer, NoFill, Strong, carried, provided, required, same_fill, suffices
from texpr.domain.correctness.landing import Landing, Point, landing
from texpr.domain.iterdomain import Bound, high, low
from texpr.ir.program import Combiner
from texpr.ir.program.updates import EXACTLY_ONCE_FREE, neutral
from texpr.ir.value import Literal, Op, Ref
from texpr.ir.value.types import BF16, BOOL, F8E4M3, F32, F64, I32, U8, DType

NAN = math.nan


def reader(name: str, fill: float | None) -> Consumer:
    return Consumer(name, sees_holes=True, neutral=fill)


def test_who_never_sees_a_hole_needs_nothing() -> None:
    assert required([]) is WEAK
    assert required([Consumer("a copy", sees_holes=False), Consumer("a sum", sees_holes=False, neutral=0)]) is WEAK
    assert str(WEAK) == "weak"


def test_consumers_join() -> None:
    assert required([reader("a sum", 0)]) == Strong(0)
    assert required([Consumer("a copy", sees_holes=False), reader("a product", 1), reader("another", 1)]) == Strong(1)
    assert str(required([reader("a maximum", -math.inf)])) == "strong(-inf)"


def test_two_fills_cannot_both_be_had() -> None:
    with pytest.raises(NoFill, match=r"^a sum needs holes that hold 0, and a product needs 1$"):
        required([reader("a sum", 0), Consumer("a copy", sees_holes=False), reader("a product", 1)])


def test_a_copy_of_holes_has_no_fill() -> None:
    with pytest.raises(NoFill, match=r"^a copy reads holes, and no value of theirs leaves its result as it is$"):
        required([reader("a copy", None)])


def test_fills_are_compared_as_memory_holds_them() -> None:
    assert same_fill(0, 0.0)
    assert not same_fill(0.0, -0.0)
    assert same_fill(NAN, NAN)
    assert not same_fill(NAN, 0)
    assert Strong(NAN) == Strong(NAN)
    assert Strong(0) != Strong(-0.0)
    assert len({Strong(NAN), Strong(float("nan")), Strong(0), Strong(0.0)}) == 2
    assert not same_fill(2**63 - 1, 2.0**63)


def test_what_a_producer_gives() -> None:
    assert provided(None) is WEAK
    assert provided(0) == Strong(0)
    assert suffices(WEAK, WEAK)
    assert suffices(Strong(1), WEAK)
    assert suffices(Strong(0), Strong(0))
    assert not suffices(WEAK, Strong(0))
    assert not suffices(Strong(1), Strong(0))


def test_fills_are_carried_through_functions() -> None:
    assert carried(Strong(0), lambda x: 2 * x) == Strong(0)
    assert carried(Strong(0), lambda x: x + 1) == Strong(1)
    assert carried(WEAK, lambda x: 0) is WEAK


COMBINE: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "max": max, "min": min,
    "and": lambda a, b: int(bool(a) and bool(b)), "or": lambda a, b: int(bool(a) or bool(b)),
}  # fmt: skip


@pytest.mark.parametrize("update", COMBINE)
@pytest.mark.parametrize("dtype", [F32, F64, BF16, F8E4M3, I32, U8, BOOL])
def test_the_fill_of_an_update_changes_nothing(update: str, dtype: DType) -> None:
    if (dtype == BOOL) != (update in ("and", "or")):
        return
    fill = neutral(update, dtype)
    assert fill is not None
    values = (0, 1) if dtype == BOOL else (0, 1, 3, 200) if dtype == U8 else (-3, -0.5, 0, 1, 448)
    for value in values:
        assert COMBINE[update](value, fill) == value


@pytest.mark.parametrize(
    ("update", "dtype", "fill"),
    [
        ("add", F32, 0), ("mul", F32, 1), ("max", F32, -math.inf), ("min", F64, math.inf), ("max", F8E4M3, -448.0),
        ("max", I32, -(2**31)), ("min", I32, 2**31 - 1), ("min", U8, 255), ("max", U8, 0), ("and", BOOL, 1), ("or", BOOL, 0),
    ],
)  # fmt: skip
def test_fills_by_type(update: str, dtype: DType, fill: float) -> None:
    assert neutral(update, dtype) == fill


def test_a_users_combiner_fills_with_its_identity() -> None:
    a, b = Sym("a"), Sym("b")
    value = Op("add", (Ref(a, F32), Ref(b, F32)), F32)
    assert neutral(Combiner("plus", a, b, F32, Literal(0, F32), value), F32) == 0
    assert neutral(Combiner("odd", a, b, F32, Op("exp", (Literal(0, F32),), F32), value), F32) is None


# Where reads land


def tile(extent: int, factor: int, names: str = "ot") -> DomainGraph:
    return DomainGraph.of(("i", extent)).split("i", factor, (names[0], names[1]))


def test_a_guarded_read_never_sees_a_hole() -> None:
    assert landing(tile(6, 4), tile(6, 4)) == Landing(None, None, None, None)
    assert required([landing(tile(6, 4), tile(6, 4)).consumer("a copy", None)]) is WEAK


def test_an_unguarded_read_of_the_same_tile_sees_its_holes() -> None:
    found = landing(tile(6, 4), tile(6, 4), ())
    assert found == Landing(Point((1, 2), (1, 2), {}), None, None, None)
    assert required([found.consumer("a sum", 0)]) == Strong(0)


def test_an_unguarded_read_may_leave_the_allocation() -> None:
    found = landing(tile(6, 5, "xy"), tile(6, 4), ())
    assert found.outside is not None
    with pytest.raises(NoFill, match=r"^a sum reads outside of what is allocated, at \(1, 3\)$"):
        found.consumer("a sum", 0)


def test_a_read_guarded_too_little_sees_items_twice() -> None:
    whole = DomainGraph.of(("i0", 15))
    loop = whole.split("i0", 6, ("i1", "i2")).split("i1", 2, ("i3", "i4")).split("i2", 4, ("i5", "i6"))
    found = landing(loop, whole, (high(loop["i0"]),))
    assert found.item == Point((0, 0, 1, 2), (6,), {})
    with pytest.raises(NoFill, match=r"^a sum reads an item twice, at \(0, 0, 1, 2\)$"):
        found.consumer("a sum", 0)
    assert required([found.consumer("a maximum", -math.inf, idempotent=True)]) is WEAK


def test_an_item_that_was_cut_off_is_missed() -> None:
    whole = DomainGraph.of(("i", 5))
    again = whole.resize("i", 0, -2, "r").resize("r", 0, 3, "s")
    found = landing(whole, again)
    assert found.lost == Point((3,), (3,), {})
    with pytest.raises(NoFill, match=r"^a sum reads an item that is not there, at \(3\)$"):
        found.consumer("a sum", 0)


def test_sizes_decide() -> None:
    n = sym("N")
    graph = DomainGraph.of(("i", n)).split("i", 4, ("o", "t"))
    assert landing(graph, graph, ()).hole == Point((0, 1), (0, 1), {Sym("N"): 1})
    assert landing(graph, graph, (), Known({}, [multiple_of(n, 4)])).hole is None


def test_graphs_of_other_tensors_are_refused() -> None:
    with pytest.raises(ValueError, match="different logical domains"):
        landing(tile(6, 4), tile(7, 4))


def pairs() -> list[tuple[DomainGraph, DomainGraph]]:
    """Loops and allocations that share all, some, or none of their IterDomains."""
    found: list[tuple[DomainGraph, DomainGraph]] = []
    for a, b, n, m in product((1, 2, 3), (4, 5, 6), (2, 3, 4), (2, 3, 4)):
        base = DomainGraph.of(("x", a), ("y", b))
        shared = base.split("y", n, ("o", "t"))
        found.append((shared.merge("x", "o", "p"), shared))
        found.append((shared, base.merge("x", "y", "q").split("q", m, ("u", "v"))))
        found.append((shared.split("t", m, ("k", "l")), shared.resize("t", 0, 1, "w").reorder("w", "o")))
        found.append((base.resize("y", 0, m, "z"), base.split("y", n, ("o", "t"))))
    return found


def enumerated(loop: DomainGraph, allocation: DomainGraph, kept: tuple[Bound, ...]) -> set[str]:
    """The kinds of landing by running the loops and following every index with integers."""
    index, found = loop.indices(), set[str]()
    shared = [d.sym for d in loop.logical]
    for step in loop.transforms:
        if step in allocation.transforms and all(d.sym in shared for d in step.inputs):
            shared.extend(d.sym for d in step.outputs)
    places: dict[tuple[int, ...], dict[Sym, int]] = {}
    for item in product(*(range(d.extent.constant) for d in allocation.logical)):
        at = dict(zip((d.sym for d in allocation.logical), item, strict=True))
        down = {s: e.constant for s, e in allocation.below(at).items()}
        if all(0 <= down[d.sym] < d.extent.constant for d in allocation.domains()):
            places[tuple(down[leaf.sym] for leaf in allocation.leaves)] = down
    for point in product(*(range(leaf.extent.constant) for leaf in loop.leaves)):
        leaves = dict(zip((leaf.sym for leaf in loop.leaves), point, strict=True))
        at = {s: e.evaluate(leaves) for s, e in index.items()}
        if any(bound.margin(sym(bound.domain.sym.name)).evaluate(at) < 0 for bound in kept):
            continue
        valid = all(0 <= at[d.sym] < d.extent.constant for d in loop.domains())
        below = allocation.below({s: at[s] for s in shared})
        touched = tuple(below[leaf.sym].constant for leaf in allocation.leaves)
        inside = all(0 <= t < leaf.extent.constant for t, leaf in zip(touched, allocation.leaves, strict=True))
        if valid:
            found |= set() if touched in places else {"lost"}
        else:
            found.add("outside" if not inside else "item" if touched in places else "hole")
    return found


def compared(every: int) -> set[str]:
    """The kinds of landing that were seen, by both."""
    seen: set[str] = set()
    for loop, allocation in pairs()[::every]:
        for kept in ((), tuple(side(d) for d in loop.logical for side in (low, high))):
            found = landing(loop, allocation, kept)
            kinds = {kind for kind in ("hole", "item", "outside", "lost") if getattr(found, kind) is not None}
            assert kinds == enumerated(loop, allocation, kept)
            seen |= kinds
    return seen


def test_landings_against_enumeration() -> None:
    assert compared(5) == {"hole", "item", "outside"}


@pytest.mark.long
def test_all_landings_against_enumeration() -> None:
    assert compared(1) == {"hole", "item", "outside"}


def test_a_read_that_always_goes_by_the_logical_index_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_the_logical_index(loop: DomainGraph, allocation: DomainGraph) -> dict[Sym, Expr]:
        index = loop.indices()
        return allocation.below({d.sym: index[d.sym] for d in loop.logical})

    monkeypatch.setattr(landings, "reads", by_the_logical_index)
    with pytest.raises(AssertionError):
        compared(5)


# Sums that run over holes


def reduced(values: np.ndarray, update: str, start: float) -> float:
    total = start
    for value in values.reshape(-1).tolist():
        total = COMBINE[update](total, value)
    return total


@pytest.mark.parametrize("update", ["add", "mul", "max", "min"])
def test_an_unguarded_reduction_is_right_with_its_fill_and_with_no_other(update: str) -> None:
    fill = neutral(update, F64)
    assert fill is not None
    for extent, factor in product(range(1, 9), range(1, 6)):
        graph = tile(extent, factor)
        need = required([landing(graph, graph, ()).consumer(update, fill, idempotent=update in EXACTLY_ONCE_FREE)])
        assert (need is WEAK) == (extent % factor == 0)
        memory = np.full(-(-extent // factor) * factor, np.nan)
        items = np.arange(extent) % 3 + 2.0
        memory[:extent] = items
        expected = reduced(items, update, fill)
        if need is WEAK:
            assert reduced(memory, update, fill) == expected
            continue
        assert need == Strong(fill)
        memory[extent:] = fill
        assert reduced(memory, update, fill) == expected
        memory[extent:] = {"add": 1.0, "mul": 0.0, "max": 7.0, "min": -7.0}[update]
        assert reduced(memory, update, fill) != expected


def test_a_sum_of_products_needs_both_fills() -> None:
    """0 · nan is nan: a hole of one operand that holds 0 does not save a hole of the other that holds anything."""
    a, b = np.array([1.0, 2.0, 0.0]), np.array([3.0, 4.0, np.nan])
    assert np.isnan(a @ b)
    b[2] = 0.0
    assert a @ b == 11.0
