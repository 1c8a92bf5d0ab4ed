"""On a machine with a GPU: every family of kernels that the emulator has shown to be right, at small and at large sizes.

`bench/device.sh` runs these there. What is run, and the code that runs it, is tested in the emulator by the last tests of this
page.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.runtime.families import FAMILIES, TARGET, Call, differences, wrong
from tests.runtime.places import EMULATOR, device_target, load

from texpr.runtime import Kernel
from texpr.support.record import replace

ROOT = Path(__file__).parents[2]
LONGEST = 120.0
"""Seconds for one family, of which nearly all is compiling, of references for this processor, too."""


def apart(words: list[str], seconds: float = LONGEST) -> str:
    """What a process of its own says is wrong, or that it did not end: nothing interrupts a kernel that waits for ever."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, *words]
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"did not end within {seconds} s"
    return "" if done.returncode == 0 else done.stdout + done.stderr[-3000:] or f"status {done.returncode}"


@pytest.mark.parametrize("name", FAMILIES)
def test_on_the_device(name: str) -> None:
    """What the interpreter or NumPy says, and the same each time."""
    if device_target() != TARGET:
        pytest.skip(f"a device that is not of {TARGET}")
    told = apart(["-m", "tests.runtime.families", name])
    assert not told, told


EMULATED = (
    "roles, late",
    "channel, as it is",
    "wide where it may be, turned",
    "product by warps, i8",
    "everyday, decode_attention",
)
"""Sums of nothing are among them, whose tensors have no address."""


@pytest.mark.parametrize("name", EMULATED)
def test_how_families_are_called(name: str) -> None:
    """The same without a device, at small sizes."""
    assert wrong(name, EMULATOR, large=False) == []


def test_what_is_right_at_large_sizes_is_known() -> None:
    """References of both kinds, at a size of a device."""
    for name in ("product, bias", "everyday, im2col"):
        (call,) = FAMILIES[name].large
        made = call()
        assert all(np.any(wanted) for wanted in made.wanted.values())


def emulated() -> tuple[Kernel, Call]:
    """A small kernel, and a call of it."""
    family = FAMILIES["wide where it may be, turned"]
    made = family.made()
    return load(made.function, made.plan, EMULATOR), family.small[2]()


def test_other_numbers_are_seen() -> None:
    kernel, call = emulated()
    assert differences(kernel, call) == []
    (name,) = call.wanted
    other = call.wanted[name].copy()
    other[-1, -1] += 1
    (told,) = differences(kernel, replace(call, wanted={name: other}))
    assert "1 of" in told


def test_a_result_that_moves_is_seen() -> None:
    kernel, call = emulated()

    class Moving:
        """Gives other numbers from the second call on."""

        function, calls = kernel.function, 0

        def __call__(self, **given: Any) -> Any:
            self.calls += 1
            return kernel(**given) + (self.calls > 1)

    (told,) = differences(Moving(), call, 2)
    assert "is another one the next time" in told


def test_what_does_not_end_is_told() -> None:
    assert apart(["-c", "import time; time.sleep(60)"], 0.5) == "did not end within 0.5 s"
    assert apart(["-c", "print('other numbers'); raise SystemExit(1)"]) == "other numbers\n"
    assert apart(["-c", "pass"]) == ""
