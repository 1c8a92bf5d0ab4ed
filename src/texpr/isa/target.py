"""Targets: the machines for which code is generated.

A target is a record in its own file of the folder `targets`; `TARGETS` collects them.
"""

from __future__ import annotations

from texpr.isa.levels import Level
from texpr.isa.memories import GLOBAL, SHARED, Coalescing, Memory
from texpr.support.record import Record


class Reductions(Record):
    """How reductions are parallelised on a machine, in iterations.

    `chunk`: the part of a reduction at the top of a program that one block, or one core, takes at a time. `few`: the greatest
    trip count that is too small for a warp, as half of its threads or more would idle. `part`: the part of a sum that one
    thread computes where neighbours read neighbouring elements; 0 where a thread computes the whole of it, in vector lanes.
    `lanes`: the number of independent partial values that it then keeps, where it reads one stream.
    """

    chunk: int
    few: int = 0
    part: int = 0
    lanes: int = 0


class Target(Record):
    """A machine and its limits, those of one launch and of one block. Sizes are in bytes.

    `family`: the name in schedules of this target and its relatives. `backend`: the name of what prints, builds and loads its
    code. `levels`: outermost first. `align`: the guaranteed alignment of memory that is handed over. What a CPU does not have
    is 1 for counts of threads and 0 for memory and registers.
    """

    name: str
    family: str
    backend: str
    title: str
    levels: tuple[Level, ...]
    align: int
    reductions: Reductions
    vector: int
    """The widest access of one thread or SIMD lane group, which must be aligned to its own size."""
    vectors: int = 0
    """The vector registers of a core; 0 where lanes have registers of their own."""
    march: str = ""
    """The compilers' name (`-march`) of the least processor, where that is above the baseline of its architecture."""
    refined: tuple[str, str] | None = None
    """A compiler's macro for a feature of processors, and the target of those that have it."""
    macros: tuple[str, ...] = ()
    """Compilers' macros for the features without which its instructions are done by what every processor has."""
    warp: int = 1
    """The lanes of a warp: they run together, exchange registers, and access memory in one request."""
    global_memory: Memory = GLOBAL
    shared_memory: Memory = SHARED
    max_threads: int = 1
    max_block: tuple[int, int, int] = (1, 1, 1)
    max_grid: tuple[int, int, int] = (1, 1, 1)
    max_cluster: int = 1
    """The number of blocks of a cluster that every device of this target supports."""
    caches: tuple[int, ...] = ()
    """The bytes of the private caches of a core, nearest first; empty where many threads share them."""
    shared_static: int = 0
    """The shared memory of a block without opt-in."""
    shared: int = 0
    """The shared memory of a block with opt-in (`CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`)."""
    shared_multiprocessor: int = 0
    registers_thread: int = 0
    registers_block: int = 0
    resident_threads: int = 1
    """The threads resident on one multiprocessor."""
    resident_blocks: int = 1
    capability: tuple[int, int] = (0, 0)
    """The least compute capability that its code runs on; it also runs on later ones of this generation."""
    exact: bool = False
    """Whether the code runs on devices of this capability only."""
    ptx: tuple[int, int] = (0, 0)
    """The first version of PTX that supports this target."""
    features: frozenset[str] = frozenset()

    @property
    def has_blocks(self) -> bool:
        """Whether code runs in blocks of threads, which have barriers and shared memory."""
        return Level.BLOCK in self.levels

    @property
    def has_warps(self) -> bool:
        """Whether threads run in warps, whose lanes read each other's registers."""
        return Level.WARP in self.levels

    @property
    def has_clusters(self) -> bool:
        """Whether blocks run in clusters."""
        return Level.CLUSTER in self.levels

    @property
    def has_cores(self) -> bool:
        """Whether iterations are distributed over the cores of a CPU, each with its own caches."""
        return Level.CORE in self.levels

    @property
    def has_vector_lanes(self) -> bool:
        """Whether one thread computes in the vector registers of a core, whose lanes are neighbouring elements."""
        return Level.LANE in self.levels

    @property
    def is_launched(self) -> bool:
        """Whether kernels are launched by a host, on a separate device."""
        return Level.GRID in self.levels

    def runs_on(self, device: tuple[int, int]) -> bool:
        """Whether its code runs on a device of this capability: the same one where it is `exact`, otherwise the same or a
        later one of its generation."""
        same = device[0] == self.capability[0] and device >= self.capability
        return self.is_launched and (device == self.capability if self.exact else same)

    @property
    def coalescing(self) -> Coalescing:
        """How its memories serve one request of a warp."""
        shared = self.shared_memory
        return Coalescing(self.warp, self.global_memory.sector, self.global_memory.line, shared.banks, shared.bank_width)

    def __str__(self) -> str:
        return self.name
