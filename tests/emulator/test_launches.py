"""Launches that may start before the one before them has ended: what threads touch that do not know of it is a race."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from texpr.backends.cuda.headers import headers as device_headers
from texpr.emulator import Fault, build_core, build_kernels, image, parse_reports
from texpr.emulator.harness import load_core

from .kernels import HEAD

COPY = "TX_AT(5) out[i] = x[N - 1 - i] + 1.0f;"
BODIES = {
    "first": f"tx_admit_launch(); {COPY}",
    "plain": COPY,
    "waits": f"tx_await_launches(); tx_admit_launch(); {COPY}",
    "late": "TX_AT(4) float const taken = x[N - 1 - i]; tx_await_launches(); out[i] = taken + 1.0f;",
    "some": f"if (i < 32) tx_await_launches(); {COPY}",
    "eager": f"tx_admit_launch(); tx_await_launches(); {COPY}",
    "ends": f"{COPY} tx_await_launches(); tx_admit_launch();",
}
"""What a kernel does: it copies an array backwards, adds 1, and waits for those before it, or does not."""

TEXT = HEAD + "\n".join(
    f'extern "C" __global__ void __launch_bounds__(32)\n{name}(TX_GLOBAL(float const) x, TX_GLOBAL(float) out) {{\n'
    f"    int const N = 64, i = blockIdx.x * 32 + threadIdx.x;\n    {body}\n}}\nTX_EXPORT({name})"
    for name, body in BODIES.items()
)


class Attribute(ctypes.Structure):
    """CUlaunchAttribute, of which 6 allows the launch before to be overtaken."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("allowed", ctypes.c_int), ("room", ctypes.c_char * 60))


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        *(("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p)),
        *(("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint)),
    )


class Run(NamedTuple):
    """Launches in order, `KERNEL X OUT`, dependent ones behind a `+`; `sync` waits for all. `faults`: how many of them fail."""

    launches: str
    faults: int = 0


RIGHT = {
    "waits": Run("first a b, + waits b c"),
    "each begins behind the one before": Run("plain a b, plain b c, plain c a"),
    "three in a row": Run("first a b, + waits b c, + waits b d"),
    "the third reads what the first wrote": Run("first a b, + waits c d, + waits b e"),
    "nothing in common": Run("first a b, + ends c d"),
    "reads what both read": Run("first a b, + ends a d"),
    "what runs beside another is waited for": Run("first a b, + ends c d, + waits b e, + waits d f"),
    "the host has waited": Run("first a b, sync, + plain b c"),
    "before a launch that is not dependent all have ended": Run("first a b, + ends c d, plain b e, plain d f"),
    "admitted behind a wait, what came before that is known": Run("first a b, + waits c d, + ends b e"),
}
WRONG = {
    "no wait": Run("first a b, + plain b c", 1),
    "a wait behind the first load": Run("first a b, + late b c", 1),
    "half of the threads wait": Run("first a b, + some b c", 1),
    "written while it is read": Run("first a b, + plain c a", 1),
    "written twice": Run("first a b, + plain c b", 1),
    "at its end, and something in common": Run("first a b, + ends b c", 1),
    "nobody admits it, and it may come before the end all the same": Run("plain a b, + plain b c", 1),
    "the one between has not waited": Run("first a b, + plain c d, + waits b e", 1),
    "nor the two between": Run("first a b, + plain c d, + plain a e, + waits b f", 1),
    "one between has waited for one that has not": Run("first a b, + plain c d, + waits c e, + waits b f", 1),
    "admitted before a wait, what came before that is not known": Run("first a b, + eager c d, + ends b e", 1),
    "admitted behind a wait, what it wrote is not known": Run("first a b, + waits c d, + ends d e", 1),
}


class Machine:
    """A loaded core with the kernels, and memory of the device by name."""

    def __init__(self, work: Path):
        self.core = load_core(build_core(work).resolve())
        context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self.core.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.core.check("cuCtxSetCurrent", context)
        library = build_kernels(TEXT, device_headers(), work)
        self.core.check("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(image(library)))
        self.functions, self.memory = dict[str, ctypes.c_void_p](), dict[str, ctypes.c_void_p]()
        for name in BODIES:
            self.functions[name] = ctypes.c_void_p()
            self.core.check("cuModuleGetFunction", ctypes.byref(self.functions[name]), module, name.encode())

    def fresh(self) -> None:
        """Every array is zeros, and nobody has touched it."""
        zeros = np.zeros(64, np.float32)
        for name in "abcdef":
            if name in self.memory:
                self.core.check("cuMemFree_v2", self.memory[name])
            self.memory[name] = ctypes.c_void_p()
            self.core.check("cuMemAlloc_v2", ctypes.byref(self.memory[name]), ctypes.c_size_t(256))
            self.core.check("cuMemcpyHtoD_v2", self.memory[name], ctypes.c_void_p(zeros.ctypes.data), ctypes.c_size_t(256))

    def launch(self, kernel: str, x: str, out: str, dependent: bool) -> int:
        given = (ctypes.c_void_p * 2)(*(ctypes.addressof(self.memory[name]) for name in (x, out)))
        asked = (Attribute * 1)(Attribute(6, 0, 1))
        config = Config((2, 1, 1), (32, 1, 1), 0, None, asked, int(dependent))
        return self.core.call("cuLaunchKernelEx", ctypes.byref(config), self.functions[kernel], given, None)

    def run(self, run: Run, seed: int) -> list[Fault]:
        """The faults of all launches; each that fails is counted."""
        self.fresh()
        self.core.set("seed", seed)
        self.core.set("detect", 1)
        self.core.library.tx_emu_clear_reports()
        failed = 0
        for step in run.launches.split(", "):
            if step == "sync":
                self.core.check("cuStreamSynchronize", None)
                continue
            *_, kernel, x, out = step.split()
            failed += self.launch(kernel, x, out, step.startswith("+")) != 0
        assert failed == run.faults
        return [report.fault for report in parse_reports(self.core.text("tx_emu_reports"))]


@pytest.fixture(scope="module")
def machine(work: Path) -> Machine:
    return Machine(work)


@pytest.mark.parametrize("seed", [-1, -2, 0, 1])
@pytest.mark.parametrize("name", RIGHT)
def test_launches_in_order_are_no_race(machine: Machine, name: str, seed: int) -> None:
    assert machine.run(RIGHT[name], seed) == []


@pytest.mark.parametrize("seed", [-1, -2, 0, 1])
@pytest.mark.parametrize("name", WRONG)
def test_launches_that_overtake_are_races(machine: Machine, name: str, seed: int) -> None:
    assert set(machine.run(WRONG[name], seed)) == {Fault.RACE}
