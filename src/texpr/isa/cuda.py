"""Properties common to all CUDA devices since compute capability 8.0.

Sources: CUDA C++ Programming Guide, "Compute Capabilities", table "Technical Specifications per Compute Capability"
(threads, grid, registers, shared memory, warps); ibid., "Thread Block Clusters" (8 blocks are portable); ibid., "Device
memory accesses" (allocations are aligned to at least 256 bytes); PTX ISA, "Release Notes" (first version of a target).
"""

from __future__ import annotations

from texpr.isa.levels import Level
from texpr.isa.target import Reductions, Target

KIB = 1024

ASYNC_COPY = "cp.async"  # PTX ISA: sm_80 or higher
BF16_MATH = "bf16"  # arithmetic on bf16: sm_90 or higher; conversions and fma: sm_80 or higher
FP8_CONVERT = "cvt.e4m3x2"  # PTX ISA, "cvt": sm_89 or higher
CLUSTER = "cluster"  # sm_90 or higher
TMA = "cp.async.bulk.tensor"  # sm_90 or higher
DEPENDENT = "griddepcontrol"  # sm_90 or higher
WGMMA = "wgmma"  # sm_90a alone
SETMAXNREG = "setmaxnreg"  # sm_90a, sm_100a and their kin
TCGEN05 = "tcgen05"  # sm_100a and its kin
TMA_ROWS = "tile::gather4"  # and tile::scatter4: sm_100a and its kin

MOST_THREADS = 1024
"""Threads that a block may have."""

WARPGROUP = 128
"""Lanes of four consecutive warps, of which the first is at a multiple of four (PTX ISA, "wgmma": "Warpgroup")."""

MOST_REGISTERS = 65536
"""Registers of 32 bits that the blocks of a multiprocessor share."""

REGISTERS_BY = 8
"""Registers of a thread are counted in eights where warps give some up, or ask for more, of at least 24 and at most 256 (PTX
ISA, "setmaxnreg")."""

MOST_CLUSTER = 8
"""Blocks in a cluster that every device with clusters takes."""

MOST_DECLARED = 48 * KIB
"""Bytes of shared memory that a kernel may declare; of more the size is given with the launch."""

MOST_SHARED = 227 * KIB
"""The most bytes of shared memory that a block has on any device."""

AMPERE = frozenset({ASYNC_COPY})
ADA = AMPERE | {FP8_CONVERT}
HOPPER = ADA | {BF16_MATH, CLUSTER, DEPENDENT, TMA}


def registers_at_launch(threads: int, blocks: int) -> int:
    """The registers that each thread of a kernel starts with, if its compiler is told of so many threads in a block and blocks
    on a multiprocessor, and warps share registers anew later."""
    return MOST_REGISTERS // (threads * max(blocks, 1)) // REGISTERS_BY * REGISTERS_BY


def registers_left(given: int, kept: int, threads: int) -> int:
    """The registers that each of so many `threads` may have, if the `given` other threads of their block keep so many each."""
    every = given + threads
    return min((every * registers_at_launch(every, 1) - given * kept) // threads, 255) // REGISTERS_BY * REGISTERS_BY


def device(
    name: str,
    title: str,
    *,
    capability: tuple[int, int],
    shared: int,
    resident_threads: int,
    resident_blocks: int,
    ptx: tuple[int, int],
    features: frozenset[str],
    exact: bool = False,
) -> Target:
    """A CUDA target. `exact`: its code runs on this capability only. `shared`: bytes of a block that opts in; 1 KiB more of
    each multiprocessor is reserved for the system."""
    clusters = CLUSTER in features
    return Target(
        name=name,
        family="cuda",
        backend="cuda",
        title=title,
        levels=(Level.GRID, *((Level.CLUSTER,) if clusters else ()), Level.BLOCK, Level.WARP, Level.THREAD),
        align=256,
        reductions=Reductions(chunk=4096, few=16, part=128),
        vector=16,
        warp=32,
        max_threads=MOST_THREADS,
        max_block=(1024, 1024, 64),
        max_grid=(2**31 - 1, 65535, 65535),
        max_cluster=MOST_CLUSTER if clusters else 1,
        shared_static=48 * KIB,
        shared=shared,
        shared_multiprocessor=shared + KIB,
        registers_thread=255,
        registers_block=MOST_REGISTERS,
        resident_threads=resident_threads,
        resident_blocks=resident_blocks,
        capability=capability,
        exact=exact,
        ptx=ptx,
        features=features,
    )
