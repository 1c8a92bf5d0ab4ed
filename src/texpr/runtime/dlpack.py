"""Exchange of arrays with other libraries, without a copy, through DLPack, as PyTorch, CuPy and JAX support it.

The layout is that of dlpack.h, version 0.8 (the unversioned `dltensor` capsule), which every library still supports
(https://dmlc.github.io/dlpack/latest/c_api.html).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import ml_dtypes
import numpy as np

from texpr.runtime.memory import HOST, View, dense
from texpr.support.diagnostic import error

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
_INT, _UINT, _FLOAT, _BFLOAT, _BOOL, _E4M3, _E5M2, _E8M0 = 0, 1, 2, 4, 6, 10, 12, 14
NAME = b"dltensor"
USED = b"used_dltensor"

_TYPES: dict[tuple[int, int], np.dtype[Any]] = {
    **{(_INT, 8 * n): np.dtype(f"i{n}") for n in (1, 2, 4, 8)},
    **{(_UINT, 8 * n): np.dtype(f"u{n}") for n in (1, 2, 4, 8)},
    **{(_FLOAT, 8 * n): np.dtype(f"f{n}") for n in (2, 4, 8)},
    (_BFLOAT, 16): np.dtype(ml_dtypes.bfloat16),
    (_BOOL, 8): np.dtype(np.bool_),
    (_E4M3, 8): np.dtype(ml_dtypes.float8_e4m3fn),
    (_E5M2, 8): np.dtype(ml_dtypes.float8_e5m2),
    (_E8M0, 8): np.dtype(ml_dtypes.float8_e8m0fnu),
}
_CODES = {storage: code for code, storage in _TYPES.items()}


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("ordinal", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("rank", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))

_api = ctypes.pythonapi
_get = _api.PyCapsule_GetPointer
_get.restype, _get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_valid = _api.PyCapsule_IsValid
_valid.restype, _valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
_rename = _api.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, _Destructor)
_get_raw = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_valid_raw = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))


@runtime_checkable
class Exporter(Protocol):
    """An object that exports DLPack capsules."""

    def __dlpack__(self, *, stream: int | None = None) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


def take(given: Exporter, name: str, stream: int) -> View:
    """The array that `given` exports. Work on it may start on `stream`: the exporter synchronises with that.

    Raises `TexprError` E0772 for unsupported element types or devices.
    """
    kind, ordinal = given.__dlpack_device__()
    if int(kind) not in (CPU, CUDA, CUDA_HOST, CUDA_MANAGED):
        raise error("E0772", None, f"`{name}` lies on a device of DLPack's kind {int(kind)}, which texpr does not know")
    on_device = int(kind) in (CUDA, CUDA_MANAGED)
    # DLPack numbers CUDA's legacy default stream 1
    capsule = given.__dlpack__(stream=stream or 1) if on_device else given.__dlpack__(stream=None)
    if not _valid(capsule, NAME):
        raise error("E0772", None, f"`{name}` gives no DLPack capsule that texpr can read")
    managed = ctypes.cast(_get(capsule, NAME), ctypes.POINTER(_Managed))
    _rename(capsule, USED)
    owner = _Owner(managed)
    tensor = managed.contents.tensor
    storage = _TYPES.get((tensor.dtype.code, tensor.dtype.bits)) if tensor.dtype.lanes == 1 else None
    if storage is None:
        raise error("E0772", None, f"`{name}` has elements that texpr does not know (DLPack's code {tensor.dtype.code})")
    shape = tuple(tensor.shape[i] for i in range(tensor.rank))
    strides = tuple(tensor.strides[i] for i in range(tensor.rank)) if tensor.strides else dense(shape)
    device = int(ordinal) if on_device else HOST
    return View((tensor.data or 0) + tensor.offset, storage, shape, strides, device, True, (owner, given))


class _Owner:
    """Calls the exporter's deleter when the array is no longer used."""

    def __init__(self, managed: ctypes._Pointer[_Managed]):  # pyright: ignore[reportPrivateUsage]
        self._managed = managed

    def __del__(self) -> None:
        if self._managed.contents.deleter:
            self._managed.contents.deleter(self._managed)


_alive: dict[int, tuple[object, ...]] = {}
"""Keeps alive what exported capsules point into, until the consumer deletes them."""


def give(
    owner: object, address: int, dtype: np.dtype[Any], shape: Sequence[int], ordinal: int | None, strides: Sequence[int] = ()
) -> object:
    """A capsule of an array on a CUDA device, or in host memory (`HOST`); `owner` is kept alive until the consumer deletes
    it.

    Strides are in elements, dense by default. Raises `TexprError` E0772 for element types without a DLPack code.
    """
    if dtype not in _CODES:
        raise error("E0772", None, f"elements of the type {dtype} have no code in DLPack")
    extents = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    steps = (ctypes.c_int64 * max(len(shape), 1))(*(strides or dense(shape)))
    code, bits = _CODES[dtype]
    managed = _Managed()
    managed.tensor = _Tensor(
        ctypes.c_void_p(address or None), _device(ordinal), len(shape), _Type(code, bits, 1), extents, steps, 0
    )
    managed.deleter = _delete
    key = ctypes.addressof(managed)
    _alive[key] = (owner, extents, steps, managed)
    return _new(key, NAME, _destroy)


def _device(ordinal: int | None) -> _Device:
    return _Device(CPU, 0) if ordinal is None else _Device(CUDA, ordinal)


@_Deleter
def _delete(managed: ctypes._Pointer[_Managed]) -> None:  # pyright: ignore[reportPrivateUsage]
    _alive.pop(ctypes.addressof(managed.contents), None)


@_Destructor
def _destroy(capsule: int) -> None:
    """The destructor of a capsule that was not consumed."""
    if _valid_raw(capsule, NAME):
        _alive.pop(_get_raw(capsule, NAME), None)
