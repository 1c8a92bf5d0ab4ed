"""Calling built functions: on the CPU and emulated, what fits, what is copied, what is refused and how it is told."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from texpr import driver
from texpr.interp.dtypes import numpy_dtype
from texpr.ir.value.types import DTYPES
from texpr.runtime import DeviceArray, Kernel, dlpack, load_cpu, load_cuda, load_emulated
from texpr.runtime.kernel import stream_handle
from texpr.runtime.memory import aligned_empty
from texpr.support.codes import TITLES
from texpr.support.diagnostic import TexprError
from texpr.toolchain import Toolchain, this_machine

SAXPY = """
fn saxpy(a: f32, x: f32[n], y: f32[n]): f32[n] {
    new z: f32[n]
    par n |i| { z[i] = a * x[i] + y[i] }
    return z
}
"""
SCALE = "fn scale(inout x: f32[m, n], by: f32) { par m |i| { par n |j| { x[i, j] = x[i, j] * by } } }"
SHIFT = """
fn shift(x: i32[m, n] stride(ld, 1)): (i32[n, m], i32[n]) {
    new t: i32[n, m]
    new s: i32[n]
    par n |j| { par m |i| { t[j, i] = x[i, j] } }
    par n |j| {
        s[j] = 0
        seq m |i| { s[j] += x[i, j] }
    }
    return (t, s)
}
"""
SMALL = """
fn small(h: f16, b: bf16[n], k: i64, u: u8): bf16[n] {
    new z: bf16[n]
    par n |i| { z[i] = b[i] + bf16(h) + bf16(k) + bf16(u) }
    return z
}
"""
GATHER = """
fn gather(x: f32[n], at: i32[m]): f32[m] assume at in 0..n {
    new z: f32[m]
    par m |i| { z[i] = x[at[i]] }
    return z
}
"""
EVEN = "fn even(x: f32[n]): f32[n] where n % 2 == 0 { new z: f32[n] par n |i| { z[i] = x[i] } return z }"
ALIGNED = "fn aligned(x: f32[n] align(64), inout y: f32[n] align(64)) { par n |i| { y[i] = y[i] + x[i] } }"
COPY = "fn copy(x: f32[n]): f32[n] { new z: f32[n] par n |i| { z[i] = x[i] } return z }"

PLACES = ("cpu", "emulated")
Load = Callable[..., Kernel]


@pytest.fixture(scope="session")
def tools() -> Toolchain:
    """This machine's compilers, with its own cache: entries are found by content."""
    return Toolchain(this_machine())


@pytest.fixture(scope="session")
def load(tools: Toolchain) -> Load:
    """Lower and build a function for one of PLACES, once a session."""
    made: dict[tuple[str, str], Kernel] = {}

    def get(text: str, place: str) -> Kernel:
        if (text, place) not in made:
            target = "cpu" if place == "cpu" else "sm_90a"
            compiled = driver.lower(driver.parse(text).functions[0], target)
            if place == "cpu":
                made[text, place] = load_cpu(tools, compiled.function, compiled.plan)
            else:
                made[text, place] = load_emulated(tools, compiled.function, compiled.plan, target)
        return made[text, place]

    return get


def refused(kernel: Kernel, *arrays: object, **named: Any) -> str:
    """The code with which a call is refused; it has a title."""
    with pytest.raises(TexprError) as raised:
        kernel(*arrays, **named)
    code = raised.value.diagnostics[0].code
    assert code in TITLES
    return code


