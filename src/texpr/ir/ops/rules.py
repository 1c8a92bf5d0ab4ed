"""Rules that several families of operations share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from texpr.affine.expr import ONE
from texpr.ir.operation import Agent, Operation
from texpr.ir.operation.form import Access, Operand
from texpr.ir.value import Load
from texpr.isa.levels import Space

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place


def _own(stmt: Stmt) -> Iterator[Operand]:
    """The operands that the executing thread, not an engine, accesses."""
    if isinstance(stmt, Operation) and stmt.AGENT is Agent.THREAD:
        yield from stmt.operands


def _written(stmt: Stmt) -> Iterator[Load]:
    """The first elements of the operands that the thread writes."""
    return (each.first for each in _own(stmt) if each.access in (Access.WRITE, Access.UPDATE))


def runs(stmt: Stmt) -> Iterator[tuple[Load, int]]:
    """The first element and the length of each operand whose consecutive elements are moved by one access."""
    return ((each.first, each.count) for each in _own(stmt) if each.count is not None)


def written_memory_may_be_written(stmt: Stmt, at: Place) -> Iterator[str]:
    """A written buffer is an array of the kernel, or one that the kernel lists as written, and no scalar parameter."""
    for target in _written(stmt):
        buffer = target.buffer
        if at.space(buffer) is None and buffer.name not in at.kernel.written:
            yield f"{buffer.name} is not said to be written"
        if buffer in at.kernel.scalars:
            yield f"{buffer.name} is passed by value"


def part_of_another_block_is_only_read(stmt: Stmt, at: Place) -> Iterator[str]:
    """Of an array in cluster memory a block writes, and reads vectors of, its own part only; it may read single elements of
    all."""
    for each in _own(stmt):
        place = each.first
        if at.space(place.buffer) is not Space.CLUSTER or (each.access is Access.READ and each.count is None):
            continue
        own = place.index[0].as_sym if place.index else None
        if own is None or own is not at.kernel.rank or each.access is Access.UPDATE:
            yield f"{place.buffer.name} has a part in each block, and this is not only of its own"


def written_value_has_the_type(stmt: Stmt, at: Place) -> Iterator[str]:
    """The value has the type of the element that is written."""
    for target in _written(stmt):
        assert isinstance(stmt, Operation)
        for value in stmt.computed:
            if value.dtype != target.dtype:
                yield f"{target.buffer.name} holds {target.dtype}, the value is {value.dtype}"


def elements_are_consecutive(stmt: Stmt, at: Place) -> Iterator[str]:
    """The innermost dimension has stride 1."""
    for first, _ in runs(stmt):
        buffer = first.buffer
        if not buffer.rank:
            yield f"{buffer.name} is one element"
        elif buffer.strides and buffer.strides[-1] is not ONE:
            yield f"neighbours in {buffer.name} are {buffer.strides[-1]} apart"


def address_is_aligned(stmt: Stmt, at: Place) -> Iterator[str]:
    """The base of the buffer is aligned to the width, and no index is known to be misaligned; lowering proves the other
    indices.

    Workspace and arrays are aligned for every vector width; the `align` of a parameter or result is checked before a launch.
    """
    for first, count in runs(stmt):
        width, buffer = count * first.dtype.bytes, first.buffer
        if buffer in at.kernel.buffers and buffer.role != "local" and (buffer.align or buffer.dtype.bytes) % width:
            yield f"{buffer.name} need not begin at a multiple of {width} bytes"
        if count and len(first.index) == buffer.rank and buffer.rank:
            rest = first.offset % count
            if rest.is_constant and rest.constant:
                yield f"{buffer.name}[{listed(first.index)}] is no multiple of {count} elements"


def wrong_widths(stmt: Stmt, widths: tuple[int, ...]) -> Iterator[str]:
    """The widths in bytes of accesses that are not among `widths`."""
    for first, count in runs(stmt):
        if count * first.dtype.bytes not in widths:
            yield f"{count} elements of {first.dtype} are {count * first.dtype.bytes} bytes, not {listed(widths)}"


def listed(things: tuple[object, ...]) -> str:
    """The items, separated by commas."""
    return ", ".join(map(str, things))
