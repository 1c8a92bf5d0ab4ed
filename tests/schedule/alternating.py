"""Products whose blocks go through tiles, which groups of warps take in turn, and schedules of them."""

from __future__ import annotations

from functools import cache

from tests.schedule.test_stored_by_roles import SMALL, WIDE
from tests.schedule.tiles import PRODUCT

from texpr.driver import Compiled, lower, parse

SPLIT = """
    split(i, {rows}) -> (i_b, i_e)
    split(i_e, 64) -> (i_w, i_m)
    split(j, {columns}) -> (j_b, j_m)
    split(k, 64) -> (k_o, k_i)
    reorder(i_b, j_b, k_o, i_w, i_m, j_m, k_i)
"""
STORED = "stage(C, at=j_t, in=shared, via=tma, swizzle=128B, box=({rows}, 64)) -> C_s"
PARTS = "split(j_m_2, 64) -> (j_h, j_n)  reorder(j_h, i_w_2, i_m_2, j_n)  " + STORED.replace("j_t", "j_h")
WIDE_ROWS = STORED.replace("64)", "32)")

EVEN = SMALL.replace("N % 8", "N % 128")


def taken(
    turns: str, more: str = "", rows: int = 64, columns: int = 64, binds: str = "bind(i_w, block.y)", multicast: str = ""
) -> str:
    """A schedule: two blocks share a line of tiles, and groups of each take its tiles in turn."""
    made = f"""
    {SPLIT} {binds}
    persistent(j_b, blocks=2) -> (j_c, j_t)
    bind(i_b, grid.y)
    bind(j_c, grid.x)
    {more}
    stage(A, at=k_o, via=tma, in=shared, swizzle=128B{multicast}) -> A_s
    stage(B, at=k_o, via=tma, in=shared, swizzle=128B) -> B_s
    mma(i_m, j_m, k_i, wgmma_m64n{columns}k16_f32_bf16)
    {turns}
"""
    return f"schedule f for sm_90a {{ {made.format(rows=rows, columns=columns)} }}"


def rings(stages: int, lag: int, groups: int = 2, each: int = 1) -> str:
    """A ring, and groups of so many warpgroups each."""
    turns = f"alternate(j_t, groups={groups})  roles(k_o, copy=1, compute={groups * each})"
    return f"pipeline(k_o, stages={stages}, lag={lag})  {turns}"


CASES = {
    "late": PRODUCT + taken(rings(3, 1)),
    "at once": PRODUCT + taken(rings(3, 0)),
    "two slots": PRODUCT + taken(rings(2, 0)),
    "two late": PRODUCT + taken(rings(4, 2)),
    "three groups": PRODUCT + taken(rings(3, 1, 3)),
    "stored": SMALL + taken(rings(3, 1), STORED),
    "in parts": SMALL + taken(rings(3, 1), PARTS, columns=128),
    "f32": WIDE + taken(rings(3, 1), WIDE_ROWS),
    "two warpgroups": SMALL + taken(rings(3, 1, 2, 2), STORED, rows=128),
    "two rows": SMALL
    + taken(rings(3, 1).replace("copy=1, compute=2", "copy=4, compute=2, registers=(24, 240)"), STORED, rows=128, binds=""),
    "clusters": EVEN + taken(rings(3, 1), "cluster(j_c, 2)  " + STORED, multicast=", multicast=j_c"),
}
"""Programs with a schedule, by name: rings that lag or do not, results that lanes store or the engine, more groups, groups of
two warpgroups, two products a turn for one, and slots that blocks of a cluster share."""


@cache
def compiled(name: str) -> Compiled:
    """One of them."""
    function = parse(CASES[name])["f"]
    return lower(function, "sm_90a", schedule=function.schedules[0])
