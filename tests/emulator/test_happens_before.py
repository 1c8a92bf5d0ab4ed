"""Which accesses race, against an oracle: full vector clocks over every thread of the grid, in Python.

One kernel runs any program: a table says what each thread does at each step. A program is a list of rounds; in each, some
threads touch some elements, then all meet at barriers of one kind (or at shuffles, which order nothing). Random programs
meet in groups that nest, for which the emulator promises to miss nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texpr.emulator import LOCKSTEP, Emulated, Fault, Party, Report
from texpr.support.record import Record

from .kernels import HEAD

BLOCKS, THREADS, ELEMENTS = 4, 96, 3
NOTHING, READ, WRITE, ATOMIC, BLOCK, WARP, NAMED, CLUSTER, SHUFFLE = range(9)
ACTIONS = {READ: "read", WRITE: "write", ATOMIC: "atomic"}

TEXT = (
    HEAD
    + """
extern "C" __global__ void program_0(TX_GLOBAL(int const) code, int const steps, TX_GLOBAL(int) memory) {
    TX_SHARED(int, cell, 3);
    int const t = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned kept = 0; /* of memory that nobody has set */
    for (int s = 0; s < steps; ++s) {
        int const what = code[(t * steps + s) * 2];
        int const at = code[(t * steps + s) * 2 + 1];
        TX_AT(1 + (s * (int)gridDim.x + (int)blockIdx.x) * 6 + at)
        if (what == 1) kept += (unsigned)(at < 3 ? (int)memory[at] : (int)cell[at - 3]);
        else if (what == 2 && at < 3) memory[at] = t;
        else if (what == 2) cell[at - 3] = t;
        else if (what == 3 && at < 3) atomicAdd(&memory[at], 1);
        else if (what == 3) atomicAdd(&cell[at - 3], 1);
        else if (what == 4) __syncthreads();
        else if (what == 5 && (at >> tx_lane() & 1)) __syncwarp((unsigned)at);
        else if (what == 6 && (at >> threadIdx.x / 32 & 1)) tx_bar_sync(at, 32 * __popc((unsigned)at));
        else if (what == 7) tx_cluster_sync();
        else if (what == 8) kept = __shfl_xor_sync(0xffffffffu, kept, 1, 32);
    }
}
TX_EXPORT(program_0)
"""
)


class Round(Record, dict=True):
    """`touches`: (thread of the grid, what, element), at most one a thread. `meet`: what all threads do then."""

    touches: tuple[tuple[int, int, int], ...]
    meet: int
    argument: int


class Event(Record, dict=True):
    thread: int
    what: int
    element: int
    line: int
    clock: int
    seen: tuple[int, ...]


def groups(round: Round, cluster: int) -> list[list[int]]:
    """The sets of threads that meet: some lanes of each warp, some warps of each block, blocks, clusters."""
    everyone = range(BLOCKS * THREADS)
    match round.meet:
        case 4:
            key = [t // THREADS for t in everyone]
        case 5:
            key = [t // 32 if round.argument >> t % 32 & 1 else -1 - t for t in everyone]
        case 6:
            key = [t // THREADS if round.argument >> t % THREADS // 32 & 1 else -1 - t for t in everyone]
        case 7:
            key = [t // (THREADS * cluster) for t in everyone]
        case _:
            return []
    return [[t for t in everyone if key[t] == each] for each in dict.fromkeys(key)]


def line_of(step: int, thread: int, element: int) -> int:
    return 1 + (step * BLOCKS + thread // THREADS) * 6 + element


def events(rounds: list[Round], cluster: int) -> list[Event]:
    count = BLOCKS * THREADS
    clocks = np.zeros((count, count), np.int64)
    np.fill_diagonal(clocks, 1)
    found: list[Event] = []
    for number, each in enumerate(rounds):
        for t, what, element in each.touches:
            found.append(Event(t, what, element, line_of(2 * number, t, element), int(clocks[t, t]), tuple(clocks[t])))
        for group in groups(each, cluster):
            clocks[group] = clocks[group].max(0)
            clocks[group, group] += 1
    return found


def races(rounds: list[Round], cluster: int) -> set[frozenset[Event]]:
    """Pairs of events that race."""
    found: set[frozenset[Event]] = set()
    all_events = events(rounds, cluster)
    for at, one in enumerate(all_events):
        for two in all_events[:at]:
            same_block = one.thread // THREADS == two.thread // THREADS
            if one.element != two.element or (one.element >= ELEMENTS and not same_block) or one.thread == two.thread:
                continue
            if one.what == two.what and one.what != WRITE:
                continue
            ordered = one.seen[two.thread] >= two.clock or two.seen[one.thread] >= one.clock
            if not ordered:
                found.add(frozenset({one, two}))
    return found


def table(rounds: list[Round]) -> np.ndarray:
    code = np.zeros((BLOCKS * THREADS, 2 * len(rounds), 2), np.int32)
    for number, each in enumerate(rounds):
        for t, what, element in each.touches:
            code[t, 2 * number] = (what, element)
        for t in range(BLOCKS * THREADS):
            code[t, 2 * number + 1] = (each.meet, each.argument - (each.argument >> 31 << 32))
    return code


def described(event: Event) -> tuple[int, str, int]:
    return event.thread, ACTIONS[event.what], event.line


def told(party: Party) -> tuple[int, str, int]:
    return party.block[0] * THREADS + party.thread[0], party.action, party.line


def check(emulated: Emulated, rounds: list[Round], cluster: int, seed: int | None) -> int:
    code = table(rounds)
    args = [code, code.shape[1], np.zeros(ELEMENTS, np.int32)]
    found = emulated.launch("program_0", BLOCKS, THREADS, args, seed=seed, cluster=cluster)
    reports: list[Report] = [report for report in found if report.fault is Fault.RACE]
    assert {report.fault for report in found} <= {Fault.RACE, Fault.UNINITIALISED}
    right = races(rounds, cluster)
    pairs = {frozenset(map(described, pair)) for pair in right}
    for report in reports:
        assert report.second is not None
        assert frozenset({told(report.first), told(report.second)}) in pairs, str(report)
    places = {(event.element, event.thread // THREADS if event.element >= ELEMENTS else -1) for pair in right for event in pair}
    seen = {
        (report.index, -1) if report.buffer == "memory" else (report.index + ELEMENTS, report.first.block[0])
        for report in reports
    }
    assert seen == places
    return len(places)


ALL = 0xFFFFFFFF

touches = st.tuples(st.integers(0, BLOCKS * THREADS - 1), st.sampled_from((READ, READ, WRITE, ATOMIC)), st.integers(0, 5))
few = st.lists(touches, max_size=5, unique_by=lambda touch: touch[0]).map(tuple)
near = st.lists(
    st.tuples(
        st.integers(0, 15) | st.integers(0, 12).map(lambda t: t * 7), st.sampled_from((READ, READ, READ, WRITE)), st.just(4)
    ),
    max_size=6,
    unique_by=lambda touch: touch[0],
).map(tuple)
meets = st.one_of(
    st.tuples(st.sampled_from((BLOCK, CLUSTER, SHUFFLE, NOTHING)), st.just(0)),
    st.tuples(st.just(WARP), st.sampled_from((ALL, 0xFF, 0xFF00, 0xF0, 0xC, 0x30, 0x80))),
    st.tuples(st.just(NAMED), st.sampled_from((1, 2, 3, 4))),
)
rounds = st.builds(lambda touched, meet: Round(touched, *meet), few | near, meets)


@settings(max_examples=25, deadline=None)
@given(st.lists(rounds, min_size=1, max_size=7), st.sampled_from((1, 2)), st.sampled_from((None, LOCKSTEP, 0, 1, 2, 3)))
def test_races_are_those_of_the_oracle(emulate: Callable[..., Emulated], program: list[Round], cluster: int, seed: int | None):
    check(emulate(TEXT), program, cluster, seed)


@pytest.mark.long
@settings(max_examples=500, deadline=None)
@given(st.lists(rounds, min_size=1, max_size=9), st.sampled_from((1, 2)), st.sampled_from((None, LOCKSTEP, *range(20))))
def test_races_are_those_of_the_oracle_long(
    emulate: Callable[..., Emulated], program: list[Round], cluster: int, seed: int | None
):
    check(emulate(TEXT), program, cluster, seed)


A, B, C = 0, 40, THREADS
"""Threads: of the first warp, of the second, of the next block."""


@pytest.mark.parametrize(
    ("rounds", "cluster", "expected"),
    [
        ([Round(((A, WRITE, 0), (B, READ, 0)), NOTHING, 0)], 1, 1),
        ([Round(((A, WRITE, 0),), BLOCK, 0), Round(((B, READ, 0),), NOTHING, 0)], 1, 0),
        ([Round(((A, WRITE, 0),), WARP, ALL), Round(((B, READ, 0),), NOTHING, 0)], 1, 1),
        ([Round(((A, WRITE, 0),), WARP, 0xFF), Round(((A + 7, READ, 0),), NOTHING, 0)], 1, 0),
        ([Round(((A, WRITE, 0),), WARP, 0xF), Round(((A + 7, READ, 0),), NOTHING, 0)], 1, 1),
        ([Round(((A, WRITE, 0),), SHUFFLE, 0), Round(((A + 1, READ, 0),), NOTHING, 0)], 1, 1),
        ([Round(((A, WRITE, 0),), BLOCK, 0), Round(((C, READ, 0),), NOTHING, 0)], 1, 1),
        ([Round(((A, WRITE, 0),), CLUSTER, 0), Round(((C, READ, 0),), NOTHING, 0)], 2, 0),
        ([Round(((A, WRITE, 0),), CLUSTER, 0), Round(((C, READ, 0),), NOTHING, 0)], 1, 1),
        ([Round(((A, ATOMIC, 0), (B, ATOMIC, 0), (C, ATOMIC, 0)), NOTHING, 0)], 1, 0),
        ([Round(((A, ATOMIC, 0), (C, WRITE, 0)), NOTHING, 0)], 1, 1),
        ([Round(((A, ATOMIC, 0), (C, READ, 0)), NOTHING, 0)], 1, 1),
        ([Round(((A, READ, 0), (C, READ, 0)), NOTHING, 0)], 1, 0),
        ([Round(((A, READ, 4), (A + 1, READ, 4), (B, READ, 4)), WARP, ALL), Round(((A, WRITE, 4),), NOTHING, 0)], 1, 1),
        ([Round(((A, WRITE, 0),), WARP, 3), Round((), WARP, 6), Round(((A + 2, READ, 0),), NOTHING, 0)], 1, 0),
        ([Round((), WARP, 3), Round(((A, WRITE, 0),), WARP, 6), Round(((A + 2, READ, 0),), NOTHING, 0)], 1, 1),
        ([Round(((A, WRITE, 0),), NAMED, 3), Round(((B, READ, 0),), NOTHING, 0)], 1, 0),
        ([Round(((A, WRITE, 0),), NAMED, 3), Round(((B + 32, READ, 0),), NOTHING, 0)], 1, 1),
        ([Round(((A, WRITE, 0),), NAMED, 3), Round((), NAMED, 6), Round(((B + 32, READ, 0),), NOTHING, 0)], 1, 0),
        ([Round((), NAMED, 3), Round(((A, WRITE, 0),), NAMED, 6), Round(((B + 32, READ, 0),), NOTHING, 0)], 1, 1),
        ([Round(((A, READ, 4), (A + 1, READ, 4), (A + 9, READ, 4)), WARP, 0xF), Round(((A + 1, WRITE, 4),), NOTHING, 0)], 1, 1),
        (
            [
                Round(((A, WRITE, 4),), BLOCK, 0),
                Round(((A, READ, 4), (B, READ, 4)), BLOCK, 0),
                Round(((A + 1, READ, 4),), NOTHING, 0),
                Round(((B + 1, WRITE, 4),), NOTHING, 0),
            ],
            1,
            1,
        ),
    ],
)  # fmt: skip
def test_what_orders_and_what_does_not(
    emulate: Callable[..., Emulated], rounds: list[Round], cluster: int, expected: int
) -> None:
    for seed in (None, LOCKSTEP, 0, 1, 2):
        assert check(emulate(TEXT), rounds, cluster, seed) == expected
