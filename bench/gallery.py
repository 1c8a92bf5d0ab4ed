"""Ten programs of the gallery on a device, as the compiler schedules them, against PyTorch and `torch.compile`.

`ratio` is the peer's time over ours, the median of all rounds of one run. `MB` is what should move from and to global memory:
by the model of the automatic schedule where it tiles, else every array once. `of copy` is the rate at which these bytes move,
over that of the driver's own copy in the same run: near 1 says that the program moves these and no more. Without a GPU: status
4, and nothing is measured.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from common.device import Device, copied, driver_of, milliseconds, on_device, ratio, run
from common.measure import Row
from common.torch_peers import PEERS
from texpr.driver import fix
from texpr.frontend import parse
from texpr.isa.registry import resolve
from texpr.planner.plan import plan
from texpr.planner.search import Candidate
from texpr.runtime import DeviceArray

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))
references: Any = importlib.import_module("references")

SIZES: dict[str, dict[str, int]] = {
    "saxpy": {"n": 1 << 27},
    "sum": {"n": 1 << 27},
    "transpose": {"M": 8192, "N": 8192},
    "permute5d": {"A": 16, "B": 64, "C": 32, "D": 16, "E": 64},
    "softmax": {"M": 16384, "N": 4096},
    "layernorm": {"M": 16384, "N": 4096},
    "rmsnorm": {"M": 16384, "N": 4096},
    "matmul": {"M": 2048, "N": 2048, "K": 2048},
    "conv2d": {"B": 8, "H": 66, "W": 66, "C": 64, "R": 3, "S": 3, "F": 128, "stride": 1, "dilation": 1, "padding": 0},
    "jacobi": {"H": 8192, "W": 8192, "T": 2},
}
COPIED = 1 << 28
"""Bytes of the copy that rates are compared with."""


def measured(device: Device) -> Iterator[Row]:
    """A row for each program."""
    for name, large in SIZES.items():
        example = references.BY_NAME[name]
        yield _program(device, example, example.small[-1] if device.emulated else large)


def _program(device: Device, example: Any, sizes: Mapping[str, int]) -> Row:
    consts, rest = example.split(sizes)
    function = parse(example.path.read_text(encoding="utf-8"), example.path.name, consts)[example.function]
    kernel = device.kernel(function, rest)
    driver = driver_of(kernel)
    arrays = example.make(np.random.default_rng(1), sizes)
    given = {param.name: on_device(driver, arrays[param.name]) for param in kernel.function.params}
    first = kernel(*given.values())
    out = first if isinstance(first, DeviceArray) else None
    calls: dict[str, Callable[[], object]] = {"ours": lambda: kernel(*given.values(), out=out)}
    calls |= _peers(device, example.name, given, out)
    if not device.emulated:
        calls["copy"] = _whole_copy(driver)
    times = device.times(driver, calls)
    moved = _bytes(function, rest, device.target, arrays, first)
    rate = moved / median(times["ours"])
    return {
        "program": example.name,
        "ours ms": milliseconds(times, "ours"),
        "torch ms": milliseconds(times, "torch"),
        "compile ms": milliseconds(times, "compile"),
        "ratio": ratio(times, "torch"),
        "compile ratio": ratio(times, "compile"),
        "MB": moved / 1e6,
        "of copy": rate / (2 * COPIED / median(times["copy"])) if "copy" in times else "",
    }


def _whole_copy(driver: Any) -> Callable[[], object]:
    arrays = [DeviceArray.empty(driver, np.dtype(np.uint8), (COPIED,)) for _ in "ab"]
    call = copied(arrays[0], arrays[1])
    return lambda: (call(), arrays)


def _peers(device: Device, name: str, given: Mapping[str, Any], out: Any) -> dict[str, Callable[[], object]]:
    """PyTorch as it is, and compiled, where that works; what they give is compared with ours."""
    torch = device.torch
    if torch is None:
        return {}
    arrays = {key: torch.from_dlpack(value) if isinstance(value, DeviceArray) else float(value) for key, value in given.items()}
    peer = PEERS[name]
    if out is not None:
        torch.testing.assert_close(peer(torch, arrays), torch.from_dlpack(out), rtol=2e-2, atol=2e-2, check_dtype=False)
    found: dict[str, Callable[[], object]] = {"torch": lambda: peer(torch, arrays)}
    built = torch.compile(lambda: peer(torch, arrays))
    try:
        built()
    except Exception as reason:  # whatever a compiler that is not there, or not for this Python, throws
        sys.stderr.write(f"{name}: torch.compile fails: {type(reason).__name__}\n")
        return found
    return {**found, "compile": built}


def _bytes(function: Any, sizes: Mapping[str, int], target: str, arrays: Mapping[str, np.ndarray], out: Any) -> float:
    """Bytes of global memory: by the model of each nest that is tiled; else inputs and results, once."""
    fixed, _ = fix(function, sizes)
    nests = [chosen.candidate for chosen in plan(fixed, resolve(target)).nests]
    if nests and all(isinstance(each, Candidate) for each in nests):
        return sum(each.moved + each.direct for each in nests if isinstance(each, Candidate))
    result = int(np.prod(out.shape)) * out.dtype.itemsize if out is not None else 0
    return float(sum(array.nbytes for array in arrays.values()) + result)


if __name__ == "__main__":
    sys.exit(run("the gallery", measured, Path(__file__).parent / "results" / "gallery.json"))
