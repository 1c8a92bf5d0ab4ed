"""The rules of well-formed tensor maps, tiles and barriers in shared memory, and of what pairs of blocks have there."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from texpr.affine.expr import ZERO
from texpr.ir import kernel as k
from texpr.ir.kernel.shared import overlaps
from texpr.ir.operation import Brings
from texpr.ir.operation.tensor_map import judged
from texpr.ir.value import Load, walk
from texpr.ir.value.types import U64
from texpr.isa.instructions.tcgen05 import PAIR
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


def pairs_are_of_two_blocks(kernel: k.Kernel) -> Iterator[str]:
    """All that is taken, launched and committed is of pairs, or nothing (PTX ISA, "tcgen05": one .cta_group in a kernel); the
    cluster is one pair."""
    found = {_in_pair(stmt, kernel) for stmt in k.walk(kernel.body)} - {None}
    if len(found) > 1:
        yield "some of what is done in tensor memory is of pairs of blocks, and some is not"
    if True in found and prod(kernel.cluster) != PAIR:
        yield f"a pair of blocks is a cluster of {PAIR}, and this one has {prod(kernel.cluster)}"


def _in_pair(stmt: k.Stmt, kernel: k.Kernel) -> bool | None:
    if not isinstance(stmt, k.Operation):
        return None
    instr = kernel.instr_of.get(stmt.together or "")
    return stmt.in_pair if instr is None or not instr.is_alone else instr.is_pair


def halves_are_of_pairs(kernel: k.Kernel) -> Iterator[str]:
    """A halved array is in shared memory of a cluster of two; only boxes for both blocks, and what is launched for both, touch
    it: such operands are in halved arrays, from where a half begins, and others are not."""
    halves = {array.buffer: array.halved for array in kernel.arrays if array.halved is not None}
    for array in (array for array in kernel.arrays if array.halved is not None):
        if array.space is not Space.SHARED or array.barrier or not 0 <= (array.halved or 0) < array.buffer.rank:
            yield f"{array.buffer.name} has no halves along dimension {array.halved}"
        if prod(kernel.cluster) != PAIR:
            yield f"{array.buffer.name} is in halves, in a cluster of {prod(kernel.cluster)} blocks"
    for stmt in k.walk(kernel.body):
        touched = {load.buffer.name for load in _touched(stmt) if load.buffer in halves}
        instr = kernel.instr_of.get(stmt.together or "") if isinstance(stmt, k.Operation) else None
        if touched and not (_is_for_both(stmt, kernel) or (instr is not None and instr.is_alone)):
            yield f"{', '.join(sorted(touched))} is in halves, and is touched by what is not for both blocks"
        pairs = zip(instr.operands, stmt.values, strict=False) if instr is not None and isinstance(stmt, k.Operation) else ()
        for operand, first in pairs:
            dim = halves.get(first.buffer) if isinstance(first, Load) else None
            if (operand.halved is None) != (dim is None):
                yield f"`{operand.name}` is read in halves, or lies in halves, and not both"
            elif dim is not None and isinstance(first, Load) and first.index[dim] is not ZERO:
                yield f"`{operand.name}` begins within a half of {first.buffer.name}"


def _is_for_both(stmt: k.Stmt, kernel: k.Kernel) -> bool:
    moved = stmt.moved(kernel.map_of) if isinstance(stmt, k.Operation) else None
    return moved is not None and moved.corner is not None and moved.peers == tuple(range(PAIR)) and moved.first is ZERO


def _touched(stmt: k.Stmt) -> Iterator[Load]:
    yield from (node for value in k.values(stmt) for node in walk(value) if isinstance(node, Load))
    if isinstance(stmt, k.Operation):
        yield from (each.first for each in stmt.operands)


def led_copies_are_of_pairs(kernel: k.Kernel) -> Iterator[str]:
    """What counts at a barrier of the first block of a pair is a box of a tensor, in a cluster of two."""
    halved = {array.buffer for array in kernel.arrays if array.halved is not None}
    for stmt in (each for each in k.walk(kernel.body) if isinstance(each, k.Operation)):
        what = stmt.completion(kernel.map_of)
        if not isinstance(what, Brings) or not what.led:
            continue
        if prod(kernel.cluster) != PAIR:
            yield f"a copy counts in the first of two blocks, in a cluster of {prod(kernel.cluster)}"
        moved = stmt.moved(kernel.map_of)
        map = kernel.map_of.get(moved.map or "") if moved is not None else None
        if moved is None or moved.corner is None or map is None or map.corners or (moved.peers and moved.target not in halved):
            yield "a copy counts in the first of two blocks, and is no box for one of them"


TILE_HEAD_RULES = (
    arrays_lie_right,
    shared_places_may_meet,
    maps_keep_the_rules,
    tensor_memory_is_taken,
    pairs_are_of_two_blocks,
    halves_are_of_pairs,
    led_copies_are_of_pairs,
)
"""The rules of a kernel's head."""
