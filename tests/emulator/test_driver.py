"""The emulator as CUDA's driver: what a launcher in C calls, in its order, with the codes it must see."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from texpr.backends.cuda.headers import headers as device_headers
from texpr.emulator import build_core, build_kernels, headers, image, parse_reports

from .kernels import CLUSTER, HEAD, SAXPY

Driver = Callable[..., int]


@pytest.fixture(scope="module")
def library(work: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(build_core(work)))


@pytest.fixture
def driver(library: ctypes.CDLL) -> Driver:
    def call(name: str, *args: object) -> int:
        return int(getattr(library, name)(*args))

    assert call("cuInit", 0) == 0
    context = ctypes.c_void_p()
    assert call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0) == 0
    assert call("cuCtxSetCurrent", context) == 0
    assert call("tx_emu_set", b"seed", ctypes.c_longlong(-1)) == 0
    assert call("tx_emu_set", b"detect", ctypes.c_longlong(1)) == 0
    call("tx_emu_clear_reports")
    return call


def load(driver: Driver, text: str, kernel: str, work: Path) -> ctypes.c_void_p:
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert driver("cuModuleLoadData", ctypes.byref(module), image(build_kernels(text, device_headers(), work))) == 0
    assert driver("cuModuleGetFunction", ctypes.byref(function), module, b"absent") == 500
    assert driver("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode()) == 0
    return function


def upload(driver: Driver, array: np.ndarray) -> ctypes.c_void_p:
    pointer = ctypes.c_void_p()
    assert driver("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(array.nbytes)) == 0
    assert driver("cuMemcpyHtoD_v2", pointer, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)) == 0
    return pointer


def pointers(*values: Any) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))


def launch(driver: Driver, function: ctypes.c_void_p, grid: int, block: int, args: object) -> int:
    return driver("cuLaunchKernel", function, grid, 1, 1, block, 1, 1, 0, None, args, None)


def test_a_launch_from_end_to_end(driver: Driver, work: Path) -> None:
    function = load(driver, HEAD + SAXPY.source, "saxpy_0", work)
    a, x, y, n, out = SAXPY.args()
    z, result = ctypes.c_void_p(), np.zeros_like(out)
    assert driver("cuMemAlloc_v2", ctypes.byref(z), ctypes.c_size_t(out.nbytes)) == 0
    given = (ctypes.c_float(a), upload(driver, x), upload(driver, y), ctypes.c_int(n), z)
    assert launch(driver, function, 4, 64, pointers(*given)) == 0
    assert driver("cuStreamSynchronize", None) == driver("cuCtxSynchronize") == 0
    assert driver("cuMemcpyDtoH_v2", ctypes.c_void_p(result.ctypes.data), z, ctypes.c_size_t(result.nbytes)) == 0
    np.testing.assert_array_equal(result, a * x + y)
    for pointer in (given[1], given[2], z):
        assert driver("cuMemFree_v2", pointer) == 0
    assert driver("cuMemFree_v2", z) == 1


def test_a_fault_fails_the_launch(driver: Driver, library: ctypes.CDLL, work: Path) -> None:
    function = load(driver, HEAD + SAXPY.source, "saxpy_0", work)
    a, x, y, _, out = SAXPY.args()
    given = (ctypes.c_float(a), upload(driver, x), upload(driver, y), ctypes.c_int(x.size + 1), upload(driver, out))
    assert launch(driver, function, 4, 64, pointers(*given)) == 700
    buffer = ctypes.create_string_buffer(100_000)
    library.tx_emu_reports(buffer, ctypes.c_size_t(len(buffer)))
    found = parse_reports(buffer.value.decode())
    assert {(report.index, report.lines) for report in found} == {(x.size, (3,))}
    assert {report.buffer for report in found} <= {"argument 1", "argument 2", "argument 4", "x", "y", "out"}
    assert driver("tx_emu_set", b"fail", ctypes.c_longlong(0)) == 0
    assert launch(driver, function, 4, 64, pointers(*given)) == 0
    assert driver("tx_emu_set", b"fail", ctypes.c_longlong(1)) == 0


def test_memory_written_by_the_host_counts_as_written(driver: Driver, work: Path) -> None:
    function = load(driver, HEAD + SAXPY.source, "saxpy_0", work)
    pointer, out = ctypes.c_void_p(), upload(driver, np.zeros(64, np.float32))
    assert driver("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(256)) == 0
    given = (ctypes.c_float(1), pointer, pointer, ctypes.c_int(64), out)
    assert launch(driver, function, 1, 64, pointers(*given)) == 719
    assert driver("cuMemsetD8_v2", pointer, ctypes.c_ubyte(0), ctypes.c_size_t(255)) == 0
    assert launch(driver, function, 1, 64, pointers(*given)) == 719
    assert driver("cuMemsetD8_v2", pointer, ctypes.c_ubyte(0), ctypes.c_size_t(256)) == 0
    assert launch(driver, function, 1, 64, pointers(*given)) == 0


def test_a_part_of_memory_with_bounds_of_its_own(driver: Driver, library: ctypes.CDLL, work: Path) -> None:
    function = load(driver, HEAD + SAXPY.source, "saxpy_0", work)
    whole = upload(driver, np.zeros(128, np.float32))
    base = whole.value or 0
    part, rest = ctypes.c_void_p(base), ctypes.c_void_p(base + 256)
    given = (ctypes.c_float(1), rest, rest, ctypes.c_int(65), part)
    assert launch(driver, function, 2, 64, pointers(*given)) == 700, "the end of all of it is seen"
    assert driver("tx_emu_register", part, ctypes.c_size_t(200), b"scratch") == 0
    assert launch(driver, function, 1, 64, pointers(*given)) == 700
    buffer = ctypes.create_string_buffer(100_000)
    library.tx_emu_reports(buffer, ctypes.c_size_t(len(buffer)))
    last = parse_reports(buffer.value.decode())[-1]
    assert (last.buffer, last.index, last.count) == ("scratch", 50, 50)
    assert driver("tx_emu_unregister", part) == 0
    assert launch(driver, function, 1, 64, pointers(*given)) == 0


class Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16))


class Config(ctypes.Structure):
    _fields_ = (
        *(("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p)),
        *(("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint)),
    )


def test_a_launch_with_clusters(driver: Driver, work: Path) -> None:
    function = load(driver, HEAD + CLUSTER.source, "cluster_0", work)
    x, out = CLUSTER.args()
    pair = Attribute(4, 0, (ctypes.c_uint * 16)(2, 1, 1))
    config = Config((ctypes.c_uint * 3)(6, 1, 1), (ctypes.c_uint * 3)(32, 1, 1), 0, None, ctypes.pointer(pair), 1)
    z = upload(driver, out)
    assert driver("cuLaunchKernelEx", ctypes.byref(config), function, pointers(upload(driver, x), z), None) == 0
    assert driver("cuMemcpyDtoH_v2", ctypes.c_void_p(out.ctypes.data), z, ctypes.c_size_t(out.nbytes)) == 0
    np.testing.assert_array_equal(out, CLUSTER.expected([x, out]))


def test_codes_of_wrong_calls(driver: Driver, work: Path) -> None:
    module = ctypes.c_void_p()
    assert driver("cuModuleLoadData", ctypes.byref(module), b"\x7fELF") == 200
    assert driver("cuModuleLoadData", ctypes.byref(module), image(work / "nothing.so")) == 301
    function = load(driver, HEAD + SAXPY.source, "saxpy_0", work)
    assert launch(driver, function, 0, 64, None) == 1
    assert driver("cuLaunchKernel", None, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 400
    word = ctypes.c_int64()
    given = (ctypes.c_void_p * 8)(*[ctypes.addressof(word)] * 8)  # none of which is looked at: the block is too large
    assert driver("cuLaunchKernel", function, 1, 1, 1, 32, 32, 2, 0, None, given, None) == 701
    pointer = upload(driver, np.zeros(4, np.float32))
    room = ctypes.create_string_buffer(64)
    assert driver("cuMemcpyDtoH_v2", room, pointer, ctypes.c_size_t(17)) == 1
    assert driver("cuDeviceGet", ctypes.byref(ctypes.c_int()), 1) == 101
    assert driver("tx_emu_set", b"no such option", ctypes.c_longlong(0)) == 1
    text = ctypes.c_char_p()
    assert driver("cuGetErrorString", 719, ctypes.byref(text)) == 0 and text.value
    assert driver("cuCtxSetCurrent", None) == 0
    assert launch(driver, function, 1, 64, None) == 201


def test_attributes_of_the_device(driver: Driver) -> None:
    value = ctypes.c_int()
    assert driver("tx_emu_set", b"capability", ctypes.c_longlong(80)) == 0
    for attribute, expected in ((75, 8), (76, 0), (10, 32), (1, 1024), (120, 0), (97, 227 * 1024)):
        assert driver("cuDeviceGetAttribute", ctypes.byref(value), attribute, 0) == 0
        assert value.value == expected
    assert driver("tx_emu_set", b"capability", ctypes.c_longlong(90)) == 0


MAIN = """
#include <dlfcn.h>
#include <cstdio>
#include <cstring>
template <class... A> int call(void *driver, const char *name, A... given) {
    return reinterpret_cast<int (*)(A...)>(dlsym(driver, name))(given...);
}
int main(int, char **words) {
    void *driver = dlopen(words[1], RTLD_NOW | RTLD_LOCAL), *context, *module, *function;
    char image[] = "TEXPR-EMULATED\\0", *x, *out;
    float a = 2, y[64], *null = nullptr;
    int n = 64;
    for (int i = 0; i < 64; ++i) y[i] = (float)i;
    if (call(driver, "cuInit", 0) || call(driver, "cuDevicePrimaryCtxRetain", &context, 0)) return 2;
    if (call(driver, "cuCtxSetCurrent", context) || call(driver, "cuModuleLoadData", &module, (void *)image)) return 3;
    if (call(driver, "cuModuleGetFunction", &function, module, "saxpy_0")) return 4;
    if (call(driver, "cuMemAlloc_v2", &x, (size_t)256) || call(driver, "cuMemAlloc_v2", &out, (size_t)256)) return 5;
    if (call(driver, "cuMemcpyHtoD_v2", x, (const void *)y, (size_t)256)) return 6;
    void *given[] = {&a, &x, &x, &n, &out};
    if (call(driver, "cuLaunchKernel", function, 1, 1, 1, 64, 1, 1, 0, (void *)null, (void **)given, (void **)null)) return 7;
    if (call(driver, "cuMemcpyDtoH_v2", (void *)y, out, (size_t)256)) return 8;
    for (int i = 0; i < 64; ++i)
        if (y[i] != 3.0f * (float)i) return 9;
    return 0;
}
"""


def test_kernels_in_the_process_itself(tmp_path: Path, work: Path) -> None:
    texts = {**headers(), **device_headers(), "saxpy.cu": HEAD + SAXPY.source, "main.cpp": MAIN}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    words = ["g++", "-std=c++17", "-I.", "-rdynamic", "-x", "c++", "saxpy.cu", "main.cpp", "-o", "run", "-ldl"]
    subprocess.run(words, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "run", build_core(work)], check=False).returncode == 0


def test_shared_memory_is_asked_for_before_it_is_used(driver: Driver, work: Path) -> None:
    """More than 48 KiB after the function allows it, never more than 227; who takes more than was asked for is told of."""
    text = """
extern "C" __global__ void large(TX_GLOBAL(int) z) {
    TX_SHARED_BLOCK(65536);
    TX_SHARED_AT(int, tile, 16384, 16, 0);
    tile[16383] = 7;
    z[0] = tile[16383];
}
TX_EXPORT(large)
"""
    function, z = load(driver, HEAD + text, "large", work), upload(driver, np.zeros(1, np.int32))

    def run(shared: int) -> int:
        return driver("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, shared, None, pointers(z), None)

    assert run(65536) == 1
    assert driver("cuFuncSetAttribute", function, 8, (227 << 10) + 1) == 1
    assert driver("cuFuncSetAttribute", function, 8, 65536) == 0
    assert run(65536) == 0 and run(65537) == 1
    assert run(32768) == 719
    assert driver("cuMemFree_v2", z) == 0
