"""What kernels in CuTe DSL share: compiling one to its code, arrays, a value of all threads of a block."""

# The language reads annotations and rewrites functions from their text: no `from __future__ import annotations`.

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cutlass
from cutlass import cute
from cutlass.cute.runtime import make_fake_compact_tensor
from offer import Kernel

TARGET = os.environ.get("PEERS_TARGET", "sm_90a")
CUBE = 4096
ROWS, COLUMNS = 8192, 4096
HEADS, LENGTH = 64, 4096
GROUP, WARP = 128, 32


def compiled(
    function: Any,
    arguments: Sequence[Any],
    grid: Sequence[int],
    threads: int,
    l2: float,
    dram: float,
    *,
    shared: int = 0,
    cluster: tuple[int, int, int] = (1, 1, 1),
) -> Kernel:
    """The launch of a function that is one kernel. Its code has one, whose name is not ours."""
    with tempfile.TemporaryDirectory(prefix="texpr-peers-") as folder:
        cute.compile(function, *arguments, options=f"--gpu-arch {TARGET} --keep-cubin --dump-dir {folder}")
        (found,) = Path(folder).glob("*.cubin")
        x, y, z = (*grid, 1, 1)[:3]
        return Kernel(found.read_bytes(), "", (x, y, z), threads, (), l2, dram, shared, cluster)


def array(dtype: Any, *shape: int, first: bool = False) -> Any:
    """An array by rows; with `first` the first extent is the one whose elements are neighbours."""
    order = (0, 1) if first else tuple(range(len(shape)))[::-1]
    return make_fake_compact_tensor(dtype, shape, stride_order=order, assumed_align=16)


@cute.jit
def over_block(
    value: cutlass.Float32, op: cutlass.Constexpr, shared: cute.Tensor, warps: cutlass.Constexpr, none: cutlass.Constexpr
):
    """One value of all threads of a block: over lanes, then over warps."""
    thread, _, _ = cute.arch.thread_idx()
    lane, number = thread % WARP, thread // WARP
    value = cute.arch.warp_reduction(value, op)
    if lane == 0:
        shared[number] = value
    cute.arch.sync_threads()
    part = cutlass.Float32(none)
    if lane < warps:
        part = shared[lane]
    found = cute.arch.warp_reduction(part, op)
    cute.arch.sync_threads()
    return found
