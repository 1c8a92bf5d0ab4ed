"""Kernels in the text of the kernel form that move several elements at once, and what NumPy makes of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texpr.interp.dtypes import numpy_dtype
from texpr.ir.kernel import Plan
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.value.types import BF16, DTYPES, F16, F32, F64, DType
from texpr.support.record import Record

FLIP = """\
plan flip
    param x: f32[m, 64] align 16
    result z: f32[64, m] align 16
    size m
    require (m % 16) == 0
{
    launch flip_0
}

kernel flip_0
    buffer x: f32[m, 64] align 16
    buffer z: f32[64, m] align 16 role result
    size m
    writes z
    blocks 4
    axis grid.x b < m / 16
    axis block.x t < 64
    array shared tile: f32[16, 68]
{
    for r in 0..4 unroll {
        vector a0, a1, a2, a3 = x[16 * b + 4 * r + t / 16, 4 * (t % 16)]
        vector tile[4 * r + t / 16, 4 * (t % 16)] = a0, a1, a2, a3
    }
    barrier block covers RAW tile
    for q in 0..4 unroll 2 {
        vector z[t, 16 * b + 4 * q] = tile[4 * q, t], tile[4 * q + 1, t], tile[4 * q + 2, t], tile[4 * q + 3, t]
    }
}
"""
"""A transpose of tiles: rows go in by fours, columns go out by fours."""

STAGES = """\
plan stages
    param x: f32[c, 256] align 16
    result z: f32[256] align 16
    size c
{
    launch stages_0
}

kernel stages_0
    buffer x: f32[c, 256] align 16
    buffer z: f32[256] align 16 role result
    size c
    writes z
    axis block.x t < 64
    array shared stage: f32[2, 256]
{
    copy stage[0, 4 * t] = x[0, 4 * t] when (i32(0) < i32(c)) count 4
    commit
    let s0: f32 = 0.0:f32
    let s1: f32 = 0.0:f32
    let s2: f32 = 0.0:f32
    let s3: f32 = 0.0:f32
    for i in 0..c {
        copy stage[(i + 1) % 2, 4 * t] = x[i + 1, 4 * t] when (i32(i + 1) < i32(c)) count 4
        commit
        wait 1 covers RAW stage
        barrier block covers RAW stage
        vector v0, v1, v2, v3 = stage[i % 2, 4 * ((t + 33) % 64)]
        s0 = (s0 + v0)
        s1 = (s1 + v1)
        s2 = (s2 + v2)
        s3 = (s3 + v3)
        barrier block covers WAR stage carried i
    }
    wait 0
    vector z[4 * t] = s0, s1, s2, s3
}
"""
"""Rows are summed out of two stages, one of which is filled while the other is read by the threads of another warp."""

WIDTHS = (2, 4, 8, 16)


def moving(dtype: DType, count: int) -> str:
    """Each thread's `count` elements go through registers, shared memory and its neighbour's registers."""
    names = [f"a{at}" for at in range(count)]
    others = [f"b{at}" for at in range(count)]
    array = f"{dtype}[{count} * n] align {count * dtype.bytes}"
    return f"""\
plan moving
    param x: {array}
    result z: {array}
    size n
    require (n % 64) == 0
{{
    launch moving_{dtype}_{count}
}}

kernel moving_{dtype}_{count}
    buffer x: {array}
    buffer z: {array} role result
    size n
    writes z
    axis grid.x b < n / 64
    axis block.x t < 64
    array shared tile: {dtype}[64, {count}]
{{
    vector {", ".join(names)} = x[{count} * (64 * b + t)]
    vector tile[t, 0] = {", ".join(names)}
    barrier block covers RAW tile
    vector {", ".join(others)} = tile[(t + 33) % 64, 0]
    vector z[{count} * (64 * b + t)] = {", ".join(others)}
}}
"""


def copying(dtype: DType, count: int) -> str:
    """The same by asynchronous copies into shared memory; blocks past the middle copy nothing."""
    text = moving(dtype, count).replace("moving", "copying")
    start = text.index("    vector a0")
    end = text.index("    barrier block")
    copy = f"copy tile[t, 0] = x[{count} * (64 * b + t)] when (i32(2 * b) < i32(n / 64)) count {count}"
    return f"{text[:start]}    {copy}\n    commit\n    wait 0 covers RAW tile\n{text[end:]}"


class Case(Record, dict=True):
    """A plan of one kernel, how it is launched, fresh arguments, and what the last of them must become."""

    text: str
    grid: int
    block: int
    args: Callable[[], list[Any]]
    expected: Callable[[list[Any]], NDArray[Any]]

    @property
    def plan(self) -> Plan:
        return parse_plan(self.text)

    @property
    def kernel(self) -> str:
        return self.text.split("launch ")[1].split("\n")[0]


def numbers(dtype: DType, *shape: int) -> NDArray[Any]:
    """Small whole numbers, or bools."""
    return np.random.default_rng(7).integers(0, 2 if dtype.name == "bool" else 8, shape).astype(numpy_dtype(dtype))


def _flip() -> Case:
    def args() -> list[Any]:
        return [numbers(F32, 48, 64), np.zeros((64, 48), np.float32), 48]

    return Case(FLIP, 3, 64, args, lambda args: args[0].T)


def stages(rows: int = 5) -> Case:
    """`STAGES` on so many rows."""

    def args() -> list[Any]:
        return [numbers(F32, rows, 256), np.full(256, -1, np.float32), rows]

    return Case(STAGES, 1, 64, args, lambda args: np.roll(args[0].sum(axis=0, dtype=np.float32).reshape(64, 4), -33, 0).ravel())


def moved(dtype: DType, count: int, asynchronous: bool = False) -> Case:
    """`moving`, or `copying`, in four blocks."""

    def args() -> list[Any]:
        return [numbers(dtype, 256 * count), np.zeros(256 * count, numpy_dtype(dtype)), 256]

    def expected(args: list[Any]) -> NDArray[Any]:
        blocks = np.roll(args[0].reshape(4, 64, count), -33, 1)
        if asynchronous:
            blocks[2:] = 0
        return blocks.ravel()

    return Case((copying if asynchronous else moving)(dtype, count), 4, 64, args, expected)


CASES: dict[str, Case] = {
    "flip": _flip(),
    "stages": stages(),
    **{
        f"{title}_{dtype}_{count}": moved(dtype, count, title == "copying")
        for title, dtype, count in [
            ("moving", F32, 4), ("moving", BF16, 8), ("moving", F16, 2), ("moving", DTYPES["u8"], 16), ("moving", F64, 2),
            ("moving", DTYPES["i32"], 2), ("moving", DTYPES["f8e4m3"], 2), ("moving", DTYPES["bool"], 4),
            ("copying", F32, 4), ("copying", F32, 1), ("copying", BF16, 4), ("copying", DTYPES["u8"], 16),
        ]
    },
}  # fmt: skip
