"""Counters, on kernels whose requests can be counted by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from texpr.emulator import LOCKSTEP, Counts, Emulated
from texpr.emulator.harness import Argument

from .kernels import HEAD, SUM, TRANSPOSE

COPY = (
    HEAD
    + """
extern "C" __global__ void copy_0(TX_GLOBAL(float const) x, int const step, TX_GLOBAL(float) out) {
    TX_AT(2)
    out[threadIdx.x] = x[threadIdx.x * step];
}
TX_EXPORT(copy_0)
extern "C" __global__ void bank_0(int const step, TX_GLOBAL(float) out) {
    TX_SHARED(float, s, 1024);
    TX_AT(2)
    s[threadIdx.x * step] = 1.0f;
    out[threadIdx.x] = s[threadIdx.x * step];
}
TX_EXPORT(bank_0)
extern "C" __global__ void wide_0(TX_GLOBAL(double) out) {
    TX_SHARED(double, s, 32);
    TX_AT(2)
    s[threadIdx.x] = 1.0;
    out[threadIdx.x] = s[threadIdx.x];
}
TX_EXPORT(wide_0)
"""
)


def counted(emulated: Emulated, kernel: str, block: int, *args: Argument, seed: int | None = None) -> Counts:
    emulated.clear_counts()
    assert emulated.launch(kernel, 1, block, list(args), count=True, seed=seed) == []
    return emulated.counts()[kernel]


def test_sectors_and_lines(emulate: Callable[..., Emulated]) -> None:
    emulated = emulate(COPY)
    x, out = np.zeros(2048, np.float32), np.zeros(64, np.float32)
    for seed in (None, LOCKSTEP, 0, 1):
        near = counted(emulated, "copy_0", 64, x, 1, out, seed=seed)
        assert (near.global_loads, near.global_load_requests, near.global_load_sectors, near.global_load_lines) == (64, 2, 8, 2)
        assert (near.global_stores, near.global_store_requests, near.global_store_sectors) == (64, 2, 8)
        assert (near.launches, near.blocks, near.threads) == (1, 1, 64)
        far = counted(emulated, "copy_0", 64, x, 32, out, seed=seed)
        assert (far.global_load_requests, far.global_load_sectors, far.global_load_lines) == (2, 64, 64)
        two = counted(emulated, "copy_0", 64, x, 2, out, seed=seed)
        assert (two.global_load_sectors, two.global_load_lines) == (16, 4)


TURNS = (
    HEAD
    + """
extern "C" __global__ void turns_0(TX_GLOBAL(float const) x, TX_GLOBAL(float) out) {
    float sum = 0.0f;
    int const lane = (int)threadIdx.x;
    for (int row = 0; row < 2; ++row) {
        for (int turn = 0; turn < ((lane + row) % 2 == 0 ? 3 : 1); ++turn) {
            TX_AT(2)
            sum += x[(4 * row + turn) * 32 + lane];
        }
        out[row * 32 + lane] = sum;
    }
}
TX_EXPORT(turns_0)

extern "C" __global__ void others_0(TX_GLOBAL(float const) x, TX_GLOBAL(float) out) {
    float sum = 0.0f;
    int const lane = (int)threadIdx.x;
    for (int turn = 0; turn < 4; ++turn) {
        if ((lane + turn) % 2 == 0) {
            TX_AT(2)
            sum += x[turn * 32 + lane];
        }
    }
    out[lane] = sum;
}
TX_EXPORT(others_0)
"""
)


def test_each_turn_is_a_request_of_the_lanes_that_take_it(emulate: Callable[..., Emulated]) -> None:
    """Half of the lanes take three turns where the others take one, and then the other half does: they meet at the store."""
    emulated = emulate(TURNS)
    x, out = np.zeros(256, np.float32), np.zeros(64, np.float32)
    for seed in (None, LOCKSTEP, 0, 1, 2):
        found = counted(emulated, "turns_0", 32, x, out, seed=seed)
        assert (found.global_loads, found.global_load_requests, found.global_load_sectors) == (128, 6, 24)
        assert (found.global_stores, found.global_store_requests, found.global_store_sectors) == (64, 2, 8)


def test_lanes_that_leave_a_turn_out_wait_at_its_end(emulate: Callable[..., Emulated]) -> None:
    """Else what half of the lanes do in one turn is a request with what the others do in the next one."""
    emulated = emulate(TURNS)
    x, out = np.zeros(128, np.float32), np.zeros(32, np.float32)
    for seed in (None, LOCKSTEP, 0, 1, 2):
        found = counted(emulated, "others_0", 32, x, out, seed=seed)
        assert (found.global_loads, found.global_load_requests, found.global_load_sectors) == (64, 4, 16)


def test_bank_conflicts(emulate: Callable[..., Emulated]) -> None:
    emulated = emulate(COPY)
    out = np.zeros(32, np.float32)
    conflicts = {step: counted(emulated, "bank_0", 32, step, out).bank_conflicts for step in (1, 2, 4, 31, 32, 33)}
    assert conflicts == {1: 0, 2: 2, 4: 6, 31: 0, 32: 62, 33: 0}
    wide = counted(emulated, "wide_0", 32, np.zeros(32))
    assert (wide.shared_requests, wide.shared_wavefronts, wide.bank_conflicts) == (2, 4, 0)


def test_padding_of_a_tile_avoids_conflicts(emulate: Callable[..., Emulated]) -> None:
    text = HEAD + TRANSPOSE.source + TRANSPOSE.source.replace("* 17", "* 16").replace("transpose_0", "plain_0")
    emulated = emulate(text)
    args = TRANSPOSE.args()
    emulated.clear_counts()
    for kernel in ("transpose_0", "plain_0"):
        assert emulated.launch(kernel, TRANSPOSE.grid, TRANSPOSE.block, args, count=True) == []
    counts = emulated.counts()
    assert counts["plain_0"].bank_conflicts > 4 * counts["transpose_0"].bank_conflicts


def test_barriers_and_lanes(emulate: Callable[..., Emulated]) -> None:
    args = SUM.args()
    counts = counted(emulate(HEAD + SUM.source), "sum_0", 128, *args)
    assert (counts.block_barriers, counts.barrier_arrivals, counts.shuffles) == (1, 128, 20)
    assert (counts.warp_barriers, counts.votes, counts.global_atomics, counts.shared_stores) == (0, 0, 0, 4)


def test_nothing_is_counted_unless_asked(emulate: Callable[..., Emulated]) -> None:
    emulated = emulate(HEAD + SUM.source)
    emulated.clear_counts()
    emulated.launch("sum_0", 1, 128, SUM.args())
    assert emulated.counts() == {}
