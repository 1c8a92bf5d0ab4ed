"""Where compiled programs run: the emulator, or the first device."""

from __future__ import annotations

import pytest

from texpr.ir.kernel import Plan
from texpr.ir.program import Function
from texpr.runtime import Kernel, load_cuda, load_emulated
from texpr.toolchain import Toolchain, runs_on, this_machine
from texpr.toolchain.doctor import TARGETS, find_device

EMULATOR = "emulator"


def device_target() -> str:
    """The best target for the first device; skips where there is none."""
    device = find_device()
    if isinstance(device, str):
        pytest.skip(device)
    target = next((t for t in reversed(TARGETS) if runs_on(t, device)), None)
    if target is None:
        pytest.skip(f"no target fits sm_{device[0]}{device[1]}")
    return target


def load(function: Function, plan: Plan, place: str) -> Kernel:
    """A plan built for a place: the emulator, or the target of the device that is here."""
    tools = Toolchain(this_machine())
    if place == EMULATOR:
        return load_emulated(tools, function, plan, "sm_90a")
    return load_cuda(tools, function, plan, place)
