"""Targets: the machines that code is made for.

A target is a record in its own file of the folder `targets`; `TARGETS` is what lies there.
"""

from __future__ import annotations

from texpr.isa.levels import Level
from texpr.isa.memories import GLOBAL, SHARED, Coalescing, Memory
from texpr.support.record import Record


class Reductions(Record):
    """How reductions are shared out on a machine, in iterations.

    `chunk`: of a reduction at the top of a program, what one block, or one core, takes at a time. `few`: the most that are too
    few for a warp, as half of its threads or more would have none. `part`: what one thread makes of a sum whose neighbours
    read neighbouring elements; 0 where a thread makes the whole of it, in vector lanes. `lanes`: partial values that it then
    keeps side by side, where it reads one stream.
    """

    chunk: int
    few: int = 0
    part: int = 0
    lanes: int = 0


class Target(Record):
    """A machine and its limits, those of one launch and of one block. Sizes are in bytes.

    `family`: what schedules call this and its kin. `backend`: what prints, builds and loads its code, by name. `levels`:
    outermost first. `align`: what memory that is handed over is at least aligned to. What a CPU does not have is 1 for counts
    of threads and 0 for memory and registers.
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
    """Vectors that a core keeps in registers; 0 where lanes have registers of their own."""
    march: str = ""
    """What compilers call the least processor, where that is more than they take for any of its architecture."""
    warp: int = 1
    """Lanes of a warp: they run together, exchange registers, and ask of memory at once."""
    global_memory: Memory = GLOBAL
    shared_memory: Memory = SHARED
    max_threads: int = 1
    max_block: tuple[int, int, int] = (1, 1, 1)
    max_grid: tuple[int, int, int] = (1, 1, 1)
    max_cluster: int = 1
    """Blocks of a cluster that every device of this target can hold."""
    caches: tuple[int, ...] = ()
    """Bytes of the caches that a core has for itself, nearest first; empty where threads of many share them."""
    shared_static: int = 0
    """Shared memory of a block without asking."""
    shared: int = 0
    """Shared memory of a block that asks for more (`CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`)."""
    shared_multiprocessor: int = 0
    registers_thread: int = 0
    registers_block: int = 0
    resident_threads: int = 1
    """Threads that one multiprocessor holds at a time."""
    resident_blocks: int = 1
    capability: tuple[int, int] = (0, 0)
    """Of a CUDA device: the least that its code runs on, and the next ones of this generation."""
    exact: bool = False
    """Whether the code runs on devices of this very capability alone."""
    ptx: tuple[int, int] = (0, 0)
    """The first version of PTX that knows this target."""
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
        """Whether iterations are shared out over the cores of a CPU, each with its own caches."""
        return Level.CORE in self.levels

    @property
    def has_vector_lanes(self) -> bool:
        """Whether one thread computes in the vector registers of a core, whose lanes are neighbouring elements."""
        return Level.LANE in self.levels

    @property
    def is_launched(self) -> bool:
        """Whether kernels are launched, by a host, on a device that is not the host itself."""
        return Level.GRID in self.levels

    def runs_on(self, device: tuple[int, int]) -> bool:
        """Whether its code runs on a device of this capability: that very one where it is `exact`, else of the same generation,
        from there on."""
        same = device[0] == self.capability[0] and device >= self.capability
        return self.is_launched and (device == self.capability if self.exact else same)

    @property
    def coalescing(self) -> Coalescing:
        """How its memories answer what the lanes of a warp ask at once."""
        shared = self.shared_memory
        return Coalescing(self.warp, self.global_memory.sector, self.global_memory.line, shared.banks, shared.bank_width)

    def __str__(self) -> str:
        return self.name
