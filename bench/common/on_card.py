"""One case on a device: compiled, loaded, compared with PyTorch, and timed, while no other process uses the device."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, cast

import numpy as np

from common.device import find
from common.timed import IN_ORDER, UNNAMED, Case
from common.torch_problems import PEERS
from texpr import driver
from texpr.affine.expr import Sym
from texpr.cli.bench.places import Held, OnDevice, several
from texpr.delivery import loaded, lowered
from texpr.explain.speed import speed
from texpr.interp.dtypes import Array, numpy_dtype
from texpr.ir.program import Function, InRange
from texpr.ir.program.selection import AUTO, Selected
from texpr.ir.value import Buffer
from texpr.isa.registry import device_of
from texpr.runtime import DeviceArray, Kernel
from texpr.runtime.timing import Action, Timed, measured
from texpr.support.record import replace
from texpr.toolchain import Toolchain, this_machine

LOCK = "TEXPR_BENCH_LOCK"
"""The file that a process holds while it uses the device."""

USING, SECONDS = 20, 0.1
"""Seconds of using the device, after which a process ends: a kernel that waits for ever holds up no others; of measuring each
call."""

PERIOD = (1 << 20) + 7
"""Elements after which random data begin again: more than caches see at once would be no other for a kernel."""

NEAR = {"float32": 1e-3, "float16": 1e-2, "bfloat16": 2e-2, "float64": 1e-9}
"""How far results may be apart, as a part of the largest one: sums of other orders, and functions of a device."""


def schedule_of(case: Case, function: Function, target: str) -> Selected:
    """What the case asks for."""
    if case.schedule == AUTO:
        return AUTO
    if case.schedule == IN_ORDER:
        made = driver.lower(function, target, case.sizes, schedule=AUTO).schedule
        assert made is not None
        return replace(made, directives=tuple(each for each in made.directives if each.name != "overlap"))
    return next(each for each in function.schedules if (each.name or UNNAMED) == case.schedule)


def data(function: Function, param: Buffer, sizes: Mapping[str, int], rng: np.random.Generator) -> Array:
    """Quarters from -1 to 1, so that sums of products are exact; whole numbers as the program assumes them; A of `cholesky`
    is far from singular."""
    values = {Sym(name): size for name, size in sizes.items()}
    shape = tuple(extent.evaluate(values) for extent in param.shape)
    dtype, count = numpy_dtype(param.dtype), int(np.prod(shape))
    lo, hi = next(
        ((each.lo.evaluate(values), each.hi.evaluate(values)) for each in function.assumes
         if isinstance(each, InRange) and each.buffer == param), (0 if dtype.kind == "u" else -4, 2 if dtype.kind == "u" else 5)
    )  # fmt: skip
    some = rng.integers(lo, hi, min(count, PERIOD))
    if param.dtype.is_float:
        some = some / 4.0
        if (param.name in ("P", "Q", "scale", "eps") and not shape) or function.name == "divergence":
            some = abs(some) + 0.25
    made = np.resize(some.astype(dtype), shape)
    if function.name == "cholesky":
        made = made + shape[-1] * np.eye(shape[-1], dtype=dtype)
    return made


def measure(case: Case) -> Mapping[str, Any]:
    """What is found of a case."""
    device = find(emulate=False)
    assert not isinstance(device, str)
    function = case.read()
    start = perf_counter()
    names = {size.name for size in function.sizes}
    fixed = {} if case.is_open else {name: size for name, size in case.sizes.items() if name in names}
    compiled = lowered(function, device.target, fixed, schedule_of(case, function, device.target))
    kernel = loaded(compiled, Toolchain(this_machine()))
    took = perf_counter() - start
    arrays = {
        param.name: data(function, param, case.sizes, np.random.default_rng(at)) for at, param in enumerate(function.params)
    }
    assert kernel.driver is not None
    kernel.driver.enter()
    if device.torch is not None:
        device.torch.zeros(1, device="cuda")  # what starts PyTorch is no part of the time that others wait
    with held(), ExitStack() as stack:
        place = OnDevice(kernel.driver, cold=True, stack=stack)
        times, apart = _timed(case, function, kernel, place, arrays, device.torch, stack)
    best = compiled.wide or compiled
    found = None if case.is_open else speed(best, None, {}, device_of(device.target, device.name))
    ours = 1e6 * median(times["ours"])
    told: dict[str, Any] = {"ours_us": ours, "seconds": took, "agrees": apart, "schedule": case.schedule}
    if found is not None:
        told |= {"bound_us": found["bound_us"], "least_us": found["least_us"], "by": _deciding(found)}
    if "torch" in times:
        told["torch_us"] = 1e6 * median(times["torch"])
    return told


def _deciding(found: Mapping[str, Any]) -> str:
    return max(found["kernels"].values(), key=lambda each: each["bound_us"] * each["launches"])["deciding"]


def _timed(
    case: Case, function: Function, kernel: Kernel, place: OnDevice, arrays: Mapping[str, Array], torch: Any, stack: ExitStack
) -> tuple[dict[str, list[float]], float | str]:
    """Times of ours and of PyTorch's, and how far the results are apart."""
    given: dict[str, Held] = {param.name: place.put(param, arrays[param.name], case.sizes) for param in function.params}
    results = _several(kernel(*given.values()))
    assert kernel.driver is not None
    wanted: Callable[[], Any] | None = None
    apart: float | str = "not compared"
    if torch is not None and case.peer in PEERS:
        named = {name: _tensor(torch, value) for name, value in given.items()}
        changed = {param.name: param for param in function.params if param.role == "inout"}
        original = {name: _tensor(torch, place.put(param, arrays[name], case.sizes)) for name, param in changed.items()}
        wanted = partial(PEERS[case.peer], torch, torch.nn.functional, named)
        expected = PEERS[case.peer](torch, torch.nn.functional, {**named, **original})
        got = results or [given[name] for name in changed]
        apart = _apart(torch, got, _several(expected))
    sizes = {sym.name: case.sizes[sym.name] for sym in kernel.function.sizes} if case.is_open else {}
    ours = stack.enter_context(place.ours(kernel, list(given.values()), sizes, several(results)))
    calls = {"ours": Timed(ours, place.watch, place.flush)}
    if wanted is not None:
        calls["torch"] = Timed(_recorded(torch, wanted), place.watch, place.flush)
    return measured(calls, SECONDS), apart


