"""Products in Triton: tiles by descriptors, which an engine copies; by addresses where rows begin anywhere, or lanes sum up."""

from __future__ import annotations

import triton
import triton.language as tl
from offer import Kernel, tiles, up
from triton_kernels import BYTES, CUBE, compiled, described, descriptor, kernel, place_of_tile


@triton.jit
def product_of_tiles(
    a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    FIRST: tl.constexpr, TURNED: tl.constexpr, PRECISION: tl.constexpr, MOST: tl.constexpr, SPECIAL: tl.constexpr,
):  # fmt: skip
    """C = A · B by descriptors; A is given by columns where FIRST, B where TURNED. Of a batch arrays lie behind each other. Of
    more than MOST terms of 8 bits the tensor core keeps no sum."""
    row, column = place_of_tile(M, N, BM, BN)
    batch = tl.program_id(1)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=SPECIAL):
        left = a.load([batch * K + k, row]).T if FIRST else a.load([batch * M + row, k])
        right = b.load([batch * N + column, k]).T if TURNED else b.load([batch * K + k, column])
        total = tl.dot(left, right, total, input_precision=PRECISION, max_num_imprecise_acc=MOST)
    c.store([batch * M + row, column], total.to(c.dtype))


def matmul(
    dtype: str,
    out: str,
    tile: tuple[int, int, int],
    warps: int,
    stages: int,
    roles: bool = False,
    *,
    first: bool = False,
    turned: bool = False,
    parts: int | None = None,
    shape: tuple[int, int, int, int] = (1, CUBE, CUBE, CUBE),
) -> list[Kernel]:
    """A batch of products by descriptors: how many, rows, columns, depth. `roles`: warps of their own bring tiles. `parts`:
    terms that are summed up in the tensor core; all of them, unless that is said."""
    rows, columns, depth = tile
    batch, m, n, k = shape
    kinds = {
        "a": descriptor(dtype, (depth, rows) if first else (rows, depth)),
        "b": descriptor(dtype, (columns, depth) if turned else (depth, columns)),
        "c": descriptor(out, (rows, columns)),
    }
    sizes = {"M": m, "N": n, "K": k, "BM": rows, "BN": columns, "BK": depth, "FIRST": first, "TURNED": turned}
    sizes |= {"PRECISION": "tf32" if dtype == "fp32" else "ieee", "MOST": parts, "SPECIAL": roles}
    made = compiled(product_of_tiles, kinds, sizes, num_warps=warps, num_stages=stages)
    size, wide = BYTES[dtype], BYTES[out]
    l2 = batch * tiles(m, n, k, (rows, columns), size, wide)
    moved = batch * ((m * k + k * n) * size + m * n * wide)
    given = [(batch * k, m) if first else (batch * m, k), (batch * n, k) if turned else (batch * k, n), (batch * m, n)]
    values = sum((described(each) for each in given), ())
    return [kernel(made, [up(m, rows) * up(n, columns), batch], l2, moved, values)]


@triton.jit
def product_of_any(
    a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """C = A · B of any size, whose rows begin anywhere: no engine copies them. Rows beyond the last are read again from the
    first on, depth is masked."""
    at, high = tl.program_id(0), tl.cdiv(M, BM)
    many: tl.constexpr = 8 * tl.cdiv(N, BN)
    first = at // many * 8
    group = tl.minimum(high - first, 8)
    row, column = (first + at % many % group) * BM, at % many // group * BN
    rows, columns, depth = (row + tl.arange(0, BM)) % M, (column + tl.arange(0, BN)) % N, tl.arange(0, BK)
    at_a = a + rows[:, None] * K + depth[None, :]
    at_b = b + depth[:, None] * N + columns[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(at_a, mask=depth[None, :] < K - k, other=0.0)
        right = tl.load(at_b, mask=depth[:, None] < K - k, other=0.0)
        total = tl.dot(left, right, total)
        at_a += BK
        at_b += BK * N
    rows, columns = row + tl.arange(0, BM), column + tl.arange(0, BN)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), mask=inside)


def matmul_of_any(shape: tuple[int, int, int], tile: tuple[int, int, int], warps: int, stages: int) -> list[Kernel]:
    """Of bf16."""
    m, n, k = shape
    rows, columns, depth = tile
    sizes = {"M": m, "N": n, "K": k, "BM": rows, "BN": columns, "BK": depth}
    made = compiled(product_of_any, dict.fromkeys("abc", "*bf16"), sizes, num_warps=warps, num_stages=stages)
    l2 = tiles(m, n, k, (rows, columns), 2, 2)
    return [kernel(made, [up(m, rows) * up(n, columns)], l2, 2 * (m * k + k * n + m * n))]


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
def gated_product(
    x, gate, up_, h, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """H = silu(X · Gᵀ) · (X · Uᵀ): two products that share their rows."""
    row, column = place_of_tile(M, N, BM, BN)
    one = tl.zeros((BM, BN), dtype=tl.float32)
    other = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = x.load([row, k])
        one = tl.dot(left, gate.load([column, k]).T, one)
        other = tl.dot(left, up_.load([column, k]).T, other)
    h.store([row, column], (one * tl.sigmoid(one) * other).to(h.dtype))


def mlp(
    gated: tuple[int, int, int], tile: tuple[int, int, int], stages: int, shape: tuple[int, int, int] = (CUBE, CUBE, 11008)
) -> list[Kernel]:
    """A gated layer of bf16 in two launches. `shape`: rows, width, width within."""
    m, d, f = shape
    rows, columns, depth = gated
    kinds = {"x": descriptor("bf16", (rows, depth)), "h": descriptor("bf16", (rows, columns))}
    kinds |= dict.fromkeys(("gate", "up_"), descriptor("bf16", (columns, depth)))
    sizes = {"M": m, "N": f, "K": d, "BM": rows, "BN": columns, "BK": depth}
    made = compiled(gated_product, kinds, sizes, num_warps=8, num_stages=stages)
    l2 = up(m, rows) * up(f, columns) * (rows + 2 * columns) * d * 2 + 2 * m * f
    values = described((m, d)) + 2 * described((f, d)) + described((m, f))
    first = kernel(made, [up(m, rows) * up(f, columns)], l2, 2 * (m * d + 2 * f * d + m * f), values)
    return [first, *matmul("bf16", "bf16", tile, 8, stages, turned=True, shape=(1, m, d, f))]
