"""Memory of arrays in a call: address, strides and device; on the host, or on a device through CUDA's driver interface."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from texpr.interp.dtypes import Array
from texpr.support.diagnostic import TexprError, error
from texpr.support.record import Mutable, Record, field

HOST = None
"""The device of host memory."""


class View(Record, eq=False):
    """An array: address, element type, shape, strides in elements, the ordinal of its device (`HOST`: none).

    `owner` keeps the memory alive.
    """

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: int | None
    writable: bool
    owner: object

    @property
    def empty(self) -> bool:
        """Whether it has no element."""
        return 0 in self.shape

    def extent(self) -> tuple[int, int]:
        """The bytes from its first to its last address, inclusive."""
        if self.empty:
            return self.address, self.address
        steps = [(n - 1) * s * self.dtype.itemsize for n, s in zip(self.shape, self.strides, strict=True)]
        low = self.address + sum(step for step in steps if step < 0)
        return low, self.address + sum(step for step in steps if step > 0) + self.dtype.itemsize


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    return tuple(prod(shape[at + 1 :]) for at in range(len(shape)))


def on_host(array: Array) -> View:
    """A NumPy array as a view. Strides that are not a multiple of an element are rounded; see `is_whole`."""
    item = max(array.itemsize, 1)
    strides = tuple(stride // item for stride in array.strides)
    return View(array.ctypes.data, array.dtype, array.shape, strides, HOST, array.flags.writeable, array)


def aligned_empty(dtype: np.dtype[Any], shape: Sequence[int], align: int) -> Array:
    """A new dense array aligned to `align` bytes. Raises `TexprError` E0781 if memory is exhausted."""
    size = prod(shape) * dtype.itemsize
    try:
        room = np.empty(size + align, np.uint8)
    except MemoryError:
        raise error("E0781", None, f"no memory for an array of {size} bytes") from None
    skip = -room.ctypes.data % align
    return room[skip : skip + size].view(dtype).reshape(shape)


def strided(array: Array, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """The memory of `array` in another shape, with strides in elements; of types too that NumPy has no word for, as f8e5m2."""
    item = array.dtype.itemsize
    opaque = array.view(np.dtype((np.void, item)))
    return np.lib.stride_tricks.as_strided(opaque, shape, [stride * item for stride in strides]).view(array.dtype)


class Driver(Mutable):
    """CUDA's driver interface, real or the emulator's, through ctypes, with one device's primary context."""

    library: ctypes.CDLL
    ordinal: int = 0
    _context: ctypes.c_void_p = field(default_factory=ctypes.c_void_p)

    def start(self) -> None:
        """Initialises the device. Raises `TexprError` E0782 if there is none."""
        device = ctypes.c_int()
        for name, args in (
            ("cuInit", (ctypes.c_uint(0),)),
            ("cuDeviceGet", (ctypes.byref(device), ctypes.c_int(self.ordinal))),
            ("cuDevicePrimaryCtxRetain", (ctypes.byref(self._context), device)),
        ):
            code = int(getattr(self.library, name)(*args))
            if code != 0:
                raise error("E0782", None, f"no CUDA device {self.ordinal}: {name} gives {code}, {self.explain(code)}")

    @property
    def name(self) -> str:
        """What the driver calls the device."""
        text, device = ctypes.create_string_buffer(256), ctypes.c_int()
        self.check("cuDeviceGet", ctypes.byref(device), ctypes.c_int(self.ordinal))
        self.check("cuDeviceGetName", text, ctypes.c_int(len(text)), device)
        return text.value.decode(errors="replace")

    def attribute(self, number: int) -> int:
        """An attribute of the device, by its number in cuda.h (CUdevice_attribute)."""
        value, device = ctypes.c_int(), ctypes.c_int()
        self.check("cuDeviceGet", ctypes.byref(device), ctypes.c_int(self.ordinal))
        self.check("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(number), device)
        return value.value

    def enter(self) -> None:
        """Makes the context current on this thread, unless one of the device is."""
        current, device = ctypes.c_void_p(), ctypes.c_int(-1)
        self.library.cuCtxGetCurrent(ctypes.byref(current))
        if (
            current.value is not None
            and self.library.cuCtxGetDevice(ctypes.byref(device)) == 0
            and device.value == self.ordinal
        ):
            return
        self.check("cuCtxSetCurrent", self._context)

    def check(self, name: str, *args: object) -> None:
        """Calls a function of the driver. Raises `TexprError` E0783 with the driver's message, E0781 if memory is exhausted."""
        code = int(getattr(self.library, name)(*args))
        if code == 2:
            raise error("E0781", None, f"no memory on CUDA device {self.ordinal}")
        if code != 0:
            raise error("E0783", None, f"the CUDA driver's {name} fails with {code}: {self.explain(code)}")

    def has(self, name: str) -> bool:
        """Whether the driver has a function of this name."""
        return hasattr(self.library, name)

    def explain(self, code: int) -> str:
        """The driver's message for a code."""
        text = ctypes.c_char_p()
        self.library.cuGetErrorString(ctypes.c_int(code), ctypes.byref(text))
        return (text.value or b"an unknown error").decode(errors="replace")

    def allocate(self, size: int) -> DeviceMemory:
        """Allocates memory; none for 0 bytes."""
        address = ctypes.c_uint64(0)
        if size > 0:
            self.check("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return DeviceMemory(self, address.value, size)

    def upload(self, address: int, array: Array, stream: int) -> None:
        """Copies a dense array to the device, synchronously."""
        if array.nbytes > 0:
            source = ctypes.c_void_p(array.ctypes.data)
            self.check("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(address), source, ctypes.c_size_t(array.nbytes), _handle(stream))
            self.wait(stream)

    def download(self, array: Array, address: int, stream: int) -> None:
        """Copies from the device into a dense array, after the work on the stream, synchronously."""
        if array.nbytes > 0:
            target = ctypes.c_void_p(array.ctypes.data)
            self.check("cuMemcpyDtoHAsync_v2", target, ctypes.c_uint64(address), ctypes.c_size_t(array.nbytes), _handle(stream))
        self.wait(stream)

    def wait(self, stream: int) -> None:
        """Waits for all work on the stream."""
        self.check("cuStreamSynchronize", _handle(stream))


class DeviceMemory(Mutable):
    """Memory on a device, freed with this object."""

    driver: Driver
    address: int
    size: int

    def __del__(self) -> None:
        # At process exit memory is reclaimed anyway; late in it even the names of this module are gone.
        if self.address and sys is not None and not sys.is_finalizing():  # pyright: ignore[reportUnnecessaryComparison]
            with contextlib.suppress(TexprError):  # a driver that is shutting down
                self.driver.enter()
            self.driver.library.cuMemFree_v2(ctypes.c_uint64(self.address))


def _handle(stream: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(stream or None)