def _several(made: object) -> list[Any]:
    """One result, several, or none, as a list."""
    return list(cast("tuple[Any, ...]", made)) if isinstance(made, tuple) else [] if made is None else [made]


def _tensor(torch: Any, value: object) -> Any:
    if not isinstance(value, DeviceArray):
        return float(np.asarray(value))
    return torch.from_dlpack(value)


def _recorded(torch: Any, call: Callable[[], Any]) -> Action:
    """The call as a graph, where PyTorch makes one."""
    try:
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
    except RuntimeError:
        torch.cuda.synchronize()
        return call
    return graph.replay


def _apart(torch: Any, got: Sequence[object], wanted: Sequence[Any]) -> float:
    """The largest difference, as a part of the largest number that is wanted. Raises ValueError where it is too large."""
    found = 0.0
    for ours, theirs in zip(got, wanted, strict=True):
        one = torch.as_tensor(_tensor(torch, ours), device=theirs.device).double()
        other = theirs.double().reshape(one.shape)
        largest = max(float(other[other.isfinite()].abs().max()), 1e-30)
        same = (one == other) | (one.isnan() & other.isnan())
        far = float(torch.where(same, 0.0, (one - other).abs()).nan_to_num(float("inf")).max()) / largest
        kinds = (str(getattr(ours, "dtype", "")), str(theirs.dtype).removeprefix("torch."))
        near = max(NEAR.get(kind, 0.0) for kind in kinds)
        if not far <= near:
            wrong = int((~same & ((one - other).abs() > near * largest)).sum())
            raise ValueError(
                f"results are {far:.3g} apart, as a part of the largest; {wrong} of {one.numel()} more than {near}"
            )
        found = max(found, far)
    return found


@contextmanager
def held() -> Generator[None]:
    """The device, for this process alone."""
    with Path(os.environ[LOCK]).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        signal.alarm(USING)
        try:
            yield
        finally:
            signal.alarm(0)
