"""Domains and dependences against programs that are run step by step."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from tests.relation.build import array, at, e, function, par, put, seq, syms, when
from tests.relation.oracle import Pair, Trace, pairs
from tests.relation.programs import M, N, programs

from texpr.affine.expr import Sym
from texpr.ir.program import Function, New
from texpr.relation import Dependence, dependences, model

SIZES = [{N: n, M: m} for n, m in ((0, 2), (1, 1), (3, 2))]


def claimed(found: tuple[Dependence, ...], sizes: dict[Sym, int]) -> set[Pair]:
    """What `dependences` says at some sizes, as the oracle says it."""
    result: set[Pair] = set()
    for each in found:
        carrier = None if each.carrier is None else each.carrier.sym
        split = len(each.relation.ins)
        for point in each.relation.pairs().points(sizes):
            result.add((id(each.source.load), id(each.sink.load), carrier, point[:split], point[split:]))
    return result


@given(programs())
@settings(max_examples=15)
def test_dependences_are_those_of_a_run(function: Function) -> None:
    found = dependences(model(function))
    for sizes in SIZES:
        assert claimed(found, sizes) == pairs(Trace(function, sizes))


@pytest.mark.long
@given(programs(results=True))
@settings(max_examples=600)
def test_dependences_are_those_of_a_run_at_length(function: Function) -> None:
    found = dependences(model(function))
    for n, m in product(range(4), range(3)):
        assert claimed(found, {N: n, M: m}) == pairs(Trace(function, {N: n, M: m}))


@given(programs())
@settings(max_examples=20)
def test_domains_are_the_points_that_run(function: Function) -> None:
    found = model(function)
    for sizes in SIZES:
        ran: dict[int, set[tuple[int, ...]]] = {}
        for event in Trace(function, sizes).events:
            ran.setdefault(id(event.stmt), set()).add(event.point)
        for instance in found.instances:
            points = instance.domain.points(sizes)
            if any(a.writes for a in instance.accesses):
                assert points == ran.get(id(instance.stmt), set())


def test_the_comparison_notices_a_lost_dependence() -> None:
    (n, i) = syms("n i")
    a = array("A", n, role="inout")
    right = function(seq(n, i, put(at(a, i), at(a, e(i) - 1))), params=(a,), sizes=(n,))
    truth = pairs(Trace(right, {n: 3}))
    assert truth == claimed(dependences(model(right)), {n: 3})
    wrong = function(seq(n, i, put(at(a, i), at(a, i))), params=(a,), sizes=(n,))
    assert len(truth) != len(claimed(dependences(model(wrong)), {n: 3}))


def test_kinds_and_carriers() -> None:
    n, t, i = syms("n t i")
    a = array("A", n, role="inout")
    f = function(seq(3, t, par(n, i, put(at(a, i), at(a, i)))), params=(a,), sizes=(n,))
    assert [repr(d) for d in dependences(model(f))] == [
        "anti S0[t, i] → S0[t, i] on A over t",
        "flow S0[t, i] → S0[t, i] on A over t",
        "output S0[t, i] → S0[t, i] on A over t",
    ]


def test_a_local_is_new_memory_each_time_unless_storage_is_reused() -> None:
    n, i, k = syms("n i k")
    a, t = array("A", n, role="inout"), array("t", role="local")
    body = seq(n, i, New(t), put(at(t), at(a, i)), put(at(a, i), at(t)))
    f = function(body, params=(a,), sizes=(n,))
    fresh = dependences(model(f), buffers=[t])
    assert [(d.kind, d.carrier) for d in fresh] == [("flow", None)]
    reused = dependences(model(f), buffers=[t], keep=lambda _: ())
    assert {(d.kind, None if d.carrier is None else d.carrier.sym.name) for d in reused} == {
        ("flow", None),
        ("flow", "i"),
        ("anti", "i"),
        ("output", "i"),
    }
    assert k not in model(f).scope_syms(t)


def test_branches_of_one_if_exclude_each_other() -> None:
    n, i = syms("n i")
    a = array("A", n, role="inout")
    f = function(par(n, i, when("lt", i, 2, put(at(a, 0)), orelse=(put(at(a, 0)),))), params=(a,), sizes=(n,))
    assert all(d.carrier is not None for d in dependences(model(f)))


def test_reduce_frees_the_order_of_like_updates_only() -> None:
    n, i = syms("n i")
    a = array("A", 1, role="inout")
    like = function(par(n, i, put(at(a, 0), update="add"), put(at(a, 0), update="sub"), reduce=(a,)), params=(a,), sizes=(n,))
    assert all(d.relaxed == (d.carrier is not None) for d in dependences(model(like)))
    unlike = function(par(n, i, put(at(a, 0), update="add"), put(at(a, 0), update="max"), reduce=(a,)), params=(a,), sizes=(n,))
    assert not all(d.relaxed for d in dependences(model(unlike)) if d.carrier is not None)


def test_pairs_can_be_restricted_by_expressions_over_both_ends() -> None:
    n, i, j = syms("n i j")
    a, b = array("A", n, role="inout"), array("B", n, role="inout")
    f = function(par(n, i, put(at(a, i))), par(n, j, put(at(b, j), at(a, e(j) // 2))), params=(a, b), sizes=(n,))
    (flow,) = dependences(model(f), buffers=[a])
    same_block = flow.relation.where_equal([e(i) // 4], [e(j) // 4])
    assert same_block.pairs().points({n: 12}) == {(i // 2, i) for i in range(12) if i // 8 == i // 4}
    other_thread = flow.relation.where_differ([e(i) % 4], [e(j) % 4])
    assert other_thread.pairs().points({n: 6}) == {(i // 2, i) for i in range(6) if (i // 2) % 4 != i % 4}
