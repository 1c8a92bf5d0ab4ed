"""What a caller may pass, and what is said when it does not fit."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from tests.interp.build import at, buffer, e, function, lit, par, put

from texpr.affine.expr import Expr, Sym, sym
from texpr.interp import bind, run
from texpr.interp.arguments import shape_of
from texpr.interp.facts import check_facts
from texpr.ir.program import Assume, Compare, Function, Injective, InRange, Monotone
from texpr.ir.value import Buffer
from texpr.ir.value.types import BF16, BOOL, DTYPES, F8E4M3, F16, F32, F64, I8, I32, I64, TF32, U8, U64, DType
from texpr.support.codes import TITLES
from texpr.support.diagnostic import TexprError

M, N, K = sym("M"), sym("N"), sym("K")


def takes(*params: Buffer, sizes: str = "", **more: object) -> Function:
    return function(params, (), sizes=sizes, **more)


def fails(f: Function, arguments: dict[str, object], sizes: dict[str, object] | None = None) -> str:
    """The one diagnostic, as `code: message` with its notes."""
    with pytest.raises(TexprError) as caught:
        bound = bind(f, arguments, sizes)  # pyright: ignore
        check_facts(f, bound)
    (found,) = caught.value.diagnostics
    assert found.code in TITLES
    return "; ".join([f"{found.code}: {found.message}", *(note.text for note in found.notes)])


def solved(shapes: list[tuple[Expr | int, ...]], found: list[tuple[int, ...]], sizes: str, **given: int) -> dict[str, int]:
    params = [buffer(f"x{k}", I8, *shape) for k, shape in enumerate(shapes)]
    arrays = {p.name: np.zeros(f, np.int8) for p, f in zip(params, found, strict=True)}
    bound = bind(takes(*params, sizes=sizes), arrays, given)
    for param in params:
        assert bound.arrays[param.name].shape == shape_of(param, bound.sizes)
    return {s.name: v for s, v in bound.sizes.items()}


def test_sizes_follow_from_shapes():
    assert solved([(M, K), (K, N)], [(2, 3), (3, 4)], "M K N") == {"M": 2, "K": 3, "N": 4}
    assert solved([(2 * N + 1,)], [(9,)], "N") == {"N": 4}
    assert solved([(M * K,), (K,)], [(12,), (3,)], "M K") == {"M": 4, "K": 3}
    assert solved([(M + N,), (N - 1,)], [(9,), (4,)], "M N") == {"M": 4, "N": 5}
    assert solved([(M * K,)], [(0,)], "M K", K=0, M=7) == {"M": 7, "K": 0}
    assert solved([(N // 2, N)], [(3, 7)], "N") == {"N": 7}
    assert solved([(0, 5, N)], [(0, 5, 0)], "N") == {"N": 0}
    assert solved([((N + 3) // 4,)], [(3,)], "N", N=10) == {"N": 10}


def test_sizes_that_do_not_follow():
    flat = takes(buffer("A", F32, M * K), sizes="M K")
    assert fails(flat, {"A": np.zeros(6, np.float32)}) == "E0708: size `M` of `f` does not follow from the shapes"
    assert bind(flat, {"A": np.zeros(6, np.float32)}, {"K": 2}).sizes == {Sym("K"): 2, Sym("M"): 3}
    half = takes(buffer("A", F32, N // 2), sizes="N")
    assert fails(half, {"A": np.zeros(6, np.float32)}).startswith("E0708")


def test_shapes_that_contradict():
    f = takes(buffer("A", F32, M, K), buffer("B", F32, K, N), sizes="M K N")
    a, b = np.zeros((2, 3), np.float32), np.zeros((4, 5), np.float32)
    assert fails(f, {"A": a, "B": b}) == (
        "E0709: dimension 0 of `B: f32[K, N]` must be K = 3, it is 4; K = 3, from dimension 1 of `A`"
    )
    assert "must be M = 7, it is 2; M = 7, as given" in fails(f, {"A": a, "B": b}, {"M": 7, "K": 3})
    assert "must be 3, it is 2" in fails(takes(buffer("A", F32, 3)), {"A": np.zeros(2, np.float32)})
    odd = takes(buffer("A", F32, 2 * N), sizes="N")
    assert fails(odd, {"A": np.zeros(3, np.float32)}) == "E0709: dimension 0 of `A: f32[2 * N]` is 3, for which no N ≥ 0 fits"
    assert "must be 2 * N = 4, it is 3" in fails(odd, {"A": np.zeros(3, np.float32)}, {"N": 2})
    longer = takes(buffer("A", F32, N + 5), sizes="N")
    assert "is 3, for which no N ≥ 0 fits" in fails(longer, {"A": np.zeros(3, np.float32)})
    below = takes(buffer("A", F32, N - 1), buffer("B", F32, N), sizes="N")
    empty = np.zeros(0, np.float32)
    assert "must be N = 1, it is 0; N = 1, from dimension 0 of `A`" in fails(below, {"A": empty, "B": empty})
    assert "must be N - 1 = -1, it is 0" in fails(below, {"A": empty, "B": empty}, {"N": 0})


def test_a_shape_that_divides_by_zero():
    f = takes(buffer("A", F32, N // M), buffer("B", F32, N, M), sizes="N M")
    assert fails(f, {"A": np.zeros(1, np.float32), "B": np.zeros((4, 0), np.float32)}).startswith("E0709")


def test_names_and_sizes_that_are_not_there():
    f = takes(buffer("A", F32, N), sizes="N")
    a = np.zeros(3, np.float32)
    assert fails(f, {"A": a, "B": a}) == "E0701: `f` has no parameter `B`"
    assert fails(f, {}) == "E0702: `f` needs an argument for `A: f32[N]`"
    assert fails(f, {"A": a}, {"n": 3}) == "E0706: `f` has no size `n`"
    assert fails(f, {"A": a}, {"N": -3}) == "E0707: size `N` of `f` must not be negative, it is -3"
    assert fails(f, {"A": a}, {"N": 3.0}) == "E0707: size `N` of `f` must be an integer, not float"
    assert bind(f, {"A": a}, {"N": np.int64(3)}).sizes == {Sym("N"): 3}  # pyright: ignore


def test_consts():
    f = takes(buffer("A", F32, N), sizes="N", consts=((Sym("s"), 2), (Sym("t"), None)))
    a = np.zeros(3, np.float32)
    assert fails(f, {"A": a}) == "E0708: const `t` of `f` has no value"
    assert bind(f, {"A": a}, {"t": -1}).sizes == {Sym("N"): 3, Sym("s"): 2, Sym("t"): -1}
    padded = takes(buffer("A", F32, sym("s") * 2), consts=((Sym("s"), 2),))
    assert fails(padded, {"A": a}) == "E0709: dimension 0 of `A: f32[2 * s]` must be 2 * s = 4, it is 3; s = 2, the default"


@pytest.mark.parametrize(
    "given", [[1.0, 2.0], (1.0,), None, "x", 1.0, np.complex64(1), object()], ids=lambda given: type(given).__name__
)
def test_what_is_no_array(given: object):
    assert fails(takes(buffer("A", F32, N), sizes="N"), {"A": given}).startswith("E0703: `A: f32[N]` takes an array of rank 1")


def test_what_is_no_number():
    for given in ([1.0], None, "1", np.complex64(1), np.str_("1")):
        assert fails(takes(buffer("a", F32)), {"a": given}).startswith("E0703: `a: f32[]` takes a number")


def test_element_types_match_exactly():
    f = takes(buffer("A", F32, N), sizes="N")
    for storage, name in ((np.float64, "f64"), (np.int32, "i32"), (ml_dtypes.bfloat16, "bf16"), (">f4", "NumPy's >f4")):
        assert f"not {name}" in fails(f, {"A": np.zeros(3, storage)})
    assert fails(takes(buffer("a", F32)), {"a": np.zeros((), np.float64)}).startswith("E0704")
    assert "not f32" in fails(takes(buffer("A", BOOL, N), sizes="N"), {"A": np.zeros(3, np.float32)})


def test_ranks():
    f = takes(buffer("A", F32, N), sizes="N")
    assert fails(f, {"A": np.zeros((1, 2), np.float32)}) == ("E0705: `A: f32[N]` takes an array of rank 1, not one of rank 2")
    assert fails(takes(buffer("a", F32)), {"a": np.zeros(1, np.float32)}).startswith("E0705: `a: f32[]` takes a number")


FITS: list[tuple[DType, object]] = [
    (F32, 0.5), (F32, 3), (F32, -math.inf), (F32, math.nan), (F32, np.float64(0.25)), (F32, np.int8(3)), (F64, 0.1),
    (F16, 2048), (BF16, 256), (BF16, ml_dtypes.bfloat16(0.5)), (F8E4M3, 448.0), (F8E4M3, math.nan), (TF32, 1.5),
    (I8, -128), (I32, 2.0), (U64, 2**64 - 1), (I64, np.uint64(5)), (BOOL, True), (BOOL, np.bool_(False)),
]  # fmt: skip


@pytest.mark.parametrize("dtype, given", FITS, ids=repr)
def test_scalars_that_fit(dtype: DType, given: object):
    held = bind(takes(buffer("a", dtype)), {"a": given}).arrays["a"]  # pyright: ignore
    assert held.shape == () and held.dtype == bind(takes(buffer("a", dtype)), {"a": held}).arrays["a"].dtype
    assert float(held) == float(given) or math.isnan(float(given))  # pyright: ignore


@pytest.mark.parametrize("dtype, given, held", [(F32, 0.1, float(np.float32(0.1))), (TF32, 1 + 2.0**-11, 1.0)])
def test_a_python_float_is_rounded(dtype: DType, given: float, held: float):
    assert float(bind(takes(buffer("a", dtype)), {"a": given}).arrays["a"]) == held


MISFITS: list[tuple[DType, object]] = [
    (F32, 2**24 + 1), (F64, 2**53 + 1), (F64, 10**400), (F16, 65520.0), (BF16, 257), (F8E4M3, math.inf),
    (F8E4M3, 500.0), (F32, 1e300), (I8, 128), (U8, -1), (I32, 0.5), (I32, math.nan), (I32, math.inf), (U64, 2**64),
    (I32, True), (F32, np.bool_(True)), (BOOL, 1), (BOOL, 0.0), (F32, np.float64(0.1)),
]  # fmt: skip


@pytest.mark.parametrize("dtype, given", MISFITS, ids=repr)
def test_scalars_that_do_not_fit(dtype: DType, given: object):
    assert fails(takes(buffer("a", dtype)), {"a": given}).startswith("E0704: `a: ")


def test_arrays_are_passed_on_as_they_are():
    base = np.zeros((4, 6), np.float32)
    for array in (base, base.T, base[::2, ::-1], np.asfortranarray(base), np.broadcast_to(np.float32(1), (4, 6)), base[:0]):
        assert bind(takes(buffer("A", F32, M, N), sizes="M N"), {"A": array}).arrays["A"] is array


@pytest.mark.parametrize("op, holds", [("==", 0), ("!=", 1), ("<", 1), ("<=", 1), (">", 0), (">=", 0)])
def test_where(op: str, holds: int):
    f = takes(buffer("A", F32, N), sizes="N", where=(Compare(op, N % 4, e(3)),))
    arguments: dict[str, object] = {"A": np.zeros(6, np.float32)}
    if holds:
        check_facts(f, bind(f, arguments))  # pyright: ignore
    else:
        assert fails(f, arguments) == f"E0710: `where (N % 4) {op} 3` does not hold: it is 2 {op} 3; N = 6"


def test_where_that_divides_by_zero():
    f = takes(buffer("A", F32, N), sizes="N", where=(Compare("==", e(6) % N, e(0)),))
    assert fails(f, {"A": np.zeros(0, np.float32)}).startswith("E0710: `where (6 % N) == 0` divides by zero")


def assuming(array: np.ndarray, assume: type[Assume], *limits: Expr) -> str | None:
    dtype = next(t for t in DTYPES.values() if t.name == f"{'u' if array.dtype.kind == 'u' else 'i'}{array.dtype.itemsize * 8}")
    param = buffer("I", dtype, *(f"n{k}" for k in range(array.ndim)))
    f = takes(param, sizes=" ".join(f"n{k}" for k in range(array.ndim)), assumes=(assume(param, *limits),))
    try:
        check_facts(f, bind(f, {"I": array}))
    except TexprError as wrong:
        return str(wrong)
    return None


def test_assume_in_range():
    n = sym("n0")
    assert assuming(np.arange(5), InRange, e(0), n) is None
    assert assuming(np.arange(6, dtype=np.uint8), InRange, e(-1), n) is None
    assert assuming(np.zeros(0, np.int32), InRange, e(0), e(0)) is None
    assert assuming(np.array([0, 1, 3]), InRange, e(0), n) == (
        "E0711: `assume I in 0..n0` does not hold: I[2] = 3, not in 0..3"
    )
    assert "I[1, 0] = -1" in (assuming(np.array([[0, 1], [-1, 1]]), InRange, e(0), e(2)) or "")
    assert "18446744073709551615" in (assuming(np.array([2**64 - 1], np.uint64), InRange, e(0), e(2)) or "")


def test_assume_injective():
    assert assuming(np.array([3, 1, 2]), Injective) is None
    assert assuming(np.zeros(0, np.int64), Injective) is None
    assert assuming(np.array([[3, 1], [2, 1]]), Injective) == (
        "E0711: `assume injective(I)` does not hold: I[0, 1] and I[1, 1] are both 1"
    )


def test_assume_monotone():
    assert assuming(np.array([1, 1, 4]), Monotone) is None
    assert assuming(np.zeros(0, np.int64), Monotone) is None
    assert assuming(np.array([0, 2**64 - 1], np.uint64), Monotone) is None
    assert assuming(np.array([3, 5, 4, 1]), Monotone) == (
        "E0711: `assume monotone(I)` does not hold: I[2] = 4 is less than I[1] = 5"
    )


def test_everything_that_is_broken_is_said_at_once():
    index = buffer("I", I32, N)
    f = takes(index, sizes="N", where=(Compare(">", N, e(5)),), assumes=(InRange(index, e(0), N), Injective(index)))
    with pytest.raises(TexprError) as caught:
        run(f, {"I": np.array([7, 7], np.int32)})
    assert [d.code for d in caught.value.diagnostics] == ["E0710", "E0711", "E0711"]


def test_tf32_data():
    f = takes(buffer("A", TF32, N), sizes="N")
    check_facts(f, bind(f, {"A": np.array([1.5, math.nan, math.inf, 2.0**-130], np.float32)}))
    assert fails(f, {"A": np.array([1.5, 1 + 2.0**-11], np.float32)}).startswith("E0712: `A: tf32[N]` takes tf32 numbers")


def test_a_run_says_what_bind_says():
    y = buffer("y", F32, "N", role="inout")
    f = function((y,), (), par("i", "N", put(at(y, "i"), lit(1, F32))), sizes="N")
    with pytest.raises(TexprError, match="E0704"):
        run(f, {"y": np.zeros(3)})
