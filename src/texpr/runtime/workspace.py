"""Memory for what lies between the kernels of a call, kept for later calls: to the host new memory costs much."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import numpy as np

from texpr.interp.dtypes import Array
from texpr.runtime.memory import DeviceMemory, Driver, aligned_empty

ALIGNMENT = 256
"""Where new memory begins, at least."""


class Workspaces:
    """A kernel's workspaces: on a device one a stream, on the host as many as there were calls at once.

    Each is as large as the largest call so far needed.
    """

    def __init__(self, driver: Driver | None):
        self._driver = driver
        self._on_host: list[Array] = []
        self._on_device: dict[int, DeviceMemory] = {}

    @contextmanager
    def room(self, size: int, stream: int) -> Generator[int | None]:
        """The address of `size` bytes for the time of a call, None for no bytes. Raises `TexprError` where memory is out."""
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
        """Memory that no other call uses. A list gives each of its entries to one thread alone."""
        try:
            room = self._on_host.pop()
        except IndexError:
            room = None
        return room if room is not None and room.nbytes >= size else aligned_empty(np.dtype(np.uint8), (size,), ALIGNMENT)
