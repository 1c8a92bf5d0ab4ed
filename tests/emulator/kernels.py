"""Kernels as the CUDA printer writes them, with data and a result by NumPy; small integers, so results are exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from texpr.support.record import Record, field

HEAD = '#include "texpr_device.h"\nTX_SOURCE("planted.te")\n'


class Case(Record, dict=True):
    """A kernel's text, the launch, and what its last array argument must hold afterwards. `args` makes fresh arrays."""

    name: str
    text: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: Callable[[], list[Any]]
    expected: Callable[[list[Any]], np.ndarray]
    unwritten: tuple[str, ...] = field(default=("out",))

    @property
    def source(self) -> str:
        """The kernel with its export."""
        return f"{self.text}\nTX_EXPORT({self.name})\n"


def result(args: list[Any]) -> np.ndarray:
    """The array a case writes to: its last."""
    return [arg for arg in args if isinstance(arg, np.ndarray)][-1]


def floats(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(-8, 9, count).astype(np.float32)


SAXPY = Case(
    "saxpy_0",
    """
extern "C" __global__ void __launch_bounds__(64)
saxpy_0(float const a, TX_GLOBAL(float const) x, TX_GLOBAL(float const) y, int const n, TX_GLOBAL(float) out) {
    int const i = blockIdx.x * 64 + threadIdx.x;
    TX_AT(2)
    if (i < n) {
        TX_AT(3)
        out[i] = a * x[i] + y[i];
    }
}""",
    (4,),
    (64,),
    lambda: [3.0, floats(200), floats(200, 2), 200, np.zeros(200, np.float32)],
    lambda args: 3 * args[1] + args[2],
)

SUM = Case(
    "sum_0",
    """
extern "C" __global__ void __launch_bounds__(128)
sum_0(TX_GLOBAL(float const) x, int const n, TX_GLOBAL(float) out) {
    TX_SHARED(float, part, 4);
    int const t = threadIdx.x;
    float v = 0.0f;
    TX_AT(4)
    for (int i = t; i < n; i += 128) {
        v = v + x[i];
    }
    for (int step = 16; step > 0; step /= 2) {
        float const other = __shfl_xor_sync(0xffffffffu, v, step, 32);
        v = v + other;
    }
    if (t % 32 == 0) {
        TX_AT(5)
        part[t / 32] = v;
    }
    TX_AT(6)
    __syncthreads();
    if (t == 127) {
        TX_AT(7)
        out[0] = part[0] + part[1] + part[2] + part[3];
    }
}""",
    (1,),
    (128,),
    lambda: [floats(1000), 1000, np.zeros(1, np.float32)],
    lambda args: args[0].sum(keepdims=True),
)

TRANSPOSE = Case(
    "transpose_0",
    """
extern "C" __global__ void __launch_bounds__(256)
transpose_0(TX_GLOBAL(float const) x, int const rows, int const columns, TX_GLOBAL(float) out) {
    TX_SHARED(float, tile, 272);
    int const i = blockIdx.y * 16 + threadIdx.y;
    int const j = blockIdx.x * 16 + threadIdx.x;
    if (i < rows && j < columns) {
        TX_AT(3)
        tile[threadIdx.y * 17 + threadIdx.x] = x[i * columns + j];
    }
    TX_AT(4)
    __syncthreads();
    int const r = blockIdx.y * 16 + threadIdx.x;
    int const c = blockIdx.x * 16 + threadIdx.y;
    if (r < rows && c < columns) {
        TX_AT(5)
        out[c * rows + r] = tile[threadIdx.x * 17 + threadIdx.y];
    }
}""",
    (3, 2),
    (16, 16),
    lambda: [floats(30 * 41), 30, 41, np.zeros(30 * 41, np.float32)],
    lambda args: args[0].reshape(30, 41).T.ravel(),
)

HISTOGRAM = Case(
    "histogram_0",
    """
extern "C" __global__ void __launch_bounds__(64)
histogram_0(TX_GLOBAL(int const) bin, int const n, TX_GLOBAL(int) out) {
    TX_SHARED(int, count, 16);
    int const t = threadIdx.x;
    if (t < 16) {
        TX_AT(3)
        count[t] = 0;
    }
    TX_AT(4)
    __syncthreads();
    int const i = blockIdx.x * 64 + t;
    if (i < n) {
        TX_AT(5)
        atomicAdd(&count[bin[i]], 1);
    }
    TX_AT(6)
    __syncthreads();
    if (t < 16) {
        TX_AT(7)
        atomicAdd(&out[t], (int)count[t]);
    }
}""",
    (4,),
    (64,),
    lambda: [np.random.default_rng(3).integers(0, 16, 250).astype(np.int32), 250, np.zeros(16, np.int32)],
    lambda args: np.bincount(args[0], minlength=16),
    (),
)

# Each step, a thread reads its left neighbour's cell, then writes its own: the second barrier stands against the next step.
SHIFT = Case(
    "shift_0",
    """
extern "C" __global__ void __launch_bounds__(64)
shift_0(TX_GLOBAL(float const) x, int const steps, TX_GLOBAL(float) out) {
    TX_SHARED(float, cell, 64);
    int const t = threadIdx.x;
    TX_AT(3)
    cell[t] = x[t];
    TX_AT(4)
    __syncthreads();
    for (int s = 0; s < steps; ++s) {
        TX_AT(6)
        float const left = cell[(t + 63) % 64];
        TX_AT(7)
        __syncthreads();
        TX_AT(8)
        cell[t] = left;
        TX_AT(9)
        __syncthreads();
    }
    TX_AT(10)
    out[t] = cell[t];
}""",
    (1,),
    (64,),
    lambda: [floats(64), 5, np.zeros(64, np.float32)],
    lambda args: np.roll(args[0], 5),
)

# Chunks go through one buffer: written, read by the next thread, and, behind the loop's last barrier, written again.
STAGES = Case(
    "stages_0",
    """
extern "C" __global__ void __launch_bounds__(64)
stages_0(TX_GLOBAL(int const) x, int const chunks, TX_GLOBAL(int) out) {
    TX_SHARED(int, stage, 64);
    int const t = threadIdx.x;
    int sum = 0;
    for (int c = 0; c < chunks; ++c) {
        TX_AT(5)
        stage[t] = x[c * 64 + t];
        TX_AT(6)
        __syncthreads();
        TX_AT(7)
        sum = sum + stage[t == 0 ? 0 : t - 1];
        TX_AT(8)
        __syncthreads();
    }
    TX_AT(9)
    out[t] = sum;
}""",
    (1,),
    (64,),
    lambda: [np.arange(256, dtype=np.int32), 4, np.zeros(64, np.int32)],
    lambda args: args[0].reshape(4, 64).sum(0)[[0, *range(63)]],
)

WARP = Case(
    "warp_0",
    """
extern "C" __global__ void __launch_bounds__(64)
warp_0(TX_GLOBAL(int const) x, TX_GLOBAL(int) out) {
    TX_SHARED(int, slot, 64);
    int const t = threadIdx.x;
    int const base = t / 8 * 8;
    TX_AT(4)
    slot[t] = x[t];
    TX_AT(5)
    __syncwarp(tx_group(8));
    TX_AT(6)
    out[t] = slot[t == base ? base : t - 1];
}""",
    (1,),
    (64,),
    lambda: [np.arange(64, dtype=np.int32), np.zeros(64, np.int32)],
    lambda args: np.array([max(t - 1, t // 8 * 8) for t in range(64)]),
)

# Warps 0 and 1 meet at barrier 1, warps 2 and 3 at barrier 2.
NAMED = Case(
    "named_0",
    """
extern "C" __global__ void __launch_bounds__(128)
named_0(TX_GLOBAL(int const) x, TX_GLOBAL(int) out) {
    TX_SHARED(int, slot, 128);
    int const t = threadIdx.x;
    int const half = t / 64;
    TX_AT(4)
    slot[t] = x[t];
    TX_AT(5)
    tx_bar_sync(1 + half, 64);
    TX_AT(6)
    out[t] = slot[half * 64 + (t % 64 == 0 ? 0 : t % 64 - 1)];
}""",
    (1,),
    (128,),
    lambda: [np.arange(128, dtype=np.int32), np.zeros(128, np.int32)],
    lambda args: np.array([max(t - 1, t // 64 * 64) for t in range(128)]),
)

CLUSTER = Case(
    "cluster_0",
    """
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(32)
cluster_0(TX_GLOBAL(int const) x, TX_GLOBAL(int) out) {
    TX_SHARED(int, mine, 32);
    int const t = threadIdx.x;
    unsigned const rank = tx_cluster_rank();
    TX_AT(4)
    mine[t] = x[blockIdx.x * 32 + t];
    TX_AT(5)
    tx_cluster_sync();
    TX_AT(6)
    out[blockIdx.x * 32 + t] = tx_cluster_shared(mine, rank ^ 1u)[t];
    TX_AT(7)
    tx_cluster_sync();
}""",
    (6,),
    (32,),
    lambda: [np.arange(192, dtype=np.int32), np.zeros(192, np.int32)],
    lambda args: args[0].reshape(3, 2, 32)[:, ::-1].ravel(),
)

# Every element holds its block's number, which a block could be tempted to count from the one before.
RANK = Case(
    "rank_0",
    """
extern "C" __global__ void __launch_bounds__(64)
rank_0(TX_GLOBAL(int const) x, TX_GLOBAL(int) out) {
    int const i = blockIdx.x * 64 + threadIdx.x;
    TX_AT(3)
    out[i] = x[i];
}""",
    (5,),
    (64,),
    lambda: [np.arange(320, dtype=np.int32) // 64, np.zeros(320, np.int32)],
    lambda args: args[0],
    (),
)

CASES = (SAXPY, RANK, SUM, TRANSPOSE, HISTOGRAM, SHIFT, STAGES, WARP, NAMED, CLUSTER)
