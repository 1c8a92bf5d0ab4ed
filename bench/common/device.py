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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from common.measure import Row, show, told
from texpr.delivery import compile as compiled
from texpr.ir.program import Function
from texpr.runtime import DeviceArray, Kernel
from texpr.runtime.events import Events
from texpr.runtime.memory import Driver
from texpr.runtime.timing import Timed, by_clock, in_turn
from texpr.runtime.timing import ratio as by_rounds
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
    driver = Driver(ctypes.CDLL("libcuda.so.1"))
    driver.start()
    return driver.name


class Device(Mutable, dict=True):
    """Where kernels run. `torch`: PyTorch, if it is there and sees the device."""

    target: str
    name: str
    emulated: bool
    torch: Any = field(init=False)

    def __post_init__(self) -> None:
        if not self.emulated and importlib.util.find_spec("torch") is not None:
            torch = importlib.import_module("torch")
            torch.backends.cudnn.allow_tf32 = False  # as its products are by default: all of f32 is summed up in f32, as ours
            self.torch = torch if torch.cuda.is_available() else None

    def kernel(self, function: Function, sizes: Mapping[str, int], schedule: str = "auto") -> Kernel:
        """The function, with its sizes fixed, built for the device."""
        return compiled(function, self.target, sizes, schedule=schedule, emulate=self.emulated)

    def times(self, driver: Driver, calls: Mapping[str, Callable[[], object]]) -> dict[str, list[float]]:
        """Seconds of each call, one a round: calls are taken in turn, forwards and backwards, after runs that do not count."""
        rounds, count = (1, 1) if self.emulated else (ROUNDS, CALLS)
        for call in calls.values():
            for _ in range(0 if self.emulated else 3):
                call()
        with ExitStack() as stack:
            watch = by_clock() if self.emulated else stack.enter_context(Events(driver)).watch
            timed = {name: Timed(_several(call, count), watch) for name, call in calls.items()}
            found = in_turn(timed, lambda done: done < rounds)
        return {name: [time / count for time in times] for name, times in found.items()}


def _several(call: Callable[[], object], count: int) -> Callable[[], object]:
    def calls() -> None:
        for _ in range(count):
            call()

    return calls


def driver_of(kernel: Kernel) -> Driver:
    """The driver under a kernel. Raises ValueError for one of a CPU."""
    if kernel.driver is None:
        raise ValueError("a kernel of a CPU has no driver")
    return kernel.driver


def on_device(driver: Driver, array: np.ndarray) -> DeviceArray | np.ndarray:
    """The array on the device; numbers stay where they are."""
    return array if array.ndim == 0 else DeviceArray.of(driver, array)


def copied(to: DeviceArray, source: DeviceArray) -> Callable[[], object]:
    """The driver's own copy from one array to another, on the default stream."""
    return lambda: to.take(source)


def ratio(times: Mapping[str, Sequence[float]], peer: str) -> float | str:
    """The median, round by round, of a peer's time over ours: more than 1 is faster than it; empty where not measured."""
    if peer not in times:
        return ""
    return by_rounds(times[peer], times["ours"])


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
