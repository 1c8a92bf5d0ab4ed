"""nvcc: what it builds, what ptxas says of it, and how it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.record import replace
from texpr.toolchain import Machine, compile_cuda, disassemble, find_nvcc, make_fatbin, runs_on
from texpr.toolchain.cuda import Nvcc, capability, find_beside
from texpr.toolchain.resources import resources

from .conftest import Script
from .test_host import code

KERNEL = """\
#include "size.h"
extern "C" __global__ void flip(float const *x, float *y) {
    __shared__ float tile[SIZE];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = tile[SIZE - 1 - threadIdx.x];
}
extern "C" __global__ void zero(float *y) { y[threadIdx.x] = 0.0f; }
"""
SIZE = {"size.h": "#define SIZE 256\n"}


@pytest.fixture
def nvcc(machine: Machine) -> Nvcc:
    """The nvcc of this machine; without one these tests say so."""
    try:
        return find_nvcc(machine)
    except TexprError as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_compiles_and_says_what_each_kernel_takes(machine: Machine, nvcc: Nvcc, target: str) -> None:
    binary = compile_cuda(machine, nvcc, KERNEL, SIZE, target)
    assert binary.cubin.startswith(b"\x7fELF") and f".target {target}".encode() in binary.ptx
    flip, zero = binary.kernels
    assert (flip.kernel, zero.kernel) == ("flip", "zero")
    assert (flip.shared_bytes >= 1024, zero.shared_bytes < 1024, flip.barriers) == (True, True, 1)  # newer ones keep some
    assert 0 < zero.registers < 64 and flip.spill_stores == flip.spill_loads == 0
    assert compile_cuda(machine, nvcc, KERNEL, SIZE, target) == binary


def test_no_contraction(machine: Machine, nvcc: Nvcc) -> None:
    text = 'extern "C" __global__ void k(float *x) { x[0] = x[1] * x[2] + x[3]; }\n'
    ptx = compile_cuda(machine, nvcc, text, {}, "sm_80").ptx
    assert b"fma" not in ptx and b"mul.rn.f32" in ptx and b"add.rn.f32" in ptx


def test_a_fatbin_joins_targets_and_is_reproducible(machine: Machine, nvcc: Nvcc) -> None:
    binaries = [compile_cuda(machine, nvcc, KERNEL, SIZE, target) for target in ("sm_80", "sm_90a")]
    codes = [(binary.target, binary.cubin, binary.ptx) for binary in binaries]
    joined = make_fatbin(machine, nvcc, codes)
    assert joined == make_fatbin(machine, nvcc, codes) and len(joined) > len(binaries[0].cubin)


def test_a_kernel_that_does_not_compile_is_a_bug(machine: Machine, nvcc: Nvcc) -> None:
    with pytest.raises(CompilerBug, match="refuses a source"):
        compile_cuda(machine, nvcc, "int f( {", {}, "sm_80")
    assert [p.name for p in (machine.cache / "refused").glob("*/*")] == ["kernel.cu"]


def test_an_unknown_target(machine: Machine, nvcc: Nvcc) -> None:
    with pytest.raises(TexprError, match=r"nvcc .* does not know sm_70") as raised:
        compile_cuda(machine, nvcc, KERNEL, SIZE, "sm_70")
    assert code(raised) == "E0604"


def test_a_name_that_is_no_target() -> None:
    with pytest.raises(TexprError, match="'hopper' is not a CUDA target") as raised:
        capability("hopper")
    assert code(raised) == "E0610"


def test_no_nvcc(bare: Machine) -> None:
    with pytest.raises(TexprError, match="no CUDA compiler") as raised:
        find_nvcc(bare)
    assert code(raised) == "E0603" and "[cuda]" in str(raised.value.diagnostics[0].help)


def test_nvcc_variable_that_is_not_there(bare: Machine) -> None:
    with pytest.raises(TexprError, match="NVCC is '/no/nvcc'") as raised:
        find_nvcc(replace(bare, environment={"NVCC": "/no/nvcc"}))
    assert code(raised) == "E0602"


def test_nvcc_from_a_wheel_is_found_last(bare: Machine, script: Script, tmp_path_factory: pytest.TempPathFactory) -> None:
    site = tmp_path_factory.mktemp("site-packages")
    (site / "nvidia/cu13/bin").mkdir(parents=True)
    wheel = site / "nvidia/cu13/bin/nvcc"
    answer = 'case "$1" in --version) echo "release 13.0, V13.0.88";; *) echo compute_80;; esac'
    wheel.write_text(f"#!/bin/sh\n{answer}\n")
    wheel.chmod(0o755)
    script("g++", "echo g++ 12")
    machine = replace(bare, packages=(site,))
    found = find_nvcc(machine)
    assert (found.program, found.release, found.architectures) == (wheel, "13.0.88", {80})
    system = script("nvcc", answer)
    assert find_nvcc(machine).program == system


def test_disassembly_needs_a_tool(machine: Machine, nvcc: Nvcc) -> None:
    binary = compile_cuda(machine, nvcc, KERNEL, SIZE, "sm_80")
    lonely = replace(machine, environment={"PATH": ""}, packages=())
    with pytest.raises(TexprError, match="no `nvdisasm` is found") as raised:
        disassemble(lonely, replace(nvcc, program=machine.cache / "nvcc"), binary)
    assert code(raised) == "E0609" and "texpr-compiler[disassembly]" in str(raised.value.diagnostics[0].help)


def test_a_tool_from_a_wheel_is_found_last(bare: Machine, nvcc: Nvcc, script: Script, tmp_path: Path) -> None:
    """The readers of cubins come as wheels of their own, so beside another nvcc, or none."""
    wheel = tmp_path / "site-packages/nvidia/cu13/bin/nvdisasm"
    wheel.parent.mkdir(parents=True)
    wheel.write_text("#!/bin/sh\necho from a wheel\n")
    wheel.chmod(0o755)
    machine, elsewhere = replace(bare, packages=(tmp_path / "site-packages",)), replace(nvcc, program=tmp_path / "nvcc")
    assert find_beside(machine, elsewhere, "nvdisasm") == wheel
    assert find_beside(machine, elsewhere, "nvdisasm") != (found := script("nvdisasm", "true"))
    assert find_beside(machine, elsewhere, "nvdisasm") == found


def test_what_ptxas_says_is_read() -> None:
    text = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'b' for 'sm_90a'
ptxas info    : Function properties for b
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 2 barriers, 1024+16 bytes smem, 400 bytes cmem[0]
ptxas info    : Compiling entry function 'a' for 'sm_90a'
ptxas info    : Used 10 registers
ptxas info    : (C7515) Potential Performance Loss: wgmma.mma_async instructions are serialized due to this in the function 'b'
"""
    a, b = resources(text)
    assert (a.serialised, b.serialised) == (0, 1)
    assert (a.kernel, a.registers, a.shared_bytes, a.barriers) == ("a", 10, 0, 0)
    assert (b.kernel, b.registers, b.stack_bytes, b.spill_stores, b.spill_loads) == ("b", 255, 16, 12, 8)
    assert (b.shared_bytes, b.barriers) == (1040, 2)


@pytest.mark.parametrize(
    ("target", "device", "runs"),
    [
        ("sm_80", (8, 0), True), ("sm_80", (8, 6), True), ("sm_80", (9, 0), False), ("sm_90a", (9, 0), True),
        ("sm_90a", (10, 0), False), ("sm_86", (8, 0), False), ("sm_100a", (10, 0), True), ("sm_100a", (10, 3), False),
    ],
)  # fmt: skip
def test_which_device_runs_what(target: str, device: tuple[int, int], runs: bool) -> None:
    assert runs_on(target, device) is runs
