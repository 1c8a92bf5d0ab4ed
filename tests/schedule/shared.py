"""A product whose blocks share strips in clusters, with roles; and schedules of it."""

from __future__ import annotations

from functools import cache

from texpr.driver import Compiled, lower, parse

PRODUCT = """
fn f(A: bf16[M, K] align(16), B: bf16[N, K] align(16)): f32[M, N] align(16)
    where M % 128 == 0, K % 8 == 0, N % 128 == 0
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


def in_clusters(begin: str, more: str, a: str = "", b: str = ", multicast=i_b") -> str:
    """A schedule: tiles of 64 times 64 go to blocks as `begin` says; copies of A and B are for others as `a` and `b` say."""
    return f"""
schedule f for sm_90a {{
    split(i, 64) -> (i_b, i_m)
    split(j, 64) -> (j_b, j_m)
    split(k, 64) -> (k_o, k_i)
    reorder(i_b, j_b, k_o, i_m, j_m, k_i)
    {begin}
    stage(A, at=k_o, via=tma, in=shared, swizzle=128B{a}) -> A_s
    stage(B, at=k_o, via=tma, in=shared, swizzle=128B{b}) -> B_s
    mma(i_m, j_m, k_i, wgmma_m64n64k16_f32_bf16)
    {more}
}}
"""


ALONE = "bind(i_b, grid.x)  cluster(i_b, 2)  bind(j_b, grid.y)"
TILES = "persistent(j_b, blocks=2) -> (j_c, j_t)  bind(i_b, grid.x)  cluster(i_b, 2)  bind(j_c, grid.y)"
SHARED = "persistent(j_b, blocks=2) -> (j_c, j_t)  bind(i_b, grid.y)  bind(j_c, grid.x)  cluster(j_c, 2)"
SQUARE = "bind(i_b, grid.x)  cluster(i_b, 2)  bind(j_b, grid.y)  cluster(j_b, 2)"
LATE, ROLES = "pipeline(k_o, stages=3, lag=1)", "roles(k_o, copy=1, compute=1)"
STORED = "stage(C, at=j_t, via=tma, in=shared, swizzle=128B, box=(64, 32)) -> C_s"

CASES = {
    "a tile a block": in_clusters(ALONE, f"{LATE}  {ROLES}"),
    "at once": in_clusters(ALONE, f"pipeline(k_o, stages=3)  {ROLES}"),
    "tiles": in_clusters(TILES, f"{LATE}  {ROLES}"),
    "stored": in_clusters(f"{TILES}  {STORED}", f"{LATE}  {ROLES}"),
    "registers": in_clusters(TILES, f"{LATE}  roles(k_o, copy=4, compute=1, registers=(24, 240))"),
    "tiles of one line": in_clusters(SHARED, f"{LATE}  {ROLES}", ", multicast=j_c", ""),
    "four blocks": in_clusters(SQUARE, f"{LATE}  {ROLES}", ", multicast=j_b", ", multicast=i_b"),
    "nothing shared": in_clusters(ALONE, f"{LATE}  {ROLES}", b=""),
}
"""Schedules, by name."""


@cache
def compiled(name: str) -> Compiled:
    """One of them."""
    function = parse(PRODUCT + CASES[name])["f"]
    return lower(function, "sm_90a", schedule=function.schedules[0])
