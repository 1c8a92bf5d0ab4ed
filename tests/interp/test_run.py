"""Whole programs against NumPy."""

from __future__ import annotations

import tracemalloc
import warnings

import ml_dtypes
import numpy as np
import pytest
from tests.interp.build import at, buffer, cast, e, function, index, let, lit, op, par, put, ref, seq, when

from texpr.affine.expr import Sym, maximum, minimum, sym
from texpr.interp import run
from texpr.interp.dtypes import Array, numpy_dtype
from texpr.ir.program import Anchor, Bind, Combiner, Function, Instruction, New
from texpr.ir.value.types import BF16, BOOL, DTYPES, F8E8M0, F16, F32, F64, I32, I64, TF32, U8, U64, DType
from texpr.support.diagnostic import TexprError

rng = np.random.default_rng(2)


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def small(*shape: int, dtype: DType = F32, low: int = -4, high: int = 5) -> Array:
    return rng.integers(low, high, shape).astype(numpy_dtype(dtype))


def both(f: Function, arguments: dict[str, object], sizes: dict[str, int] | None = None) -> dict[str, Array]:
    """The results, after a check that the traced run finds nothing wrong and leaves the same."""
    found, traced = run(f, arguments, sizes), run(f, arguments, sizes, checked=True)  # pyright: ignore
    assert list(found) == list(traced)
    for name in found:
        assert found[name].dtype == traced[name].dtype
        np.testing.assert_array_equal(found[name], traced[name])
    return found


def saxpy() -> Function:
    a, x, y = buffer("a", F32), buffer("x", F32, "n"), buffer("y", F32, "n")
    z = buffer("z", F32, "n", role="result")
    body = par("i", "n", put(at(z, "i"), op("add", op("mul", at(a), at(x, "i")), at(y, "i"))))
    return function((a, x, y), (z,), body, sizes="n")


@pytest.mark.parametrize("n", [0, 1, 7, 64])
def test_saxpy(n: int):
    x, y = small(n), small(n)
    np.testing.assert_array_equal(both(saxpy(), {"a": 3, "x": x, "y": y})["z"], 3 * x + y)


def test_saxpy_in_chunks():
    n = 200_003
    x, y = small(n), small(n)
    np.testing.assert_array_equal(run(saxpy(), {"a": 3, "x": x, "y": y})["z"], 3 * x + y)


def test_inputs_of_any_layout_and_not_changed():
    base = small(20)
    base.flags.writeable = False
    strided, reverse = base[::2], base[::-1][:10]
    z = run(saxpy(), {"a": np.float32(2), "x": strided, "y": reverse})["z"]
    np.testing.assert_array_equal(z, 2 * strided + reverse)
    assert z.flags.writeable


def matmul(element: DType, total: DType, clause: bool = False) -> Function:
    a, b = buffer("A", element, "M", "K"), buffer("B", element, "K", "N")
    c = buffer("C", total, "M", "N", role="result")
    product = op("mul", cast(at(a, "i", "k"), total), cast(at(b, "k", "j"), total))
    inner = seq("k", "K", put(at(c, "i", "j"), product, "add"), reduce=(c,) if clause else ())
    return function((a, b), (c,), par("i", "M", par("j", "N", put(at(c, "i", "j"), lit(0, total)), inner)), sizes="M K N")


@pytest.mark.parametrize("element", [F16, BF16, DTYPES["f8e4m3"], DTYPES["f8e5m2"], TF32, F32], ids=str)
@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 3), (1, 1, 1), (5, 7, 3)])
def test_matmul(element: DType, shape: tuple[int, int, int]):
    m, k, n = shape
    a, b = small(m, k, dtype=element), np.asfortranarray(small(k, n, dtype=element))
    c = both(matmul(element, F32), {"A": a, "B": b})["C"]
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_matmul_of_a_useful_size():
    a, b = small(256, 256, dtype=BF16), small(256, 256, dtype=BF16)
    tracemalloc.start()
    c = run(matmul(BF16, F32), {"A": a, "B": b})["C"]
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_seq_adds_in_order_in_the_type():
    k = 300
    a, b = rng.standard_normal((2, k)).astype(np.float32), rng.standard_normal((k, 3)).astype(np.float32)
    want = np.zeros((2, 3), np.float32)
    for step in range(k):
        want += a[:, step : step + 1] * b[step]
    np.testing.assert_array_equal(run(matmul(F32, F32), {"A": a, "B": b})["C"], want)


