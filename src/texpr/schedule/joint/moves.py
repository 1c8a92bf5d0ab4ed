"""How lanes bring what they hold of an operand to their registers: by an instruction, where one fits, or element by element.

    seq 4 |mi| { instr ldmatrix_x4(As[16 * mi, 0], a[0, 8 * mi]) { … a[…] = As[…] } }       rows of shared memory, by address
    fully par 32 |lane| { seq 4 |mi| { … a[lane, r + 8 * mi] = As[16 * mi + …, …] } }

An instruction moves so if its meaning is `d[…] = p[…]`, of registers d and of an array p in shared memory of whose rows lanes
give addresses. It fits where its lanes and registers hold the same elements: each of its dimensions is one of the operand's,
and digits of its registers are those of the operand's, and then of the tiles that a warp goes through. So one instruction may
bring several tiles, and rows of p may be rows of an operand, or columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir.instr import Instr, Operand
from texpr.ir.instr.fragment import Digit, Fragment
from texpr.ir.value import Load
from texpr.schedule.joint.rows import in_rows
from texpr.support.record import Record


class Tiles(Record):
    """A loop over tiles of a warp, by which registers of an operand move: `extent` of them, `weight` registers apart."""

    sym: Sym
    extent: int
    weight: int


class Move(Record):
    """An instruction as a move of an operand. `along`: the loop of the nest, and how far, of each dimension of what it moves.

    `tiles`: for each loop over tiles how many it moves at once.
    """

    instr: Instr
    source: Operand
    target: Operand
    along: tuple[Sym, ...]
    tiles: Mapping[Sym, int]


def movers(instrs: Sequence[Instr]) -> Iterator[tuple[Instr, Operand, Operand]]:
    """The instructions that move elements from shared memory to registers, as they are."""
    for instr in instrs:
        if len(instr.gives) != 1 or len(instr.operands) != 2 or instr.gives[0].update is not None:
            continue
        (give,) = instr.gives
        source = next((o for o in instr.operands if o.is_address), None)
        target = instr.by_memory[give.target.buffer]
        value = give.value
        if (
            source is None
            or not isinstance(value, Load)
            or value.buffer is not source.memory
            or value.index != give.target.index
        ):
            continue
        if all(e.as_sym is not None for e in value.index) and not target.fragment.copies:
            yield instr, source, target


def move_of(
    held: Fragment, along: Sequence[Sym], load: Load, tiles: Sequence[Tiles], found: tuple[Instr, Operand, Operand]
) -> Move | None:
    """An instruction as a move of what an operand has in `held`, whose dimensions are loops `along`, read by `load`."""
    instr, source, target = found
    if target.dtype != load.dtype or instr.lanes != held.lanes:
        return None
    dims: dict[int, Sym] = {}
    own = [(d.size, along[d.dim], d.step) for d in held.digits if not d.of_lane and d.dim is not None]
    lanes = [(d.size, along[d.dim], d.step) for d in held.digits if d.of_lane and d.dim is not None]
    if not _agree(lanes, [d for d in target.fragment.digits if d.of_lane], dims):
        return None
    registers = [d for d in target.fragment.digits if not d.of_lane]
    if len(registers) < len(own) or not _agree(own, registers[: len(own)], dims):
        return None
    taken: dict[Sym, int] = {}
    rest = list(tiles)
    for digit in registers[len(own) :]:
        if not rest or digit.dim not in dims:
            return None
        loop, done = rest[0], taken.get(rest[0].sym, 1)
        step = _moved(load, {loop.sym: done})
        if loop.extent % (done * digit.size) or step != _moved(load, {dims[digit.dim]: digit.step}):
            return None
        taken[loop.sym] = done * digit.size
        if taken[loop.sym] == loop.extent:
            rest.pop(0)
    rows = tuple(sym for dim in range(len(source.fragment.shape)) if (sym := dims.get(dim)) is not None)
    ranges = {sym: (0, extent - 1) for sym, extent in zip(along, held.shape, strict=True)}
    if len(rows) < len(source.fragment.shape) or not in_rows(load, rows[-1], source.fragment.registers, ranges):
        return None
    return Move(instr, source, target, rows, taken)


def _agree(held: Sequence[tuple[int, Sym, int]], digits: Sequence[Digit], dims: dict[int, Sym]) -> bool:
    """Whether digits are the same, dimensions called as in `dims`, which learns."""
    if len(held) != len(digits):
        return False
    for (size, sym, step), digit in zip(held, digits, strict=True):
        if digit.dim is None or (size, step) != (digit.size, digit.step) or dims.setdefault(digit.dim, sym) != sym:
            return False
    return len(set(dims.values())) == len(dims)


def _moved(load: Load, by: Mapping[Sym, int]) -> tuple[Expr, ...]:
    """How an element moves with its loops."""
    return tuple(e.substitute({sym: expr(sym) + step for sym, step in by.items()}) - e for e in load.index)