def floats(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Small integers, all different from their neighbours."""
    return (np.arange(np.prod(shape), dtype=np.float32) % 251).reshape(shape)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_a_function_of_arrays(load: Load, place: str, n: int) -> None:
    x, y = floats(n), floats(n) + 3
    z = load(SAXPY, place)(2.0, x, y)
    assert isinstance(z, np.ndarray) and z.dtype == np.float32
    np.testing.assert_array_equal(z, 2 * x + y)


def test_a_kernel_shows_itself_in_a_line(load: Load) -> None:
    assert repr(load(COPY, "cpu")) == "<Kernel copy for cpu>"
    assert repr(load(COPY, "emulated")) == "<Kernel copy for emulated sm_90a>"
    assert repr(driver.parse(COPY)) == "<Program: copy>"


@pytest.mark.parametrize("place", PLACES)
def test_arguments_by_name_and_out(load: Load, place: str) -> None:
    kernel, x, z = load(SAXPY, place), floats(100), np.empty(100, np.float32)
    assert kernel(y=x, a=np.float32(2), x=x, out=z) is z
    np.testing.assert_array_equal(z, 3 * x)


def test_a_parameter_may_be_called_as_a_word_of_the_call(load: Load) -> None:
    """`out` is what many call what a function writes."""
    text = "fn scaled(stream: f32, x: f32[n], inout out: f32[n]) { par n |i| { out[i] = stream * x[i] } }"
    kernel, x, z = load(text, "cpu"), floats(9), np.empty(9, np.float32)
    for _ in range(2):
        assert kernel(stream=np.float32(3), x=x, out=z) is None
        np.testing.assert_array_equal(z, 3 * x)
    assert kernel(np.float32(2), x, z, validate=True) is None
    np.testing.assert_array_equal(z, 2 * x)


@pytest.mark.parametrize("place", PLACES)
def test_an_inout_is_written_in_place(load: Load, place: str) -> None:
    x = floats(5, 7)
    wanted = x * 3
    assert load(SCALE, place)(x, 3.0) is None
    np.testing.assert_array_equal(x, wanted)


@pytest.mark.parametrize("place", PLACES)
def test_inputs_are_copied_where_they_lie_otherwise(load: Load, place: str) -> None:
    kernel, x = load(SAXPY, place), floats(300)
    np.testing.assert_array_equal(kernel(1.0, x[::3], x[::-3]), x[::3] + x[::-3])
    odd = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32)
    np.testing.assert_array_equal(kernel(1.0, odd, odd), 2 * x)
    np.testing.assert_array_equal(kernel(1.0, np.broadcast_to(x[:1], 9), x[:9]), x[:1] + x[:9])


@pytest.mark.parametrize("place", PLACES)
def test_strides_of_the_callers(load: Load, place: str) -> None:
    kernel, whole = load(SHIFT, place), np.arange(8 * 20, dtype=np.int32).reshape(8, 20)
    for x in (whole, whole[:, :5], whole[::2, 3:9], whole[::-1], whole.T, whole[:1], whole[:0]):
        t, s = kernel(x)
        np.testing.assert_array_equal(t, x.T)
        np.testing.assert_array_equal(s, x.sum(0))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("word", ["f8e4m3", "f8e5m2", "bf16", "f16"])
def test_narrow_types_lie_anywhere(load: Load, place: str, word: str) -> None:
    """Those too for which NumPy has no word, where arrays are copied to the device, or to where they may lie."""
    turned = "new y: WORD[n, m] par m, n |i, j| { y[j, i] = x[i, j] } return y"
    kernel = load(f"fn t(x: WORD[m, n] align(16)): WORD[n, m] {{ {turned} }}".replace("WORD", word), place)
    x = (np.arange(60) % 13).reshape(6, 10).astype(numpy_dtype(DTYPES[word]))
    for given in (x, x[1:], x[::-1, 1::2], x[:0]):
        np.testing.assert_array_equal(kernel(given).astype(np.float32), given.T.astype(np.float32))


@pytest.mark.parametrize("place", PLACES)
def test_numbers_of_every_kind(load: Load, place: str) -> None:
    b = np.arange(10).astype(ml_dtypes.bfloat16)
    z = load(SMALL, place)(0.5, b, -3, 255)
    np.testing.assert_array_equal(z, ((b + ml_dtypes.bfloat16(0.5)) + ml_dtypes.bfloat16(-3)) + ml_dtypes.bfloat16(255))


@pytest.mark.parametrize("place", PLACES)
def test_what_does_not_fit_is_refused(load: Load, place: str) -> None:
    kernel, scale, x = load(SAXPY, place), load(SCALE, place), floats(10)
    assert refused(kernel, 1.0, x) == "E0702"
    assert refused(kernel, 1.0, x, x, x) == "E0778"
    assert refused(kernel, 1.0, x, x, x=x) == "E0778"
    assert refused(kernel, 1.0, x, [1.0]) == "E0772"
    assert refused(kernel, 1.0, x, x.astype(">f4")) == "E0772"
    assert refused(kernel, 1.0, x, x.astype(np.float64)) == "E0704"
    assert refused(kernel, 1.0, x, x[:, None]) == "E0705"
    assert refused(kernel, 1.0, x, x[:9]) == "E0709"
    assert refused(kernel, 1.0, x, x, n=11) == "E0709"
    assert refused(kernel, 1.0, x, x, k=1) == "E0706"
    assert refused(kernel, 1.0, x, x, out=np.empty(9, np.float32)) == "E0777"
    assert refused(kernel, 1.0, x, x, out=np.empty(10, np.float64)) == "E0777"
    assert refused(kernel, 1.0, x, x, out=(x, x)) == "E0777"
    assert refused(kernel, 1.0, x, x, out=np.empty(20, np.float32)[::2]) == "E0773"
    assert refused(kernel, 1.0, x, x, stream="one") == "E0786"
    assert refused(scale, floats(4, 6)[:, ::2], 1.0) == "E0773"
    assert refused(scale, floats(4, 6).T, 1.0) == "E0773"


def test_memory_is_not_shared(load: Load) -> None:
    kernel, x = load(SAXPY, "cpu"), floats(20)
    assert refused(kernel, 1.0, x[:10], x[10:], out=x[5:15]) == "E0779"
    np.testing.assert_array_equal(kernel(1.0, x[:10], x[:10], out=x[10:]), 2 * floats(10))


def test_what_is_written_can_be(load: Load) -> None:
    fixed = floats(3, 3)
    fixed.flags.writeable = False
    assert refused(load(SCALE, "cpu"), fixed, 1.0) == "E0775"
    np.testing.assert_array_equal(load(SAXPY, "cpu")(1.0, fixed[0], fixed[0]), 2 * fixed[0])


def test_alignment(load: Load) -> None:
    room = np.zeros(400, np.uint8)
    start = -room.ctypes.data % 64
    right = room[start : start + 40].view(np.float32)
    wrong = room[start + 68 : start + 108].view(np.float32)
    kernel = load(ALIGNED, "cpu")
    assert refused(kernel, floats(10), wrong) == "E0774"
    kernel(wrong + 1, right)
    wrong[:] = 2
    kernel(wrong, right)
    np.testing.assert_array_equal(right, np.full(10, 3, np.float32))


@pytest.mark.parametrize("place", PLACES)
def test_what_the_text_promises_is_checked(load: Load, place: str) -> None:
    gather, even, x = load(GATHER, place), load(EVEN, place), floats(10)
    at = np.array([9, 0, 3], np.int32)
    np.testing.assert_array_equal(gather(x, at), x[at])
    assert refused(gather, x, np.array([10], np.int32)) == "E0711"
    assert refused(gather, x, np.array([-1], np.int32)) == "E0711"
    assert refused(even, x[:9]) == "E0710"
    assert refused(even, x[:9], validate=False) == "E0784", "the launcher checks it in any case"


def test_a_size_that_breaks_a_promise_is_named_when_it_is_fixed() -> None:
    function = driver.parse(EVEN).functions[0]
    with pytest.raises(TexprError) as raised:
        driver.fix(function, {"n": 3})
    (found,) = raised.value.diagnostics
    assert (found.code, [note.text for note in found.notes]) == ("E0710", ["n = 3"])
    assert driver.fix(function, {"n": 4})[0].sizes == ()


def test_the_artifact_checks_what_is_promised_of_data_on_a_device(load: Load) -> None:
    kernel = load(GATHER, "emulated")
    assert kernel.driver is not None
    x, bad = (DeviceArray.of(kernel.driver, a) for a in (floats(10), np.array([3, 10], np.int32)))
    assert refused(kernel, x, bad, validate=True) == "E0711"
    assert refused(kernel, x, bad) == "E0751", "the emulator sees the access itself"


def test_arrays_on_a_device_stay_there(load: Load) -> None:
    kernel, a, b = load(SAXPY, "emulated"), floats(1000), floats(1000) + 1
    assert kernel.driver is not None
    x, y = DeviceArray.of(kernel.driver, a), DeviceArray.of(kernel.driver, b)
    z = kernel(2.0, x, y, stream=0)
    assert isinstance(z, DeviceArray)
    np.testing.assert_array_equal(z.numpy(), 2 * a + b)
    w = kernel(1.0, z, a)
    assert isinstance(w, DeviceArray), "an array of the host is brought to the others"
    np.testing.assert_array_equal(w.numpy(), 3 * a + b)
    out = DeviceArray.empty(kernel.driver, np.dtype(np.float32), (1000,))
    assert kernel(1.0, x, y, out=out) is out
    np.testing.assert_array_equal(out.numpy(), a + b)
    assert refused(load(SAXPY, "cpu"), 1.0, x, y) == "E0776"


class Foreign:
    """An array of another library, on a device or the host."""

    def __init__(self, owner: Any, device: tuple[int, int] | None = None):
        self.owner, self.device, self.streams = owner, device, list[int | None]()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device or self.owner.__dlpack_device__()

    def __dlpack__(self, *, stream: int | None = None) -> object:
        self.streams.append(stream)
        return self.owner.__dlpack__(stream=stream)


def test_arrays_of_other_libraries_through_dlpack(load: Load) -> None:
    kernel, a = load(SAXPY, "emulated"), floats(100)
    assert kernel.driver is not None
    x = Foreign(DeviceArray.of(kernel.driver, a))
    z = kernel(1.0, x, x, stream=7)
    assert isinstance(z, DeviceArray) and x.streams == [7, 7], "the giver is told where the work will be"
    np.testing.assert_array_equal(z.numpy(), 2 * a)
    kernel(1.0, x, x)
    assert x.streams[2:] == [1, 1], "1 is CUDA's default stream"
    host = Foreign(floats(100))
    np.testing.assert_array_equal(load(SAXPY, "cpu")(1.0, host, host), 2 * a)
    assert host.streams == [None, None]
    assert refused(kernel, 1.0, x, Foreign(a, (9, 0))) == "E0772"
    assert refused(kernel, 1.0, Foreign(a.astype(np.complex64)), x) == "E0772"


class Giver:
    """Says that an array of the host lies on a device."""

    def __init__(self, array: np.ndarray[Any, np.dtype[np.float32]]):
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, 0

    def __dlpack__(self, *, stream: int | None = None) -> object:
        return dlpack.give(self.array, self.array.ctypes.data, self.array.dtype, self.array.shape, 0)


def test_a_capsule_gives_its_memory_back() -> None:
    def kept() -> int:
        gc.collect(1)  # what is new is young; all that other tests left takes seconds
        return len(dlpack._alive)  # pyright: ignore[reportPrivateUsage]

    gc.collect()
    before = kept()
    array = floats(10)
    capsule = dlpack.give(array, array.ctypes.data, array.dtype, (10,), 0)
    assert kept() == before + 1
    del capsule
    assert kept() == before, "nobody took it"
    view = dlpack.take(Giver(array), "x", 0)
    assert (view.address, view.shape, kept()) == (array.ctypes.data, (10,), before + 1)
    del view
    assert kept() == before, "who took it is done"


def test_streams_of_other_libraries() -> None:
    assert stream_handle(None) == 0 and stream_handle(5) == 5
    assert stream_handle(type("Torch", (), {"cuda_stream": 6})()) == 6
    assert stream_handle(type("CuPy", (), {"ptr": 7})()) == 7


def test_no_device_here(tools: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = driver.lower(driver.parse(SAXPY).functions[0], "sm_90a")
    monkeypatch.setattr("texpr.runtime.load.DRIVER", "libno_such_driver.so")
    with pytest.raises(TexprError, match="no CUDA driver") as raised:
        load_cuda(tools, compiled.function, compiled.plan, "sm_90a")
    assert raised.value.diagnostics[0].code == "E0782"


def test_a_library_that_is_none(load: Load, tmp_path: Any) -> None:
    (tmp_path / "broken.so").write_bytes(b"not a library")
    with pytest.raises(TexprError, match="cannot be loaded") as raised:
        Kernel(load(SAXPY, "cpu").function, load(SAXPY, "cpu").plan, "cpu", tmp_path / "broken.so")
    assert raised.value.diagnostics[0].code == "E0785"


def test_no_memory(load: Load) -> None:
    kernel = load(SAXPY, "emulated")
    assert kernel.driver is not None
    with pytest.raises(TexprError) as raised:
        kernel.driver.allocate(1 << 60)
    assert raised.value.diagnostics[0].code == "E0781"
    with pytest.raises(TexprError) as raised:
        aligned_empty(np.dtype(np.float32), (1 << 60,), 256)
    assert raised.value.diagnostics[0].code == "E0781"


def test_threads_call_one_kernel(load: Load) -> None:
    kernel, wrong = load(SAXPY, "cpu"), list[int]()

    def work(seed: int) -> None:
        x = floats(500) + seed
        for _ in range(20):
            if not np.array_equal(kernel(2.0, x, x), 3 * x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_fault_in_a_kernel_is_told_with_its_line(load: Load) -> None:
    """An array that says it has more elements than there are."""
    kernel = load(COPY, "emulated")
    assert kernel.driver is not None
    x = floats(10)
    small = DeviceArray.of(kernel.driver, x[:5])
    lying = DeviceArray(small._memory, np.dtype(np.float32), (10,))  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(TexprError) as raised:
        kernel(lying)
    (diagnostic, *_) = raised.value.diagnostics
    assert diagnostic.code == "E0751" and diagnostic.span is not None and diagnostic.span.line == 1


def test_seeds_change_the_schedule_and_not_the_result(load: Load, tools: Toolchain) -> None:
    compiled = driver.lower(driver.parse(SHIFT).functions[0], "sm_90a")
    x = np.arange(35 * 70, dtype=np.int32).reshape(35, 70)
    for seed in range(3):
        kernel = load_emulated(tools, compiled.function, compiled.plan, "sm_90a", seed=seed)
        t, s = kernel(x)
        np.testing.assert_array_equal(t, x.T)
        np.testing.assert_array_equal(s, x.sum(0))


def test_the_driver_explains_its_codes(load: Load) -> None:
    kernel = load(SAXPY, "emulated")
    assert kernel.driver is not None
    with pytest.raises(TexprError, match="cuMemFree_v2 fails with 1: invalid argument") as raised:
        kernel.driver.check("cuMemFree_v2", ctypes.c_uint64(64))
    assert raised.value.diagnostics[0].code == "E0783"
