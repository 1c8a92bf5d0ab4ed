"""Reductions into global memory: operations and their element types. PTX ISA, "cp.reduce.async.bulk.tensor", ".redOp"."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from texpr.support.lazy import Module
from texpr.tma.elements import Element

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:  # the compiler itself only reads the types
    np = Module("numpy")


class Reduction(Enum):
    """The operation; the names are those of PTX."""

    ADD = "add"
    MIN = "min"
    MAX = "max"
    INC = "inc"
    DEC = "dec"
    AND = "and"
    OR = "or"
    XOR = "xor"


_HALVES = ("float16", "bfloat16")
_WORDS = ("uint32", "int32", "uint64", "int64")

TYPES: dict[Reduction, tuple[str, ...]] = {
    Reduction.ADD: ("uint32", "int32", "uint64", *_HALVES, "float32", "float64"),
    Reduction.MIN: (*_WORDS, *_HALVES),
    Reduction.MAX: (*_WORDS, *_HALVES),
    Reduction.INC: ("uint32",),
    Reduction.DEC: ("uint32",),
    Reduction.AND: _WORDS,
    Reduction.OR: _WORDS,
    Reduction.XOR: _WORDS,
}
"""The element types of each operation, by name."""

Values: TypeAlias = "npt.NDArray[Any]"


def flushed(values: Values) -> Values:
    """The values with subnormal numbers flushed to zero of the same sign."""
    least = np.finfo(values.dtype).tiny
    return np.where(np.abs(values) < least, np.copysign(np.zeros_like(values), values), values)


def combined(reduction: Reduction, element: Element, old: Values, new: Values) -> Values:
    """`old` of global memory combined with `new` of shared memory. Raises ValueError for a type that the operation does not
    support."""
    if element.name not in TYPES[reduction]:
        raise ValueError(f"no {reduction.value} of {element}")
    match reduction:
        case Reduction.ADD:
            with np.errstate(over="ignore"):
                return (old + new).astype(element.storage)
        case Reduction.MIN:
            return np.minimum(old, new)
        case Reduction.MAX:
            return np.maximum(old, new)
        case Reduction.INC:
            return np.where(old >= new, 0, old + np.uint32(1)).astype(element.storage)
        case Reduction.DEC:
            return np.where((old == 0) | (old > new), new, old - np.uint32(1)).astype(element.storage)
        case Reduction.AND:
            return old & new
        case Reduction.OR:
            return old | new
        case Reduction.XOR:
            return old ^ new
