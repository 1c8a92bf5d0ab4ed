"""Threads that do not meet: divergent barriers, deadlock, masks, lanes that take no part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from texpr.emulator import LOCKSTEP, Emulated, Fault

from .kernels import HEAD

SCHEDULES = (None, LOCKSTEP, *range(8))

BODIES = {
    "ended": ("TX_AT(2) if (t >= 40) return; TX_AT(3) __syncthreads();", Fault.DIVERGENT_BARRIER, {2, 3}),
    "elsewhere": (
        "TX_AT(2)\nif (t < 32) { TX_AT(3)\n__syncthreads(); }\nelse { TX_AT(4)\n__syncthreads(); }",
        Fault.DIVERGENT_BARRIER,
        {3, 4},
    ),
    "other": ("if (t < 32) { TX_AT(3) __syncthreads(); } else { TX_AT(4) tx_bar_sync(1, 64); }", Fault.DEADLOCK, {3, 4}),
    "too_few": ("TX_AT(2) if (t < 32) { TX_AT(3) tx_bar_sync(1, 64); }", Fault.DEADLOCK, {3, 9}),
    "lanes_apart": ("if (t % 2 == 0) { TX_AT(3) __syncthreads(); } else { TX_AT(4) __syncwarp(); }", Fault.DEADLOCK, {3, 4}),
    "part_of_a_warp": (
        "TX_AT(2) if (t < 16 || t >= 48) { TX_AT(3) tx_bar_sync(1, 32); } else { TX_AT(4) tx_bar_sync(2, 32); }",
        Fault.DIVERGENT_BARRIER,
        set(),
    ),
    "masks": (
        "if (t % 32 < 16) { TX_AT(3) __syncwarp(0xffffffffu); } else { TX_AT(4) __syncwarp(0xffff0001u); }",
        Fault.WRONG_MASK,
        {3, 4},
    ),
    "not_mine": ("TX_AT(3) __syncwarp(0xfffffffeu);", Fault.WRONG_MASK, {3}),
    "differ": ("if (t % 32 < 16) { TX_AT(3) __syncwarp(); } else { TX_AT(4) __any_sync(~0u, 1); }", Fault.WRONG_MASK, {3, 4}),
    "gone": (
        "TX_AT(2) if (t % 32 == 5) return; TX_AT(3) kept = __shfl_xor_sync(0xffffffffu, t, 1, 32);",
        Fault.INACTIVE_LANE,
        {2, 3},
    ),
    "outside_mask": (
        "TX_AT(2) if (t % 32 < 16) { TX_AT(3) kept = __shfl_down_sync(0x0000ffffu, t, 4); }",
        Fault.INACTIVE_LANE,
        {3},
    ),
    "one_waits": ("if (t == 7) { TX_AT(3) tx_cluster_sync(); } else { TX_AT(4) __syncthreads(); }", Fault.DEADLOCK, {3, 4}),
}  # fmt: skip


def kernel(name: str, body: str) -> str:
    return f"""
extern "C" __global__ void {name}_0(TX_GLOBAL(int) out) {{
    int const t = threadIdx.x;
    int kept = t;
    {body}
    TX_AT(9)
    out[blockIdx.x * blockDim.x + t] = kept;
}}
TX_EXPORT({name}_0)
"""


TEXT = HEAD + "".join(kernel(name, body) for name, (body, _, _) in BODIES.items())


@pytest.mark.parametrize("name", BODIES)
def test_found_under_every_schedule(emulate: Callable[..., Emulated], name: str) -> None:
    _, fault, lines = BODIES[name]
    """`lines`: those that are the same under every schedule; where the other thread is may differ."""
    for seed in SCHEDULES:
        found = emulate(TEXT).launch(f"{name}_0", 2, 64, [np.zeros(128, np.int32)], seed=seed)
        assert any(report.fault is fault and lines <= set(report.lines) for report in found), list(map(str, found))


def test_deadlock_is_told_even_with_detectors_off(emulate: Callable[..., Emulated]) -> None:
    found = emulate(TEXT).launch("too_few_0", 1, 64, [np.zeros(64, np.int32)], detect=False)
    assert [report.fault for report in found] == [Fault.DEADLOCK]


def test_a_launch_after_a_deadlock_is_clean(emulate: Callable[..., Emulated]) -> None:
    text = HEAD + kernel("stuck", "if (t < 8) tx_bar_sync(1, 64);") + kernel("fine", "__syncthreads();")
    emulated = emulate(text)
    for seed in SCHEDULES:
        assert emulated.launch("stuck_0", 3, 64, [np.zeros(192, np.int32)], seed=seed)
        out = np.zeros(192, np.int32)
        assert emulated.launch("fine_0", 3, 64, [out], seed=seed) == []
        np.testing.assert_array_equal(out, np.tile(np.arange(64), 3))


RIGHT = {
    "two_places": ("if (t < 32) { tx_bar_sync(1, 64); } else { tx_bar_sync(1, 64); }", lambda t: t),
    "early_end": ("if (t >= 40) return;", lambda t: np.where(t < 40, t, 0)),
    "rest_of_warp": ("if (t % 32 >= 20) return; __syncwarp();", lambda t: np.where(t % 32 < 20, t, 0)),
    "down": ("kept = __shfl_down_sync(~0u, t, 3);", lambda t: np.where(t % 32 < 29, t + 3, t)),
    "up": ("kept = __shfl_up_sync(~0u, t, 5, 16);", lambda t: np.where(t % 16 >= 5, t - 5, t)),
    "down_narrow": ("kept = __shfl_down_sync(~0u, t, 3, 8);", lambda t: np.where(t % 8 < 5, t + 3, t)),
    "index": ("kept = __shfl_sync(~0u, t, 11, 8);", lambda t: t // 8 * 8 + 3),
    "butterfly": ("kept = __shfl_xor_sync(~0u, t, 6, 8);", lambda t: t ^ 6),
    "lower_group": ("kept = __shfl_xor_sync(~0u, t, 8, 8);", lambda t: np.where(t % 16 >= 8, t ^ 8, t)),
    "any": ("kept = __any_sync(~0u, t == 40);", lambda t: (t // 32 == 1).astype(int)),
    "all": ("kept = __all_sync(~0u, t != 40);", lambda t: (t // 32 == 0).astype(int)),
    "ballot": ("kept = (int)__ballot_sync(~0u, t % 3 == 0 && t % 32 < 20);", lambda t: np.array(
        [sum(1 << lane for lane in range(20) if (each // 32 * 32 + lane) % 3 == 0) for each in t])),
    "halves": ("if (t % 32 < 16) kept = __shfl_xor_sync(0xffffu, t, 1); else kept = __shfl_xor_sync(0xffff0000u, t, 2);",
               lambda t: np.where(t % 32 < 16, t ^ 1, t ^ 2)),
    "wide": ("kept = (int)(__shfl_xor_sync(~0u, (long long)t << 33, 1) >> 33);", lambda t: t ^ 1),
}  # fmt: skip

RIGHT_TEXT = HEAD + "".join(kernel(name, body) for name, (body, _) in RIGHT.items())


@pytest.mark.parametrize("name", RIGHT)
def test_lanes_together(emulate: Callable[..., Emulated], name: str) -> None:
    for checked in (True, False):
        for seed in (None, LOCKSTEP, 0, 1, 2):
            out = np.zeros(64, np.int32)
            assert emulate(RIGHT_TEXT, checked).launch(f"{name}_0", 1, 64, [out], seed=seed) == []
            np.testing.assert_array_equal(out, RIGHT[name][1](np.arange(64)))
