"""What an access is said to cost a warp is what the emulator counts, where one warp alone runs each access once."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from tests.backends.transfers import copying, moving
from tests.lowering.emulated import module
from tests.schedule.laid import in_shared

from texpr.backends.cuda import print_kernels
from texpr.emulator.counts import Counts
from texpr.emulator.harness import Emulated
from texpr.frontend import parse
from texpr.interp.dtypes import numpy_dtype
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.value.types import F32
from texpr.isa.memories import COALESCING
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.mapping.cost.access import Access, accesses
from texpr.support.record import replace

GLOBAL = {
    "contiguous": "par 32 |i| { y[i] = x[i] }",
    "shifted": "par 32 |i| { y[i] = x[i + 3] }",
    "apart": "par 32 |i| { y[i * 2] = x[i * 7] }",
    "backwards": "par 32 |i| { y[31 - i] = x[i / 4] }",
    "guarded": "par 32 |i| { if i < 11 { y[i] = x[i * 2] } }",
    "few": "par 9 |i| { y[i] = x[8 - i] }",
    "a line apart": "par 32 |i| { y[i * 32] = x[i] }",
    "rows": "par 4 |i| { par 8 |j| { y[i * 8 + j] = x[j * 16 + i] } }",
}

SHARED = {
    "contiguous": ("j", "31 - j"),
    "even": ("j * 2 % 64", "j"),
    "one bank": ("j * 32 % 1024", "j"),
    "padded": ("j * 33 % 1056", "j"),
    "one word": ("j", "0 * j"),
}
TYPES = ("i8", "f16", "f32", "f64")


def _aligned(count: int, dtype: np.dtype[np.generic]) -> np.ndarray:
    """Zeros at a 256-byte boundary, as a device's memory is."""
    raw = np.zeros(count * dtype.itemsize + 256, np.uint8)
    start = -raw.ctypes.data % 256
    return raw[start : start + count * dtype.itemsize].view(dtype)


def _global(name: str, dtype: str) -> str:
    return f"(x: {dtype}[1024], inout y: {dtype}[1024]) {{ {GLOBAL[name]} }}"


def _shared(name: str, dtype: str) -> str:
    write, read = SHARED[name]
    return f"""(x: {dtype}[32], inout y: {dtype}[32]) {{
    par 1 |b| {{
        new v: {dtype}[1056]
        par 32 |j| {{ v[{write}] = x[j] }}
        par 32 |j| {{ y[j] = v[{read}] }}
    }}
}}"""


@cache
def _every() -> tuple[dict[str, k.Kernel], Emulated]:
    """The one kernel of each program (without sizes), all in one text: a compile for each would take most of the time."""
    texts = [_global(name, dtype) for name, dtype in product(GLOBAL, TYPES)]
    texts += [_shared(name, dtype) for name, dtype in product(SHARED, TYPES)]
    program = parse("\n".join(f"fn case{n}{text}" for n, text in enumerate(texts)), "cost.te")
    plans = [lower(in_shared(function), resolve("sm_90a"))[0] for function in program.functions]
    kernels = {text: next(k.kernels(plan.steps)) for text, plan in zip(texts, plans, strict=True)}
    return kernels, module(print_kernels(replace(plans[0], steps=tuple(map(k.Launch, kernels.values())))))


def _both(text: str) -> tuple[tuple[Access, ...], Counts]:
    """What is said of a program's kernel, and what its launch counts."""
    kernels, loaded = _every()
    kernel = kernels[text]
    loaded.clear_counts()
    args = [_aligned(int(np.prod([e.constant for e in b.shape])), numpy_dtype(b.dtype)) for b in kernel.buffers]
    grid = [a.extent.constant for a in kernel.axes if a.level is k.Level.GRID]
    bases = [0 for _ in kernel.sizes]
    loaded.launch(kernel.name, (*grid, 1, 1)[:3], (kernel.threads, 1, 1), [*args, *bases], count=True, detect=False)
    return accesses(kernel, COALESCING), loaded.counts()[kernel.name]


@pytest.mark.parametrize("name", GLOBAL)
def test_sectors_and_lines(name: str) -> None:
    for dtype in TYPES:
        said, counted = _both(_global(name, dtype))
        loads, stores = ([a for a in said if a.kind == kind] for kind in ("load", "store"))
        assert sum(a.sectors or 0 for a in loads) == counted.global_load_sectors, dtype
        assert sum(a.lines or 0 for a in loads) == counted.global_load_lines, dtype
        assert sum(a.sectors or 0 for a in stores) == counted.global_store_sectors, dtype
        assert sum(a.lines or 0 for a in stores) == counted.global_store_lines, dtype
        assert sum(a.lanes for a in loads) == counted.global_loads
        assert all(a.least is not None and a.least <= (a.sectors or 0) for a in said)


@pytest.mark.parametrize("name", SHARED)
def test_bank_conflicts(name: str) -> None:
    for dtype in TYPES:
        said, counted = _both(_shared(name, dtype))
        shared = [a for a in said if a.space == "shared"]
        assert {a.kind for a in shared} == {"load", "store"}
        assert sum(a.conflicts or 0 for a in shared) == counted.bank_conflicts, dtype


def test_a_stride_of_a_line_costs_a_sector_for_each_lane() -> None:
    """By hand; and the counts do tell mappings apart."""
    said, _ = _both(_global("a line apart", "f32"))
    assert [(a.kind, a.sectors, a.least, a.lines) for a in said] == [("load", 4, 4, 1), ("store", 32, 4, 32)]


@pytest.mark.parametrize(("columns", "conflicts"), [(4, 0), (8, 4)])
def test_vectors_are_one_access(columns: int, conflicts: int) -> None:
    """Eight lanes of a phase that are 32 bytes apart meet in half of the banks (the emulator counts the same)."""
    text = moving(F32, 4).replace("tile: f32[64, 4]", f"tile: f32[64, {columns}]")
    read, put, got, written = accesses(next(k.kernels(parse_plan(text).steps)), COALESCING)
    assert (read.kind, read.sectors, read.least, read.lines) == ("load", 16, 16, 4)
    assert (written.kind, written.sectors, written.lines) == ("store", 16, 4)
    assert (put.kind, put.conflicts, got.kind, got.conflicts) == ("store", conflicts, "load", conflicts)


def test_a_copy_reads_and_writes() -> None:
    read, put, *_ = accesses(next(k.kernels(parse_plan(copying(F32, 4)).steps)), COALESCING)
    assert (read.kind, read.space, read.sectors, put.kind, put.space, put.conflicts) == (
        "load",
        "global",
        16,
        "store",
        "shared",
        0,
    )