def test_bf16_accumulates_with_a_rounding_each_step():
    x, s = buffer("x", BF16, "n"), buffer("s", BF16, role="result")
    f = function((x,), (s,), put(at(s), lit(0, BF16)), seq("i", "n", put(at(s), at(x, "i"), "add")), sizes="n")
    assert float(both(f, {"x": np.ones(300, ml_dtypes.bfloat16)})["s"]) == 256.0


def test_seed_matmul_with_flat_views():
    a, b = buffer("A", F32, sym("M") * sym("K")), buffer("B", F32, sym("K") * sym("N"))
    c = buffer("C", F32, sym("M") * sym("N"), role="inout")
    i, j, k = sym("i"), sym("j"), sym("k")
    product = op("mul", at(a, i * sym("K") + k), at(b, k * sym("N") + j))
    nest = par("i", "M", par("j", "N", seq("k", "K", put(at(c, i * sym("N") + j), product, "add"))))
    x, y, z = small(6), small(12), small(8)
    f = function((a, b, c), (), nest, sizes="M K N")
    out = both(f, {"A": x, "B": y, "C": z}, {"K": 3, "M": 2, "N": 4})["C"]
    np.testing.assert_array_equal(out.reshape(2, 4), z.reshape(2, 4) + x.reshape(2, 3) @ y.reshape(3, 4))
    assert out is not z


def test_softmax_with_locals_of_each_iteration():
    x, y = buffer("x", F32, "B", "n"), buffer("y", F32, "B", "n", role="result")
    m, s, ex = (buffer(name, F32, *shape, role="local") for name, shape in (("m", ()), ("s", ()), ("ex", ("n",))))
    body = par(
        "b",
        "B",
        New(m),
        New(s),
        New(ex),
        put(at(m), lit(-np.inf, F32)),
        seq("i", "n", put(at(m), at(x, "b", "i"), "max")),
        par("j", "n", put(at(ex, "j"), op("exp", op("sub", at(x, "b", "j"), at(m))))),
        put(at(s), lit(0, F32)),
        seq("k", "n", put(at(s), at(ex, "k"), "add")),
        par("l", "n", put(at(y, "b", "l"), op("div", at(ex, "l"), at(s)))),
    )
    data = rng.standard_normal((5, 9)).astype(np.float32)
    want = np.exp(data.astype(np.float64) - data.max(1, keepdims=True))
    np.testing.assert_allclose(
        both(function((x,), (y,), body, sizes="B n"), {"x": data})["y"], want / want.sum(1, keepdims=True), rtol=1e-6
    )


@pytest.mark.parametrize("update", ["max", "min"])
@pytest.mark.parametrize("dtype", [F32, BF16, I32, U8], ids=str)
def test_argmax_by_tuple_update(update: str, dtype: DType):
    x = buffer("x", dtype, "n")
    m, where = buffer("m", dtype, role="result"), buffer("at", I64, role="result")
    step = Bind((at(m), at(where)), (at(x, "i"), index("i", I64)), update)
    f = function(
        (x,), (m, where), put(at(m), at(x, 0)), put(at(where), lit(0, I64)), par("i", "n", step, reduce=(m, where)), sizes="n"
    )
    for n in (1, 2, 7, 40):
        data = small(n, dtype=dtype, low=0, high=6)
        out = both(f, {"x": data})
        best = getattr(np, "arg" + update)(data.astype(np.float64))
        assert out["at"] == best and out["m"] == data[best]


def test_argmax_of_a_million():
    x = buffer("x", F32, "n")
    m, where = buffer("m", F32, role="result"), buffer("at", I32, role="result")
    step = Bind((at(m), at(where)), (at(x, "i"), index("i", I32)), "max")
    start = (put(at(m), lit(-np.inf, F32)), put(at(where), lit(0, I32)))
    f = function((x,), (m, where), *start, par("i", "n", step, reduce=(m, where)), sizes="n")
    data = small(1_000_000, high=1000)
    assert run(f, {"x": data})["at"] == data.argmax()
    data[700_000] = data[900_000] = np.nan
    assert run(f, {"x": data})["at"] == 700_000


