"""Rules that several operations keep."""

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
    """What a thread touches itself."""
    if isinstance(stmt, Operation) and stmt.AGENT is Agent.THREAD:
        yield from stmt.operands


def _written(stmt: Stmt) -> Iterator[Load]:
    """The first elements that a thread writes itself."""
    return (each.first for each in _own(stmt) if each.access in (Access.WRITE, Access.UPDATE))


def runs(stmt: Stmt) -> Iterator[tuple[Load, int]]:
    """The first elements of the runs that one access of a thread moves, and how long each run is."""
    return ((each.first, each.count) for each in _own(stmt) if each.count is not None)


def written_memory_may_be_written(stmt: Stmt, at: Place) -> Iterator[str]:
    """Memory of the kernel's own, or a buffer that the kernel says it writes."""
    for target in _written(stmt):
        buffer = target.buffer
        if at.space(buffer) is None and buffer.name not in at.kernel.written:
            yield f"{buffer.name} is not said to be written"
        if buffer in at.kernel.scalars:
            yield f"{buffer.name} is passed by value"


def part_of_another_block_is_only_read(stmt: Stmt, at: Place) -> Iterator[str]:
    """Of an array of a cluster, a block writes to its own part, and reads several elements at once from there alone."""
    for each in _own(stmt):
        place = each.first
        if at.space(place.buffer) is not Space.CLUSTER or (each.access is Access.READ and each.count is None):
            continue
        own = place.index[0].as_sym if place.index else None
        if own is None or own is not at.kernel.rank or each.access is Access.UPDATE:
            yield f"{place.buffer.name} has a part in each block, and this is not only of its own"


def written_value_has_the_type(stmt: Stmt, at: Place) -> Iterator[str]:
    """The value has the type of the element."""
    for target in _written(stmt):
        assert isinstance(stmt, Operation)
        for value in stmt.computed:
            if value.dtype != target.dtype:
                yield f"{target.buffer.name} holds {target.dtype}, the value is {value.dtype}"


def elements_are_consecutive(stmt: Stmt, at: Place) -> Iterator[str]:
    """The innermost dimension is dense."""
    for first, _ in runs(stmt):
        buffer = first.buffer
        if not buffer.rank:
            yield f"{buffer.name} is one element"
        elif buffer.strides and buffer.strides[-1] is not ONE:
            yield f"neighbours in {buffer.name} are {buffer.strides[-1]} apart"


def address_is_aligned(stmt: Stmt, at: Place) -> Iterator[str]:
    """The buffer begins at a multiple of the width, and no index is surely between two. The rest is for lowering to prove.

    Workspace and arrays begin where any vector may; of a parameter or result, its `align` is what a launch checks.
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
    """What is wrong with the bytes that one access moves, of which there are `widths`."""
    for first, count in runs(stmt):
        if count * first.dtype.bytes not in widths:
            yield f"{count} elements of {first.dtype} are {count * first.dtype.bytes} bytes, not {listed(widths)}"


def listed(things: tuple[object, ...]) -> str:
    """With commas."""
    return ", ".join(map(str, things))
