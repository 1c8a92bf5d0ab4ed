"""Problems in TileLang, as its examples write such kernels: loops bring tiles ahead to shared memory, sums are in fragments."""

# The language reads annotations, which must not be text here: no `from __future__ import annotations`.

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import tilelang
import tilelang.language as T
import tvm
from offer import Kernel, Made, Peer, tiles
from tilelang.cuda.backend import tilelang_callback_cuda_compile

logging.disable(logging.WARNING)
TARGET = tvm.target.Target({"kind": "cuda", "arch": "sm_90a"})
PEER = Peer("tilelang", tilelang.__version__)
BYTES = {"bfloat16": 2, "float16": 2, "float32": 4, "float8_e4m3fn": 1, "int8": 1}
CUBE = 4096
ROWS, COLUMNS = 8192, 4096


def compiled(function: Any, l2: float, dram: float, **passes: Any) -> Kernel:
    """The launch of a function that is one kernel."""
    with TARGET, tvm.transform.PassContext(config=passes):
        made = tilelang.lower(function, target=TARGET)
    cubin = bytes(tilelang_callback_cuda_compile(made.kernel_source, TARGET, passes))
    ((name, kernel),) = made.device_mod.functions_items()
    extents = {str(axis): int(extent) for axis, extent in kernel.attrs["thread_extent"].items()}
    grid, block = ([extents.get(f"{level}Idx.{axis}", 1) for axis in "xyz"] for level in ("block", "thread"))
    shared = int(kernel.attrs.get("dyn_shared_memory_buf", 0))
    threads = block[0] * block[1] * block[2]
    return Kernel(cubin, name.name_hint, (grid[0], grid[1], grid[2]), threads, (), l2, dram, shared)


def configurations(problem: str, make: Callable[..., list[Kernel]], **choices: Sequence[Any]) -> None:
    """All combinations of choices are configurations of a problem, by a name that tells them."""
    found: dict[str, Made] = {}
    for values in product(*choices.values()):
        chosen = dict(zip(choices, values, strict=True))
        found[" ".join(f"{key}={value}" for key, value in chosen.items())] = partial(make, **chosen)
    PEER.problems[problem] = {**PEER.problems.get(problem, {}), **found}


