"""Workspace for the kernels of a call, cached for later calls, as allocation is expensive on the host."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import numpy as np

from texpr.interp.dtypes import Array
from texpr.runtime.memory import DeviceMemory, Driver, aligned_empty

ALIGNMENT = 256
"""The alignment of new memory."""


class Workspaces:
    """The workspaces of a kernel: on a device one for each stream, on the host one for each concurrent call.

    Each has the size of the largest call so far.
    """

    def __init__(self, driver: Driver | None):
        self._driver = driver
        self._on_host: list[Array] = []
        self._on_device: dict[int, DeviceMemory] = {}

    @contextmanager
    def room(self, size: int, stream: int) -> Generator[int | None]:
        """The address of `size` bytes for the duration of a call, None for no bytes. Raises `TexprError` if memory is
        exhausted."""
        if size == 0:
            yield None
        elif self._driver is not None:
            kept = self._on_device.get(stream)
            if kept is None or kept.size < size:
                kept = self._on_device[stream] = self._driver.allocate(size)
            yield kept.address
        else:
            room = self._taken(size)
            try:
                yield room.ctypes.data
            finally:
                self._on_host.append(room)

    def _taken(self, size: int) -> Array:
        """Memory that no other call uses. Popping from a list is thread-safe."""
        try:
            room = self._on_host.pop()
        except IndexError:
            room = None
        return room if room is not None and room.nbytes >= size else aligned_empty(np.dtype(np.uint8), (size,), ALIGNMENT)
