"""The resources of a machine that a plan may use, and the cost of a byte there, from the target's record."""

from __future__ import annotations

from texpr.isa.target import Target
from texpr.support.record import Record

BLOCKS = 2
"""The resident blocks that a multiprocessor should have: one computes while another one waits for memory."""

STAGES = 2
"""The tiles of each buffer that may be live at once: one is used while the next one is being copied."""

THREADS = 256
"""The most threads of a block; more would leave each too few registers for a tile of its own."""

SHARED_COST = 0.37
"""The cost of a byte from shared memory relative to one from the L2 cache: 128 bytes a clock on each of the 108
multiprocessors of an A100 against 5120 on all (NVIDIA A100 Tensor Core GPU Architecture, 2020, "L2 cache", "Shared
memory")."""

MULTIPROCESSORS = 108
"""The multiprocessors of the smallest device among the targets (ibid.): fewer blocks leave some idle."""

OVERHEAD, FOR_LOOP = 16, 8
"""The registers of a thread for addresses and the compiler's own use, and for each loop of the nest."""


class Budget(Record):
    """`threads`: the most of a block. `warp`: lanes of a warp. `sector`: the bytes of the smallest request to global memory.
    `shared`: bytes of a block. `registers`: 32-bit words of a thread for tiles."""

    threads: int
    warp: int
    sector: int
    shared: int
    registers: int


def budget(target: Target, loops: int) -> Budget:
    """The budget of a block of a nest of `loops` loops, such that `BLOCKS` of them fit a multiprocessor."""
    threads = min(THREADS, target.max_threads)
    shared = min(target.shared, target.shared_multiprocessor // BLOCKS - 1024) // STAGES
    registers = min(target.registers_thread, target.registers_block // (threads * BLOCKS)) - OVERHEAD - FOR_LOOP * loops
    return Budget(threads, target.warp, target.global_memory.sector, shared, registers)
