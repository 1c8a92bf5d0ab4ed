"""Products on tensor cores, on a device, beside PyTorch's (cuBLAS): by hand, and as the compiler schedules them.

`ratio` is the peer's time over ours, the median of all rounds of one run; `TFLOP/s` counts a multiplication and an addition
for each step of each sum. Results are compared with the peer's first: numbers are small integers, so that sums in f32 are
exact. Without a GPU: status 4, and nothing is measured.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import ml_dtypes
import numpy as np

from common.device import Device, driver_of, milliseconds, on_device, ratio, run
from common.measure import Row
from texpr.frontend import parse
from texpr.isa.registry import resolve
from texpr.runtime import DeviceArray
from texpr.support.record import Record

EXAMPLES = Path(__file__).parents[1] / "examples"
BF16 = np.dtype(ml_dtypes.bfloat16)
Peer = Callable[[Any, Mapping[str, Any]], Any]


def product(torch: Any, a: Mapping[str, Any]) -> Any:
    """A · B, whose result PyTorch has in bf16."""
    return torch.mm(a["A"], a["B"])


def turned(torch: Any, a: Mapping[str, Any]) -> Any:
    """A · Bᵀ."""
    return torch.mm(a["A"], a["B"].t())


def linear(torch: Any, a: Mapping[str, Any]) -> Any:
    """max(A · B + bias, 0)."""
    return torch.relu(torch.addmm(a["bias"].to(torch.bfloat16), a["A"], a["B"]))


class Case(Record):
    """A function of an example, its schedule, sizes, and what it computes. `is_turned`: its B is N × K."""

    file: str
    function: str
    schedule: str
    sizes: tuple[int, int, int]
    peer: Peer
    is_turned: bool = False


CUBE, ODD, FLAT = (4096, 4096, 4096), (4097, 4095, 4099), (8192, 8192, 8192)
SMALL = (128, 128, 64)
PLAIN, HOPPER = "scheduled/matmul_bf16.te", "hopper/matmul.te"
CASES = (
    Case(PLAIN, "product", "tiles", CUBE, product),
    Case(PLAIN, "product", "tiles", ODD, product),
    Case(PLAIN, "product", "auto", CUBE, product),
    Case(PLAIN, "linear", "ring", CUBE, linear),
    Case(PLAIN, "linear", "auto", CUBE, linear),
    Case(HOPPER, "matmul", "ring", CUBE, turned, is_turned=True),
    Case(HOPPER, "matmul", "ring", FLAT, turned, is_turned=True),
)


def measured(device: Device) -> Iterator[Row]:
    """A row for each case that the device can run."""
    for case in CASES:
        path = EXAMPLES / case.file
        if path.exists() and ("hopper" not in case.file or resolve(device.target).name == "sm_90a"):
            yield _row(device, case, SMALL if device.emulated else case.sizes)


def _row(device: Device, case: Case, sizes: tuple[int, int, int]) -> Row:
    path = EXAMPLES / case.file
    function = parse(path.read_text(encoding="utf-8"), path.name, {})[case.function]
    kernel = device.kernel(function, {}, case.schedule)
    driver, (rows, columns, depth), random = driver_of(kernel), sizes, np.random.default_rng(1)
    shapes = {"A": (rows, depth), "B": (columns, depth) if case.is_turned else (depth, columns), "bias": (columns,)}
    given = {
        param.name: on_device(
            driver, random.integers(-2, 3, shapes[param.name]).astype(np.float32 if param.name == "bias" else BF16)
        )
        for param in kernel.function.params
    }
    first = kernel(*given.values())
    assert isinstance(first, DeviceArray)
    calls: dict[str, Callable[[], object]] = {"ours": lambda: kernel(*given.values(), out=first)}
    if device.torch is not None:
        torch, peer = device.torch, case.peer
        arrays = {name: torch.from_dlpack(array) for name, array in given.items()}
        wanted = peer(torch, {name: array.float() for name, array in arrays.items()} if case.peer is not linear else arrays)
        torch.testing.assert_close(torch.from_dlpack(first).float(), wanted.float(), rtol=1e-2, atol=1e-2)
        calls["torch"] = lambda: peer(torch, arrays)
    times = device.times(driver, calls)
    return {
        "program": f"{Path(case.file).stem} {case.function}",
        "schedule": case.schedule,
        "sizes": " × ".join(map(str, sizes)),
        "ours ms": milliseconds(times, "ours"),
        "TFLOP/s": 2e-12 * rows * columns * depth / median(times["ours"]),
        "torch ms": milliseconds(times, "torch"),
        "ratio": ratio(times, "torch"),
    }


if __name__ == "__main__":
    sys.exit(run("products on tensor cores", measured, Path(__file__).parent / "results" / "products.json"))
