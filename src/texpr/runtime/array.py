"""Arrays that kernels return, for use by other libraries: on a device, or in host memory."""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np

from texpr.interp.dtypes import Array
from texpr.runtime import dlpack
from texpr.runtime.memory import HOST, DeviceMemory, Driver, View, dense, on_host


class DeviceArray:
    """A dense array on a CUDA device, for `torch.from_dlpack`, `cupy.from_dlpack`, another kernel, or `numpy()`."""

    __slots__ = ("_memory", "dtype", "shape")

    def __init__(self, memory: DeviceMemory, dtype: np.dtype[Any], shape: tuple[int, ...]):
        self._memory = memory
        self.dtype = dtype
        self.shape = shape

    @staticmethod
    def empty(driver: Driver, dtype: np.dtype[Any], shape: tuple[int, ...]) -> DeviceArray:
        """A new array with undefined elements."""
        return DeviceArray(driver.allocate(prod(shape) * dtype.itemsize), dtype, shape)

    @staticmethod
    def of(driver: Driver, array: Array, stream: int = 0) -> DeviceArray:
        """A copy of a host array."""
        made = DeviceArray.empty(driver, array.dtype, array.shape)
        driver.upload(made._memory.address, np.ascontiguousarray(array), stream)
        return made

    def numpy(self, stream: int = 0) -> Array:
        """A copy on the host, after all work queued on `stream`."""
        driver = self._memory.driver
        driver.enter()
        array = np.empty(self.shape, self.dtype)
        driver.download(array, self._memory.address, stream)
        return array

    def take(self, other: DeviceArray, stream: int = 0) -> None:
        """Queues a copy of an array of the same type and shape, on the same device, into this one."""
        size = prod(self.shape) * self.dtype.itemsize
        to, source = (ctypes.c_uint64(each._memory.address) for each in (self, other))
        if size:
            self._memory.driver.check(
                "cuMemcpyDtoDAsync_v2", to, source, ctypes.c_size_t(size), ctypes.c_void_p(stream or None)
            )

    def view(self) -> View:
        """The view of its memory."""
        ordinal = self._memory.driver.ordinal
        return View(self._memory.address, self.dtype, self.shape, dense(self.shape), ordinal, True, self)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self._memory.driver.ordinal

    def __dlpack__(self, *, stream: int | None = None, **_: object) -> object:
        """A capsule. The writes of the array must precede the consumer's work: on its stream, or by synchronisation.

        Further options of a consumer (`max_version`, …) are optional by the protocol, and ignored.
        """
        return dlpack.give(self, self._memory.address, self.dtype, self.shape, self._memory.driver.ordinal)

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, device=cuda:{self._memory.driver.ordinal})"


class HostArray:
    """A NumPy array for `torch.from_dlpack` and others, with any element type: NumPy itself exports no bfloat16 and no
    float8."""

    __slots__ = ("_array",)

    def __init__(self, array: Array):
        self._array = array

    def numpy(self) -> Array:
        """The array itself."""
        return self._array

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU, 0

    def __dlpack__(self, *, stream: int | None = None, **_: object) -> object:
        """A capsule; further options of a consumer (`max_version`, …) are optional by the protocol, and ignored."""
        view = on_host(self._array)
        return dlpack.give(self._array, view.address, view.dtype, view.shape, HOST, view.strides)

    def __repr__(self) -> str:
        return f"HostArray(shape={self._array.shape}, dtype={self._array.dtype})"
