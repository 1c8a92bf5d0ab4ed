"""The memories of a GPU, as far as they determine the cost and the alignment of an access."""

from __future__ import annotations

from texpr.isa.levels import WARP, Level, Space
from texpr.support.record import Record


class Memory(Record):
    """A memory. All sizes are in bytes; `banks` is 0 where there are none.

    `shared_by`: the level within which all threads share one copy. `sector`: the granularity of a request. `line`: the
    granularity of a cache. A request for different banks is served at once; different words of one bank are served in turn.
    """

    space: Space
    shared_by: Level
    sector: int
    line: int
    banks: int = 0
    bank_width: int = 0
    vector: int = 16
    """The widest access of one thread; it must be aligned to its own size (PTX ISA, "Addressable operands", "Alignment")."""


# Sectors and lines: CUDA C++ Best Practices Guide, "Coalesced access to global memory" (32-byte transactions) and the Nsight
# Compute documentation, "Memory tables" (128-byte lines of four sectors). Banks: CUDA C++ Programming Guide, "Shared memory"
# of compute capability 5.x and later (32 banks of 32 bits).
GLOBAL = Memory(Space.GLOBAL, Level.GRID, sector=32, line=128)
SHARED = Memory(Space.SHARED, Level.BLOCK, sector=4, line=128, banks=32, bank_width=4)
HOST = Memory(Space.GLOBAL, Level.CORE, sector=64, line=64)  # a cache line: nearly all CPUs there are
LOCAL = Memory(Space.LOCAL, Level.THREAD, sector=32, line=128)
# The shared memory of all blocks of a cluster: PTX ISA, "State spaces", `.shared::cluster`.
CLUSTER = Memory(Space.CLUSTER, Level.CLUSTER, sector=4, line=128, banks=32, bank_width=4)
# Tensor memory: 128 lanes of 512 columns of 32 bits (PTX ISA, "Tensor Memory").
TENSOR = Memory(Space.TENSOR, Level.BLOCK, sector=4, line=128, vector=4)
# Registers: a shuffle moves 32 bits a lane (PTX ISA, "shfl.sync").
LANES = Memory(Space.LANES, Level.WARP, sector=4, line=128, vector=4)


class Coalescing(Record):
    """How the memories of a machine serve a request of a warp: bytes of a sector and of a line of global memory, and the
    number of banks of shared memory, each of which gives one `word` of so many bytes at a time. The default is that of
    CUDA devices."""

    lanes: int = WARP
    sector: int = GLOBAL.sector
    line: int = GLOBAL.line
    banks: int = SHARED.banks
    word: int = SHARED.bank_width


COALESCING = Coalescing()


MEMORIES: dict[Space, Memory] = {memory.space: memory for memory in (GLOBAL, CLUSTER, SHARED, TENSOR, LANES, LOCAL)}
"""Each memory by its space."""
