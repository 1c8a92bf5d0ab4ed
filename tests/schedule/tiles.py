"""A product whose blocks go through tiles one after the other, and schedules of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.lowering.emulated import run_plan
from tests.schedule.test_mma import NUMPY

from texpr.driver import Compiled, lower, parse
from texpr.ir import kernel as k

PRODUCT = """
fn f(A: bf16[M, K] align(16), B: bf16[N, K] align(16)): f32[M, N]
    where K % 8 == 0, N % 8 == 0
{
    new C: f32[M, N]
    par M |i| { par N |j| {
        new total: f32
        total = 0.0
        seq K |k| reduce(total) { total += A[i, k] * B[j, k] }
        C[i, j] = total
    } }
    return C
}
"""


def by_blocks(more: str, blocks: int = 2, rows: int = 64) -> str:
    """A schedule: so many blocks share a line of tiles, of `rows` times 64."""
    return f"""
schedule f for sm_90a {{
    split(i, {rows}) -> (i_b, i_e)
    split(i_e, 64) -> (i_w, i_m)
    split(j, 64) -> (j_b, j_m)
    split(k, 64) -> (k_o, k_i)
    reorder(i_b, j_b, k_o, i_w, i_m, j_m, k_i)
    bind(i_w, block.y)
    persistent(j_b, blocks={blocks}) -> (j_c, j_t)
    bind(i_b, grid.y)
    bind(j_c, grid.x)
    stage(A, at=k_o, via=tma, in=shared, swizzle=128B) -> A_s
    stage(B, at=k_o, via=tma, in=shared, swizzle=128B) -> B_s
    mma(i_m, j_m, k_i, wgmma_m64n64k16_f32_bf16)
    {more}
}}
"""


CASES = {
    "late": by_blocks("pipeline(k_o, stages=3, lag=1)  roles(k_o, copy=1, compute=1)"),
    "at once": by_blocks("pipeline(k_o, stages=3)  roles(k_o, copy=1, compute=1)"),
    "two late": by_blocks("pipeline(k_o, stages=4, lag=2)  roles(k_o, copy=1, compute=1)"),
    "two slots": by_blocks("pipeline(k_o, stages=2)  roles(k_o, copy=1, compute=1)", 3),
    "registers": by_blocks("pipeline(k_o, stages=4, lag=1)  roles(k_o, copy=4, compute=2, registers=(24, 240))", rows=128),
    "one block a line": by_blocks("pipeline(k_o, stages=3, lag=1)  roles(k_o)", 1),
    "no roles": by_blocks("pipeline(k_o, stages=3, lag=1)"),
    "no roles, at once": by_blocks("pipeline(k_o, stages=3)"),
}
"""Schedules, by name."""


@cache
def compiled(name: str) -> Compiled:
    """One of them."""
    function = parse(PRODUCT + CASES[name])["f"]
    return lower(function, "sm_90a", schedule=function.schedules[0])


def wrong(made: Compiled, plan: k.Plan, sizes: Mapping[str, int], seed: int | None) -> str | None:
    """What is wrong of a run of a plan of such a product in place of its own, if anything is. No sum rounds."""
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-3, 4, (sizes[rows], sizes["K"])) for rows in "MN")
    given: dict[str, NDArray[Any]] = {name: each.astype(NUMPY["bf16"]) for name, each in (("A", a), ("B", b))}
    ran = run_plan(made.function, plan, given, sizes, seed=seed)
    if ran.reports:
        return str(ran.reports[0])
    return None if np.array_equal(ran.arrays["C"], a @ b.T) else "other numbers"
