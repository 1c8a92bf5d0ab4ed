"""On a machine with a GPU: the real cubin through the driver, and arrays of PyTorch where that is there."""

from __future__ import annotations

import importlib
import importlib.util

import numpy as np
import pytest

from texpr import driver
from texpr.runtime import DeviceArray, Kernel, load_cuda
from texpr.support.diagnostic import TexprError
from texpr.toolchain import Toolchain, runs_on, this_machine
from texpr.toolchain.doctor import TARGETS, find_device

SAXPY = """
fn saxpy(a: f32, x: f32[n], y: f32[n]): f32[n] {
    new z: f32[n]
    par n |i| { z[i] = a * x[i] + y[i] }
    return z
}
"""


@pytest.fixture(scope="module")
def saxpy() -> Kernel:
    """saxpy on the first device."""
    device = find_device()
    if isinstance(device, str):
        pytest.skip(device)
    target = next((t for t in reversed(TARGETS) if runs_on(t, device)), None)
    if target is None:
        pytest.skip(f"no target fits sm_{device[0]}{device[1]}")
    compiled = driver.lower(driver.parse(SAXPY).functions[0], target)
    try:
        return load_cuda(Toolchain(this_machine()), compiled.function, compiled.plan, target)
    except TexprError as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("n", [0, 1, 1000, 1_000_003])
def test_arrays_of_the_host_and_of_the_device(saxpy: Kernel, n: int) -> None:
    x = (np.arange(n) % 1024).astype(np.float32)
    np.testing.assert_array_equal(saxpy(2.0, x, x), 3 * x)
    assert saxpy.driver is not None
    on_device = DeviceArray.of(saxpy.driver, x)
    np.testing.assert_array_equal(saxpy(2.0, on_device, on_device).numpy(), 3 * x)


def test_arrays_of_pytorch_on_their_stream(saxpy: Kernel) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no PyTorch")
    torch = importlib.import_module("torch")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.arange(100_000, device="cuda", dtype=torch.float32) % 1024
        z = torch.from_dlpack(saxpy(2.0, x, x, stream=stream))
        assert torch.equal(z, 3 * x)
