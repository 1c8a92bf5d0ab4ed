"""The rules of well-formed tensor maps, tiles and barriers in shared memory."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.ir import kernel as k
from texpr.ir.kernel.shared import overlaps
from texpr.ir.operation.tensor_map import judged
from texpr.ir.value.types import U64
from texpr.isa.levels import Space

MOST_ALIGNMENT = 1024
MOST_COUNT = 2**20 - 1
"""Limit of the arrivals, and of the bytes, of one phase (PTX ISA, "mbarrier": "Size and alignment", "tx-count")."""


def arrays_lie_right(kernel: k.Kernel) -> Iterator[str]:
    """An array's alignment is a power of two that shared memory supports; a barrier array has u64 elements in shared memory."""
    for array in kernel.arrays:
        name, align = array.buffer.name, array.align
        if align & (align - 1) or not 1 <= align <= MOST_ALIGNMENT:
            yield f"{name} is aligned to {align} bytes, not to a power of two up to {MOST_ALIGNMENT}"
        if array.barrier and (array.space is not Space.SHARED or array.buffer.dtype != U64):
            yield f"{name} holds barriers, which are u64 in shared memory"


def shared_places_may_meet(kernel: k.Kernel) -> Iterator[str]:
    """Barriers, and arrays that tiles and runs are copied to or from, overlap no other array."""
    if not all(all(e.is_constant for e in a.buffer.shape) for a in kernel.arrays if a.space is Space.SHARED):
        return
    copied = {load.buffer for stmt in k.walk(kernel.body) if isinstance(stmt, k.Operation) for load in stmt.tiles}
    for one, other in overlaps(kernel):
        for array, beside in ((one, other), (other, one)):
            if array.barrier or array.buffer in copied:
                yield f"{array.buffer.name} lies where {beside.buffer.name} does"


def maps_keep_the_rules(kernel: k.Kernel) -> Iterator[str]:
    """The hardware accepts each map for some sizes at least; the remaining conditions are checked before a launch."""
    for map in kernel.maps:
        if len(map.sizes) != (len(map.corners) + 2 if map.corners else len(map.box)) or len(map.sizes) != len(map.steps):
            yield f"{map.name} has {len(map.sizes)} sizes, {len(map.box)} extents of a box and {len(map.steps)} steps"
            continue
        try:
            found = judged(map)
        except ValueError as reason:
            yield f"{map.name}: {reason}"
        else:
            yield from (f"{map.name}: {finding}" for finding in found.violated)


def tensor_memory_is_taken(kernel: k.Kernel) -> Iterator[str]:
    """A kernel with arrays in tensor memory takes columns for them."""
    if not any(isinstance(stmt, k.TakeColumns) for stmt in k.walk(kernel.body)):
        for array in (each for each in kernel.arrays if each.space is Space.TENSOR):
            yield f"{array.buffer.name} lies in tensor memory, and the kernel takes no columns"


TILE_HEAD_RULES = (arrays_lie_right, shared_places_may_meet, maps_keep_the_rules, tensor_memory_is_taken)
"""The rules of a kernel's head."""
