"""The levels of a machine, and the spaces of its memory."""

from __future__ import annotations

from enum import Enum


class Level(Enum):
    """A level of a machine, outermost first. A target uses some of them (see `texpr.isa.target`)."""

    GRID = "grid"  # blocks of a launch on a GPU
    CLUSTER = "cluster"
    BLOCK = "block"  # threads of a block
    WARP = "warp"
    THREAD = "thread"  # one thread (or one CPU core's sequential code)
    CORE = "core"  # iterations shared out over CPU cores
    LANE = "lane"  # SIMD lanes of a CPU core


WARP = 32
"""The lanes of a warp of a kernel (`ir.kernel.Kernel.warp`) that does not state it, and the maximum, as many as a lane mask
has bits. A target has its own in `Target.warp`, and a kernel made for it states that."""


class Space(Enum):
    """The memory in which an array lives."""

    GLOBAL = "global"  # parameters and workspace
    CLUSTER = "cluster"  # one copy a cluster: each of its blocks holds a part
    SHARED = "shared"  # one copy a block
    TENSOR = "tensor"  # one copy a block, of its tensor cores: a lane of it a thread, and columns of 32 bits
    LANES = "lanes"  # one copy a thread, in registers that the other lanes of its warp may read (`ir.kernel.Shuffle`)
    LOCAL = "local"  # one copy a thread: registers where every index is known when unrolled, else stack
