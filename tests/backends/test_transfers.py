"""Vectors and asynchronous copies as text: goldens, taken by nvcc, run on a CPU. `tests/emulator` runs them all."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from texpr.backends.cpu import headers as cpu_headers
from texpr.backends.cpu import print_cpu
from texpr.backends.cuda import headers, print_kernels
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.verify import verify
from texpr.isa.registry import resolve
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace
from texpr.toolchain import compile_cuda, find_nvcc, this_machine

from .compiled import load
from .transfers import CASES, FLIP, STAGES

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(("name", "text"), [("flip", FLIP), ("stages", STAGES)])
def test_golden(name: str, text: str, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"{name}.cu", print_kernels(parse_plan(text)))


@pytest.mark.parametrize("name", CASES)
def test_cases_are_well_formed(name: str) -> None:
    verify(CASES[name].plan, resolve("sm_80"))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_nvcc_takes_it_all(target: str, tmp_path: Path) -> None:
    """No access is taken apart: PTX has as many vectors, of the same widths, as the plans have."""
    machine = replace(this_machine(), cache=tmp_path)
    try:
        nvcc = find_nvcc(machine)
    except TexprError as reason:
        pytest.skip(str(reason))
    include, source = '#include "texpr_device.h"\n', 'TX_SOURCE("<plan>")\n'
    texts = [print_kernels(case.plan).replace(include, "").replace(source, "") for case in CASES.values()]
    binary = compile_cuda(machine, nvcc, include + "".join(texts), headers(), target)
    assert {case.kernel for case in CASES.values()} == {kernel.kernel for kernel in binary.kernels}
    assert all(kernel.spill_stores == kernel.spill_loads == 0 for kernel in binary.kernels)
    parts = {part.split("(")[0].strip(): part for part in binary.ptx.decode().split(".entry ")[1:]}
    for name in ("moving_f32_4", "moving_bf16_8", "moving_u8_16", "moving_f64_2"):
        lines = [line for line in parts[name].splitlines() if "ld.param" not in line]
        for access in ("ld.global.nc.v", "st.shared.v", "ld.shared.v", "st.global.v"):
            moved = [line for line in lines if access[:9] in line]
            assert len(moved) == 1 and access in moved[0], (name, moved)
    assert parts["copying_f32_4"].count("cp.async.cg.shared.global") == 1
    assert ", 8, " in parts["copying_bf16_4"].split("cp.async.ca.shared.global")[1].splitlines()[0]
    assert "cp.async.wait_group 1;" in parts["stages_0"] and "cp.async.wait_group 0;" in parts["stages_0"]
    assert ".minnctapersm 4" in parts["flip_0"]


CPU = """\
plan lanes
    param x: f32[n, 8] align 16 role inout
    param at: i32[n, 2] align 8
    result x
    result z: f32[n, 8] align 16
    size n
{
    launch lanes_0
}

kernel lanes_0
    buffer x: f32[n, 8] align 16 role inout
    buffer at: i32[n, 2] align 8
    buffer z: f32[n, 8] align 16 role result
    size n
    writes x, z
    axis core i < n
{
    vector a0, a1, a2, a3 = x[i, 4]
    vector first, second = at[i, 0]
    vector z[i, 0] = a3, a2, a1, a0
    vector z[i, 4] = x[i, first], x[i, second], 0:f32, 1:f32
    vector x[i, 0] = x[i, 1], x[i, 0]
    for l in 0..n unroll 4 {
        vector b0, b1 = x[i, 2]
        x[i, 7] = b0
    }
}
"""


def test_vectors_on_a_cpu(tmp_path: Path) -> None:
    """All values of a store are read before any is written; integers that are read may stand in indices."""
    plan = parse_plan(CPU)
    verify(plan, resolve("cpu"))
    library = load(tmp_path / "lanes", {**cpu_headers(), "f.cpp": print_cpu(plan) + CALL})
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    at = np.array([[0, 1], [2, 3], [6, 7]], np.int32)
    z, left = np.zeros((3, 8), np.float32), x.copy()
    left[:, [0, 1]], left[:, 7] = x[:, [1, 0]], x[:, 2]
    wanted = np.hstack([x[:, 7:3:-1], np.take_along_axis(x, at, 1), np.tile(np.array([0, 1], np.float32), (3, 1))])
    library.call(*(array.ctypes.data_as(ctypes.c_void_p) for array in (x, at, z)), 3)
    np.testing.assert_array_equal(z, wanted)
    np.testing.assert_array_equal(x, left)


CALL = """
TX_PUBLIC void call(float *x, int32_t const *at, float *z, int n) { lanes_0(x, at, z, n); }
"""


COPIES = """\
plan copies
    param x: f32[8 * n] align 16
    result z: f32[8 * n] align 16
    size n
{
    launch copies_0
}

kernel copies_0
    buffer x: f32[8 * n] align 16
    buffer z: f32[8 * n] align 16 role result
    size n
    writes z
    axis core i < n
    array local own: f32[8]
{
    copy own[0] = x[8 * i] count 4
    copy own[4] = x[8 * i + 4] when (i32(i) < 2:i32) count 4
    commit
    wait 0 covers RAW own
    for j in 0..8 {
        z[8 * i + j] = own[7 - j]
    }
}
"""


def test_copies_on_a_cpu_are_done_at_once(tmp_path: Path) -> None:
    text = print_cpu(parse_plan(COPIES))
    assert "tx_commit" not in text and "tx_wait" not in text
    call = "TX_PUBLIC void call(float const *x, float *z, int n) { copies_0(x, z, n); }"
    library = load(tmp_path / "copies", {**cpu_headers(), "f.cpp": f"{text}\n{call}\n"})
    x, z = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    library.call(x.ctypes.data_as(ctypes.c_void_p), z.ctypes.data_as(ctypes.c_void_p), 4)
    wanted = x.reshape(4, 8).copy()
    wanted[2:, 4:] = 0
    np.testing.assert_array_equal(z.reshape(4, 8), wanted[:, ::-1])
