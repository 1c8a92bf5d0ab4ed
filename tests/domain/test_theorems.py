"""Every implication of every transform: at all small sizes, in bounds and far out; for all sizes by isl where it is affine.

Extents may be negative here, as those of a resize by symbolic expands may be at some sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from tests.domain.arrays import At, Ints, evaluate

from texpr.affine.expr import Expr, IntoExpr, Sym, expr, sym
from texpr.domain import DomainGraph, IterDomain
from texpr.domain.iterdomain import Bound, Implication, high, low
from texpr.domain.predicates.needed import predicates
from texpr.domain.transform import Transform
from texpr.domain.transforms.merge import Merge
from texpr.domain.transforms.resize import Resize
from texpr.domain.transforms.split import Split
from texpr.domain.transforms.swizzle import Shift, Swizzle, Xor
from texpr.presburger.formula import Eq, Formula, Ge, conj, negate
from texpr.presburger.isl.sets import Set
from texpr.support.record import replace

NEAR = np.arange(-70, 71)
FAR = np.concatenate([NEAR, np.arange(71, 5001, 493), [4999, 5000]])
LINE = np.arange(-70, 5001)
S, P, N = sym("S"), sym("P"), sym("N")


def domain(name: str, extent: IntoExpr) -> IterDomain:
    return IterDomain(Sym(name), expr(extent))


def split(extent: IntoExpr, factor: IntoExpr, *, outer: bool = False) -> Transform:
    return DomainGraph.of(("x", extent)).split("x", factor, ("o", "i"), outer=outer).transforms[0]


def merge(outer: IntoExpr, inner: IntoExpr) -> Transform:
    one, other = domain("x", outer), domain("y", inner)
    return Merge(one, other, domain("m", one.extent * other.extent))


def resize(extent: IntoExpr, left: IntoExpr, right: IntoExpr) -> Transform:
    return Resize(domain("x", extent), expr(left), expr(right), domain("r", expr(extent) + left + right))


def swizzle(outer: IntoExpr, inner: IntoExpr, how: Xor | Shift) -> Transform:
    return Swizzle(domain("x", outer), domain("y", inner), how, domain("o", outer), domain("i", inner))


def axes(*values: Ints | range) -> list[Ints]:
    return list(np.ix_(*(np.asarray(each) for each in values)))


def holds(bound: Bound, indices: dict[Sym, Expr], at: At) -> Ints:
    return evaluate(bound.margin(indices[bound.domain.sym]), at) >= 0


def failures(transform: Transform, claims: Iterable[Implication], at: At) -> Iterator[tuple[Implication, int, int]]:
    """Each of `claims`, at how many points it says something, and at how many of these it is wrong."""
    outputs = tuple(expr(d.sym) for d in transform.outputs)
    above = zip(transform.inputs, transform.up(outputs), strict=True)
    indices = {**{d.sym: expr(d.sym) for d in transform.outputs}, **{d.sym: index for d, index in above}}
    for each in claims:
        said = np.asarray(True)
        for bound in each.given:
            said = said & holds(bound, indices, at)
        for premise in each.premises:
            said = said & (evaluate(premise, at) >= 0)
        for n, value in each.divides:
            size, whole = evaluate(n, at), evaluate(value, at)
            said = said & np.where(size == 0, whole == 0, whole % np.where(size == 0, 1, size) == 0)
        wrong = said & ~holds(each.then, indices, at)
        yield each, int(np.sum(np.broadcast_to(said, wrong.shape))), int(np.sum(wrong))


def check(cases: Iterator[tuple[Transform, At]]) -> None:
    said: dict[tuple[str, str], int] = {}
    for transform, at in cases:
        for each, count, wrong in failures(transform, transform.implications(), at):
            assert not wrong, (transform, each)
            key = each.theorem, str(each.then.domain.sym)
            said[key] = said.get(key, 0) + count
    assert said and all(said.values()), said  # each says something somewhere


def splits(most: int) -> Iterator[tuple[Transform, At]]:
    for extent in range(-5, most + 1):
        n, o, i = axes(range(1, most + 1), FAR, FAR)
        for outer in (False, True):
            yield split(S, N, outer=outer), {Sym("S"): extent, Sym("N"): n, Sym("o"): o, Sym("i"): i}


def merges(most: int) -> Iterator[tuple[Transform, At]]:
    for extent in range(-5, most + 1):
        n, m = axes(range(-5, most + 1), LINE)
        yield merge(P, N), {Sym("P"): extent, Sym("N"): n, Sym("m"): m}


def resizes(most: int, expand: int) -> Iterator[tuple[Transform, At]]:
    for extent in range(most + 1):
        left, right, r = axes(range(-expand, expand + 1), range(-expand, expand + 1), FAR)
        yield resize(S, sym("L"), sym("R")), {Sym("S"): extent, Sym("L"): left, Sym("R"): right, Sym("r"): r}


def swizzles(most: int) -> Iterator[tuple[Transform, At]]:
    extent, o, i = axes(range(most + 1), NEAR, FAR)
    at = {Sym("P"): 40, Sym("N"): extent, Sym("o"): o, Sym("i"): i}
    yield swizzle(P, N, Shift()), at
    for bits in range(7):
        yield swizzle(P, N, Xor(bits)), at


def test_splits_at_small_sizes() -> None:
    check(splits(8))


def test_merges_at_small_sizes() -> None:
    check(merges(24))


def test_resizes_at_small_sizes() -> None:
    check(resizes(12, 16))


def test_swizzles_at_small_sizes() -> None:
    check(swizzles(16))


@pytest.mark.long
@pytest.mark.parametrize(
    "cases", [splits(64), merges(64), resizes(64, 64), swizzles(64)], ids=["split", "merge", "resize", "swizzle"]
)
def test_at_all_sizes_up_to_64(cases: Iterator[tuple[Transform, At]]) -> None:
    check(cases)


def weakened(claim: Implication) -> Iterator[Implication]:
    """The claim with one of its conditions left out."""
    for bound in claim.given:
        yield replace(claim, given=claim.given - {bound})
    for k in range(len(claim.premises)):
        yield replace(claim, premises=claim.premises[:k] + claim.premises[k + 1 :])
    for k in range(len(claim.divides)):
        yield replace(claim, divides=claim.divides[:k] + claim.divides[k + 1 :])


@pytest.mark.parametrize("kind", ["inner split", "outer split", "merge", "resize", "swizzle"])
def test_no_condition_can_be_left_out(kind: str) -> None:
    made = {
        "inner split": [case for case in splits(8) if case[0].outputs[1].extent is N],
        "outer split": [case for case in splits(8) if case[0].outputs[0].extent is N],
        "merge": list(merges(8)),
        "resize": list(resizes(8, 8)),
        "swizzle": list(swizzles(8)),
    }
    found: dict[Implication, int] = {}
    for transform, at in made[kind]:
        claims = [weaker for each in transform.implications() for weaker in weakened(each)]
        for claim, _, wrong in failures(transform, claims, at):
            found[claim] = found.get(claim, 0) + wrong
    idle = [claim for claim, wrong in found.items() if not wrong]
    if kind == "inner split":  # its factor is positive, so that the premise n ≥ 0 holds by itself
        idle = [claim for claim in idle if N in claim.premises]
    assert not idle


def test_splits_by_numbers_say_no_more_than_is_true() -> None:
    """With numbers the two ways to split look alike, and `Split` asks which of its extents is the factor."""
    o, i = axes(range(-3, 24), range(-3, 24))
    at = {Sym("o"): o, Sym("i"): i}
    check(
        (split(extent, factor, outer=outer), at) for extent in range(21) for factor in range(1, 21) for outer in (False, True)
    )


def proved(transform: Transform) -> None:
    """Each implication, for all values of what is symbolic; sizes and indices may be anything."""
    outputs = tuple(expr(d.sym) for d in transform.outputs)
    above = zip(transform.inputs, transform.up(outputs), strict=True)
    indices = {**{d.sym: expr(d.sym) for d in transform.outputs}, **{d.sym: index for d, index in above}}
    for each in transform.implications():
        said: list[Formula] = [Ge(bound.margin(indices[bound.domain.sym])) for bound in each.given]
        said += map(Ge, each.premises)
        said += [Eq(value % n) for n, value in each.divides]
        then = Ge(each.then.margin(indices[each.then.domain.sym]))
        assert Set.of([], conj([*said, negate(then)])).is_empty(), (transform, each)


@pytest.mark.parametrize("factor", range(1, 65))
def test_splits_and_merges_for_all_extents(factor: int) -> None:
    proved(split(S, factor))
    proved(merge(P, factor))
    proved(swizzle(P, factor, Shift()))


def test_merges_with_nothing_and_resizes_for_all_extents() -> None:
    proved(merge(P, 0))
    proved(merge(0, 5))
    proved(resize(S, sym("L"), sym("R")))


@pytest.mark.parametrize("bits", range(5))
def test_xor_swizzles_for_all_extents(bits: int) -> None:
    proved(swizzle(P, N, Xor(bits)))


def wrong(transform: Transform, given: Bound, then: Bound, **at: int) -> bool:
    """Whether `given` holds and `then` does not."""
    point = {Sym(name): value for name, value in at.items()}
    above = dict(zip(transform.inputs, transform.up(tuple(expr(d.sym) for d in transform.outputs)), strict=True))
    one, other = (each.margin(above.get(each.domain, expr(each.domain.sym))).evaluate(point) for each in (given, then))
    return one >= 0 > other


def test_theorem_1_needs_the_inner_index_in_bounds() -> None:
    """6 = 2 · 4 − 2: with I2 at −3, item 5 comes once more, from I1 = 2, and i0 < 6 lets it pass."""
    step = split(6, 4)
    assert isinstance(step, Split)
    assert wrong(step, high(step.input), high(step.outer), o=2, i=-3)
    graph = DomainGraph.of(("x", 6)).split("x", 4, ("o", "i")).resize("o", 0, 1).resize("i", 3, 0)
    assert {str(each.bound) for each in predicates(graph).kept} == {"x < 6", "0 <= i"}


def test_theorem_3_needs_both_expands() -> None:
    """With R = 0 and L = −2, index 0 is in bounds before, and −2 is not after."""
    step = resize(6, -2, 0)
    assert isinstance(step, Resize)
    assert wrong(step, low(step.input), low(step.output), r=-2)
    assert not wrong(step, high(step.input), high(step.output), r=4)  # the upper half needs R ≥ 0 alone
    assert wrong(resize(6, 0, -2), high(step.input), high(domain("r", 4)), r=5)


def test_theorem_4_does_not_hold_of_the_inner_index_of_a_shift() -> None:
    """Index 5 after a shift of 4 is a hole, and it comes from index 1, which is none."""
    step = swizzle(4, 4, Shift())
    assert isinstance(step, Swizzle)
    assert wrong(step, high(step.inner), high(step.inner_output), o=0, i=5)
    assert wrong(step, low(step.inner), low(step.inner_output), o=0, i=-3)
    graph = DomainGraph.of(("x", 4), ("y", 6)).swizzle("x", "y", Shift()).split("y_s", 4)
    assert {str(each.bound) for each in predicates(graph).kept} == {"y_s < 6"}
