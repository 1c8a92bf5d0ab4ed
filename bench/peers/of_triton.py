"""Problems in Triton, as its tutorials and libraries write such kernels: tiles brought by descriptors, rows in registers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import triton
import triton.language as tl
from offer import Kernel, Made, Peer
from triton_attention import attention
from triton_kernels import BYTES, compiled, kernel
from triton_products import matmul, matmul_f32, matmul_i8, matmul_of_any, mlp

PEER = Peer("triton", triton.__version__)
ROWS, COLUMNS = 8192, 4096


def configurations(problem: str, make: Any, **choices: Sequence[Any]) -> None:
    """All combinations of choices are configurations of a problem, by a name that tells them."""
    found: dict[str, Made] = {}
    for values in product(*choices.values()):
        chosen = dict(zip(choices, values, strict=True))
        found[" ".join(f"{key}={value}" for key, value in chosen.items())] = partial(make, **chosen)
    PEER.problems[problem] = {**PEER.problems.get(problem, {}), **found}


@triton.jit
def softmax_of_row(x, y, N: tl.constexpr):
    """A row in the registers of one program."""
    at = tl.program_id(0) * N + tl.arange(0, N)
    row = tl.load(x + at)
    powers = tl.exp(row - tl.max(row, 0))
    tl.store(y + at, powers / tl.sum(powers, 0))


@triton.jit
def layernorm_of_row(x, gain, bias, y, eps, N: tl.constexpr):
    """A row in the registers of one program: mean, then variance."""
    columns = tl.arange(0, N)
    at = tl.program_id(0) * N + columns
    row = tl.load(x + at)
    off = row - tl.sum(row, 0) / N
    scale = tl.rsqrt(tl.sum(off * off, 0) / N + eps)
    tl.store(y + at, off * scale * tl.load(gain + columns) + tl.load(bias + columns))


@triton.jit
def rmsnorm_of_row(x, gain, y, eps, N: tl.constexpr):
    """A row in the registers of one program."""
    columns = tl.arange(0, N)
    at = tl.program_id(0) * N + columns
    row = tl.load(x + at).to(tl.float32)
    scale = tl.rsqrt(tl.sum(row * row, 0) / N + eps)
    tl.store(y + at, (row * scale * tl.load(gain + columns).to(tl.float32)).to(y.dtype.element_ty))


@triton.jit
def scan_of_row(x, y, N: tl.constexpr):
    """Running sums of a row in the registers of one program."""
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y + at, tl.cumsum(tl.load(x + at), 0))


def by_rows(fn: Any, dtype: str, more: Mapping[str, str], extra: float, warps: int, rows: int = ROWS) -> list[Kernel]:
    """A program for each of so many rows of 4096. `extra`: bytes of what all rows share."""
    made = compiled(fn, {"x": f"*{dtype}", "y": f"*{dtype}", **more}, {"N": COLUMNS}, num_warps=warps)
    moved = 2 * rows * COLUMNS * BYTES[dtype]
    return [kernel(made, [rows], moved + rows * extra, moved + extra)]


@triton.jit
def turned_tile(x, y, N: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    """A tile read along rows and written along columns."""
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * C + tl.arange(0, C)
    tile = tl.load(x + rows[:, None] * N + columns[None, :])
    tl.store(y + columns[:, None] * N + rows[None, :], tile.T)


def transpose(tile: tuple[int, int], warps: int) -> list[Kernel]:
    """8192² in f32."""
    made = compiled(turned_tile, {"x": "*fp32", "y": "*fp32"}, {"N": 8192, "B": tile[0], "C": tile[1]}, num_warps=warps)
    return [kernel(made, [8192 // tile[0], 8192 // tile[1]], 8 * 8192**2, 8 * 8192**2)]


AXES = {"A": 16, "B": 64, "C": 32, "D": 16, "E": 64}


@triton.jit
def permuted_tile(x, y, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr, E: tl.constexpr):
    """All of the second and the last axis, of which one is read along, the other written along."""
    at = tl.program_id(0)
    a, c, d = at // (C * D), at // D % C, at % D
    b, e = tl.arange(0, B), tl.arange(0, E)
    tile = tl.load(x + (((a * B + b[:, None]) * C + c) * D + d) * E + e[None, :])
    tl.store(y + (((c * E + e[:, None]) * A + a) * D + d) * B + b[None, :], tile.T)


def permute(warps: int) -> list[Kernel]:
    """Axes A B C D E to C E A D B, of f16."""
    made = compiled(permuted_tile, {"x": "*fp16", "y": "*fp16"}, AXES, num_warps=warps)
    moved = 4 * AXES["A"] * AXES["B"] * AXES["C"] * AXES["D"] * AXES["E"]
    return [kernel(made, [AXES["A"] * AXES["C"] * AXES["D"]], moved, moved)]


@triton.jit
def partial_sum(x, y, SHARE: tl.constexpr, B: tl.constexpr):
    """The sum of a program's share."""
    at = tl.program_id(0) * SHARE + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for turn in range(0, SHARE, B):
        total += tl.load(x + at + turn)
    tl.store(y + tl.program_id(0), tl.sum(total, 0))


