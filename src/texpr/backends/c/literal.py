"""Numbers as C text, exactly."""

from __future__ import annotations

import math
import struct

from texpr.backends.c.text import Binds, Text, call
from texpr.backends.c.types import C_NAMES, SMALL_FLOATS
from texpr.ir.value.types import F32, F64, DType, Kind


def literal_text(value: int | float, dtype: DType) -> Text:
    """`value` as a C expression of exactly the C type of `dtype`."""
    match dtype.kind:
        case Kind.BOOL:
            return Text("true" if value else "false")
        case Kind.INT | Kind.UINT:
            return _integer(int(value), dtype)
        case Kind.FLOAT:
            return _float(value, dtype)


def _integer(value: int, dtype: DType) -> Text:
    match dtype.name:
        case "i32":
            if value == -(2**31):
                return Text("-2147483647 - 1", Binds.ADD)
            return Text(str(value), Binds.UNARY if value < 0 else Binds.PRIMARY)
        case "u32":
            return Text(f"{value}u")
        case "u64":
            return Text(f"uint64_t({value}u)")
        case "i64":
            text = "-9223372036854775807 - 1" if value == -(2**63) else str(value)
            return Text(f"int64_t({text})")
        case _:
            return Text(f"{C_NAMES[dtype]}({value})")


def _float(value: int | float, dtype: DType) -> Text:
    number = _as_float(value)
    if dtype in SMALL_FLOATS:
        exact = _nearest_f32(number) == number or math.isnan(number)
        return call(f"tx_to<{C_NAMES[dtype]}>", _float(number, F32 if exact else F64))
    if dtype == F32:
        number = _nearest_f32(number)
    if math.isnan(number):
        return Text("NAN") if dtype == F32 else Text("double(NAN)")
    if math.isinf(number):
        text = "INFINITY" if dtype == F32 else "double(INFINITY)"
    else:
        digits = _shortest_f32(abs(number)) if dtype == F32 else repr(abs(number))
        text = digits if any(sign in digits for sign in ".en") else f"{digits}.0"
        text += "f" if dtype == F32 else ""
    negative = math.copysign(1.0, number) < 0
    return Text(f"-{text}", Binds.UNARY) if negative else Text(text)


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _nearest_f32(value: float) -> float:
    if math.isnan(value) or math.isinf(value):
        return value
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _shortest_f32(value: float) -> str:
    """The fewest digits from which the f32 `value` is read back; nine are always enough."""
    for digits in range(1, 9):
        text = f"{value:.{digits}g}"
        if _nearest_f32(float(text)) == value:
            return text
    return f"{value:.9g}"
