"""From a plan to a `Kernel`: builds its library for this machine."""

from __future__ import annotations

import ctypes
from pathlib import Path

from texpr.artifact.texts.platform import CPU, CUDA
from texpr.artifact.texts.sources import (
    Part,
    cpu_source_headers,
    cpu_sources,
    cuda_source_headers,
    emulator_sources,
    image_sources,
    launchers,
    public_headers,
    variants,
)  # fmt: skip
from texpr.backends.c.names import identifier
from texpr.emulator.compile import CHECKED, PLAIN, core_flags
from texpr.emulator.harness import IN_ORDER, load_core
from texpr.emulator.sources import CORE, core_texts
from texpr.ir.kernel import Plan
from texpr.ir.program import Function
from texpr.isa.memories import Coalescing
from texpr.isa.registry import resolve
from texpr.runtime.kernel import Kernel
from texpr.runtime.memory import Driver
from texpr.support.diagnostic import error
from texpr.toolchain import Toolchain

DRIVER = "libcuda.so.1"
"""The CUDA driver."""

THREADS = ("dl", "pthread")
"""The host libraries for a launcher and the emulator."""

EMULATED = ("-fno-strict-aliasing", "-w", "-DTEXPR_EMULATE=1")
"""The flags for kernels and their launcher in the emulator."""


def load_cpu(tools: Toolchain, function: Function, plan: Plan, target: str = "cpu") -> Kernel:
    """`plan`, made for `target`, built for this processor. Raises `TexprError` (E06) or `CompilerBug` as the compiler does."""
    name = f"texpr_{identifier(plan.name)}"
    headers = {**cpu_source_headers(), **public_headers(identifier(plan.name), (plan,), CPU)}
    flags = ("-fno-exceptions", "-fno-rtti")
    return Kernel(
        function, plan, "cpu", tools.loadable(name, cpu_sources(Part(target, (plan,))), headers, flags=flags, openmp=True)
    )


def load_emulated(
    tools: Toolchain, function: Function, plan: Plan, target: str, *, seed: int = IN_ORDER, detect: bool = True
) -> Kernel:
    """`plan`'s kernels and its actual launcher on an emulated device. With `detect`, faults are errors (E075x)."""
    core = _emulator(tools, resolve(target).coalescing)
    found = variants((Part(target, (plan,)),), 0)
    name = identifier(plan.name)
    headers = {**cuda_source_headers(), **emulator_sources(), **public_headers(name, (plan,), CUDA)}
    path = tools.loadable(
        f"texpr_{name}",
        {**launchers(name, (found,)), f"{name}.cu": found[0].text},
        headers,
        flags=(*EMULATED, f'-DTEXPR_DRIVER_LIBRARY="{core}"', *(CHECKED if detect else PLAIN)),
        libraries=THREADS,
    )
    emulator = load_core(core)
    return Kernel(function, plan, target, path, Driver(emulator.library), emulator, seed, detect)


def _emulator(tools: Toolchain, machine: Coalescing) -> Path:
    """The emulator's core as a library that replaces the CUDA driver."""
    texts = core_texts()
    sources = {CORE: texts.pop(CORE)}
    flags = ("-O2", "-fno-strict-aliasing", "-w", *core_flags(machine))
    return tools.loadable("texpr_emulator", sources, texts, flags=flags, libraries=THREADS)


def load_cuda(tools: Toolchain, function: Function, plan: Plan, target: str, *, ordinal: int = 0) -> Kernel:
    """`plan` built for `target`, on CUDA device `ordinal`. Raises `TexprError` E0782 if there is none."""
    try:
        driver = Driver(ctypes.CDLL(DRIVER), ordinal)
    except OSError:
        help = "install NVIDIA's driver, or run it in the emulator"
        raise error("E0782", None, f"no CUDA driver: {DRIVER} is not found", help=help) from None
    return Kernel(function, plan, target, _cuda_library(tools, plan, target), driver)


def _cuda_library(tools: Toolchain, plan: Plan, target: str) -> Path:
    """The launcher with its device code, as a library."""
    found = variants((Part(target, (plan,)),), 0)
    headers, name = cuda_source_headers(), identifier(plan.name)
    code = tools.device(found[0].text, headers, target)
    sources = {**launchers(name, (found,)), **image_sources(found, {target: code})}
    texts = {**headers, **public_headers(name, (plan,), CUDA)}
    return tools.loadable(f"texpr_{name}", sources, texts, libraries=THREADS)
