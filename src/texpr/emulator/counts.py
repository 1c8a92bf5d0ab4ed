"""The emulator's counters of a kernel."""

from __future__ import annotations

import json

from texpr.support.record import Record


class Counts(Record):
    """Sums over all launches of a kernel since the counters were cleared.

    Loads, stores and atomics are counted by thread. A request is the set of lanes of a warp that access memory at one
    instruction; sectors are of 32 bytes, lines of 128, each summed over requests; packed: the sectors that a request's bytes
    would fill if they were contiguous. A request to shared memory takes as many wavefronts as the busiest bank gives words;
    `shared_least` is their number without bank conflicts. A vector access counts as one load or store; an asynchronous copy
    as a store to shared memory, and, where it reads, a load. Copies of tiles are counted separately, `tile_bytes` includes
    fills.
    """

    launches: int
    blocks: int
    threads: int
    block_barriers: int
    barrier_arrivals: int
    warp_barriers: int
    shuffles: int
    votes: int
    global_loads: int
    global_load_requests: int
    global_load_sectors: int
    global_load_lines: int
    global_load_packed: int
    global_stores: int
    global_store_requests: int
    global_store_sectors: int
    global_store_lines: int
    global_store_packed: int
    global_atomics: int
    shared_loads: int
    shared_stores: int
    shared_atomics: int
    shared_requests: int
    shared_wavefronts: int
    shared_least: int
    async_copies: int
    tile_loads: int
    tile_stores: int
    tile_bytes: int

    @property
    def bank_conflicts(self) -> int:
        """Extra wavefronts of shared memory due to bank conflicts."""
        return self.shared_wavefronts - self.shared_least


def parse_counts(text: str) -> dict[str, Counts]:
    """The records of the core's JSON, by kernel."""
    raw: dict[str, dict[str, int]] = json.loads(text)
    return {name: Counts(**fields) for name, fields in raw.items()}
