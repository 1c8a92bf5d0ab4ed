"""Times of real problems on a device: as the compiler schedules them, beside the model's bound and beside PyTorch.

`ours µs`: the median of launches replayed from a graph, with an emptied cache; `of bound`: that over the bound of the plan, less
than 1 where the model is wrong; `of least`: over what any program needs; `torch µs` and `ratio`: PyTorch, as it is, over ours.
Results are compared with PyTorch's before anything is timed: `agrees` has how far they are apart, as a part of the largest one.

Each problem is compiled and loaded in a process of its own, several at once; one at a time uses the device. Without a GPU: status
4, and nothing is measured. Exit 1 where a problem fails, or its results differ.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from common.device import NOTHING, find
from common.measure import Row, keep, show
from common.timed import IN_ORDER, UNNAMED, Case, cases
from common.torch_problems import PEERS
from texpr import __version__, driver
from texpr.affine.expr import Sym
from texpr.cli.bench.places import OnDevice, several
from texpr.delivery import loaded, lowered
from texpr.driver import Compiled
from texpr.explain.speed import speed
from texpr.interp.dtypes import Array, numpy_dtype
from texpr.ir.program import Function, InRange
from texpr.ir.program.selection import AUTO, Selected
from texpr.ir.value import Buffer
from texpr.runtime import DeviceArray, Kernel
from texpr.runtime.memory import Driver
from texpr.runtime.timing import Action, Timed, measured
from texpr.support.record import replace
from texpr.toolchain import Toolchain, this_machine

RESULTS = Path(__file__).parent / "results" / "times.json"
LOCK = "TEXPR_BENCH_LOCK"
"""The file that a process holds while it uses the device."""

LONGEST, USING, SECONDS = 150, 20, 0.1
"""Seconds for one problem; of using the device, after which a process ends: a kernel that waits for ever holds up no others;
of measuring each call."""

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
        if param.name in ("P", "Q", "scale", "eps") and not shape or function.name == "divergence":
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
    found = None if case.is_open else speed(best, None, {})
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
    given = {param.name: place.put(param, arrays[param.name], case.sizes) for param in function.params}
    first = kernel(*given.values())
    results = list(first) if isinstance(first, tuple) else [] if first is None else [first]
    assert kernel.driver is not None
    wanted: Callable[[], Any] | None = None
    apart: float | str = "not compared"
    if torch is not None and case.peer in PEERS:
        named = {name: _tensor(torch, value) for name, value in given.items()}
        changed = {param.name: param for param in function.params if param.role == "inout"}
        original = {name: _tensor(torch, place.put(param, arrays[name], case.sizes)) for name, param in changed.items()}
        wanted = partial(PEERS[case.peer], torch, torch.nn.functional, named)
        expected = PEERS[case.peer](torch, torch.nn.functional, {**named, **original})
        got = results or [given[param.name] for param in function.params if param.role == "inout"]
        apart = _apart(torch, got, list(expected) if isinstance(expected, tuple) else [expected])
    sizes = {sym.name: case.sizes[sym.name] for sym in kernel.function.sizes} if case.is_open else {}
    ours = stack.enter_context(place.ours(kernel, list(given.values()), sizes, several(results)))
    calls = {"ours": Timed(ours, place.watch, place.flush)}
    if wanted is not None:
        calls["torch"] = Timed(_recorded(torch, wanted), place.watch, place.flush)
    return measured(calls, SECONDS), apart


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
        yield
        signal.alarm(0)


def apart(case: Case, lock: Path) -> Mapping[str, Any]:
    """A case in a process of its own, which may take so long and no longer."""
    command = [sys.executable, __file__, "--of", case.name]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=LONGEST, env={**os.environ, LOCK: str(lock)}
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {LONGEST} s"}
    if done.returncode == -signal.SIGALRM:
        return {"failed": f"uses the device for more than {USING} s"}
    if done.returncode:
        told = done.stderr.strip().splitlines() or ["?"]
        return {"failed": next((line for line in told if line.startswith("error")), told[-1])}
    return json.loads(done.stdout.splitlines()[-1])


def row(case: Case, found: Mapping[str, Any]) -> Row:
    """A line of the table."""
    ours, bound, least, torch = (found.get(name) for name in ("ours_us", "bound_us", "least_us", "torch_us"))
    return {
        "problem": case.name,
        "ours µs": ours or "",
        "bound µs": bound or "",
        "of bound": ours / bound if ours and bound else "",
        "by": found.get("by", ""),
        "of least": ours / least if ours and least else "",
        "torch µs": torch or "",
        "ratio": torch / ours if ours and torch else "",
        "agrees": found.get("agrees", found.get("failed", ""))[:70]
        if isinstance(found.get("agrees", ""), str)
        else found["agrees"],
    }


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="problems or classes; all, unless some are named")
    parser.add_argument("--json", type=Path, nargs="?", const=RESULTS, help="keep the numbers here, of other problems, too")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="processes at a time")
    parser.add_argument("--of", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    known = cases()
    if asked.of is not None:
        sys.stdout.write(json.dumps(measure(next(each for each in known if each.name == asked.of))) + "\n")
        return 0
    device = find(emulate=False)
    if isinstance(device, str):
        sys.stdout.write(f"times of problems: no GPU: nothing measured ({device})\n")
        return NOTHING
    chosen = [each for each in known if not asked.names or each.name in asked.names or each.kind in asked.names]
    found: dict[str, Mapping[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(asked.jobs) as pool:
        lock = Path(folder) / "device"
        for case, one in zip(chosen, pool.map(lambda case: apart(case, lock), chosen), strict=True):
            found[case.name] = {"class": case.kind, "sizes": dict(case.sizes), **one}
            if asked.json is not None:
                keep(asked.json, {"texpr": __version__, "device": device.name, "target": device.target}, found)
    show(f"times of problems, {device.name}, texpr {__version__}", [row(case, found[case.name]) for case in chosen], None)
    return 1 if any("failed" in each for each in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
