"""A null pointer to the emulator's C functions: a status of the caller's, as from CUDA's own driver, and never a crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from texpr.backends.cuda.headers import headers as device_headers
from texpr.emulator import build_core, build_kernels

from .kernels import HEAD, SAXPY

FUNCTIONS = {
    "cuDriverGetVersion": "p", "cuGetErrorString": "ip", "cuDeviceGetCount": "p", "cuDeviceGet": "pi", "cuDeviceGetName": "p4i",
    "cuDeviceTotalMem_v2": "pi", "cuDeviceGetAttribute": "p1i", "cuDevicePrimaryCtxRetain": "pi", "cuCtxGetCurrent": "p",
    "cuCtxGetDevice": "p", "cuStreamCreate": "pi", "cuMemAlloc_v2": "pn", "cuMemcpyHtoD_v2": "ppn", "cuMemcpyDtoH_v2": "ppn",
    "cuMemcpyDtoD_v2": "ppn", "cuMemsetD8_v2": "pin", "cuModuleLoadData": "pp", "cuModuleUnload": "m",
    "cuModuleGetFunction": "pms", "cuFuncGetAttribute": "pif", "cuFuncSetAttribute": "fii",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": "pf1n", "cuLaunchKernel": "f1111111iap", "cuLaunchKernelEx": "cfap",
    "cuLaunchCooperativeKernel": "f1111111ia", "cuTensorMapEncodeTiled": "piippppp1111",
    "cuTensorMapEncodeIm2col": "pi3pppppp44p111", "tx_emu_set": "sn", "tx_emu_register": "pns",
    "tx_emu_register_unwritten": "pns", "tx_emu_unregister": "p", "tx_emu_name_argument": "fis", "tx_emu_launch": "fda",
}  # fmt: skip
"""What each takes: `p`, memory; `m`, `f`, `s`, `a`, `c`, `d`: a module, a kernel, a name, its arguments, a launch, its shape.

Else a number: `i` 0, `n` 64 in 64 bits, a digit itself."""

MAY_BE_NULL = {("tx_emu_register", 2), ("tx_emu_register_unwritten", 2), ("cuLaunchKernel", 10), ("cuLaunchKernelEx", 3)}

CALLER = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
memory = (ctypes.c_char * 8192)()
memory = ctypes.c_void_p(-(-ctypes.addressof(memory) // 64) * 64)
module, kernel, context = (ctypes.c_void_p() for _ in range(3))
assert library.cuInit(0) == 0
assert library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 == library.cuCtxSetCurrent(context)
given = ctypes.create_string_buffer(b"TEXPR-EMULATED" + bytes(1) + sys.argv[2].encode())
assert library.cuModuleLoadData(ctypes.byref(module), given) == 0
assert library.cuModuleGetFunction(ctypes.byref(kernel), module, b"saxpy_0") == 0
value = ctypes.c_longlong(0)
arguments = (ctypes.c_void_p * 5)(*[ctypes.addressof(value)] * 5)
launch = (ctypes.c_uint * 14)(1, 1, 1, 1, 1, 1)
shape = (ctypes.c_uint * 9)(*[1] * 9)
kinds = {"p": memory, "m": module, "f": kernel, "s": b"absent", "a": arguments, "c": launch, "d": shape}
kinds["i"], kinds["n"] = 0, ctypes.c_size_t(64)
name, codes, null = sys.argv[3], sys.argv[4], int(sys.argv[5])
values = [kinds.get(code, int(code) if code.isdigit() else None) for code in codes]
if null >= 0:
    values[null] = None
else:
    arguments[-null - 1] = None
print("status", getattr(library, name)(*values))
"""


@pytest.fixture(scope="module")
def libraries(work: Path) -> tuple[Path, Path]:
    return build_core(work), build_kernels(HEAD + SAXPY.source, device_headers(), work)


def call(libraries: tuple[Path, Path], name: str, null: int) -> int:
    """The status of a call in a process of its own, whose argument `null` is null; below 0: one of the kernel's is."""
    words = [sys.executable, "-c", CALLER, *map(str, libraries), name, FUNCTIONS[name], str(null)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"{name} with a null pointer at {null}: exit {done.returncode} {done.stderr}"
    return int(done.stdout.split()[1])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_null_pointer_is_the_callers_fault(libraries: tuple[Path, Path], name: str) -> None:
    for at, code in enumerate(FUNCTIONS[name]):
        if code.isalpha() and code not in "in":
            status = call(libraries, name, at)
            assert status != 0 or (name, at) in MAY_BE_NULL, f"argument {at}"


@pytest.mark.parametrize("name", [name for name, codes in FUNCTIONS.items() if "a" in codes])
def test_a_null_pointer_among_a_kernels_arguments(libraries: tuple[Path, Path], name: str) -> None:
    assert call(libraries, name, -2) == 1


def test_every_function_that_takes_pointers_is_listed() -> None:
    """By the sources: whatever is exported, takes a pointer and gives a status."""
    core = Path(__file__).parents[2] / "src/texpr/emulator/core"
    text = (core / "core.cpp").read_text() + (core / "driver.hpp").read_text()
    heads = [head.split("{")[0] for head in text.split("TX_API ")[1:] if head.startswith("int ")]
    named = {head[4:].split("(")[0] for head in heads if "*" in head}
    ends = {name for name in named if name.endswith("Async_v2")} | {
        "cuStreamDestroy_v2",
        "cuStreamSynchronize",
        "cuStreamQuery",
    }
    assert named - ends - {"cuCtxSetCurrent", "cuMemFree_v2", "cuMemsetD8Async"} == set(FUNCTIONS)
