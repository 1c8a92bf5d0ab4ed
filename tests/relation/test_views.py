"""Delinearisation, data-dependent subscripts, and what is said of exactness."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.relation.build import ZERO, array, at, e, function, par, put, seq, syms

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir.program import Bind, Compare, If, Injective, InRange, Let
from texpr.ir.value import Index, Literal, Load, Op
from texpr.ir.value.types import BOOL, I32
from texpr.relation import Access, dependences, model

M, N, K, i, j, k, d, q, t = syms("M N K i j k d q t")


def flat(index: Expr, extent: Expr) -> Access:
    a = array("A", extent, role="inout")
    f = function(par(M, i, par(N, j, par(K, k, put(at(a, index))))), params=(a,), sizes=(M, N, K))
    return model(f).instances[0].accesses[-1]


SIZE = e(M) * N * K


def test_three_flat_dimensions_come_apart() -> None:
    access = flat((e(i) * N + j) * K + k, SIZE)
    assert access.index == (e(i), e(j), e(k))
    assert access.shape == (e(M), e(N), e(K))
    assert access.exact


def test_a_reversed_dimension_borrows() -> None:
    access = flat(e(i) * N * K + (e(N) - 1 - j) * K + (e(K) - 1 - k), SIZE)
    assert access.index == (e(i), e(N) - 1 - j, e(K) - 1 - k)


def test_constant_factors_stay_with_the_inner_dimension() -> None:
    a = array("A", e(M) * N * 4, role="inout")
    body = par(M, i, par(N, j, par(4, k, put(at(a, (e(i) * N + j) * 4 + k)))))
    access = model(function(body, params=(a,), sizes=(M, N))).instances[0].accesses[-1]
    assert (access.index, access.shape) == ((e(i), e(j) * 4 + k), (e(M), e(N) * 4))


def test_a_promised_divisor_takes_a_dimension_apart() -> None:
    """C is G · (C / G) where callers promise that G divides it; else a stretch more may begin."""
    a = array("A", e(M), role="inout")
    for stretches in (e(N), expr(32)):
        each, promise = e(M) // stretches, Compare("==", e(M) % stretches, expr(0))
        body = par(stretches, i, par(each, j, put(at(a, e(i) * each + j))))
        promised, bare = (
            model(function(body, params=(a,), sizes=(M, N), where=where)).instances[0].accesses[-1]
            for where in ((Compare(">=", e(N), expr(1)), promise), (Compare(">=", e(N), expr(1)),))
        )
        assert promised.index == (e(i), e(j))
        assert promised.shape[0] is stretches and str(promised.shape[1]) == str(each)
        assert bare.shape[0] is not stretches


def test_an_inner_index_that_may_leave_its_dimension_keeps_the_flat_view() -> None:
    access = flat(e(i) * N * K + e(j) * K + k + 1, SIZE)
    assert not access.exact and not access.affine
    assert len(access.shape) == 1


def test_accesses_of_one_buffer_share_a_view_or_are_not_compared() -> None:
    a = array("A", e(M) * N, role="inout")
    row, line = put(at(a, e(i) * N + j)), put(at(a, t))
    f = function(par(M, i, par(N, j, row)), par(e(M) * N, t, line), params=(a,), sizes=(M, N))
    first, second = model(f).accesses
    assert first.exact and second.exact and first.shape != second.shape
    (both,) = dependences(model(f))
    assert not both.exact


@given(st.tuples(*[st.integers(1, 3)] * 3), st.permutations((0, 1, 2)))
@settings(max_examples=25)
def test_a_view_renames_elements_one_to_one(sizes: tuple[int, ...], order: list[int]) -> None:
    """Equal elements of the view are equal flat addresses, and unequal ones unequal: on all points of small sizes."""
    loops, extents = (e(i), e(j), e(k)), (e(M), e(N), e(K))
    outer, middle, inner = order
    index = (loops[outer] * extents[middle] + loops[middle]) * extents[inner] + loops[inner]
    access = flat(index, SIZE)
    values = dict(zip((M, N, K), sizes, strict=True))
    seen: dict[int, tuple[int, ...]] = {}
    for point in product(*map(range, sizes)):
        at_point = {**values, **dict(zip((i, j, k), point, strict=True))}
        view = tuple(x.evaluate(at_point) for x in access.index)
        assert seen.setdefault(index.evaluate(at_point), view) == view
        assert all(0 <= v < s.evaluate(values) for v, s in zip(view, access.shape, strict=True))
    assert len(set(seen.values())) == len(seen)


def scatter(injective: bool) -> tuple[bool, bool]:
    """Whether two iterations may write one element of y[I[i]], and whether that is said exactly."""
    index, y = array("I", N, dtype=I32), array("y", N, role="inout")
    target = Load(y, (e(d),), ((d, Load(index, (e(i),))),))
    assumes = (InRange(index, expr(0), e(N)), *((Injective(index),) if injective else ()))
    f = function(par(N, i, Bind((target,), (ZERO,))), params=(index, y), sizes=(N,), assumes=assumes)
    found = dependences(model(f), buffers=[y])
    return bool(found), all(x.exact for x in found)


def test_data_dependent_writes_may_meet_unless_the_data_are_injective() -> None:
    assert scatter(injective=False) == (True, False)
    assert scatter(injective=True) == (False, True)


def test_a_let_is_one_value_in_the_loops_below_it() -> None:
    index, y = array("I", N, dtype=I32), array("y", N, N, role="inout")
    row = put(at(y, q, j))
    f = function(seq(N, i, Let(q, Load(index, (e(i),))), par(N, j, row)), params=(index, y), sizes=(N,))
    carriers = {x.carrier.sym for x in dependences(model(f), buffers=[y]) if x.carrier is not None}
    assert carriers == {i}


def test_a_condition_on_data_widens_the_domain() -> None:
    x, y = array("x", N), array("y", N, role="inout")
    test = Op("gt", (at(x, i), Literal(0.0, x.dtype)), BOOL)
    f = function(par(N, i, If(test, (put(at(y, i)),))), params=(x, y), sizes=(N,))
    guard, write = model(f).instances
    assert guard.exact and not write.exact
    assert write.domain.points({N: 3}) == {(0,), (1,), (2,)}


def test_facts_on_sizes_hold_in_every_domain() -> None:
    a = array("A", N, role="inout")
    where = (Compare("==", e(N) % 4, expr(0)), Compare("<", e(N), expr(9)))
    f = function(par(N, i, put(at(a, i))), params=(a,), sizes=(N,), where=where)
    domain = model(f).instances[0].domain
    assert domain.bounds(e(i)) == (0, 7)
    assert domain.points({N: 3}) == frozenset()


def test_select_guards_its_branches() -> None:
    x, y = array("x", N), array("y", N, role="inout")
    index = Index(e(i), I32)
    guarded = Op("select", (Op("ge", (index, Literal(1, I32)), BOOL), at(x, e(i) - 1), ZERO), x.dtype)
    f = function(par(N, i, put(at(y, i), guarded)), params=(x, y), sizes=(N,))
    read = next(a for a in model(f).accesses if a.kind == "read")
    assert read.relation.domain().points({N: 3}) == {(1,), (2,)}
    assert read.exact


def test_element_keeps_the_loops_asked_for() -> None:
    a = array("A", N, role="inout")
    f = function(seq(N, i, par(N, j, put(at(a, j)))), params=(a,), sizes=(N,))
    (write,) = model(f).accesses
    assert write.relation.outs == (Sym("A.0"),)
    assert write.element(keep=[j]).outs == (j, Sym("A.0"))
    assert write.element(keep=[j]).pairs().points({N: 2}) == {(a, b, b, b) for a in range(2) for b in range(2)}
