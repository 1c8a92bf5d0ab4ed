"""Iterations that meet in an element: the order in which their updates are combined is that of the sequential program."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.interp.build import at, buffer, cast, function, index, lit, op, par, put, ref, seq, when

from texpr.affine.expr import Sym, sym
from texpr.interp import conflicts, run
from texpr.interp.dtypes import Array, numpy_dtype
from texpr.interp.trace import trace
from texpr.ir.program import Bind, Combiner, Function, New, Stmt
from texpr.ir.value import Buffer
from texpr.ir.value.types import BF16, BOOL, F16, F32, F64, I32, I64, TF32, DType

rng = np.random.default_rng(3)

A, B = ref("a", F64), ref("b", F64)
SHIFT = Combiner("shift", Sym("a"), Sym("b"), F64, lit(0, F64), op("add", op("mul", A, lit(0.5, F64)), B))
"""Not commutative: shows every change of order."""

x = buffer("x", F64, "n", "m")
s = buffer("s", F64, role="inout")
v = buffer("v", F64, "n", role="inout")


def program(*body: Stmt) -> Function:
    return function((x, s, v), (), *body, sizes="n m")


def data(n: int, m: int) -> dict[str, Array]:
    return {"x": rng.standard_normal((n, m)), "s": np.asarray(1.0), "v": rng.standard_normal(n)}


def python(values: dict[str, Array], step: Callable[[dict[str, Array], int, int], None]) -> dict[str, Array]:
    """The same in plain loops over i and j."""
    after = {name: value.copy() for name, value in values.items()}
    for i in range(after["x"].shape[0]):
        for j in range(after["x"].shape[1]):
            step(after, i, j)
    return after


def shift(values: dict[str, Array], i: int, j: int) -> None:
    values["s"][...] = values["s"] * 0.5 + values["x"][i, j]


UPDATE = put(at(s), at(x, "i", "j"), SHIFT)


@pytest.mark.parametrize("n, m", [(0, 3), (1, 1), (4, 5), (120, 20)])
def test_two_pars_and_a_seq_inside_keep_the_order(n: int, m: int):
    values = data(n, m)
    want = python(values, shift)["s"]
    nests = (
        par("i", "n", par("j", "m", UPDATE, reduce=(s,)), reduce=(s,)),
        par("i", "n", seq("j", "m", UPDATE), reduce=(s,)),
        seq("i", "n", par("j", "m", UPDATE, reduce=(s,))),
    )
    for nest in nests:
        assert run(program(nest), values)["s"] == want


def test_several_statements_and_conditions():
    values = data(30, 7)
    odd = op("eq", op("mod", index("i", I64), lit(2, I64)), lit(1, I64))
    square = put(at(s), op("mul", at(x, "i", "j"), at(x, "i", "j")), SHIFT)
    body = par("i", "n", put(at(s), lit(3, F64), SHIFT), seq("j", "m", when(odd, UPDATE, orelse=(square,))), reduce=(s,))

    def step(after: dict[str, Array], i: int, j: int) -> None:
        if j == 0:
            after["s"][...] = after["s"] * 0.5 + 3
        entry = after["x"][i, j]
        after["s"][...] = after["s"] * 0.5 + (entry if i % 2 else entry * entry)

    assert run(program(body), values)["s"] == python(values, step)["s"]


def test_sibling_pars_inside_a_seq_inside_a_par():
    values = data(6, 5)
    second = put(at(s), op("neg", at(x, "i", "k")), SHIFT)
    inner = seq("t", sym("i") % 3 + 1, par("j", "m", UPDATE, reduce=(s,)), par("k", "m", second, reduce=(s,)))
    f = program(par("i", "n", inner, reduce=(s,)))
    want = np.asarray(1.0)
    for i in range(6):
        for _ in range(i % 3 + 1):
            for sign in (1, -1):
                for j in range(5):
                    want = want * 0.5 + sign * values["x"][i, j]
    assert run(f, values)["s"] == want == trace(f, values).outputs["s"]


def test_an_iteration_sees_its_own_updates():
    values = data(5, 4)
    mine = put(at(v, "i"), at(x, "i", "j"), SHIFT)
    total = put(at(s), at(v, "i"), SHIFT)
    f = program(
        par("i", "n", put(at(v, "i"), lit(0, F64)), seq("j", "m", mine), total, put(at(v, "i"), lit(7, F64)), reduce=(v, s))
    )

    def step(after: dict[str, Array], i: int, j: int) -> None:
        after["v"][i] = (after["v"][i] if j else 0) * 0.5 + after["x"][i, j]
        if j == 3:
            after["s"][...] = after["s"] * 0.5 + after["v"][i]
            after["v"][i] = 7

    assert not conflicts(f, values)
    found, want = run(f, values), python(values, step)
    assert found["s"] == want["s"]
    np.testing.assert_array_equal(found["v"], want["v"])


def test_an_update_of_an_element_of_its_own_by_another_met_element():
    values = data(6, 3)
    f = program(
        par("i", "n", seq("j", "m", put(at(v, "i"), at(x, "i", "j"), SHIFT), put(at(s), at(v, "i"), SHIFT)), reduce=(s, v))
    )

    def step(after: dict[str, Array], i: int, j: int) -> None:
        after["v"][i] = after["v"][i] * 0.5 + after["x"][i, j]
        after["s"][...] = after["s"] * 0.5 + after["v"][i]

    found, want = run(f, values), python(values, step)
    assert found["s"] == want["s"] and (found["v"] == want["v"]).all()


def test_chunks_of_lanes_keep_the_order(monkeypatch: pytest.MonkeyPatch):
    values = data(9, 8)
    local = buffer("t", F64, role="local")
    nest = par("i", "n", New(local), par("j", "m", UPDATE, reduce=(s,)), put(at(s), lit(2, F64), SHIFT), reduce=(s,))

    def step(after: dict[str, Array], i: int, j: int) -> None:
        shift(after, i, j)
        if j == 7:
            after["s"][...] = after["s"] * 0.5 + 2

    want = python(values, step)["s"]
    for noting, room in ((1, 1 << 28), (3, 1 << 28), (5, 8), (1 << 13, 16)):
        monkeypatch.setattr("texpr.interp.meeting.NOTING", noting)
        monkeypatch.setattr("texpr.interp.vector._BYTES", room)
        assert run(program(nest), values)["s"] == want


@pytest.mark.parametrize("dtype", [F64, F32, TF32, F16, BF16], ids=str)
@pytest.mark.parametrize("update", ["add", "sub", "mul", "max", "min"])
def test_built_in_updates_round_each_time(dtype: DType, update: str):
    a, t = buffer("a", dtype, "n"), buffer("t", dtype, 3, role="inout")
    into = at(t, sym("i") % 3)
    f = function((a, t), (), par("i", "n", put(into, at(a, "i"), update), reduce=(t,)), sizes="n")
    values = rng.integers(1, 2**10, 50).astype(np.float32) / 512
    arguments = {"a": values.astype(numpy_dtype(dtype)), "t": np.ones(3, numpy_dtype(dtype))}
    traced = trace(f, arguments)
    assert not traced.findings
    np.testing.assert_array_equal(run(f, arguments)["t"], traced.outputs["t"])


def test_a_sum_in_order_is_not_a_pairwise_sum():
    a, t = buffer("a", F32, "n"), buffer("t", F32, role="inout")
    f = function((a, t), (), par("i", "n", put(at(t), at(a, "i"), "add"), reduce=(t,)), sizes="n")
    values = rng.standard_normal(100_000).astype(np.float32)
    want = np.cumsum(values)[-1]
    assert run(f, {"a": values, "t": 0})["t"] == want != values.sum()


@pytest.mark.parametrize("update", ["add", "sub", "mul", "max", "min"])
def test_integers_in_any_order(update: str):
    a, t = buffer("a", I32, "n", "m"), buffer("t", I32, 4, role="inout")
    into = at(t, "b", data=((Sym("b"), op("mod", at(a, "i", "j"), lit(4, I32))),))
    f = function((a, t), (), par("i", "n", seq("j", "m", put(into, at(a, "i", "j"), update)), reduce=(t,)), sizes="n m")
    arguments = {"a": rng.integers(-(2**31), 2**31, (40, 3)).astype(np.int32), "t": np.arange(4, dtype=np.int32)}
    np.testing.assert_array_equal(run(f, arguments)["t"], trace(f, arguments).outputs["t"])


@pytest.mark.parametrize("update", ["and", "or"])
def test_booleans(update: str):
    a, t = buffer("a", BOOL, "n"), buffer("t", BOOL, 4, role="inout")
    f = function((a, t), (), par("i", "n", put(at(t, sym("i") // 5), at(a, "i"), update), reduce=(t,)), sizes="n")
    for bits in range(16):
        values = np.array([bits >> k & 1 for k in range(4)] * 5, np.bool_)
        arguments = {"a": values, "t": np.full(4, update == "and")}
        want = getattr(np, "all" if update == "and" else "any")(values.reshape(4, 5), axis=1)
        np.testing.assert_array_equal(run(f, arguments)["t"], want)


def test_mixed_updates_of_elements_of_their_own():
    values = data(5, 4)
    f = program(
        par(
            "i", "n", seq("j", "m", put(at(v, "i"), at(x, "i", "j"), "add"), put(at(v, "i"), lit(0.5, F64), "mul")), reduce=(v,)
        )
    )

    def step(after: dict[str, Array], i: int, j: int) -> None:
        after["v"][i] = (after["v"][i] + after["x"][i, j]) * 0.5

    assert not conflicts(f, values)
    np.testing.assert_array_equal(run(f, values)["v"], python(values, step)["v"])


def lexicographic(update: str, triples: list[tuple[float, ...]]) -> tuple[float, ...]:
    return min((-t[0] if update == "max" else t[0], *t[1:]) for t in triples)


@pytest.mark.parametrize("update", ["max", "min"])
def test_tuples_of_three_go_down_the_components(update: str):
    a = buffer("a", I32, "n", 3)
    best = [buffer(name, I32, "g", role="inout") for name in "pqr"]
    step = Bind(tuple(at(b, sym("i") % 4) for b in best), tuple(at(a, "i", k) for k in range(3)), update)
    f = function((a, *best), (), par("i", "n", step, reduce=tuple(best)), sizes="n g")
    values = rng.integers(-2, 3, (60, 3)).astype(np.int32)
    start = np.full(4, -9 if update == "max" else 9, np.int32)
    out = run(f, {"a": values, "p": start, "q": start, "r": start})
    for group in range(4):
        want = lexicographic(update, [tuple(row) for row in values[group::4].tolist()])
        assert (out["p"][group] * (-1 if update == "max" else 1), out["q"][group], out["r"][group]) == want


def test_tuple_targets_that_do_not_go_together():
    a = buffer("a", I32, "n")
    p, q = buffer("p", I32, 2, role="inout"), buffer("q", I32, 3, role="inout")
    step = Bind((at(p, sym("i") // 21), at(q, sym("i") % 3)), (at(a, "i"), index("i", I32)), "max")
    f = function((a, p, q), (), par("i", "n", step, reduce=(p, q)), sizes="n")
    for _ in range(5):
        arguments = {"a": rng.integers(0, 99, 42).astype(np.int32), "p": np.zeros(2, np.int32), "q": np.zeros(3, np.int32)}
        found, want = run(f, arguments), trace(f, arguments).outputs
        np.testing.assert_array_equal(np.append(found["p"], found["q"]), np.append(want["p"], want["q"]))


def test_an_update_that_is_free_of_order_waits_for_a_noted_one():
    a = buffer("a", F32, "n")
    p, q = buffer("p", F32, "n", role="inout"), buffer("q", I32, "n", role="inout")
    step = Bind((at(p, "i"), at(q, "i")), (at(a, "i"), index("i", I32)), "max")
    nest = par("i", "n", put(at(p, "i"), lit(1, F32), "add"), step, put(at(q, "i"), lit(5, I32), "max"), reduce=(p, q))
    f = function((a, p, q), (), nest, sizes="n")
    arguments = {"a": np.array([3, 1], np.float32), "p": np.zeros(2, np.float32), "q": np.zeros(2, np.int32)}
    out = run(f, arguments)
    assert out["p"].tolist() == [3.0, 1.0] and out["q"].tolist() == [5, 5]
    np.testing.assert_array_equal(out["q"], trace(f, arguments).outputs["q"])


def test_tuples_that_were_settled_leave_nothing_to_do():
    a = buffer("a", F32, "n")
    p, q = buffer("p", F32, "n", role="inout"), buffer("q", I32, "n", role="inout")
    step = Bind((at(p, "i"), at(q, "i")), (at(a, "i"), index("i", I32)), "max")
    nest = par("i", "n", step, put(at(p, "i"), lit(-5, F32), "add"), step, put(at(q, "i"), lit(7, I32)), reduce=(p, q))
    f = function((a, p, q), (), nest, sizes="n")
    arguments = {"a": np.array([3, 1], np.float32), "p": np.array([1, 5], np.float32), "q": np.zeros(2, np.int32)}
    out = run(f, arguments)
    assert out["p"].tolist() == [3.0, 1.0] and out["q"].tolist() == [7, 7]


def test_a_tuple_of_which_the_clauses_name_one_target_each():
    a = buffer("a", I32, "n", "m")
    p, q = buffer("p", I32, role="inout"), buffer("q", I32, "n", role="inout")
    step = Bind((at(p), at(q, "i")), (at(a, "i", "j"), index("j", I32)), "max")
    nest = par("i", "n", par("j", "m", step, reduce=(q,)), put(at(q, "i"), lit(3, I32), "mul"), reduce=(p,))
    f = function((a, p, q), (), nest, sizes="n m")
    arguments = {"a": rng.integers(0, 9, (3, 4)).astype(np.int32), "p": np.int32(4), "q": np.ones(3, np.int32)}
    found, want = run(f, arguments), trace(f, arguments).outputs
    np.testing.assert_array_equal(np.append(found["p"], found["q"]), np.append(want["p"], want["q"]))


def test_tuples_with_nan_and_bool_components():
    a, flag = buffer("a", F32, "n"), buffer("flag", BOOL, "n")
    p, q = buffer("p", F32, role="inout"), buffer("q", BOOL, role="inout")
    step = Bind((at(p), at(q)), (at(a, "i"), at(flag, "i")), "min")
    f = function((a, flag, p, q), (), par("i", "n", step, reduce=(p, q)), sizes="n")
    arguments = {"a": np.array([2, 1, 1, np.nan], np.float32), "flag": np.array([0, 1, 0, 1], bool), "p": 5.0, "q": True}
    for n, want in ((2, (1.0, True)), (3, (1.0, False)), (4, (np.nan, True))):
        some = {**arguments, "a": arguments["a"][:n], "flag": arguments["flag"][:n]}
        for out in (run(f, some), trace(f, some).outputs):
            np.testing.assert_array_equal(out["p"], want[0])
            assert out["q"] == want[1]


def test_local_accumulators_do_not_meet_across_iterations():
    acc: Buffer = buffer("acc", F32, role="local")
    a, y = buffer("a", BF16, "n", "m"), buffer("y", F32, "n", role="result")
    inner = par("j", "m", put(at(acc), cast(at(a, "i", "j"), F32), "add"), reduce=(acc,))
    f = function((a,), (y,), par("i", "n", New(acc), put(at(acc), lit(0, F32)), inner, put(at(y, "i"), at(acc))), sizes="n m")
    values = rng.integers(-4, 5, (50, 300)).astype(numpy_dtype(BF16))
    np.testing.assert_array_equal(run(f, {"a": values})["y"], values.astype(np.float32).sum(1))
