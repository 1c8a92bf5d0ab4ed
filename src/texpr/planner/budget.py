"""What a plan may use of a machine, and what moving a byte costs there, read off the target's record."""

from __future__ import annotations

from texpr.isa.target import Target
from texpr.support.record import Record

BLOCKS = 2
"""Blocks that a multiprocessor shall hold at a time: one computes while another one waits for memory."""

STAGES = 2
"""Tiles of each buffer that may be there at once: one is used while the next one is on its way."""

THREADS = 256
"""The most threads of a block; more would leave each too few registers for a tile of its own."""

SHARED_COST = 0.37
"""A byte from shared memory against one that blocks share (the second-level cache): 128 bytes a clock on each of the 108
multiprocessors of an A100 against 5120 on all (NVIDIA A100 Tensor Core GPU Architecture, 2020, "L2 cache", "Shared memory")."""

MULTIPROCESSORS = 108
"""Of the smallest device that the targets are made for (ibid.): fewer blocks than that leave some idle."""

OVERHEAD, FOR_LOOP = 16, 8
"""Registers of a thread for addresses and what the compiler of the machine wants, and for each loop of the nest."""


class Budget(Record):
    """`threads`: of a block, at most. `warp`: lanes of a warp. `sector`: bytes that one request to global memory moves, at
    least. `shared`: bytes of a block. `registers`: 32-bit words of a thread that tiles may take."""

    threads: int
    warp: int
    sector: int
    shared: int
    registers: int


def budget(target: Target, loops: int) -> Budget:
    """What a block of a nest of so many loops may take, so that `BLOCKS` of them fit a multiprocessor."""
    threads = min(THREADS, target.max_threads)
    shared = min(target.shared, target.shared_multiprocessor // BLOCKS - 1024) // STAGES
    registers = min(target.registers_thread, target.registers_block // (threads * BLOCKS)) - OVERHEAD - FOR_LOOP * loops
    return Budget(threads, target.warp, target.global_memory.sector, shared, registers)
