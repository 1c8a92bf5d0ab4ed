"""The bound of each program of the gallery, and of the scheduled ones, beside the time that it takes on a device.

`bound ms` is what the model of the machine says from the plan; `of bound` the time over it. A time below its bound says that
the model is wrong, and ends with the status 1. The records are those of the target's device (`isa/devices`): on another one of
the same target, as on an H200 for an H100, bandwidths differ. Without a GPU: status 4, and nothing is measured.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import model
from common.device import Device, driver_of, on_device, run
from common.measure import Row
from texpr.affine.expr import Sym
from texpr.driver import Compiled
from texpr.explain.speed import speed
from texpr.interp.dtypes import numpy_dtype
from texpr.runtime import DeviceArray, load_cuda, load_emulated
from texpr.toolchain import Toolchain, this_machine

BELOW: list[str] = []
"""Programs that were faster than their bound."""


def measured(device: Device) -> Iterator[Row]:
    """A row for each program."""
    for name, sizes, compiled in model.programs():
        if device.emulated and name not in ("saxpy", "sum"):
            continue
        yield _row(device, name, sizes, compiled)


def _row(device: Device, name: str, sizes: Mapping[str, int], compiled: Compiled) -> Row:
    load = load_emulated if device.emulated else load_cuda
    kernel = load(Toolchain(this_machine()), compiled.function, compiled.plan, device.target)
    driver = driver_of(kernel)
    given = {key: on_device(driver, array) for key, array in _arrays(name, sizes, compiled).items()}
    first = kernel(**given)
    out = first if isinstance(first, DeviceArray) else None
    times = device.times(driver, {"ours": lambda: kernel(**given, out=out)})
    took = 1e3 * median(times["ours"])
    found = speed(compiled, None, {})
    assert found is not None
    limit = found["bound_us"] / 1e3
    if took < limit:
        BELOW.append(name)
    return {
        "program": name,
        "ours ms": took,
        "bound ms": limit,
        "of bound": took / limit,
        "by": max(found["kernels"].values(), key=lambda each: each["bound_us"] * each["launches"])["deciding"],
        "least ms": found["least_us"] / 1e3,
        "of least": took * 1e3 / found["least_us"],
    }


def _arrays(name: str, sizes: Mapping[str, int], compiled: Compiled) -> dict[str, Any]:
    """What a program of the gallery is given elsewhere; else numbers between 0 and 1."""
    rng = np.random.default_rng(1)
    example = model.references.BY_NAME.get(name)
    if example is not None:
        made = example.make(rng, sizes)
        return {param.name: made[param.name] for param in compiled.plan.params}
    values = {Sym(key): value for key, value in sizes.items()}
    shapes = {param: tuple(extent.evaluate(values) for extent in param.shape) for param in compiled.plan.params}
    return {param.name: rng.random(shape, dtype=np.float32).astype(numpy_dtype(param.dtype)) for param, shape in shapes.items()}


if __name__ == "__main__":
    status = run("times beside bounds", measured, Path(__file__).parent / "results" / "bounds.json")
    for each in BELOW:
        sys.stderr.write(f"{each} is faster than its bound\n")
    sys.exit(status or (1 if BELOW and "--emulate" not in sys.argv else 0))
