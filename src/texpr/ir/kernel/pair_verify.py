"""The rules of what two blocks of a cluster do together in tensor memory, and of the tiles of which each has a half."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from texpr.affine.expr import ZERO
from texpr.ir import kernel as k
from texpr.ir.instr import Instr
from texpr.ir.value import Buffer, Load, walk
from texpr.isa.instructions.tcgen05 import PAIR
from texpr.isa.levels import Space


def pairs_are_of_two_blocks(kernel: k.Kernel) -> Iterator[str]:
    """All that is taken, launched and committed is of pairs, or nothing (PTX ISA, "tcgen05": one .cta_group in a kernel); the
    cluster is one pair."""
    found = {_of_pair(stmt, kernel) for stmt in k.walk(kernel.body)} - {None}
    if len(found) > 1:
        yield "some of what is done in tensor memory is of pairs of blocks, and some is not"
    if True in found and prod(kernel.cluster) != PAIR:
        yield f"a pair of blocks is a cluster of {PAIR}, and this one has {prod(kernel.cluster)}"


def _of_pair(stmt: k.Stmt, kernel: k.Kernel) -> bool | None:
    match stmt:
        case k.TakeColumns() | k.FreeColumns() | k.CommitColumns():
            return stmt.pair
        case k.CollectiveAlone() if stmt.name in kernel.instr_of:
            return kernel.instr_of[stmt.name].is_pair
        case _:
            return None


def halves_are_of_pairs(kernel: k.Kernel) -> Iterator[str]:
    """A halved array is in shared memory of a cluster of two; only copies for both blocks, and what is launched for both, touch
    it: such operands are in halved arrays, from where a half begins, and others are not."""
    halves = {array.buffer: array for array in kernel.arrays if array.halved is not None}
    for buffer, array in halves.items():
        if array.space is not Space.SHARED or array.barrier or not 0 <= (array.halved or 0) < buffer.rank:
            yield f"{buffer.name} has no halves along dimension {array.halved}"
        if prod(kernel.cluster) != PAIR:
            yield f"{buffer.name} is in halves, in a cluster of {prod(kernel.cluster)} blocks"
    for stmt in k.walk(kernel.body):
        touched = {load.buffer.name for load in _touched(stmt) if load.buffer in halves}
        if touched and not _is_for_both(stmt):
            yield f"{', '.join(sorted(touched))} is in halves, and is touched by what is not for both blocks"
        instr = kernel.instr_of.get(stmt.name) if isinstance(stmt, k.Collective) else None
        if isinstance(stmt, k.Collective) and instr is not None:
            yield from _read_in_halves(stmt, instr, halves)


def _read_in_halves(stmt: k.Collective, instr: Instr, halves: dict[Buffer, k.Array]) -> Iterator[str]:
    for operand, held in zip(instr.operands, stmt.registers, strict=False):
        array = halves.get(held.first.buffer)
        if (operand.halved is None) != (array is None):
            yield f"`{operand.name}` of {stmt.name} is in halves, or {held.first.buffer.name} is, and not both"
        elif array is not None and held.first.index[array.halved or 0] is not ZERO:
            yield f"`{operand.name}` of {stmt.name} begins within a half of {held.first.buffer.name}"


def led_copies_are_of_pairs(kernel: k.Kernel) -> Iterator[str]:
    """What counts at a barrier of the first block of a pair is a box of a tensor, in a cluster of two."""
    for stmt in k.walk(kernel.body):
        if isinstance(stmt, k.CopyTensor) and stmt.led:
            if prod(kernel.cluster) != PAIR:
                yield f"a copy counts in the first of two blocks, in a cluster of {prod(kernel.cluster)}"
            if stmt.rows or stmt.offsets or (stmt.peers and stmt.target.buffer not in _halved(kernel)):
                yield "a copy counts in the first of two blocks, and is no box for one of them"


def _halved(kernel: k.Kernel) -> set[Buffer]:
    return {array.buffer for array in kernel.arrays if array.halved is not None}


def _is_for_both(stmt: k.Stmt) -> bool:
    if isinstance(stmt, k.CopyTensor):
        return stmt.peers == tuple(range(PAIR)) and stmt.first is ZERO
    return isinstance(stmt, k.CollectiveAlone)


def _touched(stmt: k.Stmt) -> Iterator[Load]:
    yield from (node for value in k.values(stmt) for node in walk(value) if isinstance(node, Load))
    if isinstance(stmt, k.Operation):
        yield from (each.first for each in stmt.operands)


PAIR_RULES = (pairs_are_of_two_blocks, halves_are_of_pairs, led_copies_are_of_pairs)
"""The rules of a kernel with pairs of blocks."""