def test_histogram():
    x, h = buffer("x", I32, "n"), buffer("h", I32, "m", role="inout")
    body = par("i", "n", put(at(h, "b", data=((Sym("b"), at(x, "i")),)), lit(1, I32), "add"), reduce=(h,))
    data = small(500, dtype=I32, low=0, high=7)
    zero = np.zeros(7, np.int32)
    np.testing.assert_array_equal(
        both(function((x, h), (), body, sizes="n m"), {"x": data, "h": zero})["h"], np.bincount(data, minlength=7)
    )
    assert not zero.any()


def test_gather_and_scatter():
    a, p = buffer("A", F32, "n", "m"), buffer("p", I64, "n")
    g, s = (buffer(name, F32, "n", "m", role="result") for name in "gs")
    picked = ((Sym("q"), at(p, "i")),)
    body = par(
        "i",
        "n",
        par("j", "m", put(at(g, "i", "j"), at(a, "q", "j", data=picked)), put(at(s, "q", "j", data=picked), at(a, "i", "j"))),
    )
    data, order = small(6, 3), rng.permutation(6)
    out = both(function((a, p), (g, s), body, sizes="n m"), {"A": data, "p": order})
    np.testing.assert_array_equal(out["g"], data[order])
    np.testing.assert_array_equal(out["s"][order], data)


def test_an_index_read_through_another_index():
    x, p, y = buffer("x", F32, "n"), buffer("p", I32, "n"), buffer("y", F32, "n", role="result")
    data = ((Sym("q"), at(p, "i")), (Sym("r"), at(p, "q")))
    values, order = small(8), rng.permutation(8).astype(np.int32)
    f = function((x, p), (y,), par("i", "n", put(at(y, "i"), at(x, "r", data=data))), sizes="n")
    np.testing.assert_array_equal(both(f, {"x": values, "p": order})["y"], values[order[order]])


def test_jacobi_with_a_time_loop():
    a, b = buffer("A", F64, "n", "m", role="inout"), buffer("B", F64, "n", "m", role="local")
    i, j = sym("i"), sym("j")
    inside = op(
        "and",
        op("and", op("gt", index(i, I64), lit(0, I64)), op("lt", index(i, I64), index(sym("n") - 1, I64))),
        op("and", op("gt", index(j, I64), lit(0, I64)), op("lt", index(j, I64), index(sym("m") - 1, I64))),
    )
    total = op("add", op("add", at(a, i - 1, j), at(a, i + 1, j)), op("add", at(a, i, j - 1), at(a, i, j + 1)))
    step = par("i", "n", par("j", "m", put(at(b, i, j), op("select", inside, op("mul", lit(0.25, F64), total), at(a, i, j)))))
    back = par("k", "n", par("l", "m", put(at(a, "k", "l"), at(b, "k", "l"))))
    f = function((a,), (), seq("t", 3, New(b), step, back), sizes="n m")
    data = small(6, 5, dtype=F64)
    want = data.copy()
    for _ in range(3):
        want[1:-1, 1:-1] = 0.25 * ((want[:-2, 1:-1] + want[2:, 1:-1]) + (want[1:-1, :-2] + want[1:-1, 2:]))
    np.testing.assert_array_equal(both(f, {"A": data})["A"], want)


def test_triangular_loops():
    x, y = buffer("x", I32, "n"), buffer("y", I32, "n", role="result")
    f = function(
        (x,),
        (y,),
        par("i", "n", put(at(y, "i"), lit(0, I32)), seq("j", sym("i") + 1, put(at(y, "i"), at(x, "j"), "add"))),
        sizes="n",
    )
    data = small(9, dtype=I32)
    np.testing.assert_array_equal(both(f, {"x": data})["y"], np.cumsum(data))


def test_triangular_par_and_empty_extents():
    c = buffer("C", I32, "n", "n", role="inout")
    nest = par("i", "n", par("j", sym("i") - 2, put(at(c, "i", "j"), index(sym("i") * 10 + sym("j"), I32))))
    got = both(function((c,), (), nest, sizes="n"), {"C": np.zeros((6, 6), np.int32)})["C"]
    want = np.fromfunction(lambda i, j: np.where(j < i - 2, i * 10 + j, 0), (6, 6))
    np.testing.assert_array_equal(got, want)


