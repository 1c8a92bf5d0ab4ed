"""Attention in Triton, as its tutorial writes it: one sweep over the keys, exponentials to the base 2."""

from __future__ import annotations

import triton
import triton.language as tl
from offer import Kernel
from triton_kernels import compiled, described, descriptor, kernel

HEADS, LENGTH = 64, 4096


@triton.jit
def sweep(
    query, k, v, scale, head, row, first, last, result, total, top, BM: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr,
    SPECIAL: tl.constexpr,
):  # fmt: skip
    """Keys from the first to the last; where MASKED those behind a query are left out."""
    rows, columns = row + tl.arange(0, BM), tl.arange(0, BN)
    for key in tl.range(first, last, BN, warp_specialize=SPECIAL):
        scores = tl.dot(query, k.load([head + key, 0]).T)
        if MASKED:
            scores = tl.where(rows[:, None] >= key + columns[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1) * scale)
        weights = tl.math.exp2(scores * scale - higher[:, None])
        keep = tl.math.exp2(top - higher)
        total = total * keep + tl.sum(weights, 1)
        result = tl.dot(weights.to(v.dtype), v.load([head + key, 0]), result * keep[:, None])
        top = higher
    return result, total, top


@triton.jit
def attention_forward(
    q, k, v, o, scale, L: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr,
    SPECIAL: tl.constexpr,
):  # fmt: skip
    """softmax(Q Kᵀ · scale) V of one head. Where CAUSAL, keys before those of the tile's own rows need no mask."""
    head = tl.program_id(1) * L
    row = tl.program_id(0) * BM
    query = q.load([head + row, 0])
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    whole = row if CAUSAL else L
    result, total, top = sweep(query, k, v, scale, head, row, 0, whole, result, total, top, BM, BN, False, SPECIAL)
    if CAUSAL:
        result, total, top = sweep(query, k, v, scale, head, row, row, row + BM, result, total, top, BM, BN, True, False)
    o.store([head + row, 0], (result / total[:, None]).to(o.dtype))


def attention(wide: int, causal: bool, tile: tuple[int, int], warps: int, stages: int, roles: bool = False) -> list[Kernel]:
    """64 heads of 4096 queries and keys."""
    queries, keys = tile
    kinds = {name: descriptor("bf16", (queries if name in "qo" else keys, wide)) for name in "qkvo"}
    sizes = {"L": LENGTH, "D": wide, "BM": queries, "BN": keys, "CAUSAL": causal, "SPECIAL": roles}
    made = compiled(attention_forward, {**kinds, "scale": "fp32"}, sizes, num_warps=warps, num_stages=stages)
    blocks = LENGTH // queries
    brought = sum(at + 1 for at in range(blocks)) * queries if causal else blocks * LENGTH
    l2 = HEADS * (2 * LENGTH + 2 * brought) * wide * 2
    values = 4 * described((HEADS * LENGTH, wide))
    return [kernel(made, [blocks, HEADS], l2, 4 * HEADS * LENGTH * wide * 2, values)]
