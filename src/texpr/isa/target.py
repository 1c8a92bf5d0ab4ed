"""Targets: the machines that code is made for.

A target is a record in its own file of the folder `targets`; `TARGETS` is what lies there.
"""

from __future__ import annotations

from texpr.isa.levels import Level
from texpr.support.record import Record


class Target(Record):
    """A machine and its limits, those of one launch and of one block. Sizes are in bytes.

    `family`: "cuda" or "cpu". `levels`: outermost first. `align`: what memory that is handed over is at least aligned to.
    What a CPU does not have is 1 for counts of threads and 0 for memory and registers.
    """

    name: str
    family: str
    title: str
    levels: tuple[Level, ...]
    align: int
    vector: int
    """The widest access of one thread or SIMD lane group, which must be aligned to its own size."""
    vectors: int = 0
    """Vectors that a core keeps in registers; 0 where lanes have registers of their own."""
    march: str = ""
    """What compilers call the least processor, where that is more than they take for any of its architecture."""
    warp: int = 1
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
    ptx: tuple[int, int] = (0, 0)
    """The first version of PTX that knows this target."""
    features: frozenset[str] = frozenset()

    @property
    def is_gpu(self) -> bool:
        """Whether code for this target runs in blocks of threads."""
        return Level.BLOCK in self.levels

    def __str__(self) -> str:
        return self.name
