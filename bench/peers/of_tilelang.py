"""Problems in TileLang, as its examples write such kernels: loops bring tiles ahead to shared memory, sums are in fragments."""

# The language reads annotations, which must not be text here: no `from __future__ import annotations`.

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import tilelang
import tilelang.language as T
from offer import Kernel, Made, Peer
from tilelang_attention import attention
from tilelang_kernels import compiled
from tilelang_products import matmul, matmul_f32, mlp

PEER = Peer("tilelang", tilelang.__version__)
ROWS, COLUMNS = 8192, 4096


def configurations(problem: str, make: Callable[..., list[Kernel]], **choices: Sequence[Any]) -> None:
    """All combinations of choices are configurations of a problem, by a name that tells them."""
    found: dict[str, Made] = {}
    for values in product(*choices.values()):
        chosen = dict(zip(choices, values, strict=True))
        found[" ".join(f"{key}={value}" for key, value in chosen.items())] = partial(make, **chosen)
    PEER.problems[problem] = {**PEER.problems.get(problem, {}), **found}


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


def rmsnorm(threads: int, many: int = ROWS) -> list[Kernel]:
    """A row in the registers of a block."""
    n = COLUMNS

    @T.prim_func
    def rows(
        X: T.Tensor((many, n), "bfloat16"),
        gain: T.Tensor((n,), "bfloat16"),
        eps: T.float32,
        Y: T.Tensor((many, n), "bfloat16"),
    ):
        with T.Kernel(many, threads=threads) as at:
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

    moved = 4 * many * n
    return [compiled(rows, moved + many * 2 * n, moved + 2 * n)]


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


def norm_product(threads: int, tile: tuple[int, int, int], stages: int) -> list[Kernel]:
    """A norm of 4096 rows of 4096, then a linear layer."""
    return [*rmsnorm(threads, 4096), *matmul("bfloat16", "bfloat16", "float32", tile, 256, stages, turned=True)]


TILES, WHOLE, BYTE_TILES = ([(128, 256, depth), (128, 128, depth)] for depth in (64, 32, 128))
WORDS = partial(matmul, "bfloat16", "bfloat16", "float32")
PRODUCTS: Mapping[str, Any] = {
    "matmul_bf16": (WORDS, TILES),
    "matmul_8192": (partial(WORDS, shape=(1, 8192, 8192, 8192)), TILES),
    "matmul_f16": (partial(matmul, "float16", "float16", "float32"), TILES),
    "matmul_batched": (partial(WORDS, shape=(32, 1024, 1024, 1024)), TILES),
    "matmul_at": (partial(WORDS, first=True), TILES),
    "matmul_bt": (partial(WORDS, turned=True), TILES),
    "matmul_odd": (partial(WORDS, shape=(1, 4097, 4095, 4099)), TILES),
    "matmul_tf32": (partial(matmul, "float32", "float32", "float32", turned=True), WHOLE),
    "matmul_f8": (partial(matmul, "float8_e4m3fn", "bfloat16", "float32", turned=True), BYTE_TILES),
    "matmul_f8_parts": (partial(matmul, "float8_e4m3fn", "bfloat16", "float32", turned=True, parts=True), BYTE_TILES),
    "matmul_i8": (partial(matmul, "int8", "bfloat16", "int32", turned=True, scaled=True), BYTE_TILES),
}
for name, (make, sizes) in PRODUCTS.items():
    configurations(name, make, tile=sizes, threads=[256], stages=[3])
configurations("matmul_f32", matmul_f32, tile=[(128, 128, 16), (128, 128, 32)], part=[(8, 8), (16, 8)], stages=[2, 3])
configurations("mlp", mlp, gated=[(128, 128, 64), (128, 64, 64)], tile=TILES[:1], stages=[3])
configurations("norm_product", norm_product, threads=[128], tile=TILES, stages=[3])
for wide, causal in product((64, 128), (False, True)):
    configurations(
        f"attention_{wide}{'_causal' * causal}",
        partial(attention, wide, causal),
        tile=[(128, 128), (128, 64)],
        threads=[256],
        stages=[2],
    )
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
