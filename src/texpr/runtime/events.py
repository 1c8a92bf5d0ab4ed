"""Times of work on a device: events of the driver around it, the cache in between emptied, launches replayed from a graph.

Everything goes through the default stream, on which PyTorch works too if nobody says otherwise.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from contextlib import contextmanager

from texpr.runtime.memory import DeviceMemory, Driver
from texpr.runtime.timing import Action

# cuda.h: CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL.
_L2_BYTES, _NON_BLOCKING, _OF_THREAD = 38, 1, 1

TIMES = 2
"""How many times the bytes of the second-level cache are written to empty it."""


class Events:
    """Two events on the default stream, and the time between them."""

    def __init__(self, driver: Driver):
        self._driver = driver
        self._events = [ctypes.c_void_p(), ctypes.c_void_p()]

    def __enter__(self) -> Events:
        for event in self._events:
            self._driver.check("cuEventCreate", ctypes.byref(event), ctypes.c_uint(0))
        return self

    def record(self, at: int) -> None:
        """Puts the first (0) or the second (1) behind what is queued."""
        self._driver.check("cuEventRecord", self._events[at], ctypes.c_void_p())

    def seconds(self) -> float:
        """The time between them, when both have come."""
        took = ctypes.c_float()
        self._driver.check("cuEventSynchronize", self._events[1])
        newer = not self._driver.has("cuEventElapsedTime")
        self._driver.check("cuEventElapsedTime_v2" if newer else "cuEventElapsedTime", ctypes.byref(took), *self._events)
        return took.value / 1e3

    def watch(self, call: Action) -> float:
        """The seconds of what a call queues. The two events are used again and again."""
        self.record(0)
        call()
        self.record(1)
        return self.seconds()

    def __exit__(self, *_: object) -> None:
        for event in self._events:
            self._driver.check("cuEventDestroy_v2", event)


class Flush:
    """Empties the second-level cache of a device: writes twice as much."""

    def __init__(self, driver: Driver):
        self._driver = driver
        self.bytes = max(4, TIMES * driver.attribute(_L2_BYTES)) // 4 * 4
        self._memory: DeviceMemory = driver.allocate(self.bytes)

    def __call__(self) -> None:
        """Queues it on the default stream."""
        to, words = ctypes.c_uint64(self._memory.address), ctypes.c_size_t(self.bytes // 4)
        self._driver.check("cuMemsetD32Async", to, ctypes.c_uint(0), words, ctypes.c_void_p())


@contextmanager
def stream(driver: Driver) -> Generator[int]:
    """A stream of its own, beside the default one."""
    made = ctypes.c_void_p()
    driver.check("cuStreamCreate", ctypes.byref(made), ctypes.c_uint(_NON_BLOCKING))
    try:
        yield made.value or 0
    finally:
        driver.check("cuStreamDestroy_v2", made)


@contextmanager
def replayed(driver: Driver, on: int, call: Action) -> Generator[Callable[[], None]]:
    """What `call` launches on the stream `on`, as a graph that the default stream runs at once, without the host's part.

    Raises `TexprError` E0783 where the driver makes no graph of it.
    """
    graph, runs, where = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(on or None)
    driver.check("cuStreamBeginCapture_v2", where, ctypes.c_int(_OF_THREAD))
    try:
        call()
    finally:  # a capture that is not ended leaves the stream unusable
        driver.check("cuStreamEndCapture", where, ctypes.byref(graph))
    try:
        driver.check("cuGraphInstantiateWithFlags", ctypes.byref(runs), graph, ctypes.c_ulonglong(0))
    finally:
        driver.check("cuGraphDestroy", graph)
    try:
        yield lambda: driver.check("cuGraphLaunch", runs, ctypes.c_void_p())
    finally:
        driver.check("cuGraphExecDestroy", runs)


def has_graphs(driver: Driver) -> bool:
    """Whether the driver records graphs."""
    return all(driver.has(name) for name in ("cuStreamBeginCapture_v2", "cuGraphInstantiateWithFlags"))
