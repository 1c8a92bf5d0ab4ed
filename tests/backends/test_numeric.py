"""texpr_numeric.h against NumPy and ml_dtypes: every bit pattern of the small types, every boundary, every operation."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from texpr.backends.c.headers import numeric_headers

from .compiled import load

SMALL = {
    "f16": (np.float16, np.uint16),
    "bf16": (ml_dtypes.bfloat16, np.uint16),
    "f8e4m3": (ml_dtypes.float8_e4m3fn, np.uint8),
    "f8e5m2": (ml_dtypes.float8_e5m2, np.uint8),
    "f8e8m0": (ml_dtypes.float8_e8m0fnu, np.uint8),
}
INTEGERS = {f"{kind}{bits}": np.dtype(f"{kind}{bits // 8}") for kind in "iu" for bits in (8, 16, 32, 64)}
C_NAMES = {
    "f32": "float", "f64": "double", "tf32": "tx_tf32", **{name: f"tx_{name}" for name in SMALL},
    **{name: f"{'u' if name[0] == 'u' else ''}int{name[1:]}_t" for name in INTEGERS},
}  # fmt: skip
UNARY = [
    "exp", "exp2", "log", "log2", "tanh", "sin", "cos", "erf", "sqrt", "rsqrt", "floor", "ceil", "trunc", "round", "abs",
    "expm1", "log1p", "sigmoid", "silu", "gelu",
]  # fmt: skip
STEPS = {"sigmoid_by_steps": 3.0, "gelu_by_steps": 7.0}
"""Functions as CUDA has them, and their errors in ULP where `exp2` and inverses are rounded correctly: CUDA's have 2 and 1."""
_MATH: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round": np.rint,
    "sigmoid": lambda x: np.where(x < 0, np.exp(x), 1.0) / (1.0 + np.exp(-np.abs(x))),
    "silu": lambda x: np.where(np.isinf(x) & (x < 0), np.nan, x / (1.0 + np.exp(-x))),
    "gelu": lambda x: x / 2 * np.array([math.erfc(each) for each in -x / np.sqrt(2.0)]),
}
"""What functions are in f64, where NumPy has none of that name."""
BINARY = ["add", "sub", "mul", "floordiv", "mod", "max", "min", "shl", "shr"]


