"""What makes a statement that moves several elements at once well formed, rule by rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from texpr.affine.expr import ONE
from texpr.ir import kernel as k
from texpr.ir.place import Place, Rule
from texpr.ir.types import BOOL
from texpr.ir.value import Load
from texpr.isa.levels import Space

VECTOR_BYTES = (2, 4, 8, 16)
"""What one access moves (PTX ISA, "ld", "st": vectors of up to 128 bits; two bytes are one register)."""

COPY_BYTES = (4, 8, 16)
"""What one asynchronous copy moves (PTX ISA, "cp.async": cp-size)."""


def _moved(stmt: k.Stmt) -> tuple[tuple[Load, ...], int]:
    """The first elements of the runs that a statement moves, and how long each run is."""
    match stmt:
        case k.LoadVector():
            return (stmt.source,), len(stmt.targets)
        case k.StoreVector():
            return (stmt.target,), len(stmt.values)
        case k.CopyAsync():
            return (stmt.target, stmt.source), stmt.count
        case _:
            return (), 0


def width_is_one_access(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A machine moves this many bytes at once."""
    moved, count = _moved(stmt)
    widths = COPY_BYTES if isinstance(stmt, k.CopyAsync) else VECTOR_BYTES
    for first in moved:
        if count * first.dtype.bytes not in widths:
            yield f"{count} elements of {first.dtype} are {count * first.dtype.bytes} bytes, not {_listed(widths)}"


def elements_are_consecutive(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """The innermost dimension is dense."""
    for first in _moved(stmt)[0]:
        buffer = first.buffer
        if not buffer.rank:
            yield f"{buffer.name} is one element"
        elif buffer.strides and buffer.strides[-1] is not ONE:
            yield f"neighbours in {buffer.name} are {buffer.strides[-1]} apart"


def address_is_aligned(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """The buffer begins at a multiple of the width, and no index is surely between two. The rest is for lowering to prove.

    Workspace and arrays begin where any vector may; of a parameter or result, its `align` is what a launch checks.
    """
    moved, count = _moved(stmt)
    for first in moved:
        width, buffer = count * first.dtype.bytes, first.buffer
        if buffer in at.kernel.buffers and buffer.role != "local" and (buffer.align or buffer.dtype.bytes) % width:
            yield f"{buffer.name} need not begin at a multiple of {width} bytes"
        if count and len(first.index) == buffer.rank and buffer.rank:
            rest = k.offset(first) % count
            if rest.is_constant and rest.constant:
                yield f"{buffer.name}[{_listed(first.index)}] is no multiple of {count} elements"


def vectors_are_of_memory(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Global or shared: what is one thread's own is in registers already."""
    if isinstance(stmt, k.LoadVector | k.StoreVector):
        for first in _moved(stmt)[0]:
            if any(a.buffer is first.buffer and a.space in (Space.LOCAL, Space.LANES) for a in at.kernel.arrays):
                yield f"{first.buffer.name} is one thread's own"


def copy_goes_into_shared_memory(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """From a buffer of the kernel to a shared array, of one type."""
    if isinstance(stmt, k.CopyAsync):
        target, source = stmt.target, stmt.source
        if not any(a.buffer is target.buffer and a.space is Space.SHARED for a in at.kernel.arrays):
            yield f"{target.buffer.name} is no shared array"
        if source.buffer not in at.kernel.buffers:
            yield f"{source.buffer.name} is not in global memory"
        if target.dtype != source.dtype:
            yield f"{target.buffer.name} holds {target.dtype}, {source.buffer.name} {source.dtype}"


def copy_condition_is_bool(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """Whether anything is read is decided by a bool."""
    if isinstance(stmt, k.CopyAsync) and stmt.when is not None and stmt.when.dtype != BOOL:
        yield f"the condition is {stmt.when.dtype}"


def copy_is_waited_for(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A kernel that starts copies commits and waits somewhere; whether in time, the emulator sees."""
    if isinstance(stmt, k.CopyAsync):
        kinds = {type(other) for other in k.walk(at.kernel.body)}
        if k.CommitAsync not in kinds:
            yield "the kernel commits no copies"
        if k.WaitAsync not in kinds:
            yield "the kernel waits for no copies"


def wait_leaves_no_less_than_none(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """A number of groups is not negative."""
    if isinstance(stmt, k.WaitAsync) and stmt.pending < 0:
        yield f"{stmt.pending} groups cannot be left"


def _listed(things: tuple[object, ...]) -> str:
    return ", ".join(map(str, things))


_MOVING = (k.LoadVector, k.StoreVector, k.CopyAsync)

TRANSFER_RULES: Mapping[Rule, tuple[type[k.Stmt], ...]] = {
    width_is_one_access: _MOVING,
    elements_are_consecutive: _MOVING,
    address_is_aligned: _MOVING,
    vectors_are_of_memory: (k.LoadVector, k.StoreVector),
    copy_goes_into_shared_memory: (k.CopyAsync,),
    copy_condition_is_bool: (k.CopyAsync,),
    copy_is_waited_for: (k.CopyAsync,),
    wait_leaves_no_less_than_none: (k.WaitAsync,),
}
"""Each rule, and the kinds of statements of which it says anything."""
