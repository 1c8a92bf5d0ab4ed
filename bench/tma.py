"""Copies by the tensor memory accelerator on a device: a tiled copy against the driver's own, a transpose against PyTorch's.

`ratio` is the peer's time over ours, the median of all rounds of one run. Without a GPU: status 4, and nothing is measured.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from common.device import Device, copied, driver_of, milliseconds, ratio, run
from common.measure import Row
from texpr.frontend import parse
from texpr.runtime import DeviceArray

COPY = """
fn copy(A: f32[M, K] align(16)): f32[M, K]
    where K % 4 == 0
{
    new C: f32[M, K]
    par M |i| { par K |k| { C[i, k] = A[i, k] } }
    return C
}

schedule copy "tiles" for sm_90a {
    split(i, 32) -> (bi, ti)  split(k, 64) -> (bk, tk)
    reorder(bi, bk, ti, tk)
    bind(bi, grid.y)  bind(bk, grid.x)
    stage(A, at=bk, in=shared, via=tma, fill=zero) -> As
    stage(C, at=bk, in=shared, via=tma) -> Cs
}
"""
EXAMPLES = Path(__file__).parents[1] / "examples" / "tma"
SIZES, SMALL = (4096, 8192, 16384), (128,)


def measured(device: Device) -> Iterator[Row]:
    """A row for each program and size."""
    for side in SMALL if device.emulated else SIZES:
        yield _copy(device, side)
    for side in SMALL if device.emulated else SIZES:
        yield _transpose(device, side)


def _copy(device: Device, side: int) -> Row:
    (function,) = parse(COPY).functions
    kernel = device.kernel(function, {"M": side, "K": side}, "tiles")
    driver = driver_of(kernel)
    source = np.arange(side * side, dtype=np.float32).reshape(side, side)
    x, ours, theirs = DeviceArray.of(driver, source), *(DeviceArray.empty(driver, source.dtype, source.shape) for _ in "ab")
    peer = copied(theirs, x)
    times = device.times(driver, {"ours": lambda: kernel(x, out=ours), "driver": peer})
    _same(ours.numpy(), source)
    _same(theirs.numpy(), source)
    return _row("tiled copy", "cuMemcpyDtoDAsync", side, times, "driver")


def _transpose(device: Device, side: int) -> Row:
    (function,) = parse((EXAMPLES / "transpose.te").read_text(encoding="utf-8")).functions
    kernel = device.kernel(function, {"M": side, "N": side}, "tiles")
    driver = driver_of(kernel)
    source = np.arange(side * side, dtype=np.float32).reshape(side, side)
    x, ours = DeviceArray.of(driver, source), DeviceArray.empty(driver, source.dtype, source.shape)
    calls = {"ours": lambda: kernel(x, out=ours)}
    if device.torch is not None:
        given = device.torch.from_dlpack(x)
        calls["torch"] = lambda: given.t().contiguous()
    times = device.times(driver, calls)
    _same(ours.numpy(), np.ascontiguousarray(source.T))
    return _row("transpose", "torch", side, times, "torch")


def _row(program: str, peer: str, side: int, times: dict[str, list[float]], name: str) -> Row:
    ours = milliseconds(times, "ours")
    assert isinstance(ours, float)
    return {
        "program": program, "side": side, "ours ms": ours, "GB/s": 2 * 4 * side * side / ours / 1e6,
        "peer": peer, "peer ms": milliseconds(times, name), "ratio": ratio(times, name),
    }  # fmt: skip


def _same(got: np.ndarray, wanted: np.ndarray) -> None:
    if not np.array_equal(got, wanted):
        raise SystemExit("a copy is wrong: not measured")


if __name__ == "__main__":
    sys.exit(run("copies of boxes", measured, Path(__file__).parent / "results" / "tma.json"))