def _source() -> str:
    lines = ['#include "texpr_numeric.h"', "#pragma GCC visibility push(default)", "#define EACH(NAME, X, Y, VALUE) \\"]
    lines += ['    extern "C" void NAME(X const *x, Y const *y, decltype(VALUE(x[0], y[0])) *z, long n) { \\']
    lines += ["        for (long i = 0; i < n; ++i) z[i] = VALUE(x[i], y[i]); }"]
    pairs = [(a, b) for a in ("f32", "f64", "i64") for b in C_NAMES] + [(a, "f32") for a in SMALL] + [("u64", "f16")]
    for a, b in pairs:
        lines += [f"#define TO(x, y) tx_to<{C_NAMES[b]}>(x)", f"EACH({a}_to_{b}, {C_NAMES[a]}, char, TO)", "#undef TO"]
    for name in UNARY:
        lines.append(f"#define F(x, y) tx_{name}(x)")
        lines += [f"EACH({name}_{a}, {C_NAMES[a]}, char, F)" for a in ("f32", "f64", "f16")]
        lines.append("#undef F")
    for name in STEPS:
        lines += [f"#define F(x, y) tx_{name}(x)", f"EACH({name}_f32, float, char, F)", "#undef F"]
    for name in BINARY:
        lines.append(f"#define F(x, y) tx_{name}(x, y)")
        lines += [f"EACH({name}_{a}, {C_NAMES[a]}, {C_NAMES[a]}, F)" for a in INTEGERS]
        if name in ("max", "min", "mod"):
            lines += [f"EACH({name}_{a}, {C_NAMES[a]}, {C_NAMES[a]}, F)" for a in ("f32", "f64", "f16")]
        lines.append("#undef F")
    for name, sign in (("add", "+"), ("mul", "*"), ("div", "/")):
        lines.append(f"#define F(x, y) (x {sign} y)")
        lines += [f"EACH({name}_{a}, {C_NAMES[a]}, {C_NAMES[a]}, F)" for a in SMALL]
        lines.append("#undef F")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def numeric(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("numeric")
    return load(folder, {**numeric_headers(), "each.cpp": _source()}, flags=("-O1",))


def _call(library: ctypes.CDLL, name: str, result: type | np.dtype, x: NDArray, y: NDArray | None = None) -> NDArray:
    x = np.ascontiguousarray(x)
    z = np.empty(x.shape, result)
    y = np.zeros(1) if y is None else np.ascontiguousarray(y)
    places = [ctypes.c_void_p(a.ctypes.data) for a in (x, y, z)]
    getattr(library, name)(*places, ctypes.c_long(x.size))
    return z


def _boundaries(small: type, bits: type) -> NDArray[np.float32]:
    """Every finite value of a type, every midpoint of two neighbours, and the f32 on both sides of each of those."""
    count = 1 << (8 * np.dtype(bits).itemsize)
    with np.errstate(all="ignore"):
        values = np.sort(np.arange(count).astype(bits).view(small).astype(np.float64))
        values = values[np.isfinite(values)]
        largest = values[-1]
        middles = (values[1:] + values[:-1]) / 2
        beyond = largest * np.array(
            [1, 1 + 2.0**-12, 1 + 2.0**-5, 1 + 2.0**-4, 1.03, 1.0357142857, 1.04, 1.06, 1.07, 1.125, 1.2, 2]
        )
        exact = np.concatenate([values, middles, beyond, -beyond]).astype(np.float32)
        around = [np.nextafter(exact, np.float32(-np.inf)), exact, np.nextafter(exact, np.float32(np.inf))]
    special = np.array([0, 0x80000000, 1, 0x80000001, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 0x00800000], np.uint32)
    return np.concatenate([*around, special.view(np.float32)])


def _some(seed: int, count: int = 1 << 18) -> NDArray[np.float32]:
    return np.random.default_rng(seed).integers(0, 2**32, count, np.uint64).astype(np.uint32).view(np.float32)


def _same(found: NDArray, wanted: NDArray, small: type) -> None:
    """Bits are equal; where a nan is wanted any nan will do."""
    nan = np.isnan(wanted.astype(np.float32))
    assert np.array_equal(np.isnan(found.view(small).astype(np.float32)), nan)
    different = (found != wanted.view(found.dtype)) & ~nan
    assert not different.any(), (found[different][:5], wanted.view(found.dtype)[different][:5])


@pytest.mark.parametrize("name", SMALL)
def test_widening_every_pattern(numeric: ctypes.CDLL, name: str) -> None:
    small, bits = SMALL[name]
    patterns = np.arange(1 << (8 * np.dtype(bits).itemsize)).astype(bits)
    found = _call(numeric, f"{name}_to_f32", np.float32, patterns)
    with np.errstate(invalid="ignore"):
        wanted = patterns.view(small).astype(np.float32)
    _same(found.view(np.uint32), wanted, np.float32)


@pytest.mark.parametrize("name", SMALL)
def test_rounding_at_every_boundary(numeric: ctypes.CDLL, name: str) -> None:
    small, bits = SMALL[name]
    x = np.concatenate([_boundaries(small, bits), _some(1)])
    with np.errstate(all="ignore"):
        _same(_call(numeric, f"f32_to_{name}", bits, x), x.astype(small), small)


@pytest.mark.parametrize("name", SMALL)
def test_rounding_once_from_wider_types(numeric: ctypes.CDLL, name: str) -> None:
    """A midpoint and the least bit of an f64, or an integer of 60 bits, must not be rounded to the midpoint first."""
    small, bits = SMALL[name]
    middles = _boundaries(small, bits).astype(np.float64)
    with np.errstate(all="ignore"):
        x = np.concatenate(
            [middles, np.nextafter(middles, -np.inf), np.nextafter(middles, np.inf), _some(2).astype(np.float64)]
        )
        x = x[np.isfinite(x)]
        down = x.astype(np.float32)
        near = np.where(down.astype(np.float64) == x, down, np.float32(np.nan))  # oracle: round to odd by neighbours
        low = np.where(down.astype(np.float64) > x, np.nextafter(down, np.float32(-np.inf)), down)
        high = np.nextafter(low, np.float32(np.inf))
        odd = np.where(low.view(np.uint32) & 1, low, high)
        wanted = np.where(np.isnan(near), odd, near).astype(np.float32).astype(small)
        _same(_call(numeric, f"f64_to_{name}", bits, x), wanted, small)


def test_integers_round_once_to_bf16(numeric: ctypes.CDLL) -> None:
    x = np.array(
        [(1 << 40) + (1 << 32) + 1, (1 << 40) + (1 << 32), (1 << 40) + (1 << 32) - 1, -(1 << 62) - (1 << 54) - 1], np.int64
    )
    found = _call(numeric, "i64_to_bf16", np.uint16, x).view(ml_dtypes.bfloat16).astype(np.float64)
    assert found.tolist() == [2.0**40 + 2.0**33, 2.0**40, 2.0**40, -(2.0**62) - 2.0**55]
    _call(numeric, "u64_to_f16", np.uint16, np.array([2**64 - 1], np.uint64))


def test_tf32_is_rounded_to_ten_bits(numeric: ctypes.CDLL) -> None:
    x = _some(3)
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(np.where(np.isfinite(x), x, 1).astype(np.float64))[1] - 1, -126)
        unit = np.ldexp(1.0, exponent - 10)
        wanted = np.where(np.isfinite(x), (np.rint(x.astype(np.float64) / unit) * unit).astype(np.float32), x)
        found = _call(numeric, "f32_to_tf32", np.uint32, x)
        _same(found, wanted.astype(np.float32), np.float32)
    assert not np.any(found[~np.isnan(x)] & 0x1FFF)


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_to_integer_truncates_and_saturates(numeric: ctypes.CDLL, source: str, target: str) -> None:
    info = np.iinfo(INTEGERS[target])
    ends = [float(e) + d for e in (info.min, info.max) for d in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)]
    x = np.array([*ends, 0.0, -0.0, 0.99, -0.99, 1.5, -1.5, np.inf, -np.inf, np.nan, 1e30, -1e30, 2.0**31, 2.0**63, -(2.0**63)])
    x = np.concatenate([x, np.linspace(-300, 300, 601)]).astype(np.float32 if source == "f32" else np.float64)
    wanted = [
        0 if v != v else min(max(info.min, int(v) if abs(v) < 1e300 else (1 << 70) * (1 if v > 0 else -1)), info.max)
        for v in x.tolist()
    ]
    assert _call(numeric, f"{source}_to_{target}", INTEGERS[target], x).tolist() == wanted


