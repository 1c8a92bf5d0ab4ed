"""Arrays of a library that is not NumPy: its own arrays come back, whatever their elements, through DLPack alone."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import texpr
from texpr.runtime import DeviceArray, HostArray, Kernel, dlpack
from texpr.runtime.call import as_array
from texpr.runtime.memory import HOST

LIBRARY = "a_library_of_tensors"


class Tensor:
    """An array of another library: it only speaks DLPack, and keeps what it took."""

    def __init__(self, view: dlpack.View):
        self.view = view

    @staticmethod
    def of(array: np.ndarray[Any, Any]) -> Tensor:
        return from_dlpack(HostArray(array))

    def numpy(self) -> np.ndarray[Any, Any]:
        return as_array(self.view)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (dlpack.CPU, 0) if self.view.device is HOST else (dlpack.CUDA, self.view.device)

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None) -> object:
        view = self.view
        return dlpack.give(self, view.address, view.dtype, view.shape, view.device, view.strides)


Tensor.__module__ = f"{LIBRARY}.inside"


def from_dlpack(given: Any) -> Tensor:
    assert given.__dlpack__(max_version=(1, 0)) is not None, "as PyTorch asks it"
    return Tensor(dlpack.take(given, "given", 0))


@pytest.fixture(autouse=True)
def _library(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType(LIBRARY)
    monkeypatch.setattr(module, "from_dlpack", from_dlpack, raising=False)
    monkeypatch.setitem(sys.modules, LIBRARY, module)


def kernel(dtype: str) -> Kernel:
    text = f"fn twice(x: {dtype}[m, n], inout w: {dtype}[m, n]): ({dtype}[n, m], {dtype}[m, n]) {{\n"
    text += f"    new y: {dtype}[n, m]\n    par m |i| {{ par n |j| {{ y[j, i] = x[i, j] w[i, j] = x[i, j] }} }}\n"
    text += "    return (y, w)\n}"
    return texpr.compile(texpr.parse(text)["twice"], target="cpu")


TYPES = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2, "i8": np.int8, "u16": np.uint16, "f64": np.float64, "bool": np.bool_,
}  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
def test_tensors_in_tensors_out(dtype: str) -> None:
    run, x = kernel(dtype), np.arange(12).reshape(3, 4).astype(TYPES[dtype])
    w = Tensor.of(np.zeros_like(x))
    for _ in range(2):
        y, same = run(Tensor.of(x), w)
        assert type(y) is Tensor and same is w
        assert y.view.dtype == x.dtype and y.view.device is HOST
        np.testing.assert_array_equal(y.numpy().astype(np.float64), x.T.astype(np.float64))
        np.testing.assert_array_equal(w.numpy().astype(np.float64), x.astype(np.float64))


def test_who_decides() -> None:
    """The first array that is another library's; `out` is given back as it was; NumPy alone gets NumPy's."""
    run, x = kernel("bf16"), np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    assert type(run(x, Tensor.of(np.zeros_like(x)))[0]) is Tensor
    assert type(run(x, np.zeros_like(x))[0]) is np.ndarray
    out = np.empty((3, 2), x.dtype)
    assert run(Tensor.of(x), np.zeros_like(x), out=out)[0] is out


def test_a_library_that_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no `from_dlpack`: NumPy's arrays come back."""
    monkeypatch.delattr(sys.modules[LIBRARY], "from_dlpack")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert type(kernel("f32")(Tensor.of(x), np.zeros_like(x))[0]) is np.ndarray


def test_the_standard_asks_the_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """`__array_namespace__` says where `from_dlpack` is."""
    seen: list[object] = []
    namespace = ModuleType("namespace")
    monkeypatch.setattr(namespace, "from_dlpack", lambda given: seen.append(given) or "made", raising=False)
    monkeypatch.setattr(Tensor, "__array_namespace__", lambda self: namespace, raising=False)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert kernel("f32")(Tensor.of(x), np.zeros_like(x))[0] == "made"
    assert isinstance(seen[0], HostArray)


def test_an_array_of_the_host_for_others() -> None:
    """What NumPy refuses to give; strides go along."""
    array = np.arange(12).astype(ml_dtypes.bfloat16).reshape(3, 4)[:, ::2]
    with pytest.raises((BufferError, TypeError)):
        array.__dlpack__()
    taken = from_dlpack(HostArray(array))
    assert taken.view.strides == (4, 2)
    np.testing.assert_array_equal(taken.numpy().astype(np.float32), array.astype(np.float32))


def test_tensors_on_a_device() -> None:
    text = "fn twice(x: bf16[n]): bf16[n] { new y: bf16[n] par n |i| { y[i] = x[i] } return y }"
    run = texpr.compile(texpr.parse(text)["twice"], target="sm_90a", emulate=True)
    assert run.driver is not None
    given = from_dlpack(DeviceArray.of(run.driver, np.arange(5).astype(ml_dtypes.bfloat16)))
    made = run(given)
    assert type(made) is Tensor and made.view.device == 0
