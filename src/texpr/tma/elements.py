"""Types of elements that a tensor map knows, and what it fills with. `CUtensorMapDataType`, `CUtensorMapFloatOOBfill`.

The packed types of 4 and 6 bits (`CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B` and so on) are not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True, slots=True)
class Element:
    """A type: the name that the driver has for it, its storage in NumPy, whether it is floating-point."""

    name: str
    storage: np.dtype[Any]
    is_float: bool = False

    @property
    def size(self) -> int:
        """In bytes: 1, 2, 4 or 8."""
        return self.storage.itemsize

    def __str__(self) -> str:
        return self.name


_INTEGERS = (Element(f"{kind}{8 * size}", np.dtype(f"{kind[0]}{size}")) for kind, size in (
    ("uint", 1), ("uint", 2), ("uint", 4), ("int", 4), ("uint", 8), ("int", 8)
))  # fmt: skip
_FLOATS = (
    Element("float16", np.dtype(np.float16), is_float=True),
    Element("float32", np.dtype(np.float32), is_float=True),
    Element("float64", np.dtype(np.float64), is_float=True),
    Element("bfloat16", np.dtype(ml_dtypes.bfloat16), is_float=True),
    Element("float32_ftz", np.dtype(np.float32), is_float=True),
    Element("tfloat32", np.dtype(np.float32), is_float=True),
    Element("tfloat32_ftz", np.dtype(np.float32), is_float=True),
)

ELEMENTS = {element.name: element for element in (*_INTEGERS, *_FLOATS)}
"""Every type, by name. Bytes of a type that is not here travel as the unsigned integer of its size."""


class Fill(Enum):
    """What a load writes for elements outside of the tensor."""

    ZERO = "zero"
    NAN = "nan"


_NAN = bytes((0xF7, 0x7F))
"""PTX ISA names the value `OOB-NaN` and gives no bits. Any nan will do; these were seen by others, in each two bytes."""


def fill_bytes(element: Element, fill: Fill) -> bytes:
    """The bytes of one element outside of the tensor. Raises ValueError for a nan of integers."""
    if fill is Fill.ZERO:
        return bytes(element.size)
    if not element.is_float:
        raise ValueError(f"{element} has no nan to fill with")
    return _NAN * (element.size // 2)
