"""Scalar types of the language and their NumPy storage."""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from texpr.ir.value import types
from texpr.ir.value.types import DType

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
"""An array of any element type; in this room also a NumPy scalar, which behaves as one of rank 0."""

_STORAGE: dict[DType, np.dtype[Any]] = {
    types.F64: np.dtype(np.float64),
    types.F32: np.dtype(np.float32),
    types.TF32: np.dtype(np.float32),
    types.F16: np.dtype(np.float16),
    types.BF16: np.dtype(ml_dtypes.bfloat16),
    types.F8E4M3: np.dtype(ml_dtypes.float8_e4m3fn),
    types.F8E5M2: np.dtype(ml_dtypes.float8_e5m2),
    types.F8E8M0: np.dtype(ml_dtypes.float8_e8m0fnu),
    types.I8: np.dtype(np.int8),
    types.I16: np.dtype(np.int16),
    types.I32: np.dtype(np.int32),
    types.I64: np.dtype(np.int64),
    types.U8: np.dtype(np.uint8),
    types.U16: np.dtype(np.uint16),
    types.U32: np.dtype(np.uint32),
    types.U64: np.dtype(np.uint64),
    types.BOOL: np.dtype(np.bool_),
}
_LANGUAGE: dict[np.dtype[Any], DType] = {storage: dtype for dtype, storage in _STORAGE.items() if dtype is not types.TF32}


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy type that stores `dtype`; tf32 is stored as float32."""
    return _STORAGE[dtype]


def dtype_of(storage: np.dtype[Any]) -> DType | None:
    """The type of the language that NumPy stores as `storage` (f32 for float32), or None where there is none."""
    return _LANGUAGE.get(storage)


def limits(dtype: DType) -> tuple[int, int]:
    """The minimum and maximum of an integer type."""
    info = np.iinfo(_STORAGE[dtype])
    return int(info.min), int(info.max)