def whole_sum(block: int, share: int, warps: int) -> list[Kernel]:
    """2²⁸ of f32: programs add shares, one more adds what they found."""
    many = (1 << 28) // share
    kinds = {"x": "*fp32", "y": "*fp32"}
    first = compiled(partial_sum, kinds, {"SHARE": share, "B": block}, num_warps=warps)
    last = compiled(partial_sum, kinds, {"SHARE": many, "B": min(many, 4096)}, num_warps=8)
    moved = 4 * ((1 << 28) + many)
    return [kernel(first, [many], moved, moved), kernel(last, [1], 4 * many, 4 * many)]


@triton.jit
def biased_gelu(x, bias, y, N: tl.constexpr, B: tl.constexpr):
    """x (1 + erf(x / √2)) / 2 of a part of a row, after its bias."""
    columns = tl.program_id(1) * B + tl.arange(0, B)
    at = tl.program_id(0) * N + columns
    value = tl.load(x + at).to(tl.float32) + tl.load(bias + columns).to(tl.float32)
    tl.store(y + at, (0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476))).to(y.dtype.element_ty))


def bias_gelu(block: int, warps: int) -> list[Kernel]:
    """8192 × 4096 of bf16."""
    made = compiled(biased_gelu, dict.fromkeys(("x", "bias", "y"), "*bf16"), {"N": COLUMNS, "B": block}, num_warps=warps)
    moved = 4 * ROWS * COLUMNS
    return [kernel(made, [ROWS, COLUMNS // block], moved + 2 * ROWS * COLUMNS, moved + 2 * COLUMNS)]


@triton.jit
def convolution(
    x, k, y, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, F: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr
):
    """3 × 3 in NHWC with a border of zeros: for each tap the tile of pixels, moved, times its filters."""
    pixels = tl.program_id(0) * BM + tl.arange(0, BM)
    image, row, column = pixels // (H * W), pixels // W % H, pixels % W
    depth, filters = tl.arange(0, BK), tl.arange(0, F)
    total = tl.zeros((BM, F), tl.float32)
    for at in range(0, 9 * C, BK):
        tap = at // C
        r, s = row + tap // 3 - 1, column + tap % 3 - 1
        inside = (r >= 0) & (r < H) & (s >= 0) & (s < W)
        pixel = ((image * H + r) * W + s) * C + at % C
        left = tl.load(x + pixel[:, None] + depth[None, :], mask=inside[:, None], other=0.0)
        right = tl.load(k + (at + depth)[:, None] * F + filters[None, :])
        total = tl.dot(left, right, total)
    tl.store(y + pixels[:, None] * F + filters[None, :], total.to(y.dtype.element_ty))


def conv(tile: tuple[int, int], warps: int, stages: int) -> list[Kernel]:
    """32 images of 56 × 56 pixels, 64 channels to 64."""
    pixels, depth = tile
    sizes = {"H": 56, "W": 56, "C": 64, "F": 64, "BM": pixels, "BK": depth}
    made = compiled(convolution, dict.fromkeys("xky", "*bf16"), sizes, num_warps=warps, num_stages=stages)
    many, filters = 32 * 56 * 56, 9 * 64 * 64 * 2
    blocks = many // pixels
    # The copies go around the first-level cache: a block brings its pixels for each tap, but for what lies in the border.
    brought = (3 - 2 / 56) ** 2 * pixels * 64 * 2 + filters
    return [kernel(made, [blocks], blocks * brought + many * 64 * 2, 2 * many * 64 * 2 + filters)]


@triton.jit
def gathered_row(table, index, y, D: tl.constexpr):
    """A row of the table."""
    row, columns = tl.program_id(0), tl.arange(0, D)
    tl.store(y + row * D + columns, tl.load(table + tl.load(index + row) * D + columns))


def gather(warps: int) -> list[Kernel]:
    """32,768 of 50,000 rows of 1024 f32."""
    made = compiled(gathered_row, {"table": "*fp32", "index": "*i32", "y": "*fp32"}, {"D": 1024}, num_warps=warps)
    moved = (1 << 15) * (2 * 1024 * 4 + 4)
    return [kernel(made, [1 << 15], moved, moved)]


def norm_product(warps: int, tile: tuple[int, int, int], stages: int) -> list[Kernel]:
    """A norm of 4096 rows of 4096, then a linear layer."""
    normed = by_rows(rmsnorm_of_row, "bf16", {"gain": "*bf16", "eps": "fp32"}, 2 * COLUMNS, warps, 4096)
    return [*normed, *matmul("bf16", "bf16", tile, 8, stages, turned=True)]


configurations(
    "matmul_f32", matmul_f32, tile=[(128, 128, 16), (128, 128, 32), (128, 256, 16), (64, 128, 32)], warps=[4, 8], stages=[3]
)
WORDS, WHOLE, BYTE_TILES = ([(128, 256, depth), (128, 128, depth)] for depth in (64, 32, 128))
PRODUCTS: Mapping[str, Any] = {
    "matmul_bf16": partial(matmul, "bf16", "bf16"),
    "matmul_8192": partial(matmul, "bf16", "bf16", shape=(1, 8192, 8192, 8192)),
    "matmul_f16": partial(matmul, "fp16", "fp16"),
    "matmul_batched": partial(matmul, "bf16", "bf16", shape=(32, 1024, 1024, 1024)),
    "matmul_at": partial(matmul, "bf16", "bf16", first=True),
    "matmul_bt": partial(matmul, "bf16", "bf16", turned=True),
}
for name, make in PRODUCTS.items():
    configurations(name, make, tile=WORDS, warps=[8], stages=[3])
configurations("matmul_tf32", partial(matmul, "fp32", "fp32", turned=True), tile=WHOLE, warps=[8], stages=[3])
configurations("matmul_odd", partial(matmul_of_any, (4097, 4095, 4099)), tile=WORDS, warps=[8], stages=[3])
configurations("matmul_f8", partial(matmul, "fp8e4nv", "bf16", turned=True), tile=BYTE_TILES, warps=[8], stages=[3])
configurations(
    "matmul_f8_parts", partial(matmul, "fp8e4nv", "bf16", turned=True, parts=128), tile=BYTE_TILES, warps=[4, 8], stages=[3]
)
configurations("matmul_i8", matmul_i8, tile=BYTE_TILES, warps=[8], stages=[3])
configurations("mlp", mlp, gated=[(128, 128, 64), (128, 64, 64)], tile=WORDS, stages=[3])
for wide, causal in product((64, 128), (False, True)):
    configurations(
        f"attention_{wide}{'_causal' * causal}",
        partial(attention, wide, causal),
        tile=[(128, 128), (128, 64), (64, 64)],
        warps=[4, 8],
        stages=[2],
    )
configurations("norm_product", norm_product, warps=[4], tile=WORDS, stages=[3, 4])
configurations("softmax", partial(by_rows, softmax_of_row, "fp32", {}, 0), warps=[4, 8, 16])
configurations(
    "layernorm",
    partial(by_rows, layernorm_of_row, "fp32", {"gain": "*fp32", "bias": "*fp32", "eps": "fp32"}, 8 * COLUMNS),
    warps=[4, 8, 16],
)
configurations(
    "rmsnorm", partial(by_rows, rmsnorm_of_row, "bf16", {"gain": "*bf16", "eps": "fp32"}, 2 * COLUMNS), warps=[4, 8, 16]
)
configurations("scan", partial(by_rows, scan_of_row, "fp32", {}, 0), warps=[4, 8, 16])
configurations("transpose", transpose, tile=[(64, 64), (128, 64), (32, 128)], warps=[4, 8])
configurations("permute5d", permute, warps=[4, 8])
configurations("sum", whole_sum, block=[4096, 8192], share=[1 << 16, 1 << 17], warps=[8])
configurations("bias_gelu", bias_gelu, block=[1024, 2048], warps=[4, 8])
configurations("conv3x3", conv, tile=[(128, 64), (64, 64)], warps=[4, 8], stages=[3])
configurations("gather", gather, warps=[4, 8])

if __name__ == "__main__":
    sys.exit(PEER.main())
