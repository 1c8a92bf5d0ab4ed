"""Kernels without faults: right results and not one report, under every schedule, with and without detectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from texpr.emulator import LOCKSTEP, Emulated

from .kernels import CASES, HEAD, Case, result

SCHEDULES = (None, LOCKSTEP, *range(8))
TEXT = HEAD + "".join(case.source for case in CASES)


def run(emulated: Emulated, case: Case, seed: int | None, detect: bool = True) -> None:
    args = case.args()
    reports = emulated.launch(case.name, case.grid, case.block, args, seed=seed, detect=detect, unwritten=case.unwritten)
    assert reports == []
    np.testing.assert_array_equal(result(args), case.expected(args))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_right_under_every_schedule(emulate: Callable[..., Emulated], case: Case) -> None:
    for seed in SCHEDULES:
        run(emulate(TEXT), case, seed)
        run(emulate(TEXT), case, seed, detect=False)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_right_as_plain_memory(emulate: Callable[..., Emulated], case: Case) -> None:
    for seed in SCHEDULES:
        run(emulate(TEXT, checked=False), case, seed)


ORDER = (
    HEAD
    + """
extern "C" __global__ void order_0(TX_GLOBAL(int) next, TX_GLOBAL(int) turn) {
    TX_AT(2)
    turn[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(&next[0], 1);
}
TX_EXPORT(order_0)
"""
)


def turns(emulated: Emulated, seed: int | None) -> list[int]:
    turn = np.zeros(96, np.int32)
    assert emulated.launch("order_0", 3, 32, [np.zeros(1, np.int32), turn], seed=seed) == []
    return turn.tolist()


def test_a_seed_is_a_schedule(emulate: Callable[..., Emulated]) -> None:
    emulated = emulate(ORDER)
    assert turns(emulated, None) == list(range(96))
    found = [turns(emulated, seed) for seed in range(8)]
    assert found == [turns(emulated, seed) for seed in range(8)]
    assert len({tuple(each) for each in found}) == 8
    assert all(sorted(each) == list(range(96)) for each in found)
    assert any(each[:32] != sorted(each[:32]) for each in found), "threads of a block change places"
    assert any(min(each[:32]) > min(each[64:]) for each in found), "blocks change places"
