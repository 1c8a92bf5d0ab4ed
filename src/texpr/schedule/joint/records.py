"""The instructions that a schedule may use: those that the text of a function has, and those that are shipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import prod

from texpr.frontend import elaborate, parse_text
from texpr.ir import program as ir
from texpr.ir.instr import COLUMNS, DESCRIBED, GROUPS, Instr, Operand
from texpr.ir.value import Load, walk
from texpr.ir.value.types import F32
from texpr.isa.instruction import Instruction
from texpr.isa.instructions.tcgen05 import PAIRED
from texpr.isa.registry import INSTRUCTIONS
from texpr.isa.target import Target


@cache
def called(name: str) -> Instr | None:
    """One of the compiler's own, read from its text like those of a user; there are many, so each is read alone."""
    record = next((each for each in _described() if each.name == name), None)
    return None if record is None else elaborate(parse_text(record.text)).instrs[0]


def _described() -> Iterator[Instruction]:
    return (each for each in INSTRUCTIONS.values() if all(operand.fragment for operand in each.operands) and each.operands)


def _waited() -> Iterator[Instruction]:
    """Those that do not go on while their lanes do, and so need no name to be used."""
    return (each for each in _described() if each.effect not in GROUPS)


def listed(function: ir.Function) -> Sequence[str]:
    """The names of instructions that lanes do together, of the text and shipped."""
    return tuple(dict.fromkeys(each.name for each in (*_waited(), *function.instrs)))


def by_name(function: ir.Function, name: str) -> Instr | None:
    """The instruction of that name, of the text or shipped."""
    return next((instr for instr in function.instrs if instr.name == name), None) or called(name)


def usable(function: ir.Function, target: Target) -> tuple[Instr, ...]:
    """The instructions that `target` has, those that do most at once first; none whose operands have to be described."""
    return _ordered(_waited(), function, target)


def usable_in(function: ir.Function, target: Target) -> tuple[Instr, ...]:
    """Those of `usable` whose operands are of types that `function` has, or sums may be widened to: the others fit nothing
    in it, and are not read."""
    stmts = [*ir.walk(function.body)]
    types = {each.dtype.name for stmt in stmts for value in ir.values(stmt) for each in walk(value)}
    types |= {target.dtype.name for stmt in stmts if isinstance(stmt, ir.Bind) for target in stmt.targets}
    added = {s.targets[0].dtype for s in stmts if isinstance(s, ir.Bind) and s.update == "add"}
    types |= {F32.name} if any(dtype.is_float and dtype.bits < F32.bits for dtype in added) else set[str]()
    return _ordered((each for each in _waited() if {o.dtype for o in each.operands} <= types), function, target)


def _ordered(records: Iterable[Instruction], function: ir.Function, target: Target) -> tuple[Instr, ...]:
    every = {each.name: called(each.name) for each in records if each.template(target) is not None}
    every |= {instr.name: instr for instr in function.instrs}
    found = [instr for instr in every.values() if instr and instr.template(target) is not None and instr.group is None]
    return tuple(sorted(found, key=lambda instr: -prod(turn.extent for turn in instr.loops)))


def moving(function: ir.Function, target: Target, dtype: str, count: int, *, inward: bool) -> Instr | None:
    """The instruction that moves so many columns of tensor memory to registers of lanes, or back."""
    shipped = (called(e.name) for e in _waited() if e.template(target) is not None and _is_of_columns(e, dtype))
    for instr in (*function.instrs, *(each for each in shipped if each is not None)):
        columns = [operand for operand in instr.operands if operand.columns]
        plain = len(instr.operands) == 2 and len(columns) == len(instr.gives) == 1 and instr.gives[0].update is None
        if not plain or instr.template(target) is None or not isinstance(instr.gives[0].value, Load):
            continue
        shapes = {tuple(e.constant for e in operand.memory.shape) for operand in instr.operands}
        same = {operand.fragment.layout for operand in instr.operands}
        if len(shapes) == len(same) == 1 and columns[0].fragment.registers == count and columns[0].is_written != inward:
            return instr
    return None


def _is_of_columns(record: Instruction, dtype: str) -> bool:
    return all(each.dtype == dtype for each in record.operands) and any(o.fragment.startswith(COLUMNS) for o in record.operands)


def alike(instr: Instr, operand: Operand) -> tuple[str, ...]:
    """Shipped instructions like one that goes on, of the same shape and types, whose `operand` lies otherwise in its memory."""
    told = [(o.name, o.dtype.name, tuple(e.constant for e in o.memory.shape), o.is_described) for o in instr.operands]
    at, layout = instr.operands.index(operand), operand.fragment.layout
    return tuple(
        each.name
        for each in _described()
        if GROUPS.get(each.effect) == instr.group
        and (each.effect == PAIRED) == instr.is_pair
        and [(o.name, o.dtype, o.shape, o.fragment.startswith(DESCRIBED)) for o in each.operands] == told
        if not each.operands[at].fragment.endswith(layout)
    )
