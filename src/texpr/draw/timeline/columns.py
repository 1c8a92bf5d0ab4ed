"""Tensor memory over time: a row for each statement of a kernel that touches it, in order, a cell for some columns of it.

Where a statement touches columns in turns of a loop, or in a slot that a turn says, all are shown that it may touch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from texpr.affine.expr import Sym
from texpr.affine.facts import Known
from texpr.affine.ranges import Range
from texpr.draw.page.grid import Axis, Cell, grid
from texpr.draw.page.picture import Picture, captioned, document, legend, line, stacked
from texpr.draw.page.text import CAPTION, fit
from texpr.ir import kernel as k
from texpr.ir.instr import Instr
from texpr.ir.instr.registers import columns_of
from texpr.ir.kernel.shared import columns_of_arrays, columns_taken
from texpr.ir.operation import Commits, Group, Lasts
from texpr.ir.ops.collective import Held
from texpr.support.record import Record

CELLS = 64
"""The most cells of a row."""

KINDS = {
    "owner3": "a product sums up",
    "owner4": "a product reads, later",
    "left": "a copy from shared memory writes, later",
    "owner2": "lanes store",
    "owner0": "lanes load",
    "owner7": "kept",
    "plain": "taken",
}
"""What is done to columns, by the class of cells."""

NO_COLUMNS = "no kernel of it has tensor memory; products of `tcgen05_…` do, on sm_100a and sm_103a"


class Step(Record):
    """A statement: its words, and what it does to columns, by the class of cells. `ends`: columns are given back."""

    words: str
    does: tuple[tuple[range, str], ...] = ()
    ends: bool = False


def draw_columns(name: str, kernels: Sequence[k.Kernel]) -> str | None:
    """Tensor memory of each kernel of the function `name` as an SVG document; None where none has any."""
    found = [(kernel, tuple(steps(kernel))) for kernel in kernels if columns_of_arrays(kernel)]
    if not found:
        return None
    pictures = [captioned(f"{kernel.name}: {told(kernel)}", _kernel(kernel, every)) for kernel, every in found]
    words = " ".join(
        f"{kernel.name}: {told(kernel)}: {'; '.join(step.words.strip() for step in every)}." for kernel, every in found
    )
    return document(stacked(pictures), f"{name}: tensor memory over time", words)


def told(kernel: k.Kernel) -> str:
    """How many columns are taken, and which array has which."""
    arrays = ", ".join(f"{buffer.name} {at.start} to {at.stop - 1}" for buffer, at in columns_of_arrays(kernel).items())
    return f"{columns_taken(kernel)} columns taken; {arrays}"


def steps(kernel: k.Kernel) -> Iterator[Step]:
    """The statements that are about tensor memory, and loops around them."""
    yield from _steps(kernel, kernel.body, {}, 0)


def _steps(kernel: k.Kernel, body: tuple[k.Stmt, ...], ranges: Mapping[Sym, Range], depth: int) -> Iterator[Step]:
    indent = "· " * depth
    for stmt in body:
        match stmt:
            case k.For():
                known = stmt.lo.is_constant and stmt.hi.is_constant
                inner = {**ranges, stmt.sym: (stmt.lo.constant, stmt.hi.constant - 1)} if known else ranges
                within = list(_steps(kernel, stmt.body, inner, depth + 1))
                if within:
                    yield Step(f"{indent}for {stmt.sym} in {stmt.lo}..{stmt.hi}")
                    yield from within
            case k.If():
                yield from _steps(kernel, stmt.then, ranges, depth)
                yield from _steps(kernel, stmt.orelse, ranges, depth)
            case k.Operation():
                yield from _operation(kernel, stmt, ranges, indent)
            case _:
                pass


def _operation(kernel: k.Kernel, stmt: k.Operation, ranges: Mapping[Sym, Range], indent: str) -> Iterator[Step]:
    match stmt.completion(kernel.map_of):
        case Lasts(what="take", count=count):
            yield Step(f"{indent}take {count}", ((range(count), "plain"),))
        case Lasts(what="free", count=count):
            yield Step(f"{indent}give back {count}", ends=True)
        case Commits(at=barrier, group=Group.TENSOR):
            yield Step(f"{indent}commit, {barrier.buffer.name}")
        case _:
            does = tuple(
                at for op, instr in k.collectives(kernel) if op is stmt for at in _does(kernel, instr, op.registers, ranges)
            )
            if does:
                yield Step(f"{indent}{stmt.by} (line {stmt.span.line})", does)


def _does(
    kernel: k.Kernel, instr: Instr, registers: Sequence[Held], ranges: Mapping[Sym, Range]
) -> Iterator[tuple[range, str]]:
    lies = columns_of_arrays(kernel)
    for held in registers:
        if held.first.buffer in lies:
            written = held.access != "read"
            by_lanes = "owner2" if written else "owner0"
            later = ("left" if instr.is_copy else "owner3") if written else "owner4"
            yield _columns(held, lies[held.first.buffer], ranges), later if instr.is_alone else by_lanes


def _columns(held: Held, at: range, ranges: Mapping[Sym, Range]) -> range:
    """The columns that are touched in all turns of loops whose extents are known; of scales, all that the array has."""
    low, high = Known(dict(ranges)).bounds(held.first.index[0])
    words = held.first.dtype.bits >= WIDE
    if low is None or high is None or not words:
        return at
    first = columns_of(held.first.dtype, low)
    return range(at.start + first, at.start + columns_of(held.first.dtype, high + held.count))


WIDE = 16
"""Bits of elements whose slots follow each other in columns."""


def _kernel(kernel: k.Kernel, every: Sequence[Step]) -> Picture:
    count = columns_taken(kernel)
    wide = max(1, count // CELLS)
    used = {at // wide for columns in columns_of_arrays(kernel).values() for at in columns}
    lives = {cell: [at for at, step in enumerate(every) if cell in _cells(step, wide)] for cell in used}
    rows = [[Cell("", _kind(cell, at, step, lives, wide)) for cell in range(count // wide)] for at, step in enumerate(every)]
    heads = tuple(str(cell * wide) for cell in range(count // wide))
    picture = grid(rows, Axis("", tuple(fit(step.words, 72) for step in every), "start"), Axis("column", heads), high=14.0)
    seen = {cell.kind for row in rows for cell in row}
    note = line(f"a cell is {wide} columns of 128 lanes", CAPTION)
    return stacked((picture, note, legend([(kind, KINDS[kind]) for kind in KINDS if kind in seen])), 8)


def _cells(step: Step, wide: int) -> Mapping[int, str]:
    return {at // wide: kind for columns, kind in step.does for at in columns if kind != "plain"}


def _kind(cell: int, at: int, step: Step, lives: Mapping[int, Sequence[int]], wide: int) -> str:
    does = _cells(step, wide).get(cell)
    if does is not None:
        return does
    life = lives.get(cell, ())
    return "owner7" if life and life[0] < at < life[-1] else "plain"
