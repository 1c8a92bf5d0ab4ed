"""CUDA text: goldens, run by the emulator against NumPy, and taken by nvcc for every target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.kept import EMULATED

from texpr.affine.expr import Sym, expr
from texpr.backends.cuda import headers, print_kernels
from texpr.emulator import Emulated, build
from texpr.ir.kernel import Array, Axis, Barrier, Exchange, If, Launch, Plan, Shuffle, Store
from texpr.ir.value import Cast, Index, Literal, Ref
from texpr.ir.value.types import BF16, BOOL, DTYPES, F32, I32
from texpr.isa.levels import Level, Space
from texpr.support.diagnostic import CompilerBug, Limitation, TexprError
from texpr.support.record import replace
from texpr.toolchain import compile_cuda, find_nvcc, this_machine

from . import plans

GOLDEN = Path(__file__).parent / "golden"
PLANS: dict[str, Callable[[], Plan]] = {
    "saxpy": plans.saxpy,
    "transpose": plans.transpose,
    "rows": plans.rows,
    "histogram": plans.histogram,
    "matmul": lambda: plans.matmul(BF16),
}


@pytest.fixture(scope="module")
def emulated() -> Callable[[Plan], Emulated]:
    return lambda plan: build(print_kernels(plan), headers(), EMULATED)


def _floats(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


@pytest.mark.parametrize("name", PLANS)
def test_golden(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"{name}.cu", print_kernels(PLANS[name]()))


def _run(emulated: Emulated, kernel: str, grid: tuple[int, ...], block: tuple[int, ...], args: list[Any]) -> None:
    for seed in (None, 1, 2):
        assert emulated.launch(kernel, grid, block, args, seed=seed) == []


def test_saxpy(emulated: Callable[[Plan], Emulated]) -> None:
    x, y, z = _floats(300), _floats(300, seed=2), np.zeros(300, np.float32)
    _run(emulated(plans.saxpy()), "saxpy_0", (2,), (256,), [3.0, x, y, z, 300])
    assert np.array_equal(z, 3 * x + y)


def test_transpose(emulated: Callable[[Plan], Emulated]) -> None:
    A, B = _floats(37, 20), np.zeros((20, 37), np.float32)
    _run(emulated(plans.transpose()), "transpose_0", (2, 3), (16, 16), [A, B, 37, 20])
    assert np.array_equal(B, A.T)


def test_rows(emulated: Callable[[Plan], Emulated]) -> None:
    A, s = _floats(3, 301), np.zeros(3, np.float32)
    _run(emulated(plans.rows()), "rows_0", (3,), (128,), [A, s, 3, 301])
    assert np.array_equal(s, A.sum(axis=1))


def test_histogram(emulated: Callable[[Plan], Emulated]) -> None:
    x, h = np.random.default_rng(3).integers(0, 16, 200).astype(np.int32), np.ones(16, np.int32)
    assert emulated(plans.histogram()).launch("histogram_0", (4,), (64,), [x, h, 200]) == []
    assert np.array_equal(h, 1 + np.bincount(x, minlength=16))


@pytest.mark.parametrize("name", ["bf16", "f8e4m3"])
def test_matmul_of_small_types(emulated: Callable[[Plan], Emulated], name: str) -> None:
    numpy = {"bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn}
    A, B, C = _floats(9, 5), _floats(5, 35, seed=2), np.zeros((9, 35), np.float32)
    A, B = np.clip(A, -4, 4), np.clip(B, -4, 4)
    made = emulated(plans.matmul(DTYPES[name]))
    assert made.launch("matmul_0", (2, 2), (32, 8), [A.astype(numpy[name]), B.astype(numpy[name]), C, 9, 35, 5]) == []
    assert np.array_equal(C, A @ B)


def _every_type() -> Plan:
    """For each type an update in memory, an exchange between lanes and an atomic, in one kernel each."""
    made, buffers = [], []
    for dtype in (each for each in DTYPES.values() if each.name != "f8e8m0"):  # scales have no updates
        x = plans.array(f"x_{dtype}", dtype, 32, role="inout")
        t, v, o, w = plans.syms("t v o w")
        value = Ref(v, dtype)
        body = [plans.Declare(v, dtype, plans.at(x, t))]
        if dtype.bits >= 32 or dtype.is_float:
            body.append(Exchange(o, value, 1))
        else:
            body.append(plans.Declare(o, dtype, value))
        kept = plans.array(f"kept_{dtype}", dtype, 2, role="local")
        body += [
            Store(plans.at(kept, 1), Ref(o, dtype)),
            Shuffle(w, plans.at(kept, 1), expr(t) * 5 + 3),
            Store(plans.at(x, t), Ref(w, dtype)),
        ]
        if dtype == BOOL:
            body += [plans.Atomic(plans.at(x, 0), name, Ref(o, dtype)) for name in ("and", "or")]
        else:
            body.append(Store(plans.at(x, t), plans.op("add", plans.at(x, t), plans.op("max", Ref(o, dtype), value))))
            body += [plans.Atomic(plans.at(x, 0), name, Ref(o, dtype)) for name in ("add", "min", "max")]
        if dtype.is_float:
            body.append(Store(plans.at(x, 1), Cast(plans.op("exp", value), dtype)))
        if dtype.is_integer:
            body += [plans.Atomic(plans.at(x, 0), name, Ref(o, dtype)) for name in ("and", "or")]
            body.append(Store(plans.at(x, 2), plans.op("div", value, plans.op("shl", value, Literal(1, dtype)))))
        made.append(plans.kernel(f"all_{dtype}", [plans.block(t, 32)], [x], body, arrays=(Array(kept, Space.LANES),)))
        buffers.append(x)
    wait = [Barrier(Level.WARP, lanes=8), Barrier(Level.WARP)]
    made.append(plans.kernel("waits", [plans.block(Sym("t"), 32)], [buffers[0]], wait))
    return plans.plan("every", buffers, *made)


def test_every_type_compiles_in_the_emulator(emulated: Callable[[Plan], Emulated]) -> None:
    made = emulated(_every_type())
    x = np.arange(32, dtype=np.int16)
    assert made.launch("all_i16", (1,), (32,), [x]) != []  # atomics race with plain stores: the kernel is for the compilers
    assert made.launch("waits", (1,), (32,), [np.zeros(32)]) == []


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_nvcc_takes_it_all(target: str, tmp_path: Path) -> None:
    machine = replace(this_machine(), cache=tmp_path)
    try:
        nvcc = find_nvcc(machine)
    except TexprError as reason:
        pytest.skip(str(reason))
    texts = [print_kernels(make()).replace('#include "texpr_device.h"\n', "") for make in (*PLANS.values(), _every_type)]
    binary = compile_cuda(machine, nvcc, '#include "texpr_device.h"\n' + "".join(texts), headers(), target)
    found = {kernel.kernel: kernel for kernel in binary.kernels}
    assert {"saxpy_0", "transpose_0", "rows_0", "histogram_0", "matmul_0", "all_f8e4m3", "waits"} <= found.keys()
    assert all(kernel.spill_stores == 0 for kernel in found.values())
    assert (b"cvt.rn.satfinite.e4m3x2.f32" in binary.ptx) == (target != "sm_80")


def test_what_no_device_runs_is_refused() -> None:
    x = plans.array("x", F32, 32, role="inout")
    big = Array(plans.array("big", F32, 58113, role="local"), Space.SHARED)
    t = Sym("t")
    many = plans.plan("f", [x], plans.kernel("many", [plans.block(t, 1025)], [x], []))
    much = plans.plan("f", [x], plans.kernel("much", [plans.block(t, 32)], [x], [], arrays=(big,)))
    together = plans.plan(
        "f", [x], plans.kernel("pair", [plans.grid(t, expr(64)), Axis(Sym("u"), Level.CLUSTER, expr(16))], [x], [])
    )
    for plan, code, told in (
        (many, "E0552", "1025 threads"),
        (much, "E0553", "232452 bytes"),
        (together, "E0554", "16 blocks in a cluster"),
    ):
        with pytest.raises(Limitation) as found:
            print_kernels(plan)
        assert found.value.diagnostics[0].code == code and told in found.value.diagnostics[0].message


def test_what_lowering_must_not_give_is_a_bug() -> None:
    x = plans.array("x", F32, 64, role="inout")
    t, i = plans.syms("t i")
    lanes = plans.kernel("a", [plans.block(t, 32)], [x], [plans.count(i, 4, kind="simd")])
    core = plans.kernel("a", [plans.core(t, 32)], [x], [])
    ragged = plans.kernel("a", [plans.block(t, 40)], [x], [plans.Declare(i, F32, Literal(0, F32)), Exchange(t, Ref(i, F32), 1)])
    for kernel in (lanes, core, ragged):
        with pytest.raises(CompilerBug):
            print_kernels(plans.plan("f", [x], kernel))
    with pytest.raises(CompilerBug, match="one name"):
        print_kernels(plans.plan("f", [x], plans.kernel("a", [], [x], []), plans.kernel("a", [], [x], [])))


def test_one_kernel_launched_twice_is_printed_once() -> None:
    plan = plans.saxpy()
    twice = replace(plan, steps=(*plan.steps, Launch(plan.steps[0].kernel)))  # pyright: ignore
    assert print_kernels(twice) == print_kernels(plan)


def test_a_slab_adds_its_base() -> None:
    x = plans.array("x", F32, plans.N, role="inout")
    b, base = plans.syms("b base")
    kernel = plans.kernel(
        "slab", [plans.grid(b, plans.N, "y", base)], [x], [Store(plans.at(x, b), Literal(0, F32))], sizes="N base"
    )
    text = print_kernels(plans.plan("f", [x], kernel, sizes="N"))
    assert "int const b = (int)blockIdx.y + base;" in text and "int const N, int const base)" in text


def test_hostile_names_and_lines_stay_inside() -> None:
    source = plans.Source('"; system("rm").te\n', "x \\\ny *\x1b/ ??/\n\u202e}")
    span = plans.Span(source, 0, 1)
    x = plans.array("threadIdx", F32, 4, role="inout")
    other = plans.array("int", F32, 4, role="inout")
    i = Sym("NULL")
    store = [
        Store(plans.at(b, i), Literal(1, F32), span=plans.Span(source, n, n + 1)) for b, n in ((x, 0), (other, 4), (x, 15))
    ]
    always = If(plans.op("lt", Index(expr(i), I32), Index(expr(4), I32)), tuple(store), span=span)
    plan = plans.plan("f", [x, other], plans.kernel("k", [plans.block(i, 4)], [x, other], [always], span=span), span=span)
    text = print_kernels(plan)
    assert r'TX_SOURCE("\042\073 system(\042rm\042).te\012")' in text
    assert "TX_GLOBAL(float) threadIdx_, TX_GLOBAL(float) int_" in text and "NULL_" in text
    assert all(32 <= ord(char) < 127 or char == "\n" for char in text)
    assert not any(line.endswith("\\") or "??/" in line for line in text.split("\n"))