def test_integer_to_integer_wraps(numeric: ctypes.CDLL) -> None:
    x = np.array([0, 1, -1, 127, 128, 255, 256, 2**31, -(2**31), 2**63 - 1, -(2**63)], np.int64)
    for name, dtype in INTEGERS.items():
        assert np.array_equal(_call(numeric, f"i64_to_{name}", dtype, x), x.astype(dtype)), name


def _oracle(name: str, a: int, b: int, info: np.iinfo) -> int:
    """The operation on integers that know no width, wrapped at the end."""
    width = info.bits
    match name:
        case "add" | "sub" | "mul":
            value = {"add": a + b, "sub": a - b, "mul": a * b}[name]
        case "floordiv":
            value = a // b if b else 0
        case "mod":
            value = a % b if b else 0
        case "max" | "min":
            value = max(a, b) if name == "max" else min(a, b)
        case _:
            count = b % (1 << width)
            value = a << count if name == "shl" and count < width else 0 if name == "shl" else a >> min(count, width)
    value %= 1 << width
    return value - (1 << width) if info.min < 0 and value >> (width - 1) else value


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_operations(numeric: ctypes.CDLL, dtype: str) -> None:
    info = np.iinfo(INTEGERS[dtype])
    edges = sorted({v for e in (info.min, 0, info.max) for v in range(e - 3, e + 4) if info.min <= v <= info.max} | {7, 9, 31})
    pairs = [(a, b) for a in edges for b in edges]
    x, y = (np.array(side, INTEGERS[dtype]) for side in zip(*pairs, strict=True))
    for name in BINARY:
        found = _call(numeric, f"{name}_{dtype}", INTEGERS[dtype], x, y)
        assert found.tolist() == [_oracle(name, a, b, info) for a, b in pairs], name


@pytest.mark.parametrize("name", SMALL)
def test_small_arithmetic_rounds_once(numeric: ctypes.CDLL, name: str) -> None:
    small, bits = SMALL[name]
    generator = np.random.default_rng(5)
    x, y = (generator.integers(0, 1 << (8 * np.dtype(bits).itemsize), 1 << 16).astype(bits) for _ in range(2))
    a, b = x.view(small).astype(np.float32), y.view(small).astype(np.float32)
    with np.errstate(all="ignore"):
        for operation, wanted in (("add", a + b), ("mul", a * b), ("div", a / b)):
            _same(_call(numeric, f"{operation}_{name}", bits, x, y), wanted.astype(small), small)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extremes_and_remainder_as_numpy(numeric: ctypes.CDLL, dtype: type) -> None:
    edges = np.array([0.0, -0.0, 1, -1, 1.5, -2.5, np.inf, -np.inf, np.nan, 3, -3, 1e-30, 7.25], dtype)
    x, y = (a.ravel() for a in np.meshgrid(edges, edges))
    suffix = "f32" if dtype is np.float32 else "f64"
    with np.errstate(all="ignore"):
        for name, function in (("max", np.maximum), ("min", np.minimum), ("mod", np.mod)):
            found, wanted = _call(numeric, f"{name}_{suffix}", dtype, x, y), function(x, y)
            assert np.array_equal(found, wanted, equal_nan=True), name


