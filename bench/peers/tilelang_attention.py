"""Attention in TileLang, as its examples write it."""

# The language reads annotations, which must not be text here: no `from __future__ import annotations`.

import tilelang.language as T
from offer import Kernel
from tilelang_kernels import compiled

HEADS, LENGTH = 64, 4096


def attention(wide: int, causal: bool, tile: tuple[int, int], threads: int, stages: int) -> list[Kernel]:
    """64 heads of 4096 queries and keys, in one sweep over the keys; if `causal` up to those of the tile's own rows."""
    queries, keys = tile
    shape = (HEADS, LENGTH, wide)

    @T.prim_func
    def forward(
        Q: T.Tensor(shape, "bfloat16"),
        K: T.Tensor(shape, "bfloat16"),
        V: T.Tensor(shape, "bfloat16"),
        scale: T.float32,
        Out: T.Tensor(shape, "bfloat16"),
    ):
        with T.Kernel(LENGTH // queries, HEADS, threads=threads) as (x, head):
            q = T.alloc_shared((queries, wide), "bfloat16")
            k = T.alloc_shared((keys, wide), "bfloat16")
            v = T.alloc_shared((keys, wide), "bfloat16")
            done = T.alloc_shared((queries, wide), "bfloat16")
            scores = T.alloc_fragment((queries, keys), "float32")
            weights = T.alloc_fragment((queries, keys), "bfloat16")
            result = T.alloc_fragment((queries, wide), "float32")
            top = T.alloc_fragment((queries,), "float32")
            before = T.alloc_fragment((queries,), "float32")
            keep = T.alloc_fragment((queries,), "float32")
            found = T.alloc_fragment((queries,), "float32")
            total = T.alloc_fragment((queries,), "float32")
            T.copy(Q[head, x * queries : (x + 1) * queries, :], q)
            T.fill(result, 0)
            T.fill(total, 0)
            T.fill(top, -T.infinity("float32"))
            turns = T.ceildiv((x + 1) * queries, keys) if causal else LENGTH // keys
            for step in T.Pipelined(turns, num_stages=stages):
                T.copy(K[head, step * keys : (step + 1) * keys, :], k)
                if causal:
                    for i, j in T.Parallel(queries, keys):
                        behind = step * keys + j > x * queries + i
                        scores[i, j] = T.if_then_else(behind, -T.infinity("float32"), 0.0)
                else:
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
                for i, j in T.Parallel(queries, wide):
                    result[i, j] *= keep[i]
                T.copy(V[head, step * keys : (step + 1) * keys, :], v)
                T.gemm(weights, v, result, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(queries, wide):
                result[i, j] /= total[i]
            T.copy(result, done)
            T.copy(done, Out[head, x * queries : (x + 1) * queries, :])

    blocks = LENGTH // queries
    brought = sum(at + 1 for at in range(blocks)) * queries if causal else blocks * LENGTH
    l2 = HEADS * (2 * LENGTH + 2 * brought) * wide * 2
    return [compiled(forward, l2, 4 * HEADS * LENGTH * wide * 2)]
