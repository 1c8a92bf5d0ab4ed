"""Products in TileLang: loops bring tiles ahead to shared memory, sums are in fragments."""

# The language reads annotations, which must not be text here: no `from __future__ import annotations`.

import tilelang.language as T
from offer import Kernel, tiles, up
from tilelang_kernels import BYTES, CUBE, compiled


def matmul(
    dtype: str,
    out: str,
    total: str,
    tile: tuple[int, int, int],
    threads: int,
    stages: int,
    *,
    first: bool = False,
    turned: bool = False,
    scaled: bool = False,
    parts: bool = False,
    shape: tuple[int, int, int, int] = (1, CUBE, CUBE, CUBE),
) -> list[Kernel]:
    """A batch of products: how many, rows, columns, depth. A is given by columns if `first`, B if `turned`; with a scale of
    each row and column if `scaled`. `parts`: what a tile of depth adds is summed up by lanes."""
    batch, m, n, k = shape
    rows, columns, depth = tile
    shape_a, tile_a = ((batch, k, m), (depth, rows)) if first else ((batch, m, k), (rows, depth))
    shape_b, tile_b = ((batch, n, k), (columns, depth)) if turned else ((batch, k, n), (depth, columns))

    @T.prim_func
    def products(
        A: T.Tensor(shape_a, dtype),
        B: T.Tensor(shape_b, dtype),
        of_rows: T.Tensor((m,), "float32"),
        of_columns: T.Tensor((n,), "float32"),
        C: T.Tensor((batch, m, n), out),
    ):
        with T.Kernel(T.ceildiv(n, columns), T.ceildiv(m, rows), batch, threads=threads) as (x, y, z):
            a = T.alloc_shared(tile_a, dtype)
            b = T.alloc_shared(tile_b, dtype)
            c = T.alloc_fragment((rows, columns), total)
            part = T.alloc_fragment((rows, columns), total)
            done = T.alloc_shared((rows, columns), out)
            T.use_swizzle(8)
            T.clear(c)
            for step in T.Pipelined(T.ceildiv(k, depth), num_stages=stages):
                if first:
                    T.copy(A[z, step * depth, y * rows], a)
                else:
                    T.copy(A[z, y * rows, step * depth], a)
                if turned:
                    T.copy(B[z, x * columns, step * depth], b)
                else:
                    T.copy(B[z, step * depth, x * columns], b)
                if parts:
                    T.gemm(a, b, part, transpose_A=first, transpose_B=turned, clear_accum=True)
                    for i, j in T.Parallel(rows, columns):
                        c[i, j] += part[i, j]
                else:
                    T.gemm(a, b, c, transpose_A=first, transpose_B=turned)
            if scaled:
                for i, j in T.Parallel(rows, columns):
                    done[i, j] = T.cast(T.cast(c[i, j], "float32") * of_rows[y * rows + i] * of_columns[x * columns + j], out)
            else:
                T.copy(c, done)
            T.copy(done, C[z, y * rows, x * columns])

    size, wide = BYTES[dtype], BYTES[out]
    moved = batch * ((m * k + k * n) * size + m * n * wide)
    return [compiled(products, batch * tiles(m, n, k, (rows, columns), size, wide), moved)]


def mlp(
    gated: tuple[int, int, int], tile: tuple[int, int, int], stages: int, shape: tuple[int, int, int] = (CUBE, CUBE, 11008)
) -> list[Kernel]:
    """A gated layer of bf16 in two launches. `shape`: rows, width, width within."""
    m, d, f = shape
    rows, columns, depth = gated

    @T.prim_func
    def gated_product(
        X: T.Tensor((m, d), "bfloat16"),
        G: T.Tensor((f, d), "bfloat16"),
        U: T.Tensor((f, d), "bfloat16"),
        H: T.Tensor((m, f), "bfloat16"),
    ):
        with T.Kernel(f // columns, m // rows, threads=256) as (x, y):
            a = T.alloc_shared((rows, depth), "bfloat16")
            g = T.alloc_shared((columns, depth), "bfloat16")
            u = T.alloc_shared((columns, depth), "bfloat16")
            one = T.alloc_fragment((rows, columns), "float32")
            other = T.alloc_fragment((rows, columns), "float32")
            done = T.alloc_shared((rows, columns), "bfloat16")
            T.use_swizzle(8)
            T.clear(one)
            T.clear(other)
            for step in T.Pipelined(d // depth, num_stages=stages):
                T.copy(X[y * rows, step * depth], a)
                T.copy(G[x * columns, step * depth], g)
                T.copy(U[x * columns, step * depth], u)
                T.gemm(a, g, one, transpose_B=True)
                T.gemm(a, u, other, transpose_B=True)
            for i, j in T.Parallel(rows, columns):
                one[i, j] = one[i, j] / (1.0 + T.exp2(-one[i, j] * 1.4426950408889634)) * other[i, j]
            T.copy(one, done)
            T.copy(done, H[y * rows, x * columns])

    l2 = up(m, rows) * up(f, columns) * (rows + 2 * columns) * d * 2 + 2 * m * f
    made = compiled(gated_product, l2, 2 * (m * d + 2 * f * d + m * f))
    return [made, *matmul("bfloat16", "bfloat16", "float32", tile, 256, stages, turned=True, shape=(1, m, d, f))]


def matmul_f32(tile: tuple[int, int, int], part: tuple[int, int], stages: int) -> list[Kernel]:
    """4096³ in f32 on lanes: each thread a part of the tile, its factors brought from shared memory to registers."""
    n = CUBE
    rows, columns, depth = tile
    high, wide = part
    across = columns // wide
    threads = (rows // high) * across

    @T.prim_func
    def products(A: T.Tensor((n, n), "float32"), B: T.Tensor((n, n), "float32"), C: T.Tensor((n, n), "float32")):
        with T.Kernel(n // columns, n // rows, threads=threads) as (x, y):
            a = T.alloc_shared((rows, depth), "float32")
            b = T.alloc_shared((depth, columns), "float32")
            left = T.alloc_local((high,), "float32")
            right = T.alloc_local((wide,), "float32")
            c = T.alloc_local((high, wide), "float32")
            lane = T.get_thread_binding()
            T.clear(c)
            for step in T.Pipelined(n // depth, num_stages=stages):
                T.copy(A[y * rows, step * depth], a)
                T.copy(B[step * depth, x * columns], b)
                for k in T.serial(depth):
                    for i in T.unroll(high):
                        left[i] = a[lane // across * high + i, k]
                    for j in T.vectorized(wide):
                        right[j] = b[k, lane % across * wide + j]
                    for i in T.unroll(high):
                        for j in T.unroll(wide):
                            c[i, j] += left[i] * right[j]
            for i in T.unroll(high):
                for j in T.vectorized(wide):
                    C[y * rows + lane // across * high + i, x * columns + lane % across * wide + j] = c[i, j]

    return [compiled(products, tiles(n, n, n, (rows, columns), 4, 4), 3 * 4 * n * n)]
