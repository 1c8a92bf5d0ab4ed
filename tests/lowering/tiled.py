"""Programs whose operands the tensor memory accelerator stages, and schedules for them."""

from __future__ import annotations

COPY = """
fn copy(A: f32[M, K] align(16)): f32[M, K]
    where K % 4 == 0
{
    new C: f32[M, K]
    par M |i| { par K |k| { C[i, k] = A[i, k] } }
    return C
}"""

MATMUL = """
fn matmul(A: f32[M, K] align(16), B: f32[K, N] align(16)): f32[M, N]
    where K % 4 == 0, N % 4 == 0
{
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}"""

BLUR = """
fn blur(x: f32[M, N] align(16)): f32[M, N]
    where N % 4 == 0
{
    new y: f32[M, N]
    let p = pad(x, (1, 1), (1, 1), 0.0)
    par M |i| { par N |j| { y[i, j] = p[i, j + 1] + p[i + 2, j + 1] + p[i + 1, j] + p[i + 1, j + 2] } }
    return y
}"""
"""Its halo lies outside of the tensor, where the engine fills with zero."""

TURN = """
fn turn(A: f32[M, N] align(16)): f32[N, M]
    where N % 4 == 0
{
    new B: f32[N, M]
    par N |j| { par M |i| { B[j, i] = A[i, j] } }
    return B
}"""

SLABS = """
fn slabs(A: f16[P, 4, 32] align(16)): f16[P, 4, 32] {
    new C: f16[P, 4, 32]
    par P |p| { par 4 |q| { par 32 |r| { C[p, q, r] = A[p, q, r] } } }
    return C
}"""
"""Three dimensions: the rows of a tile are two of them merged."""


def copying(more: str, tile: tuple[int, int] = (16, 32), out: str = "") -> str:
    """Tiles of `COPY`, with more words for the directive; `out`: another for the result."""
    return f"""
    split(i, {tile[0]}) -> (bi, ti)  split(k, {tile[1]}) -> (bk, tk)
    reorder(bi, bk, ti, tk)
    bind(bi, grid.y)  bind(bk, grid.x)
    stage(A, at=bk, in=shared, via=tma, {more}) -> As
    {out}"""


def multiplying(k: int = 8, a: str = "swizzle=32B", b: str = "swizzle=128B", out: str = "") -> str:
    """Tiles of `MATMUL` on the cores of CUDA, both operands staged."""
    return f"""
    split(i, 16) -> (bi, ti)  split(j, 32) -> (bj, tj)
    split(ti, 4) -> (t1, r1)  split(tj, 4) -> (t2, r2)  split(k, {k}) -> (ko, ki)
    reorder(bi, bj, ko, t1, t2, ki, r1, r2)
    bind(bi, grid.y)  bind(bj, grid.x)
    stage(A, at=ko, in=shared, via=tma, fill=zero, {a}) -> As
    stage(B, at=ko, in=shared, via=tma, fill=zero, {b}) -> Bs
    {out}
    bind(t1, block.y)  bind(t2, block.x)"""


BLURRING = """
    split(i, 8) -> (bi, ti)  split(j, 32) -> (bj, tj)
    reorder(bi, bj, ti, tj)
    bind(bi, grid.y)  bind(bj, grid.x)
    stage(x, at=bj, in=shared, via=tma, fill=zero, box=(10, 40)) -> xs"""

TURNING = """
    split(i, 32) -> (bi, ti)  split(j, 32) -> (bj, tj)  split(ti, 8) -> (t1, t2)  split(tj, 4) -> (u1, u2)
    reorder(bj, bi, t1, u1, u2, t2)
    bind(bj, grid.y)  bind(bi, grid.x)
    stage(A, at=bi, in=shared, via=tma, fill=zero{}) -> As
    bind(u1, block.z)  bind(u2, block.y)  bind(t2, block.x)"""
"""A warp reads 8 rows of 16 bytes: one bank each where chunks are moved, and 8 times the same banks where they are not."""

SLICING = """
    split(p, 4) -> (bp, tp)
    bind(bp, grid.x)
    stage(A, at=bp, in=shared, via=tma, fill=zero, {}) -> As"""
