"""The machines and simulators on which `texpr run` can run a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import numpy as np

from texpr import interp
from texpr.affine.expr import Sym
from texpr.delivery import compile
from texpr.emulator import IN_ORDER
from texpr.interp.dtypes import Array
from texpr.ir.program import Function
from texpr.ir.program.selection import AUTO
from texpr.ir.value import Buffer
from texpr.isa.registry import TARGETS
from texpr.runtime import Kernel
from texpr.runtime.memory import strided
from texpr.support.diagnostic import CompilerBug, error
from texpr.support.record import Record
from texpr.toolchain.doctor import find_device

Executor: TypeAlias = Callable[[Mapping[str, Array]], dict[str, Array]]
"""From an array for each parameter to each result and inout, by name; no argument is changed."""

PLACES = ("interp", "cpu", "emulator", "cuda")

EMULATED = "sm_90a"
"""The target for `--on emulator`."""


class Setting(Record):
    """The fixed parameters of a run: sizes fixed at build, all sizes, the schedule, the emulator's thread order."""

    fixed: Mapping[str, int]
    sizes: Mapping[str, int]
    schedule: str = AUTO
    order: int = IN_ORDER


def interpreted(function: Function, setting: Setting) -> Executor:
    """The interpreter."""
    return lambda arrays: interp.run(function, arrays, setting.sizes)


def built(on: str, function: Function, setting: Setting) -> Kernel | None:
    """`function` built for one of `PLACES`, None for the interpreter. Raises TexprError where it cannot be built there."""
    match on:
        case "interp":
            return None
        case "cpu":
            kernel = compile(function, "cpu", setting.fixed, schedule=setting.schedule)
        case "emulator":
            kernel = compile(function, EMULATED, setting.fixed, schedule=setting.schedule, emulate=True)
            kernel.seed = setting.order
        case "cuda":
            kernel = compile(function, device_target(), setting.fixed, schedule=setting.schedule)
        case _:
            raise CompilerBug(f"there is no place called {on}")
    return kernel


def device_target() -> str:
    """The newest target whose code the GPU of this machine runs. Raises TexprError E0782 if there is none."""
    device = find_device()
    if isinstance(device, str):
        raise error(
            "E0782", None, f"no CUDA device: {device}", help="the emulator runs it without one: `texpr run --on emulator`"
        )
    found = [target for target in TARGETS.values() if target.runs_on(device)]
    if not found:
        major, minor = device
        raise error(
            "E0782",
            None,
            f"no target fits the device, sm_{major}{minor}",
            help="the emulator runs it without one: `texpr run --on emulator`",
        )
    return max(found, key=lambda target: target.capability).name


def call(kernel: Kernel, arrays: Mapping[str, Array], setting: Setting) -> dict[str, Array]:
    """Calls `kernel` on copies of the arrays that it modifies."""
    given = {
        param.name: laid_like(param, arrays[param.name], setting.sizes) if param.role == "inout" else arrays[param.name]
        for param in kernel.function.params
    }
    sizes: dict[str, Any] = {
        sym.name: setting.sizes[sym.name] for sym in kernel.function.sizes if sym.name not in setting.fixed
    }
    returned = _several(kernel(*given.values(), **sizes))
    results = {buffer.name: np.asarray(value) for buffer, value in zip(kernel.function.results, returned, strict=True)}
    inouts = {param.name: given[param.name] for param in kernel.function.params if param.role == "inout"}
    return {**results, **inouts}


def laid_like(param: Buffer, array: Array, sizes: Mapping[str, int]) -> Array:
    """A copy of `array` with the strides of `param`, where these are known."""
    strides = [stride.evaluate({Sym(name): size for name, size in sizes.items()}) for stride in param.strides or ()]
    if not strides or array.size == 0 or min(strides) < 0:
        return np.array(array)
    last = sum((extent - 1) * stride for extent, stride in zip(array.shape, strides, strict=True))
    memory = np.zeros(last + 1, array.dtype)
    laid = strided(memory, array.shape, strides)
    laid[...] = array
    return laid


def _several(returned: object) -> tuple[Array, ...]:
    """The return value of a kernel (nothing, one result or a tuple) as a tuple."""
    if returned is None:
        return ()
    return cast("tuple[Array, ...]", returned if isinstance(returned, tuple) else (returned,))
