"""Scalar types of the language."""

from __future__ import annotations

from enum import Enum

from texpr.affine.interned import interned


class Kind(Enum):
    """The kind of a scalar type."""

    FLOAT = "float"
    INT = "int"
    UINT = "uint"
    BOOL = "bool"


@interned
class DType:
    """A scalar type: its name in the language, kind, and size in memory in bits (tf32 is stored in 32, bool in 8)."""

    name: str
    kind: Kind
    bits: int

    @property
    def bytes(self) -> int:
        """The size of one element in memory, in bytes."""
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        """Whether the type is a floating-point one."""
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        """Whether the type is a signed or unsigned integer (bool is not)."""
        return self.kind in (Kind.INT, Kind.UINT)

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest value of an integer type; of bool, 0 and 1."""
        if self.kind is Kind.INT:
            return -(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1
        return 0, 1 if self.kind is Kind.BOOL else 2**self.bits - 1

    def __str__(self) -> str:
        return self.name


F64, F32, TF32 = DType("f64", Kind.FLOAT, 64), DType("f32", Kind.FLOAT, 32), DType("tf32", Kind.FLOAT, 32)
F16, BF16 = DType("f16", Kind.FLOAT, 16), DType("bf16", Kind.FLOAT, 16)
F8E4M3, F8E5M2 = DType("f8e4m3", Kind.FLOAT, 8), DType("f8e5m2", Kind.FLOAT, 8)
F8E8M0 = DType("f8e8m0", Kind.FLOAT, 8)
I8, I16, I32, I64 = (DType(f"i{b}", Kind.INT, b) for b in (8, 16, 32, 64))
U8, U16, U32, U64 = (DType(f"u{b}", Kind.UINT, b) for b in (8, 16, 32, 64))
BOOL = DType("bool", Kind.BOOL, 8)

DTYPES: dict[str, DType] = {
    t.name: t for t in (F64, F32, TF32, F16, BF16, F8E4M3, F8E5M2, F8E8M0, I8, I16, I32, I64, U8, U16, U32, U64, BOOL)
}
"""Every scalar type by name. f8e4m3 is the finite-only OCP format (no infinities, ±448), f8e5m2 the IEEE-like one. f8e8m0 is a
power of two from 2⁻¹²⁷ to 2¹²⁷, or nan, without sign or zero: the scale of a block of others (OCP Microscaling, 5.4.1)."""


def widens(source: DType, target: DType) -> bool:
    """Whether every value of the integer type `source` is a value of `target`."""
    if source.kind is target.kind:
        return source.bits <= target.bits
    return source.kind is Kind.UINT and target.kind is Kind.INT and source.bits < target.bits