def test_a_loop_as_long_as_the_data_says():
    n, y = buffer("len", I32, "n"), buffer("y", I64, "n", role="result")
    step = put(at(y, "i"), op("add", index("j", I64), cast(ref("m", I32), I64)), "add")
    nest = par("i", "n", let("m", at(n, "i")), put(at(y, "i"), lit(0, I64)), seq("j", "m", step))
    f = function((n,), (y,), nest, sizes="n")
    data = np.array([3, 0, 5, 1, -2], np.int32)
    np.testing.assert_array_equal(both(f, {"len": data})["y"], [3 + 9, 0, 10 + 25, 1, 0])


def test_the_branch_not_taken_is_not_read():
    x, y = buffer("x", F32, "n"), buffer("y", F32, "n", role="result")
    before = op("select", op("gt", index("i", I64), lit(0, I64)), at(x, sym("i") - 1), lit(9, F32))
    data = small(5)
    f = function((x,), (y,), par("i", "n", put(at(y, "i"), before)), sizes="n")
    np.testing.assert_array_equal(both(f, {"x": data})["y"], [9, *data[:-1]])


def test_if_on_data_and_nested():
    x, y = buffer("x", I32, "n"), buffer("y", I32, "n", role="result")
    odd = op("eq", op("mod", at(x, "i"), lit(2, I32)), lit(1, I32))
    many = op("gt", at(x, "i"), lit(4, I32))
    inner = when(many, put(at(y, "i"), lit(1, I32)), orelse=(put(at(y, "i"), lit(2, I32)),))
    f = function((x,), (y,), par("i", "n", when(odd, inner, orelse=(put(at(y, "i"), lit(3, I32)),))), sizes="n")
    data = small(40, dtype=I32, low=0, high=9)
    np.testing.assert_array_equal(both(f, {"x": data})["y"], np.where(data % 2 == 1, np.where(data > 4, 1, 2), 3))


def test_shapes_of_locals_that_depend_on_the_iteration():
    y, t = buffer("y", I32, "n", role="result"), buffer("t", I32, sym("i") + 1, role="local")
    fill = par("j", sym("i") + 1, put(at(t, "j"), index("j", I32)))
    f = function((y,)[:0], (y,), par("i", "n", New(t), fill, put(at(y, "i"), at(t, "i"))), sizes="n")
    np.testing.assert_array_equal(both(f, {}, {"n": 7})["y"], np.arange(7))


def test_big_locals_take_turns():
    y, t = buffer("y", I32, "n", role="result"), buffer("t", F64, 1 << 20, role="local")
    body = par("i", "n", New(t), put(at(t, sym("i") * 2), lit(3, F64)), put(at(y, "i"), cast(at(t, 2 * sym("i")), I32)))
    tracemalloc.start()
    assert (run(function((), (y,), body, sizes="n"), {}, {"n": 200})["y"] == 3).all()
    assert tracemalloc.get_traced_memory()[1] < 1 << 30
    tracemalloc.stop()


def test_swap_by_simultaneous_assignment():
    a, b = buffer("a", I32, "n", role="inout"), buffer("b", I32, "n", role="inout")
    swap = Bind((at(a, "i"), at(b, "i")), (at(b, "i"), at(a, "i")))
    x, y = small(5, dtype=I32), small(5, dtype=I32)
    out = both(function((a, b), (), par("i", "n", swap), sizes="n"), {"a": x, "b": y})
    np.testing.assert_array_equal([out["a"], out["b"]], [y, x])