@pytest.mark.parametrize("name", [*(n for n in UNARY if n not in ("erf", "rsqrt")), *STEPS])
def test_functions_of_f32_within_their_bounds(numeric: ctypes.CDLL, name: str) -> None:
    x = np.arange(0, 2**32, 9973, np.uint64).astype(np.uint32).view(np.float32)
    if name in ("sin", "cos"):
        x = x[np.abs(x) < 1e5]
    with np.errstate(all="ignore"):
        meant = name.removesuffix("_by_steps")
        exact = (_MATH.get(meant) or getattr(np, meant))(x.astype(np.float64))
        found = _call(numeric, f"{name}_f32", np.float32, x)
        nearest = exact.astype(np.float32)
        finite = np.isfinite(nearest)
        assert np.array_equal(found[~finite], nearest[~finite], equal_nan=True)
        error = np.abs(found[finite] - exact[finite]) / np.spacing(np.abs(nearest[finite])).astype(np.float64)
        if name in STEPS:  # what is subnormal may be less exact
            error = error[np.abs(nearest[finite]) > 16 * np.finfo(np.float32).tiny]
    assert error.max() <= STEPS.get(name, 1 if name in ("sin", "cos") else 0.5001)


def test_a_caller_that_flushes_subnormals_changes_nothing(tmp_path: Path) -> None:
    """Decoding and encoding meet no subnormal f32: with flushing on, the bits are those of a run without it."""
    source = """
#include "texpr_numeric.h"
#if defined(__SSE__)
#include <immintrin.h>
#else
#define _mm_getcsr() 0
#define _mm_setcsr(X)
#endif
extern "C" __attribute__((visibility("default"))) long differences() {
    long found = 0;
    static float decoded[65536];
    for (int i = 0; i < 65536; ++i) decoded[i] = tx_format_f16::decode((uint32_t)i);
    unsigned const before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
    for (int i = 0; i < 65536; ++i) {
        found += tx_bits(tx_format_f16::decode((uint32_t)i)) != tx_bits(decoded[i]);
        found += (i & 0x7c00) != 0x7c00 && tx_format_f16::encode(decoded[i]) != (uint32_t)i;
    }
    _mm_setcsr(before);
    return found;
}
"""
    assert load(tmp_path / "flush", {**numeric_headers(), "flush.cpp": source}).differences() == 0


PLANTED = {
    "ties go up": ("((1u << (SHIFT - 1)) - 1u) + even)", "(1u << (SHIFT - 1)))"),
    "subnormals are flushed": (
        "magnitude < ((OFFSET + 1u) << 23) ? subnormal : normal",
        "magnitude < ((OFFSET + 1u) << 23) ? 0u : normal",
    ),
    "overflow saturates": ("finite < TOP ? finite : TOP", "finite < TOP ? finite : TOP - 1u"),
    "twice rounded": ("TX_FN float tx_odd(double x) {", "TX_FN float tx_odd(double x) { return (float)x;"),
}


@pytest.mark.parametrize(
    "bug", [next(iter(PLANTED)), *(pytest.param(bug, marks=pytest.mark.long) for bug in list(PLANTED)[1:])]
)
def test_planted_bugs_are_seen(tmp_path: Path, bug: str) -> None:
    right, wrong = PLANTED[bug]
    headers = numeric_headers()
    assert right in headers["texpr_numeric.h"]
    headers["texpr_numeric.h"] = headers["texpr_numeric.h"].replace(right, wrong)
    source = _source().split("#define F(", 1)[0]
    library = load(tmp_path / "planted", {**headers, "each.cpp": source}, flags=("-O0",), warn=False)
    with pytest.raises(AssertionError):
        for name in ("f16", "f8e4m3"):
            test_rounding_at_every_boundary(library, name)
            test_rounding_once_from_wider_types(library, name)
