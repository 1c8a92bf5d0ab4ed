"""Fragments of instructions: which lane holds which element of an operand, and in which register; or where it lies in memory.

    a of mma.m16n8k16        T0 R0   T0 R1   T1 R0   …        a row for each i, a column for each k

All is read off the record: the digits of a fragment, and the descriptor that a plan derived. An operand that is larger than a
picture shows its first part, and says what the others are: along each dimension the greatest digits are numbers of lanes, or of
registers, that are added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from texpr.affine.expr import expr
from texpr.draw.page.grid import Axis, Cell, grid
from texpr.draw.page.picture import Picture, beside, captioned, document, line, stacked
from texpr.draw.page.style import OWNERS
from texpr.draw.page.text import CAPTION
from texpr.ir.instr import Instr, Operand, loads_of
from texpr.ir.instr.descriptor import ROWS, Descriptor, along, offset
from texpr.ir.instr.fragment import Digit, Misfit
from texpr.ir.instr.registers import packing
from texpr.isa.engine import CHUNK, LINE
from texpr.isa.levels import WARP
from texpr.support.record import Record
from texpr.tma.swizzle import Swizzle

MOST = 16
"""The most rows, and columns, of an operand that are shown."""


class Use(Record, eq=False):
    """An instruction that is used. `how`: the descriptor of each operand that is given one, by name."""

    instr: Instr
    how: Mapping[str, Descriptor]


class Repeat(Record):
    """What goes on like the part that is shown: `step` elements further along dimension `dim`, up to `size`, the lane is
    greater by `lanes`, and the register by `registers`."""

    dim: int
    step: int
    size: int
    lanes: int = 0
    registers: int = 0

    def __str__(self) -> str:
        what = ("rows", "columns")[self.dim] if self.dim < 2 else f"elements along dimension {self.dim}"
        warps, lanes = divmod(self.lanes, WARP)
        added = ((warps, "W"), (lanes, "T"), (self.registers, "R"))
        return f"each {self.step} {what} further, up to {self.size}: {', '.join(f'{name} + {n}' for n, name in added if n)}"


class Part(Record):
    """What is shown of an operand: the first elements, `shape` of them, and how the others follow, the greatest step first."""

    shape: tuple[int, ...]
    more: tuple[Repeat, ...] = ()


def draw_fragments(name: str, uses: Sequence[Use]) -> str:
    """The operands of each instruction as an SVG document."""
    words = " ".join(described(operand, use) for use in uses for operand in use.instr.operands)
    colours = f"lanes, and chunks of {CHUNK} bytes, that are equal modulo {len(OWNERS)} have one colour"
    return document(stacked([*map(_use, uses), line(colours, CAPTION)]), f"{name}: who holds what", words)


def described(operand: Operand, use: Use) -> str:
    """The picture of an operand in words: its fragment and its first elements."""
    rows = cells(operand, use)
    first = "; ".join(" ".join(cell.text for cell in row) for row in rows[:2])
    return f"{_title(operand, use)}: {'; '.join((first, *_more(operand, use)))}."


def _use(use: Use) -> Picture:
    operands = [_operand(operand, use) for operand in use.instr.operands]
    rows = [operands] if sum(each.width for each in operands) < 1600 else [[each] for each in operands]
    return captioned(f"{use.instr.name}: {use.instr.lanes} lanes", stacked([beside(row) for row in rows], 18))


def _operand(operand: Operand, use: Use) -> Picture:
    """The grid of an operand, with what its text cannot show below."""
    shown, table = part(operand), cells(operand, use)
    rank, names = len(shown.shape), axes(operand, use.instr)
    units = [operand.is_described and along(operand) == dim for dim in range(rank)]
    heads = [
        Axis(name, _chunks(size, operand)) if unit else Axis.counted(name, size)
        for name, size, unit in zip(names, shown.shape, units, strict=True)
    ]
    across = heads[-1] if rank else Axis("", ("",))
    down = heads[0] if rank == 2 else Axis("", ("",) * len(table))
    said = [line(text, CAPTION) for text in (*_told(operand, use), *_more(operand, use))]
    return captioned(_title(operand, use), stacked((grid(table, down, across), *said), 6))


def _chunks(count: int, operand: Operand) -> tuple[str, ...]:
    each = _per_chunk(operand)
    return tuple(f"{first}-{min(first + each, count) - 1}" for first in range(0, count, each))


def _title(operand: Operand, use: Use) -> str:
    shape, core = " × ".join(map(str, _shape(operand))), "core matrices " if operand.is_described else ""
    return f"{operand.name} of {use.instr.name}: {shape} of {operand.dtype}, {core}{operand.fragment.layout}"


def _shape(operand: Operand) -> tuple[int, ...]:
    return tuple(e.constant for e in operand.memory.shape)


def axes(operand: Operand, instr: Instr) -> tuple[str, ...]:
    """The names of an operand's dimensions: the loops of the meaning that its subscripts are."""
    targets = (give.target for give in instr.gives)
    loads = (load for give in instr.gives for load in loads_of(give))
    for load in (*targets, *loads):
        if load.buffer is operand.memory:
            return tuple(sym.base if (sym := e.as_sym) is not None else str(e) for e in load.index)
    return ("",) * operand.memory.rank


