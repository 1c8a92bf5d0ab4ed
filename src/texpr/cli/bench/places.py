"""Where calls are timed: on this processor by its clock, or on a device by events. Both answer the same questions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from texpr.cli.execute import laid_like
from texpr.delivery import compile
from texpr.frontend import parse
from texpr.interp.dtypes import Array
from texpr.ir.value import Buffer
from texpr.runtime import DeviceArray, Kernel
from texpr.runtime.call import is_scalar
from texpr.runtime.events import Events, Flush, has_graphs, replayed, stream
from texpr.runtime.memory import Driver, aligned_empty
from texpr.runtime.timing import Action, Watch, by_clock, nothing
from texpr.runtime.workspace import ALIGNMENT
from texpr.support.diagnostic import TexprError
from texpr.toolchain.hardware import last_level_cache, processor

Held: TypeAlias = "Array | DeviceArray"

MOST = 256 << 20
"""Bytes that are written at most to empty caches of a processor: where several machines share it, its caches are told whole."""

FLUSH = """
fn flush(inout x: f32[n]) {
    par n |i| { x[i] = 1.0 - x[i] }
}
"""
"""All cores write, each a part, so that the caches of each are emptied."""


BIND = "OMP_PROC_BIND"


PAUSE = 0.02
"""Seconds after which threads of a pool that wait for more to do have stopped asking for it, and leave the cores to others."""


class Place(Protocol):
    """Where calls are timed. `flushed`: bytes that `flush` writes, 0 where caches stay as they are. `rest`: lets what ran
    before come to an end."""

    device: str
    watch: Watch
    flush: Action
    flushed: int
    rest: Action

    def put(self, param: Buffer, array: Array, sizes: Mapping[str, int]) -> Held:
        """A copy of an argument there; a number stays what it is."""
        ...

    def empty(self, array: Array) -> Held:
        """An array there, for a result like `array`."""
        ...

    def restore(self, to: Held, source: Held) -> None:
        """Gives one array what another has."""
        ...

    @contextmanager
    def ours(self, kernel: Kernel, given: Sequence[object], sizes: Mapping[str, int], out: object) -> Generator[Action]:
        """The call of a kernel, ready to be timed."""
        ...

    @property
    def how(self) -> str:
        """How calls are made and timed, in words."""
        ...


class Host:
    """This processor. Caches are emptied, if `cold`, by writing as much as they hold."""

    def __init__(self, cold: bool):
        self.device = f"{processor()}, {os.cpu_count()} cores"
        self.watch = by_clock()
        self.flushed = min(MOST, last_level_cache()) if cold else 0
        written = _written_by_all(self.flushed) if cold else nothing
        self.rest: Action = lambda: time.sleep(PAUSE)
        self.flush: Action = (lambda: (written(), self.rest())) if cold else nothing

    def put(self, param: Buffer, array: Array, sizes: Mapping[str, int]) -> Held:
        """A copy with the strides of `param`."""
        return array if is_scalar(param) else laid_like(param, array, sizes)

    def empty(self, array: Array) -> Held:
        """Aligned as results of a call are."""
        made = aligned_empty(array.dtype, array.shape, ALIGNMENT)
        made[...] = 0  # its pages are there before a call is timed
        return made

    def restore(self, to: Held, source: Held) -> None:
        """By NumPy."""
        np.copyto(cast(Array, to), cast(Array, source))

    @contextmanager
    def ours(self, kernel: Kernel, given: Sequence[object], sizes: Mapping[str, int], out: object) -> Generator[Action]:
        """The function of the library."""
        with kernel.ready(given, sizes, out) as call:
            yield call

    @property
    def how(self) -> str:
        """In words."""
        return f"timed by this machine's clock, {BIND}={os.environ.get(BIND, '')}"


@lru_cache(maxsize=1)
def _written_by_all(size: int) -> Callable[[], object]:
    kernel = compile(parse(FLUSH, "flush.te").functions[0])
    x = np.zeros(size // 4, np.float32)
    return lambda: kernel(x)


class OnDevice:
    """A CUDA device. Work is queued on the default stream; launches are replayed from a graph where the driver makes one."""

    def __init__(self, driver: Driver, cold: bool, stack: ExitStack):
        driver.enter()
        self._driver = driver
        self.device = driver.name
        self.watch = stack.enter_context(Events(driver)).watch
        flush = Flush(driver) if cold else None
        self.flushed = 0 if flush is None else flush.bytes
        self.flush: Action = nothing if flush is None else flush
        self.rest: Action = nothing
        self.graph = False

    def put(self, param: Buffer, array: Array, sizes: Mapping[str, int]) -> Held:
        """A dense copy."""
        return array if is_scalar(param) else DeviceArray.of(self._driver, array)

    def empty(self, array: Array) -> Held:
        """An array with undefined elements."""
        return DeviceArray.empty(self._driver, array.dtype, array.shape)

    def restore(self, to: Held, source: Held) -> None:
        """By the driver."""
        cast(DeviceArray, to).take(cast(DeviceArray, source))

    @contextmanager
    def ours(self, kernel: Kernel, given: Sequence[object], sizes: Mapping[str, int], out: object) -> Generator[Action]:
        """A graph of what the function launches; or the function."""
        with ExitStack() as stack:
            if has_graphs(self._driver):
                own = stack.enter_context(stream(self._driver))
                call = stack.enter_context(kernel.ready(given, sizes, out, own))
                call()  # what is loaded at the first launch is no part of a graph
                self._driver.wait(own)
                try:
                    graph = stack.enter_context(replayed(self._driver, own, call))
                except TexprError:
                    pass
                else:
                    self.graph = True
                    yield graph
                    return
            yield stack.enter_context(kernel.ready(given, sizes, out))

    @property
    def how(self) -> str:
        """In words."""
        return f"timed by events, launches {'replayed from a graph' if self.graph else 'one by one'}"


@contextmanager
def bound_threads() -> Generator[None]:
    """Binds threads of OpenMP to cores, unless the environment says otherwise: two that wake on one core stay there for
    milliseconds. OpenMP reads it when it is loaded."""
    given = os.environ.get(BIND)
    os.environ.setdefault(BIND, "true")
    try:
        yield
    finally:
        if given is None:
            del os.environ[BIND]


def place_of(kernel: Kernel, cold: bool, stack: ExitStack) -> Place:
    """Where a kernel runs. `stack` ends what is kept for the time of measuring."""
    return Host(cold) if kernel.driver is None else OnDevice(kernel.driver, cold, stack)


def several(made: Sequence[Any]) -> object:
    """`out` of a call: None for no result."""
    return tuple(made) or None
