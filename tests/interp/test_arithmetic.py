"""Every operation and conversion against Python's integers, fractions and doubles, and tables of all small values."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from texpr.interp.arithmetic import apply, cast, literal
from texpr.interp.dtypes import Array, dtype_of, limits, numpy_dtype
from texpr.interp.rounding import round_tf32, to_odd_f32
from texpr.ir.value import types
from texpr.ir.value.operators import OPS
from texpr.ir.value.types import BF16, BOOL, DTYPES, F8E4M3, F8E5M2, F8E8M0, F16, F32, F64, I8, I64, TF32, U8, U64, DType, Kind

INTEGERS = [t for t in DTYPES.values() if t.is_integer]
FLOATS = [t for t in DTYPES.values() if t.is_float and t != F8E8M0]  # scales are converted, and nothing is computed of them
NARROW = [TF32, F16, BF16, F8E4M3, F8E5M2]


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def array(values: object, dtype: DType) -> Array:
    return np.asarray(values, numpy_dtype(dtype))


def wrap(value: int, dtype: DType) -> int:
    """`value` modulo 2^bits, in the range of the type."""
    value %= 1 << dtype.bits
    return value - (1 << dtype.bits) if dtype.kind is Kind.INT and value >= 1 << (dtype.bits - 1) else value


INTEGER_OPS: dict[str, Callable[..., int | bool]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "neg": lambda a: -a,
    "abs": abs,
    "max": max,
    "min": min,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "bitand": lambda a, b: a & b,
    "bitor": lambda a, b: a | b,
    "bitxor": lambda a, b: a ^ b,
}


def shifted(name: str, a: int, b: int, bits: int) -> int:
    if name == "shl":
        return a << b if 0 <= b < bits else 0
    return a >> (b if 0 <= b < bits else bits)


def interesting(dtype: DType) -> list[int]:
    low, high = limits(dtype)
    small = [v for v in (-9, -8, -7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 8, 13, 31, 32, 33, 63, 64, 65, 100) if low <= v <= high]
    return sorted({*small, low, low + 1, high, high - 1, high // 2, high // 3})


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_operations_are_python_s_wrapped(dtype: DType):
    values = interesting(dtype)
    pairs = [(a, b) for a in values for b in values]
    left, right = array([a for a, _ in pairs], dtype), array([b for _, b in pairs], dtype)
    for name, oracle in INTEGER_OPS.items():
        if OPS[name].arity == 1:
            found, want = apply(name, [array(values, dtype)], dtype), [oracle(a) for a in values]
        else:
            found, want = apply(name, [left, right], dtype), [oracle(a, b) for a, b in pairs]
        assert found.dtype == (np.bool_ if OPS[name].gives == "bool" else numpy_dtype(dtype)), name
        assert [int(x) for x in found] == [int(w) if isinstance(w, bool) else wrap(w, dtype) for w in want], name
    for name in ("shl", "shr"):
        want = [wrap(shifted(name, a, b, dtype.bits), dtype) for a, b in pairs]
        assert apply(name, [left, right], dtype).tolist() == want, name


@pytest.mark.parametrize("dtype", [I8, U8], ids=str)
def test_every_pair_of_bytes(dtype: DType):
    low, high = limits(dtype)
    every = np.arange(low, high + 1)
    left, right = (x.reshape(-1) for x in np.meshgrid(every, every, indexing="ij"))
    for name, oracle in INTEGER_OPS.items():
        if OPS[name].arity == 2 and OPS[name].gives == "same":
            want = [wrap(int(oracle(int(a), int(b))), dtype) for a, b in zip(left, right, strict=True)]
            assert apply(name, [array(left, dtype), array(right, dtype)], dtype).tolist() == want, name


def test_booleans():
    a, b = array([0, 0, 1, 1], BOOL), array([0, 1, 0, 1], BOOL)
    assert apply("and", [a, b], BOOL).tolist() == [False, False, False, True]
    assert apply("or", [a, b], BOOL).tolist() == [False, True, True, True]
    assert apply("not", [a], BOOL).tolist() == [True, True, False, False]
    assert apply("eq", [a, b], BOOL).tolist() == [True, False, False, True]
    assert apply("ne", [a, b], BOOL).tolist() == [False, True, True, False]


def all_values(dtype: DType) -> Array:
    """Every value of a type of 8 or 16 bits."""
    bits = np.arange(1 << dtype.bits, dtype=np.uint8 if dtype.bits == 8 else np.uint16)
    return bits.view(numpy_dtype(dtype))


def nearest(values: Array, number: Fraction) -> list[float]:
    """The values nearest to a number (two for a tie), by search."""
    distance = [abs(Fraction(float(v)) - number) for v in values]
    least = min(distance)
    return [float(v) for v, d in zip(values, distance, strict=True) if d == least]


@pytest.mark.parametrize("dtype", [F8E4M3, F8E5M2], ids=str)
def test_every_sum_and_product_of_two_f8_is_the_nearest_one(dtype: DType):
    every = all_values(dtype)
    finite = every[np.isfinite(every.astype(np.float32))]
    ordered = np.unique(finite.astype(np.float64))
    some = finite[:: len(finite) // 60]
    left, right = (x.reshape(-1) for x in np.meshgrid(some.astype(np.float64), some.astype(np.float64)))
    for name, exact in (("add", left + right), ("mul", left * right)):  # exact in f64
        found = apply(name, [left.astype(every.dtype), right.astype(every.dtype)], dtype).astype(np.float64)
        inside = np.abs(exact) <= ordered[-1]
        at = np.clip(np.searchsorted(ordered, exact[inside]), 1, len(ordered) - 1)
        least = np.minimum(np.abs(ordered[at] - exact[inside]), np.abs(ordered[at - 1] - exact[inside]))
        assert (np.abs(found[inside] - exact[inside]) == least).all(), name


def tie_to_even(number: Fraction, digits: int) -> Fraction:
    """`number` rounded to `digits` binary digits, no limit on the exponent; an oracle in exact arithmetic."""
    if number == 0:
        return number
    exponent = math.floor(math.log2(abs(number))) + 1 - digits
    if abs(number) >= Fraction(2) ** (exponent + digits):
        exponent += 1
    if abs(number) < Fraction(2) ** (exponent + digits - 1):
        exponent -= 1
    scaled = number / Fraction(2) ** exponent
    return round(scaled) * Fraction(2) ** exponent  # Python rounds a Fraction half to even


DIGITS = {F32: 24, TF32: 11, F16: 11, BF16: 8, F8E4M3: 4, F8E5M2: 3}
SAFE = {F32: 1e30, TF32: 1e30, F16: 60000.0, BF16: 1e30, F8E4M3: 440.0, F8E5M2: 50000.0}
TINY = {F32: 1e-30, TF32: 1e-30, F16: 1e-4, BF16: 1e-30, F8E4M3: 0.02, F8E5M2: 1e-4}


@pytest.mark.parametrize("dtype", list(DIGITS), ids=str)
@given(st.data())
def test_a_cast_rounds_once_to_nearest_even(dtype: DType, data: st.DataObject):
    number = data.draw(st.floats(TINY[dtype], SAFE[dtype]) | st.floats(-SAFE[dtype], -TINY[dtype]))
    half = tie_to_even(Fraction(number), DIGITS[dtype] + 1)  # often a tie, and then a hair beside it
    tie, most_of_a_bit = float(half), 0.75 * 2.0**-23  # the f32 nearest to the latter is not the tie
    beside = (
        math.nextafter(tie, math.inf),
        math.nextafter(tie, -math.inf),
        tie * (1 + most_of_a_bit),
        tie * (1 - most_of_a_bit),
    )
    for near in (number, tie, *beside):
        want = float(tie_to_even(Fraction(near), DIGITS[dtype]))
        assert float(cast(np.asarray(near), F64, dtype).astype(np.float64)) == want


@pytest.mark.parametrize("dtype", list(DIGITS), ids=str)
@given(st.data())
def test_an_integer_becomes_a_float_with_one_rounding(dtype: DType, data: st.DataObject):
    source = data.draw(st.sampled_from([I64, U64, types.I32, types.U32, types.I16, I8]))
    low, high = (max(limits(source)[0], -int(SAFE[dtype])), min(limits(source)[1], int(SAFE[dtype])))
    number = data.draw(st.integers(low, high))
    want = float(tie_to_even(Fraction(number), DIGITS[dtype]))
    assert float(cast(array(number, source), source, dtype).astype(np.float64)) == want
    assert float(literal(number, dtype).astype(np.float64)) == want


@pytest.mark.parametrize("dtype", [F32, TF32, BF16], ids=str)
@pytest.mark.parametrize("source", [I64, U64], ids=str)
def test_the_last_bit_of_a_long_integer_decides_a_tie(dtype: DType, source: DType):
    tie = 2**62 + 2 ** (62 - DIGITS[dtype])
    for number in (tie, tie + 1, tie - 1):
        for signed in (number, -number) if source == I64 else (number,):
            want = float(tie_to_even(Fraction(signed), DIGITS[dtype]))
            assert float(cast(array(signed, source), source, dtype).astype(np.float64)) == want


@given(st.integers(-(2**63), 2**63 - 1))
def test_an_i64_becomes_an_f64_like_python_s(number: int):
    assert float(cast(array(number, I64), I64, F64)) == float(number)


def test_a_tie_that_two_roundings_would_lose():
    just_above = 1.0 + 2.0**-9 + 2.0**-40  # above the middle of two bf16, but f32 rounds it to the middle
    assert float(np.float32(just_above).astype(ml_dtypes.bfloat16)) == 1.0
    assert float(cast(np.asarray(just_above + 2.0**-8), F64, BF16).astype(np.float64)) == 1.0 + 2 * 2.0**-7 - 2.0**-7
    assert to_odd_f32(np.asarray(just_above)).view(np.uint32) & 1


def test_what_does_not_fit():
    big = np.asarray([1e40, -1e40, math.inf, -math.inf, math.nan])

    def to(dtype: DType) -> list[float]:
        return cast(big, F64, dtype).astype(np.float64).tolist()

    for dtype in (F32, TF32, F16, BF16, F8E5M2):
        assert to(dtype)[:4] == [math.inf, -math.inf] * 2 and math.isnan(to(dtype)[4])
    assert all(math.isnan(x) for x in to(F8E4M3))
    assert cast(np.asarray([448.0, 464.0, 464.1]), F64, F8E4M3).astype(np.float64).tolist()[:2] == [448.0, 448.0]


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_subnormals_and_zero(dtype: DType):
    if dtype == TF32:
        tiny = np.array([2.0**-149, 2.0**-136, 2.0**-137, 3 * 2.0**-137, -0.0])
        assert cast(tiny, F64, TF32).astype(np.float64).tolist() == [0.0, 2.0**-136, 0.0, 2.0**-135, -0.0]
        return
    least = float(ml_dtypes.finfo(numpy_dtype(dtype)).smallest_subnormal)
    found = cast(np.array([least, least / 2, least * 0.75, least * 1.5, -least / 4]), F64, dtype).astype(np.float64)
    assert found.tolist() == [least, 0.0, least, 2 * least, -0.0] and math.copysign(1, found[4]) == -1


@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_float_to_integer_saturates_toward_zero(target: DType):
    low, high = limits(target)
    numbers = [
        0.0,
        0.9,
        -0.9,
        1.5,
        -1.5,
        127.9,
        128.0,
        -129.0,
        255.5,
        1e9,
        -1e9,
        2.0**31,
        2.0**32,
        2.0**63,
        -(2.0**63),
        2.0**64,
    ]
    numbers += [1e300, -1e300, math.inf, -math.inf, math.nan]

    def oracle(x: float) -> int:
        if math.isnan(x):
            return 0
        return (high if x > 0 else low) if math.isinf(x) else min(max(math.trunc(x), low), high)

    assert cast(np.asarray(numbers), F64, target).tolist() == [oracle(x) for x in numbers]
    single = [float(np.float32(x)) for x in numbers[:-5]]
    assert cast(np.asarray(single, np.float32), F32, target).tolist() == [oracle(x) for x in single]


@pytest.mark.parametrize("source", [*INTEGERS, BOOL], ids=str)
@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_integer_to_integer_wraps(source: DType, target: DType):
    values = [0, 1] if source == BOOL else interesting(source)
    assert cast(array(values, source), source, target).tolist() == [wrap(v, target) for v in values]


@pytest.mark.parametrize("source", [*INTEGERS, *FLOATS], ids=str)
def test_to_bool_and_back(source: DType):
    values = array([0, 1, 2, 3], source)
    assert cast(values, source, BOOL).tolist() == [False, True, True, True]
    assert cast(array([False, True], BOOL), BOOL, source).astype(np.float64).tolist() == [0.0, 1.0]


def test_nan_and_minus_zero_as_bool():
    assert cast(np.asarray([math.nan, -0.0]), F64, BOOL).tolist() == [True, False]


FLOAT_OPS: dict[str, Callable[..., float]] = {
    "neg": lambda a: -a,
    "abs": abs,
    "max": lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else max(a, b),
    "min": lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else min(a, b),
    "floor": lambda a: a if not math.isfinite(a) else float(math.floor(a)),
    "ceil": lambda a: a if not math.isfinite(a) else float(math.ceil(a)),
    "trunc": lambda a: a if not math.isfinite(a) else float(math.trunc(a)),
    "round": lambda a: a if not math.isfinite(a) else float(round(a)),
    "isnan": math.isnan,
    "isinf": math.isinf,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


def same(found: float, want: float) -> bool:
    return found == want or (math.isnan(found) and math.isnan(want))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_exact_float_operations(dtype: DType):
    raw = np.asarray([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 7.0, -7.5, math.inf, -math.inf, math.nan])
    values = cast(raw, F64, dtype)
    numbers = [float(x) for x in values.astype(np.float64)]
    for name, oracle in FLOAT_OPS.items():
        if OPS[name].arity == 1:
            found, want = apply(name, [values], dtype), [oracle(a) for a in numbers]
        else:
            left, right = (x.reshape(-1) for x in np.meshgrid(values, values, indexing="ij"))
            found, want = apply(name, [left, right], dtype), [oracle(a, b) for a in numbers for b in numbers]
        assert found.dtype == (np.bool_ if OPS[name].gives == "bool" else numpy_dtype(dtype)), name
        assert all(same(float(f), float(w)) for f, w in zip(found.astype(np.float64), want, strict=True)), name


ROUNDED: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b if b else Fraction(0),
}


@pytest.mark.parametrize("dtype", [F32, TF32, F16, BF16], ids=str)
@given(st.data())
def test_arithmetic_computes_in_f32_and_rounds_once(dtype: DType, data: st.DataObject):
    digits = DIGITS[dtype]
    part = st.integers(-(2**digits) + 1, 2**digits - 1)
    a, b = (Fraction(data.draw(part), 2 ** data.draw(st.integers(0, 8))) for _ in range(2))
    for name, oracle in ROUNDED.items():
        if name == "div" and b == 0:
            continue
        want = tie_to_even(tie_to_even(oracle(a, b), 24), digits)
        if dtype == F16 and (abs(want) > 60000 or 0 < abs(want) < 1e-4):
            continue
        operands = [cast(np.asarray(float(x)), F64, dtype) for x in (a, b)]
        assert float(np.asarray(apply(name, operands, dtype)).astype(np.float64)) == float(want), name


def exact_fma(a: float, b: float, c: float) -> Fraction:
    return Fraction(a) * Fraction(b) + Fraction(c)


wide = st.floats(-(2.0**50), 2.0**50, width=32).filter(lambda x: x == 0 or abs(x) > 1e-12)


@given(wide, wide, wide, st.booleans())
def test_fma_f32_rounds_once(a: float, b: float, c: float, cancel: bool):
    if cancel:
        c = -float(np.float32(a * b))
    found = apply("fma", [np.asarray(x, np.float32) for x in (a, b, c)], F32)
    assert float(found) == float(tie_to_even(exact_fma(a, b, c), 24))


def test_fma_f32_where_two_roundings_differ():
    a, b, c = 1.0 + 2.0**-12, 1.0 + 2.0**-12, 2.0**-60  # a·b lies on a tie of f32; c decides, far below the last bit of f64
    assert float(apply("fma", [np.float32(a), np.float32(b), np.float32(c)], F32)) == 1.0 + 2.0**-11 + 2.0**-23
    assert np.float32(a * b + c) == 1.0 + 2.0**-11


@given(st.floats(-1e100, 1e100), st.floats(-1e100, 1e100), st.floats(-1e200, 1e200), st.booleans())
def test_fma_f64_rounds_once(a: float, b: float, c: float, cancel: bool):
    c = -(a * b) if cancel else c
    assert float(apply("fma", [np.asarray(a), np.asarray(b), np.asarray(c)], F64)) == float(exact_fma(a, b, c))


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_fma_of_what_is_no_number(dtype: DType):
    a = array([math.inf, math.nan, 0.0, math.inf, -0.0, 1e30, 1.0], dtype)
    b = array([1.0, 1.0, math.inf, 1.0, 1.0, 1e30, -1.0], dtype)
    c = array([1.0, 1.0, 1.0, -math.inf, -0.0, -1e30, 1.0], dtype)
    found = apply("fma", [a, b, c], dtype).tolist()
    want = [math.inf, math.nan, math.nan, math.nan, -0.0, math.inf if dtype == F32 else 1e60, 0.0]
    assert all(same(f, w) for f, w in zip(found[:5] + found[6:], want[:5] + want[6:], strict=True))
    assert math.isclose(found[5], want[5]) and math.copysign(1, found[4]) == -1 and math.copysign(1, found[6]) == 1


FUNCTIONS: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "log": math.log,
    "log2": math.log2,
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "erf": math.erf,
    "expm1": math.expm1,
    "log1p": math.log1p,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))),
    "pow": math.pow,
    "mod": lambda a, b: math.fmod(a, b) + (b if math.fmod(a, b) * b < 0 else 0.0),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_within_one_unit(dtype: DType, name: str):
    raw = np.asarray([0.125, 0.25, 0.75, 1.0, 1.5, 2.0, 3.0, 3.5])
    x = cast(raw, F64, dtype)
    args = [x, x[::-1]] if OPS[name].arity == 2 else [x]
    found = apply(name, args, dtype)
    assert found.dtype == numpy_dtype(dtype)
    want = np.asarray([FUNCTIONS[name](*(float(a) for a in each)) for each in zip(*args, strict=True)])
    unit = 2.0 ** (1 - {**DIGITS, F64: 53}[dtype])
    assert (np.abs(found.astype(np.float64) - want) <= np.maximum(np.abs(want), 2.0**-6) * unit).all()


def test_functions_outside_of_their_domain():
    x = np.asarray([-1.0, 0.0, math.inf, math.nan], np.float32)
    assert [same(f, w) for f, w in zip(apply("log", [x], F32).tolist(), [math.nan, -math.inf, math.inf, math.nan], strict=True)]
    assert [str(v) for v in apply("rsqrt", [x], F32).tolist()] == ["nan", "inf", "0.0", "nan"]
    assert [str(v) for v in apply("sqrt", [x], F32).tolist()] == ["nan", "0.0", "inf", "nan"]
    assert [str(v) for v in apply("exp", [x * 1000], F32).tolist()] == ["0.0", "1.0", "inf", "nan"]
    assert [str(v) for v in apply("div", [x, np.zeros(4, np.float32)], F32).tolist()] == ["-inf", "nan", "inf", "nan"]


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_literals(dtype: DType):
    assert literal(1, dtype).dtype == numpy_dtype(dtype) and literal(1, dtype).ndim == 0
    assert float(literal(1, dtype)) == 1.0
    if dtype.is_float:
        assert math.isnan(float(literal(math.nan, dtype)))
        assert float(literal(0.5, dtype)) == 0.5
    if dtype.is_integer:
        low, high = limits(dtype)
        assert [int(literal(v, dtype)) for v in (low, high, high + 1)] == [low, high, low]


def test_round_tf32():
    x = np.asarray(
        [1.0, 1 + 2.0**-10, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-11 + 2.0**-20, math.inf, -math.inf], np.float32
    )
    want = [1.0, 1 + 2.0**-10, 1.0, 1 + 2 * 2.0**-10, 1 + 2.0**-10, math.inf, -math.inf]
    assert round_tf32(x).tolist() == want
    assert np.isnan(round_tf32(np.asarray(0x7F800001, np.uint32).view(np.float32)))


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_storage(dtype: DType):
    assert numpy_dtype(dtype).itemsize == dtype.bytes
    assert dtype_of(numpy_dtype(dtype)) == (F32 if dtype == TF32 else dtype)


def test_storage_that_the_language_lacks():
    assert dtype_of(np.dtype(np.complex64)) is None and dtype_of(np.dtype(">f4")) is None


def test_every_operation_has_a_meaning_on_every_type_it_takes():
    kinds = {
        "number": [*INTEGERS, *FLOATS],
        "any": [*INTEGERS, *FLOATS, BOOL],
        "integer": INTEGERS,
        "float": FLOATS,
        "bool": [BOOL],
    }
    for info in OPS.values():
        if info.name != "select":
            for dtype in kinds[info.takes]:
                one = array([1], dtype)
                found = apply(info.name, [one] * info.arity, dtype)
                assert found.dtype == (np.bool_ if info.gives == "bool" else numpy_dtype(dtype)), (info.name, dtype)
                rank0 = np.asarray(apply(info.name, [one[0]] * info.arity, dtype))
                assert rank0.dtype == found.dtype and rank0.shape == (), (info.name, dtype)