def part(operand: Operand) -> Part:
    """The first rows and columns, and what is added for those that follow; of shared memory the descriptor says that."""
    shape = list(_shape(operand))
    if operand.is_described:
        most = [LINE // operand.dtype.bytes if dim == along(operand) else MOST for dim in range(len(shape))]
        return Part(tuple(map(min, shape, most)))
    more = list[Repeat]()
    for dim, size in enumerate(tuple(shape)):
        digits = sorted((d for d in operand.fragment.digits if d.dim == dim), key=lambda digit: digit.step)
        while shape[dim] > MOST and digits:
            digit = digits.pop()
            shape[dim] = digit.step * max(1, min(digit.size, MOST // digit.step))
            more.append(_repeat(digit, dim, size))
    return Part(tuple(shape), tuple(more))


def _repeat(digit: Digit, dim: int, size: int) -> Repeat:
    lanes, registers = (digit.weight, 0) if digit.of_lane else (0, digit.weight)
    return Repeat(dim, digit.step, size, lanes, registers)


def _more(operand: Operand, use: Use) -> Iterator[str]:
    """How what is not shown follows."""
    shown, shape = part(operand), _shape(operand)
    yield from map(str, shown.more)
    for dim, size in enumerate(shape) if operand.is_described else ():
        how, what = descriptor(operand, use), ("rows", "columns")[dim]
        if shown.shape[dim] < size:
            is_unit = dim == along(operand)
            step, more = (shown.shape[dim], how.leading) if is_unit else (ROWS, how.stride)
            yield f"each {step} {what} further, up to {size}: {more} bytes more"


def _told(operand: Operand, use: Use) -> Iterator[str]:
    """What text in cells means."""
    fragment = operand.fragment
    if operand.is_described:
        how = descriptor(operand, use)
        swizzle = f"swizzle of {how.swizzle} bytes" if how.swizzle else "no swizzle"
        yield f"bytes behind a start at a multiple of {how.period}: {swizzle}, leading {how.leading}, stride {how.stride}"
        if operand.name not in use.how:
            yield "as in a tile whose rows are as long as the swizzle: no plan says where it lies"
        return
    if operand.is_address:
        yield f"T: the lane that gives the address of {fragment.registers} elements, + their number there"
        return
    if fragment.copied > 1:
        yield f"each element is held {fragment.copied} times: the first holder is shown"
    try:
        packed = packing(operand.dtype, fragment.registers)
    except Misfit:
        return
    each = f", {packed.per} in each of {packed.count} registers of 32 bits" if packed.per > 1 else ""
    yield f"{fragment.registers} elements a lane, R0 to R{fragment.registers - 1}{each}"


def descriptor(operand: Operand, use: Use) -> Descriptor:
    """That of a plan; or that of a tile of the widest swizzle, in lines of its span."""
    found = use.how.get(operand.name)
    if found is not None:
        return found
    rows = _shape(operand)[1 - along(operand)]
    return Descriptor(LINE, rows * LINE, ROWS * LINE)


def cells(operand: Operand, use: Use) -> list[list[Cell]]:
    """The cells of the part that is shown: of elements, or of chunks of 16 bytes in shared memory."""
    shape = part(operand).shape
    if operand.is_described:
        rows, columns = (range(0, size, _per_chunk(operand) if dim == along(operand) else 1) for dim, size in enumerate(shape))
        return [[_chunk(operand, use, (row, column)) for column in columns] for row in rows]
    outer = list(product(*map(range, shape[:-1])))
    return [[_element(operand, (*row, column)) for column in range(shape[-1] if shape else 1)] for row in outer]


def _per_chunk(operand: Operand) -> int:
    return CHUNK // operand.dtype.bytes


def _chunk(operand: Operand, use: Use, index: tuple[int, int]) -> Cell:
    """A chunk of 16 bytes, where its swizzle has it."""
    how = descriptor(operand, use)
    linear = offset(use.instr, operand, how, [expr(at) for at in index]).constant
    place = Swizzle(how.swizzle)(linear)
    return Cell(str(place), OWNERS[place // CHUNK % len(OWNERS)])


def _element(operand: Operand, index: tuple[int, ...]) -> Cell:
    """An element in a register, or by the lane that gives its address."""
    found = operand.fragment
    at = [expr(each) for each in index]
    lane, register = found.lane(at).constant, found.register(at).constant
    warp = f"W{lane // WARP} " if found.lanes > WARP else ""
    held = f"+{register}" if operand.is_address else f"R{register}"
    return Cell(f"{warp}T{lane % WARP} {held}", OWNERS[lane % len(OWNERS)])
