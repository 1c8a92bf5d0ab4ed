"""Element types of tensor maps, and fills. `CUtensorMapDataType`, `CUtensorMapFloatOOBfill`.

The packed types of 4 and 6 bits (`CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B` and so on) are not modelled.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from texpr.support.lazy import Module
from texpr.support.record import Record

if TYPE_CHECKING:
    import ml_dtypes
    import numpy as np
else:  # the compiler itself computes with no array
    np, ml_dtypes = Module("numpy"), Module("ml_dtypes")


class Element(Record):
    """An element type: the driver's name for it, its bytes (1, 2, 4 or 8), whether it is floating-point."""

    name: str
    size: int
    is_float: bool = False

    @property
    def storage(self) -> np.dtype[Any]:
        """The NumPy type that stores it; a type with fewer mantissa bits is stored in the next wider one."""
        if self.name == "bfloat16":
            return np.dtype(ml_dtypes.bfloat16)
        kind = "f" if self.is_float else self.name[0]
        return np.dtype(f"{kind}{self.size}")

    def __str__(self) -> str:
        return self.name


_INTEGERS = (Element(f"{kind}{8 * size}", size) for kind, size in (
    ("uint", 1), ("uint", 2), ("uint", 4), ("int", 4), ("uint", 8), ("int", 8)
))  # fmt: skip
_FLOATS = (Element(name, size, is_float=True) for name, size in (
    ("float16", 2), ("float32", 4), ("float64", 8), ("bfloat16", 2), ("float32_ftz", 4), ("tfloat32", 4), ("tfloat32_ftz", 4)
))  # fmt: skip

ELEMENTS = {element.name: element for element in (*_INTEGERS, *_FLOATS)}
"""Every type, by name. Types that are not listed are copied as the unsigned integer of their size."""


class Fill(Enum):
    """The value that a load writes for elements outside of the tensor."""

    ZERO = "zero"
    NAN = "nan"


_NAN = bytes((0xF7, 0x7F))
"""PTX ISA calls the value `OOB-NaN` and does not specify its bits. Any nan will do; these were reported, for each two bytes."""


def fill_bytes(element: Element, fill: Fill) -> bytes:
    """The bytes of one element outside of the tensor. Raises ValueError for a nan of integers."""
    if fill is Fill.ZERO:
        return bytes(element.size)
    if not element.is_float:
        raise ValueError(f"{element} has no nan to fill with")
    return _NAN * (element.size // 2)
