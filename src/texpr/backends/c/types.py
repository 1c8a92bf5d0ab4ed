"""Names of the scalar types in C text, inside emitted code and at its public boundary."""

from __future__ import annotations

from texpr.ir.value.types import BF16, DTYPES, F8E4M3, F8E5M2, F8E8M0, F16, F32, F64, TF32, DType, Kind


def _name(dtype: DType) -> str:
    match dtype.kind:
        case Kind.FLOAT:
            return {"f64": "double", "f32": "float"}.get(dtype.name, f"tx_{dtype.name}")
        case Kind.INT:
            return f"int{dtype.bits}_t"
        case Kind.UINT:
            return f"uint{dtype.bits}_t"
        case Kind.BOOL:
            return "bool"


C_NAMES: dict[DType, str] = {dtype: _name(dtype) for dtype in DTYPES.values()}
"""The C type of a value in emitted code; small floating-point types are structs of texpr_numeric.h."""

PUBLIC_NAMES: dict[DType, str] = C_NAMES | {
    F16: "uint16_t",
    BF16: "uint16_t",
    F8E4M3: "uint8_t",
    F8E5M2: "uint8_t",
    F8E8M0: "uint8_t",
    TF32: "float",
}
"""The type of an argument in plain C: small floating-point numbers are passed as their bits, tf32 as a float."""

SMALL_FLOATS = frozenset({F16, BF16, F8E4M3, F8E5M2, F8E8M0, TF32})
"""Types whose operations compute in f32 and round once."""

OPERATOR_TYPES = frozenset({F32, F64, *SMALL_FLOATS, DTYPES["u32"], DTYPES["u64"]})
"""Types for which C's own + - * have the language's semantics: no promotion, no undefined overflow."""

NARROW_INTEGERS = frozenset(dtype for dtype in DTYPES.values() if dtype.bits < 32 and dtype.is_integer)
"""Types that C promotes to int."""
