"""The semantics of each operation and conversion, on arrays of NumPy's storage types.

Operations on f16, bf16, f8 and tf32 compute in f32 and round once to the type (for `fma`: the fused f32 operation, then the
type). Functions that `texpr.ir.value.operators` does not call exact are evaluated in f64 and rounded to f32, so that this
reference is within half a unit in the last place, and a hair, of the true value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from texpr.interp.dtypes import Array, limits, numpy_dtype
from texpr.interp.rounding import fma_f32, fma_f64, integer_to_f64, round_tf32, to_odd_f32
from texpr.ir.value.types import BOOL, F32, F64, I64, TF32, DType, Kind
from texpr.support.diagnostic import CompilerBug

_Function = Callable[..., Array]


def _in_f64(function: _Function) -> _Function:
    def rounded(*args: Array) -> Array:
        return np.asarray(function(*(a.astype(np.float64) for a in args))).astype(args[0].dtype)

    return rounded


def _maximum(a: Array, b: Array) -> Array:
    return np.where((a >= b) | np.isnan(a), a, b)


def _minimum(a: Array, b: Array) -> Array:
    return np.where((a <= b) | np.isnan(a), a, b)


def _rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1.0) / (1.0 + small)


def _silu(x: Array) -> Array:
    return x * _sigmoid(x)


def _gelu(x: Array) -> Array:
    return x * (0.5 * np.asarray(np.frompyfunc(math.erfc, 1, 1)(x * -math.sqrt(0.5)), np.float64))


def _fma(a: Array, b: Array, c: Array) -> Array:
    return fma_f64(a, b, c) if a.dtype == np.float64 else fma_f32(a, b, c)


def _floor_divide(a: Array, b: Array) -> Array:
    """NumPy's, with the two cases that trap in C made explicit."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    if a.dtype.kind == "i":
        safe, negated = np.where(b == -1, b.dtype.type(1), safe), -a
        return np.where(b == 0, a.dtype.type(0), np.where(b == -1, negated, a // safe))
    return np.where(b == 0, a.dtype.type(0), a // safe)


def _modulo(a: Array, b: Array) -> Array:
    safe = np.where((b == 0) | (b == -1), b.dtype.type(1), b) if a.dtype.kind == "i" else np.where(b == 0, b.dtype.type(1), b)
    return np.where(b == 0, a.dtype.type(0), a % safe)


def _shift_left(a: Array, b: Array) -> Array:
    count, outside = _count(a, b)
    return np.where(outside, a.dtype.type(0), a << count)


def _shift_right(a: Array, b: Array) -> Array:
    count, outside = _count(a, b)
    filled = np.where(a < 0, -np.ones_like(a), np.zeros_like(a))  # no element is negative in an unsigned type
    return np.where(outside, filled, a >> count)


def _count(a: Array, b: Array) -> tuple[Array, Array]:
    """The shift count where it is below the width (a negative count is a large one), and the mask of such lanes."""
    outside = (b < 0) | (b >= a.dtype.itemsize * 8)
    return np.where(outside, b.dtype.type(0), b), outside


_COMPARE: dict[str, _Function] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip

_FLOAT: dict[str, _Function] = {
    **_COMPARE,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "mod": np.mod,
    "neg": np.negative,
    "abs": np.absolute,
    "max": _maximum,
    "min": _minimum,
    "fma": _fma,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "pow": _in_f64(np.power),
    "rsqrt": _in_f64(_rsqrt),
    "exp": _in_f64(np.exp),
    "exp2": _in_f64(np.exp2),
    "log": _in_f64(np.log),
    "log2": _in_f64(np.log2),
    "sin": _in_f64(np.sin),
    "cos": _in_f64(np.cos),
    "tanh": _in_f64(np.tanh),
    "erf": _in_f64(np.frompyfunc(math.erf, 1, 1)),
    "expm1": _in_f64(np.expm1),
    "log1p": _in_f64(np.log1p),
    "sigmoid": _in_f64(_sigmoid),
    "silu": _in_f64(_silu),
    "gelu": _in_f64(_gelu),
}

_INTEGER: dict[str, _Function] = {
    **_COMPARE,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _floor_divide,
    "mod": _modulo,
    "neg": np.negative,
    "abs": np.absolute,
    "max": np.maximum,
    "min": np.minimum,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
    "shl": _shift_left,
    "shr": _shift_right,
}

_BOOL: dict[str, _Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
}

_TABLE: dict[Kind, dict[str, _Function]] = {Kind.FLOAT: _FLOAT, Kind.INT: _INTEGER, Kind.UINT: _INTEGER, Kind.BOOL: _BOOL}


def apply(name: str, args: Sequence[Array], dtype: DType) -> Array:
    """The operation `name` (any of `OPS` but `select`, which is lazy) on operands of `dtype`, elementwise with broadcasting."""
    function = _TABLE[dtype.kind].get(name)
    if function is None:
        raise CompilerBug(f"operation {name} has no meaning on {dtype}")
    with np.errstate(all="ignore"):
        if not dtype.is_float:
            return function(*args)
        result = function(*(_widen(a, dtype) for a in args))
        return result if result.dtype == np.bool_ else _narrow(result, dtype)


def cast(x: Array, source: DType, target: DType) -> Array:
    """The conversion from `source` to `target`, as `texpr.ir.value.Cast` says; one rounding."""
    if source == target:
        return x
    with np.errstate(all="ignore"):
        if target == BOOL:
            return (_widen(x, source) if source.is_float else x) != 0
        if not target.is_float:
            return _float_to_integer(_widen(x, source), target) if source.is_float else x.astype(numpy_dtype(target))
        if source.is_float:
            return _narrow(_widen(x, source), target)
        if target in (F32, F64):
            return x.astype(numpy_dtype(target))
        return _narrow(integer_to_f64(np.asarray(x)), target)


def literal(value: int | float, dtype: DType) -> Array:
    """A literal as a value of `dtype`, rank 0. An integer outside of the type wraps."""
    if dtype.is_float:
        exact = isinstance(value, int) and -(2**63) <= value < 2**63
        from_int = cast(np.asarray(value, np.int64), I64, dtype) if exact else None
        return cast(np.asarray(float(value)), F64, dtype) if from_int is None else from_int
    if dtype == BOOL:
        return np.asarray(bool(value))
    bits = int(value) & ((1 << dtype.bits) - 1)
    signed = dtype.kind is Kind.INT and bits >= 1 << (dtype.bits - 1)
    return np.asarray(bits - (1 << dtype.bits) if signed else bits, numpy_dtype(dtype))


def _widen(x: Array, dtype: DType) -> Array:
    """A float in the type it is computed in, f32 or f64. Always exact."""
    return x if dtype in (F32, F64, TF32) else x.astype(np.float32)


def _narrow(x: Array, dtype: DType) -> Array:
    """An f32 or f64 rounded to nearest even in `dtype`."""
    if dtype in (F32, F64):
        return x.astype(numpy_dtype(dtype), copy=False)
    single = to_odd_f32(x) if x.dtype == np.float64 else x
    return round_tf32(single) if dtype == TF32 else single.astype(numpy_dtype(dtype))


def _float_to_integer(x: Array, target: DType) -> Array:
    """Toward zero, saturating, nan to 0."""
    low, high = limits(target)
    whole = np.trunc(x.astype(np.float64))
    fits = (whole >= float(low)) & (whole < float(high + 1))  # both bounds are powers of two or zero: exact in f64
    inside = np.where(fits, whole, 0.0).astype(numpy_dtype(target))
    edge = np.where(x < 0, np.full_like(inside, low), np.full_like(inside, high))
    return np.where(fits | np.isnan(x), inside, edge)
