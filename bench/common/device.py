"""A device to measure on: events around calls, arrays, PyTorch where that is there; or the emulator, to try the scripts.

Without a device nothing is measured, and scripts end with the status `NOTHING`, which is no failure's.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from common.measure import Row, show, told
from texpr.delivery import compile as compiled
from texpr.ir.program import Function
from texpr.runtime import DeviceArray, Kernel
from texpr.runtime.memory import Driver
from texpr.support.record import Mutable, field
from texpr.toolchain import runs_on
from texpr.toolchain.doctor import TARGETS, find_device

NOTHING = 4
"""The exit status where there is no device."""

ROUNDS, CALLS = 11, 10
"""Times that are taken, in turn; calls in each of them, behind each other."""


def find(emulate: bool) -> Device | str:
    """What to measure on, or why there is nothing."""
    if emulate:
        return Device("sm_90a", "emulator", emulated=True)
    found = find_device()
    if isinstance(found, str):
        return found
    target = next((target for target in reversed(TARGETS) if runs_on(target, found)), None)
    if target is None:
        return f"no target of {', '.join(TARGETS)} runs on sm_{found[0]}{found[1]}"
    return Device(target, _name(), emulated=False)


def _name() -> str:
    text = ctypes.create_string_buffer(256)
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuInit(0)
    driver.cuDeviceGetName(text, ctypes.c_int(256), ctypes.c_int(0))
    return text.value.decode(errors="replace")


class Device(Mutable, dict=True):
    """Where kernels run. `torch`: PyTorch, if it is there and sees the device."""

    target: str
    name: str
    emulated: bool
    torch: Any = field(init=False)

    def __post_init__(self) -> None:
        if not self.emulated and importlib.util.find_spec("torch") is not None:
            torch = importlib.import_module("torch")
            self.torch = torch if torch.cuda.is_available() else None

    def kernel(self, function: Function, sizes: Mapping[str, int], schedule: str = "auto") -> Kernel:
        """The function, with its sizes fixed, built for the device."""
        return compiled(function, self.target, sizes, schedule=schedule, emulate=self.emulated)

    def times(self, driver: Driver, calls: Mapping[str, Callable[[], object]]) -> dict[str, list[float]]:
        """Seconds of each call, one a round: calls are taken in turn, forwards and backwards, after runs that do not count."""
        found: dict[str, list[float]] = {name: [] for name in calls}
        rounds, count = (1, 1) if self.emulated else (ROUNDS, CALLS)
        for call in calls.values():
            for _ in range(0 if self.emulated else 3):
                call()
        for turn in range(rounds):
            for name, call in list(calls.items())[:: 1 if turn % 2 == 0 else -1]:
                found[name].append(self._once(driver, call, count) / count)
        return found

    def _once(self, driver: Driver, call: Callable[[], object], count: int) -> float:
        if self.emulated:
            start = time.perf_counter()
            call()
            return time.perf_counter() - start
        with _Events(driver) as events:
            events.record(0)
            for _ in range(count):
                call()
            events.record(1)
            return events.seconds()


class _Events:
    """Two events on the default stream, and the time between them."""

    def __init__(self, driver: Driver):
        self._driver = driver
        self._events = [ctypes.c_void_p(), ctypes.c_void_p()]

    def __enter__(self) -> _Events:
        for event in self._events:
            self._driver.check("cuEventCreate", ctypes.byref(event), ctypes.c_uint(0))
        return self

    def record(self, at: int) -> None:
        self._driver.check("cuEventRecord", self._events[at], ctypes.c_void_p())

    def seconds(self) -> float:
        took = ctypes.c_float()
        self._driver.check("cuEventSynchronize", self._events[1])
        self._driver.check("cuEventElapsedTime_v2" if self._newer else "cuEventElapsedTime", ctypes.byref(took), *self._events)
        return took.value / 1e3

    @property
    def _newer(self) -> bool:
        return not hasattr(self._driver.library, "cuEventElapsedTime")

    def __exit__(self, *_: object) -> None:
        for event in self._events:
            self._driver.check("cuEventDestroy_v2", event)


def driver_of(kernel: Kernel) -> Driver:
    """The driver under a kernel. Raises ValueError for one of a CPU."""
    if kernel.driver is None:
        raise ValueError("a kernel of a CPU has no driver")
    return kernel.driver


def on_device(driver: Driver, array: np.ndarray) -> DeviceArray | np.ndarray:
    """The array on the device; numbers stay where they are."""
    return array if array.ndim == 0 else DeviceArray.of(driver, array)


def copied(driver: Driver, to: DeviceArray, source: DeviceArray, size: int) -> Callable[[], object]:
    """The driver's own copy from one array to another, on the default stream."""
    there, here = (ctypes.c_uint64(array.view().address) for array in (to, source))
    return lambda: driver.check("cuMemcpyDtoDAsync_v2", there, here, ctypes.c_size_t(size), ctypes.c_void_p())


def ratio(times: Mapping[str, Sequence[float]], peer: str) -> float | str:
    """The median, round by round, of a peer's time over ours: more than 1 is faster than it; empty where not measured."""
    if peer not in times:
        return ""
    return median(other / ours for other, ours in zip(times[peer], times["ours"], strict=True))


def milliseconds(times: Mapping[str, Sequence[float]], name: str) -> float | str:
    """The median time of a call; empty where it was not measured."""
    return 1e3 * median(times[name]) if name in times else ""


def run(title: str, measured: Callable[[Device], Iterator[Row]], default: Path) -> int:
    """A script: print the table, keep it with device and date, or say that nothing is measured, and why."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path, default=default, help="where the numbers are kept")
    parser.add_argument("--emulate", action="store_true", help="try the script in the emulator: small sizes, nothing is kept")
    options = parser.parse_args()
    device = find(options.emulate)
    if isinstance(device, str):
        sys.stdout.write(f"{title}: no GPU: nothing measured ({device})\n")
        return NOTHING
    rows = list(measured(device))
    named = f"{title}, {device.name} ({device.target}){'' if device.torch is not None else ', no PyTorch'}"
    show(f"{named}: EMULATED, the times mean nothing" if device.emulated else named, rows, None)
    if not device.emulated:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        kept = {**told(rows), "device": device.name, "target": device.target}
        options.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0
