"""Problems in Triton, as its tutorials and libraries write such kernels: tiles brought by descriptors, rows in registers.

All sizes are constants of the kernel, as they are of ours; addresses are multiples of 16 bytes, which Triton finds out at a
launch.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import triton
import triton.language as tl
from offer import Kernel, Made, Peer, tiles, up
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGET = GPUTarget("cuda", 90, 32)
PEER = Peer("triton", triton.__version__)
BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8e4nv": 1, "i8": 1, "i32": 4}
CUBE = 4096
ROWS, COLUMNS = 8192, 4096


def compiled(fn: Any, arguments: Mapping[str, str], constants: Mapping[str, Any], **options: Any) -> Any:
    """A kernel for the target: types of `arguments` by name, constants by name, what else Triton is told."""
    kinds = {name: "constexpr" if name in constants else arguments[name] for name in fn.arg_names}
    aligned = {(at,): [["tt.divisibility", 16]] for at, name in enumerate(fn.arg_names) if kinds[name].startswith("*")}
    source = ASTSource(fn, kinds, dict(constants), aligned)
    return triton.compile(source, target=TARGET, options={"enable_fp_fusion": True, **options})


def kernel(made: Any, grid: Sequence[int], l2: float, dram: float, values: Sequence[int | None] = ()) -> Kernel:
    """A launch of what `compiled` gave."""
    x, y, z = (*grid, 1, 1)[:3]
    said = made.metadata
    return Kernel(made.asm["cubin"], said.name, (x, y, z), 32 * said.num_warps, values, l2, dram, said.shared)


def descriptor(dtype: str, block: Sequence[int]) -> str:
    """The type of a descriptor of tiles."""
    return f"tensordesc<{dtype}[{', '.join(map(str, block))}]>"


def described(shape: Sequence[int]) -> tuple[int | None, ...]:
    """The arguments that a descriptor becomes: itself, extents, strides."""
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return (None, *shape, *strides)


def configurations(problem: str, make: Any, **choices: Sequence[Any]) -> None:
    """All combinations of choices are configurations of a problem, by a name that tells them."""
    found: dict[str, Made] = {}
    for values in product(*choices.values()):
        chosen = dict(zip(choices, values, strict=True))
        found[" ".join(f"{key}={value}" for key, value in chosen.items())] = partial(make, **chosen)
    PEER.problems[problem] = {**PEER.problems.get(problem, {}), **found}


@triton.jit
def place_of_tile(M: tl.constexpr, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """The first row and column of a program's tile: eight tiles that are neighbours share columns."""
    at = tl.program_id(0)
    group: tl.constexpr = 8
    many: tl.constexpr = group * (N // BN)
    return (at // many * group + at % group) * BM, at % many // group * BN


@triton.jit
def product_of_tiles(
    a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    TURNED: tl.constexpr, SPECIAL: tl.constexpr,
):  # fmt: skip
    """C = A · B, or A · Bᵀ, by descriptors."""
    rows, columns = place_of_tile(M, N, BM, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=SPECIAL):
        right = b.load([columns, k]).T if TURNED else b.load([k, columns])
        total = tl.dot(a.load([rows, k]), right, total, input_precision="ieee")
    c.store([rows, columns], total.to(c.dtype))


def matmul(
    dtype: str, out: str, turned: bool, tile: tuple[int, int, int], warps: int, stages: int, roles: bool = False
) -> list[Kernel]:
    """4096³ by descriptors. `roles`: warps of their own bring tiles."""
    rows, columns, depth = tile
    of_b = (columns, depth) if turned else (depth, columns)
    made = compiled(
        product_of_tiles,
        {"a": descriptor(dtype, (rows, depth)), "b": descriptor(dtype, of_b), "c": descriptor(out, (rows, columns))},
        {
            "M": CUBE, "N": CUBE, "K": CUBE, "BM": rows, "BN": columns, "BK": depth, "TURNED": turned, "SPECIAL": roles,
        },
        num_warps=warps,
        num_stages=stages,
    )  # fmt: skip
    size, wide = BYTES[dtype], BYTES[out]
    l2 = tiles(CUBE, CUBE, CUBE, (rows, columns), size, wide)
    grid = up(CUBE, rows) * up(CUBE, columns)
    return [kernel(made, [grid], l2, CUBE * CUBE * (2 * size + wide), 3 * described((CUBE, CUBE)))]


@triton.jit
def product_by_addresses(
    a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """C = A · B of f32 by copies that the program's threads make, with sums of f32."""
    row, column = place_of_tile(M, N, BM, BN)
    rows, columns, depth = row + tl.arange(0, BM), column + tl.arange(0, BN), tl.arange(0, BK)
    at_a = a + rows[:, None] * K + depth[None, :]
    at_b = b + depth[:, None] * N + columns[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(at_a), tl.load(at_b), total, input_precision="ieee")
        at_a += BK
        at_b += BK * N
    tl.store(c + rows[:, None] * N + columns[None, :], total)


def matmul_f32(tile: tuple[int, int, int], warps: int, stages: int) -> list[Kernel]:
    """4096³ in f32."""
    rows, columns, depth = tile
    sizes = {"M": CUBE, "N": CUBE, "K": CUBE, "BM": rows, "BN": columns, "BK": depth}
    made = compiled(product_by_addresses, dict.fromkeys("abc", "*fp32"), sizes, num_warps=warps, num_stages=stages)
    l2 = tiles(CUBE, CUBE, CUBE, (rows, columns), 4, 4)
    return [kernel(made, [up(CUBE, rows) * up(CUBE, columns)], l2, 3 * 4 * CUBE * CUBE)]


@triton.jit
def scaled_product(
    a, b, c, of_rows, of_columns, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    BK: tl.constexpr,
):  # fmt: skip
    """A · Bᵀ of bytes, each row and each column with its scale."""
    rows, columns = place_of_tile(M, N, BM, BN)
    total = tl.zeros((BM, BN), dtype=tl.int32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([rows, k]), b.load([columns, k]).T, total)
    one = tl.load(of_rows + rows + tl.arange(0, BM))
    other = tl.load(of_columns + columns + tl.arange(0, BN))
    c.store([rows, columns], (total.to(tl.float32) * one[:, None] * other[None, :]).to(c.dtype))


def matmul_i8(tile: tuple[int, int, int], warps: int, stages: int) -> list[Kernel]:
    """4096³ of int8."""
    rows, columns, depth = tile
    kinds = {"a": descriptor("i8", (rows, depth)), "b": descriptor("i8", (columns, depth))}
    kinds |= {"c": descriptor("bf16", (rows, columns)), "of_rows": "*fp32", "of_columns": "*fp32"}
    sizes = {"M": CUBE, "N": CUBE, "K": CUBE, "BM": rows, "BN": columns, "BK": depth}
    made = compiled(scaled_product, kinds, sizes, num_warps=warps, num_stages=stages)
    l2 = tiles(CUBE, CUBE, CUBE, (rows, columns), 1, 2)
    return [kernel(made, [up(CUBE, rows) * up(CUBE, columns)], l2, 4 * CUBE * CUBE, 3 * described((CUBE, CUBE)))]


@triton.jit
def attention_forward(
    q, k, v, o, scale, L: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, SPECIAL: tl.constexpr
):
    """softmax(Q Kᵀ · scale) V of one head in one sweep over its keys; exponentials to the base 2."""
    head = tl.program_id(1) * L
    first = head + tl.program_id(0) * BM
    query = q.load([first, 0])
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    for key in tl.range(0, L, BN, warp_specialize=SPECIAL):
        scores = tl.dot(query, k.load([head + key, 0]).T)
        higher = tl.maximum(top, tl.max(scores, 1) * scale)
        weights = tl.math.exp2(scores * scale - higher[:, None])
        keep = tl.math.exp2(top - higher)
        total = total * keep + tl.sum(weights, 1)
        result = tl.dot(weights.to(v.dtype), v.load([head + key, 0]), result * keep[:, None])
        top = higher
    o.store([first, 0], (result / total[:, None]).to(o.dtype))


HEADS, LENGTH, WIDE = 64, 4096, 128


def attention(tile: tuple[int, int], warps: int, stages: int, roles: bool = False) -> list[Kernel]:
    """64 heads of 4096 queries and keys of 128 elements."""
    queries, keys = tile
    kinds = {name: descriptor("bf16", (queries if name in "qo" else keys, WIDE)) for name in "qkvo"}
    sizes = {"L": LENGTH, "D": WIDE, "BM": queries, "BN": keys, "SPECIAL": roles}
    made = compiled(attention_forward, {**kinds, "scale": "fp32"}, sizes, num_warps=warps, num_stages=stages)
    blocks = LENGTH // queries
    l2 = HEADS * blocks * (2 * queries + 2 * LENGTH) * WIDE * 2
    return [kernel(made, [blocks, HEADS], l2, 4 * HEADS * LENGTH * WIDE * 2, 4 * described((HEADS * LENGTH, WIDE)))]


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


def by_rows(fn: Any, dtype: str, more: Mapping[str, str], extra: float, warps: int) -> list[Kernel]:
    """A program for each of 8192 rows of 4096. `extra`: bytes of what all rows share."""
    made = compiled(fn, {"x": f"*{dtype}", "y": f"*{dtype}", **more}, {"N": COLUMNS}, num_warps=warps)
    moved = 2 * ROWS * COLUMNS * BYTES[dtype]
    return [kernel(made, [ROWS], moved + ROWS * extra, moved + extra)]


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


configurations(
    "matmul_f32", matmul_f32, tile=[(128, 128, 16), (128, 128, 32), (128, 256, 16), (64, 128, 32)], warps=[4, 8], stages=[3]
)
configurations(
    "matmul_bf16", partial(matmul, "bf16", "bf16", False), tile=[(128, 256, 64), (128, 128, 64)], warps=[8], stages=[3, 4]
)
configurations(
    "matmul_f8", partial(matmul, "fp8e4nv", "bf16", True), tile=[(128, 256, 128), (128, 128, 128)], warps=[8], stages=[3]
)
configurations("matmul_i8", matmul_i8, tile=[(128, 256, 128), (128, 128, 128)], warps=[8], stages=[3])
configurations("attention", attention, tile=[(128, 128), (128, 64)], warps=[8], stages=[2, 3])
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