def test_floor_modulo_min_and_max_in_indices():
    x, y = buffer("x", I32, "n"), buffer("y", I32, "n", role="result")
    i, n = sym("i"), sym("n")
    where = (minimum(i + 3, n - 1) // 2) + maximum((i - 5) % 3, 0)
    f = function((x,), (y,), par("i", "n", put(at(y, "i"), at(x, minimum(where, n - 1)))), sizes="n")
    data = small(12, dtype=I32)
    want = [data[min(min(k + 3, 11) // 2 + max((k - 5) % 3, 0), 11)] for k in range(12)]
    np.testing.assert_array_equal(both(f, {"x": data})["y"], want)


def test_index_arithmetic_beyond_64_bits_is_exact():
    y = buffer("y", I64, "n", role="result")
    i = sym("i")
    huge = (i * (2**62) * 5 + 7) % 11
    out = both(function((), (y,), par("i", "n", put(at(y, "i"), index(huge, I64))), sizes="n"), {}, {"n": 20})["y"]
    np.testing.assert_array_equal(out, [(k * 2**62 * 5 + 7) % 11 for k in range(20)])


def test_indices_as_values_of_every_type():
    for dtype in DTYPES.values():
        if dtype not in (BOOL, F8E8M0):  # scales have no zero
            y = buffer("y", dtype, "n", role="result")
            f = function((), (y,), par("i", "n", put(at(y, "i"), index(sym("i") * 2, dtype))), sizes="n")
            np.testing.assert_array_equal(both(f, {}, {"n": 5})["y"].astype(np.float64), [0, 2, 4, 6, 8])


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_every_type_is_read_and_written(dtype: DType):
    x, s, y = buffer("x", dtype, "n"), buffer("s", dtype), buffer("y", dtype, "n", role="result")
    z = buffer("z", dtype, role="result")
    choose = op("select", op("eq", at(x, "i"), at(s)), at(s), at(x, "i"))
    f = function((x, s), (y, z), par("i", "n", put(at(y, "i"), choose)), put(at(z), at(s)), sizes="n")
    data = np.array([2, 1, 1, 2] if dtype == F8E8M0 else [0, 1, 1, 0], numpy_dtype(dtype))
    out = both(f, {"x": data, "s": data[1]})
    np.testing.assert_array_equal(out["y"], data)
    assert out["z"].dtype == data.dtype and out["z"].shape == ()


def test_u64_above_the_range_of_i64_as_an_index():
    x, p, y = buffer("x", F32, "n"), buffer("p", U64, "n"), buffer("y", F32, "n", role="result")
    f = function((x, p), (y,), par("i", "n", put(at(y, "i"), at(x, "q", data=((Sym("q"), at(p, "i")),)))), sizes="n")
    with pytest.raises(TexprError, match=r"E0720|E0725"):
        run(f, {"x": small(2), "p": np.array([1, 2**64 - 1], np.uint64)})


def test_anchor_and_instruction():
    x, y = buffer("x", F32, "n"), buffer("y", F32, "n", role="result")
    move = Instruction("move", (put(at(y, "i"), at(x, "i")),), (at(x, "i"), at(y, "i")))
    f = function((x,), (y,), par("i", "n", Anchor(at(x, "i")), move), sizes="n")
    data = small(4)
    np.testing.assert_array_equal(both(f, {"x": data})["y"], data)


def test_a_scalar_result_of_a_combiner():
    a, b = ref("a", F64), ref("b", F64)
    length = op("sqrt", op("add", op("mul", a, a), op("mul", b, b)))
    norm = Combiner("hypot", Sym("a"), Sym("b"), F64, lit(0, F64), length)
    x, s = buffer("x", F64, "n"), buffer("s", F64, role="result")
    f = function((x,), (s,), put(at(s), lit(0, F64)), par("i", "n", put(at(s), at(x, "i"), norm), reduce=(s,)), sizes="n")
    assert both(f, {"x": np.array([3.0, 4.0, 12.0, 84.0])})["s"] == 85.0


def test_results_and_inouts_by_name_in_order():
    a, b = buffer("a", F32, role="inout"), buffer("b", F32, role="inout")
    r = buffer("r", F32, role="result")
    f = function((a, b), (r, b), put(at(r), at(a)), put(at(b), at(a), "add"))
    out = both(f, {"a": 2.0, "b": 3})
    assert list(out) == ["r", "b", "a"] and [float(x) for x in out.values()] == [2.0, 5.0, 2.0]


def test_consts_and_their_defaults():
    y = buffer("y", I32, "n", role="result")
    f = function((), (y,), par("i", "n", put(at(y, "i"), index(sym("i") * sym("s") + sym("t"), I32))), sizes="n",
                 consts=((Sym("s"), 2), (Sym("t"), None)))  # fmt: skip
    np.testing.assert_array_equal(both(f, {}, {"n": 3, "t": -5})["y"], [-5, -3, -1])
    np.testing.assert_array_equal(both(f, {}, {"n": 3, "t": 0, "s": 7})["y"], [0, 7, 14])


def failing(f: Function, arguments: dict[str, object], sizes: dict[str, int] | None = None) -> str:
    with pytest.raises(TexprError) as caught:
        run(f, arguments, sizes)  # pyright: ignore
    return str(caught.value)


def test_out_of_bounds_names_index_and_iteration():
    x, y = buffer("x", F32, "n"), buffer("y", F32, "n", role="result")
    f = function((x,), (y,), par("i", "n", put(at(y, "i"), at(x, sym("i") + 1))), sizes="n")
    assert (
        failing(f, {"x": small(5)}) == "E0720: index 5 of `x: f32[n]` is out of bounds: dimension 0 has 5 elements (at i = 4)"
    )


def test_below_zero_is_out_of_bounds():
    x, y = buffer("x", F32, "n"), buffer("y", F32, "n", role="result")
    f = function((x,), (y,), par("i", "n", seq("k", 3, put(at(y, "i"), at(x, sym("i") - sym("k"))))), sizes="n")
    assert "index -1" in failing(f, {"x": small(5)}) and "(at i = 0, k = 1)" in failing(f, {"x": small(5)})


def test_a_local_is_checked_against_the_shape_of_its_own_iteration():
    y, t = buffer("y", I32, "n", role="result"), buffer("t", I32, sym("i") + 1, role="local")
    f = function((), (y,), par("i", "n", New(t), put(at(t, 1), lit(1, I32)), put(at(y, "i"), lit(1, I32))), sizes="n")
    assert "dimension 0 has 1 elements (at i = 0)" in failing(f, {}, {"n": 4})


def test_an_element_never_written_is_not_read():
    x, t, y = buffer("x", F32, "n"), buffer("t", F32, "n", 2, role="local"), buffer("y", F32, "n", role="result")
    fill = par("i", "n", put(at(t, "i", 0), at(x, "i")))
    f = function((x,), (y,), New(t), fill, par("j", "n", put(at(y, "j"), at(t, "j", sym("j") // 3))), sizes="n")
    assert failing(f, {"x": small(5)}) == "E0721: t[3, 1] is read before it is written (at j = 3)"
    assert run(f, {"x": np.ones(3, np.float32)})["y"].tolist() == [1, 1, 1]


def test_an_update_reads():
    s = buffer("s", F32, role="result")
    assert failing(function((), (s,), put(at(s), lit(1, F32), "add")), {}).startswith("E0721: s is read before")


def test_memory_is_fresh_in_each_iteration():
    s, t = buffer("s", F32, role="result"), buffer("t", F32, role="local")
    first = op("eq", index("i", I64), lit(0, I64))
    f = function((), (s,), seq("i", 2, New(t), when(first, put(at(t), lit(1, F32))), put(at(s), at(t))))
    assert failing(f, {}) == "E0721: t is read before it is written (at i = 1)"


def test_a_result_must_be_written():
    y = buffer("y", F32, "n", 2, role="result")
    f = function((), (y,), par("i", "n", put(at(y, "i", sym("i") % 2), lit(1, F32))), sizes="n")
    assert failing(f, {}, {"n": 3}) == "E0722: `f` returns y[0, 1], which it never writes"


def test_a_division_by_zero_in_an_index():
    x, y = buffer("x", F32, "n"), buffer("y", F32, "n", role="result")
    f = function((x,), (y,), par("i", "n", put(at(y, "i"), at(x, e(0) + sym("n") // sym("i")))), sizes="n")
    assert failing(f, {"x": small(5)}) == "E0724: `(n / i)` divides by zero"


def test_an_index_that_needs_more_than_64_bits():
    x, y = buffer("x", F32, "n"), buffer("y", F32, "n", role="result")
    f = function((x,), (y,), par("i", "n", put(at(y, "i"), at(x, sym("i") * 2**63))), sizes="n")
    assert failing(f, {"x": small(5)}).startswith("E0725")


def test_a_negative_shape_of_a_local():
    t, y = buffer("t", F32, sym("n") - 3, role="local"), buffer("y", F32, "n", role="result")
    f = function((), (y,), New(t), par("i", "n", put(at(y, "i"), lit(0, F32))), sizes="n")
    assert failing(f, {}, {"n": 2}) == "E0726: dimension 0 of `t: f32[n - 3]` is -1"
    assert run(f, {}, {"n": 3})["y"].tolist() == [0, 0, 0]