def matmul(
    dtype: str, out: str, total: str, turned: bool, scaled: bool, tile: tuple[int, int, int], threads: int, stages: int
) -> list[Kernel]:
    """4096³: A · B, or A · Bᵀ, with a scale of each row and column."""
    m = n = k = CUBE
    rows, columns, depth = tile
    shape_b, tile_b = ((n, k), (columns, depth)) if turned else ((k, n), (depth, columns))

    @T.prim_func
    def products(
        A: T.Tensor((m, k), dtype),
        B: T.Tensor(shape_b, dtype),
        of_rows: T.Tensor((m,), "float32"),
        of_columns: T.Tensor((n,), "float32"),
        C: T.Tensor((m, n), out),
    ):
        with T.Kernel(n // columns, m // rows, threads=threads) as (x, y):
            a = T.alloc_shared((rows, depth), dtype)
            b = T.alloc_shared(tile_b, dtype)
            c = T.alloc_fragment((rows, columns), total)
            done = T.alloc_shared((rows, columns), out)
            T.use_swizzle(8)
            T.clear(c)
            for step in T.Pipelined(k // depth, num_stages=stages):
                T.copy(A[y * rows, step * depth], a)
                if turned:
                    T.copy(B[x * columns, step * depth], b)
                else:
                    T.copy(B[step * depth, x * columns], b)
                T.gemm(a, b, c, transpose_B=turned)
            if scaled:
                for i, j in T.Parallel(rows, columns):
                    done[i, j] = T.cast(T.cast(c[i, j], "float32") * of_rows[y * rows + i] * of_columns[x * columns + j], out)
            else:
                T.copy(c, done)
            T.copy(done, C[y * rows, x * columns])

    size, wide = BYTES[dtype], BYTES[out]
    return [compiled(products, tiles(m, n, k, (rows, columns), size, wide), CUBE * CUBE * (2 * size + wide))]


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


HEADS, LENGTH, WIDE = 64, 4096, 128


def attention(tile: tuple[int, int], threads: int, stages: int) -> list[Kernel]:
    """64 heads of 4096 queries and keys of 128 elements, in one sweep over the keys."""
    queries, keys = tile
    shape = (HEADS, LENGTH, WIDE)

    @T.prim_func
    def forward(
        Q: T.Tensor(shape, "bfloat16"),
        K: T.Tensor(shape, "bfloat16"),
        V: T.Tensor(shape, "bfloat16"),
        scale: T.float32,
        Out: T.Tensor(shape, "bfloat16"),
    ):
        with T.Kernel(LENGTH // queries, HEADS, threads=threads) as (x, head):
            q = T.alloc_shared((queries, WIDE), "bfloat16")
            k = T.alloc_shared((keys, WIDE), "bfloat16")
            v = T.alloc_shared((keys, WIDE), "bfloat16")
            done = T.alloc_shared((queries, WIDE), "bfloat16")
            scores = T.alloc_fragment((queries, keys), "float32")
            weights = T.alloc_fragment((queries, keys), "bfloat16")
            result = T.alloc_fragment((queries, WIDE), "float32")
            top = T.alloc_fragment((queries,), "float32")
            before = T.alloc_fragment((queries,), "float32")
            keep = T.alloc_fragment((queries,), "float32")
            found = T.alloc_fragment((queries,), "float32")
            total = T.alloc_fragment((queries,), "float32")
            T.copy(Q[head, x * queries : (x + 1) * queries, :], q)
            T.fill(result, 0)
            T.fill(total, 0)
            T.fill(top, -T.infinity("float32"))
            for step in T.Pipelined(LENGTH // keys, num_stages=stages):
                T.copy(K[head, step * keys : (step + 1) * keys, :], k)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(top, before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i in T.Parallel(queries):
                    top[i] = T.max(top[i], before[i])
                for i in T.Parallel(queries):
                    keep[i] = T.exp2(before[i] * scale - top[i] * scale)
                for i, j in T.Parallel(queries, keys):
                    scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
                T.reduce_sum(scores, found, dim=1)
                for i in T.Parallel(queries):
                    total[i] = total[i] * keep[i] + found[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(queries, WIDE):
                    result[i, j] *= keep[i]
                T.copy(V[head, step * keys : (step + 1) * keys, :], v)
                T.gemm(weights, v, result, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(queries, WIDE):
                result[i, j] /= total[i]
            T.copy(result, done)
            T.copy(done, Out[head, x * queries : (x + 1) * queries, :])

    l2 = HEADS * (LENGTH // queries) * (2 * queries + 2 * LENGTH) * WIDE * 2
    return [compiled(forward, l2, 4 * HEADS * LENGTH * WIDE * 2)]


def softmax(threads: int) -> list[Kernel]:
    """A row in the registers of a block."""
    n = COLUMNS

    @T.prim_func
    def rows(X: T.Tensor((ROWS, n), "float32"), Y: T.Tensor((ROWS, n), "float32")):
        with T.Kernel(ROWS, threads=threads) as at:
            row = T.alloc_fragment((1, n), "float32")
            top = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(X[at, :], row)
            T.reduce_max(row, top, dim=1)
            for i, j in T.Parallel(1, n):
                row[i, j] = T.exp2((row[i, j] - top[i]) * 1.4426950408889634)
            T.reduce_sum(row, total, dim=1)
            for i, j in T.Parallel(1, n):
                row[i, j] /= total[i]
            T.copy(row, Y[at, :])

    return [compiled(rows, 8 * ROWS * n, 8 * ROWS * n)]


def layernorm(threads: int) -> list[Kernel]:
    """A row in the registers of a block: mean, then variance."""
    n = COLUMNS

    @T.prim_func
    def rows(
        X: T.Tensor((ROWS, n), "float32"),
        gain: T.Tensor((n,), "float32"),
        bias: T.Tensor((n,), "float32"),
        eps: T.float32,
        Y: T.Tensor((ROWS, n), "float32"),
    ):
        with T.Kernel(ROWS, threads=threads) as at:
            row = T.alloc_fragment((1, n), "float32")
            squares = T.alloc_fragment((1, n), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(X[at, :], row)
            T.reduce_sum(row, total, dim=1)
            for i, j in T.Parallel(1, n):
                row[i, j] -= total[i] / n
            for i, j in T.Parallel(1, n):
                squares[i, j] = row[i, j] * row[i, j]
            T.reduce_sum(squares, total, dim=1)
            for i, j in T.Parallel(1, n):
                row[i, j] = row[i, j] * T.rsqrt(total[i] / n + eps) * gain[j] + bias[j]
            T.copy(row, Y[at, :])

    moved = 8 * ROWS * n
    return [compiled(rows, moved + ROWS * 8 * n, moved + 8 * n)]


def rmsnorm(threads: int) -> list[Kernel]:
    """A row in the registers of a block."""
    n = COLUMNS

    @T.prim_func
    def rows(
        X: T.Tensor((ROWS, n), "bfloat16"),
        gain: T.Tensor((n,), "bfloat16"),
        eps: T.float32,
        Y: T.Tensor((ROWS, n), "bfloat16"),
    ):
        with T.Kernel(ROWS, threads=threads) as at:
            row = T.alloc_fragment((1, n), "bfloat16")
            squares = T.alloc_fragment((1, n), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(X[at, :], row)
            for i, j in T.Parallel(1, n):
                squares[i, j] = T.cast(row[i, j], "float32") * T.cast(row[i, j], "float32")
            T.reduce_sum(squares, total, dim=1)
            for i, j in T.Parallel(1, n):
                row[i, j] = T.cast(
                    T.cast(row[i, j], "float32") * T.rsqrt(total[i] / n + eps) * T.cast(gain[j], "float32"), "bfloat16"
                )
            T.copy(row, Y[at, :])

    moved = 4 * ROWS * n
    return [compiled(rows, moved + ROWS * 2 * n, moved + 2 * n)]


def scan(threads: int, rows: int) -> list[Kernel]:
    """Running sums of rows in shared memory."""
    n = COLUMNS

    @T.prim_func
    def running(X: T.Tensor((ROWS, n), "float32"), Y: T.Tensor((ROWS, n), "float32")):
        with T.Kernel(ROWS // rows, threads=threads) as at:
            tile = T.alloc_shared((rows, n), "float32")
            T.copy(X[at * rows, 0], tile)
            T.cumsum(tile, dim=1)
            T.copy(tile, Y[at * rows, 0])

    return [compiled(running, 8 * ROWS * n, 8 * ROWS * n)]


def bias_gelu(threads: int, block: int) -> list[Kernel]:
    """8192 × 4096 of bf16."""
    n = COLUMNS

    @T.prim_func
    def rows(X: T.Tensor((ROWS, n), "bfloat16"), bias: T.Tensor((n,), "bfloat16"), Y: T.Tensor((ROWS, n), "bfloat16")):
        with T.Kernel(n // block, ROWS, threads=threads) as (x, y):
            row = T.alloc_fragment((block,), "bfloat16")
            more = T.alloc_fragment((block,), "bfloat16")
            value = T.alloc_fragment((block,), "float32")
            T.copy(X[y, x * block : (x + 1) * block], row)
            T.copy(bias[x * block : (x + 1) * block], more)
            for i in T.Parallel(block):
                value[i] = T.cast(row[i], "float32") + T.cast(more[i], "float32")
                row[i] = T.cast(0.5 * value[i] * (1.0 + T.erf(value[i] * 0.7071067811865476)), "bfloat16")
            T.copy(row, Y[y, x * block : (x + 1) * block])

    moved = 4 * ROWS * n
    return [compiled(rows, moved + 2 * ROWS * n, moved + 2 * n)]


def transpose(tile: tuple[int, int], threads: int) -> list[Kernel]:
    """8192² in f32, by a tile in shared memory."""
    n = 8192
    high, wide = tile

    @T.prim_func
    def turned(X: T.Tensor((n, n), "float32"), Y: T.Tensor((n, n), "float32")):
        with T.Kernel(n // wide, n // high, threads=threads) as (x, y):
            a = T.alloc_shared((high, wide), "float32")
            b = T.alloc_fragment((wide, high), "float32")
            T.copy(X[y * high, x * wide], a)
            for i, j in T.Parallel(wide, high):
                b[i, j] = a[j, i]
            T.copy(b, Y[x * wide, y * high])

    return [compiled(turned, 8 * n * n, 8 * n * n)]


def permute(threads: int) -> list[Kernel]:
    """Axes A B C D E to C E A D B, of f16, by tiles of the second and the last."""
    A, B, C, D, E = 16, 64, 32, 16, 64

    @T.prim_func
    def permuted(X: T.Tensor((A, B, C, D, E), "float16"), Y: T.Tensor((C, E, A, D, B), "float16")):
        with T.Kernel(D, C, A, threads=threads) as (d, c, a):
            tile = T.alloc_shared((B, E), "float16")
            done = T.alloc_fragment((E, B), "float16")
            for b, e in T.Parallel(B, E):
                tile[b, e] = X[a, b, c, d, e]
            for e, b in T.Parallel(E, B):
                done[e, b] = tile[b, e]
            for e, b in T.Parallel(E, B):
                Y[c, e, a, d, b] = done[e, b]

    return [compiled(permuted, 4 * A * B * C * D * E, 4 * A * B * C * D * E)]


def whole_sum(block: int, share: int, threads: int) -> list[Kernel]:
    """2²⁸ of f32: blocks add shares, one more adds what they found."""

    def part(many: int, each: int, step: int) -> Any:
        @T.prim_func
        def partial_sum(X: T.Tensor((many, each), "float32"), Y: T.Tensor((many,), "float32")):
            with T.Kernel(many, threads=threads) as at:
                row = T.alloc_fragment((step,), "float32")
                total = T.alloc_fragment((step,), "float32")
                found = T.alloc_fragment((1,), "float32")
                T.clear(total)
                for turn in T.serial(each // step):
                    T.copy(X[at, turn * step : (turn + 1) * step], row)
                    for i in T.Parallel(step):
                        total[i] += row[i]
                T.reduce_sum(total, found, dim=0)
                Y[at] = found[0]

        return partial_sum

    many = (1 << 28) // share
    moved = 4 * ((1 << 28) + many)
    first = compiled(part(many, share, block), moved, moved)
    return [first, compiled(part(1, many, min(many, block)), 4 * many, 4 * many)]


def conv(tile: tuple[int, int], threads: int, stages: int) -> list[Kernel]:
    """32 images of 56 × 56 pixels, 64 channels to 64: the engine brings a tile of pixels for each tap."""
    images, high, wide, deep, filters = 32, 56, 56, 64, 64
    pixels, columns = tile
    many = images * high * wide

    @T.prim_func
    def convolution(
        X: T.Tensor((images, high, wide, deep), "bfloat16"),
        K: T.Tensor((3, 3, deep, filters), "bfloat16"),
        Y: T.Tensor((images, high, wide, filters), "bfloat16"),
    ):
        with T.Kernel(filters // columns, many // pixels, threads=threads) as (x, y):
            a = T.alloc_shared((pixels, deep), "bfloat16")
            b = T.alloc_shared((deep, columns), "bfloat16")
            c = T.alloc_fragment((pixels, columns), "float32")
            done = T.alloc_shared((pixels, columns), "bfloat16")
            flat = T.Tensor((9 * deep, filters), "bfloat16", K.data)
            out = T.Tensor((many, filters), "bfloat16", Y.data)
            T.clear(c)
            for step in T.Pipelined(9, num_stages=stages):
                T.im2col(X, a, y, step, 3, 1, 1, 1)
                T.copy(flat[step * deep, x * columns], b)
                T.gemm(a, b, c)
            T.copy(c, done)
            T.copy(done, out[y * pixels, x * columns])

    weights = 9 * deep * filters * 2
    blocks = many // pixels * (filters // columns)
    # What lies in the border is not brought.
    taps = (3 - 2 / high) * (3 - 2 / wide)
    brought = blocks * (taps * pixels * deep * 2 + weights * columns / filters)
    return [compiled(convolution, brought + many * filters * 2, 2 * many * 64 * 2 + weights)]


def gather(threads: int) -> list[Kernel]:
    """32,768 of 50,000 rows of 1024 f32."""
    many, wide, chosen = 50_000, 1024, 1 << 15

    @T.prim_func
    def rows(
        table: T.Tensor((many, wide), "float32"), index: T.Tensor((chosen,), "int32"), Y: T.Tensor((chosen, wide), "float32")
    ):
        with T.Kernel(chosen, threads=threads) as at:
            row = T.alloc_fragment((wide,), "float32")
            for j in T.Parallel(wide):
                row[j] = table[index[at], j]
            T.copy(row, Y[at, :])

    moved = chosen * (2 * 4 * wide + 4)
    return [compiled(rows, moved, moved)]


PLAIN: Mapping[str, Any] = {"turned": False, "scaled": False, "total": "float32", "out": "bfloat16"}
BYTES_BY_ROWS: Mapping[str, Any] = {**PLAIN, "turned": True}
WHOLE: Mapping[str, Any] = {**BYTES_BY_ROWS, "scaled": True, "total": "int32"}
TILES, BYTE_TILES = [(128, 256, 64), (128, 128, 64)], [(128, 256, 128), (128, 128, 128)]
configurations("matmul_f32", matmul_f32, tile=[(128, 128, 16), (128, 128, 32)], part=[(8, 8), (16, 8)], stages=[2, 3])
configurations("matmul_bf16", partial(matmul, "bfloat16", **PLAIN), tile=TILES, threads=[256], stages=[3])
configurations("matmul_f8", partial(matmul, "float8_e4m3fn", **BYTES_BY_ROWS), tile=BYTE_TILES, threads=[256], stages=[3])
configurations("matmul_i8", partial(matmul, "int8", **WHOLE), tile=BYTE_TILES, threads=[256], stages=[3])
configurations("attention", attention, tile=[(128, 128), (128, 64)], threads=[256], stages=[2])
configurations("softmax", softmax, threads=[128, 256])
configurations("layernorm", layernorm, threads=[128, 256])
configurations("rmsnorm", rmsnorm, threads=[128, 256])
configurations("scan", scan, threads=[128, 256], rows=[1])
configurations("bias_gelu", bias_gelu, threads=[128], block=[1024, 2048])
configurations("transpose", transpose, tile=[(64, 64), (32, 128)], threads=[128])
configurations("permute5d", permute, threads=[128, 256])
configurations("sum", whole_sum, block=[2048, 4096], share=[1 << 16], threads=[512])
configurations("conv3x3", conv, tile=[(128, 64), (64, 64)], threads=[128], stages=[3])
configurations("gather", gather, threads=[128, 256])

if __name__ == "__main__":
    sys.exit(PEER.main())
