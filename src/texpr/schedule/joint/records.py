"""The instructions that a schedule may use: those that the text of a function has, and those that are shipped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from math import prod

from texpr.frontend import elaborate, parse_text
from texpr.ir import program as ir
from texpr.ir.instr import DESCRIBED, GROUPS, Instr, Operand
from texpr.isa.instruction import Instruction
from texpr.isa.registry import INSTRUCTIONS
from texpr.isa.target import Target


@cache
def shipped() -> tuple[Instr, ...]:
    """The compiler's own, read from the text of their records like those of a user; none that goes on while its lanes do."""
    return _read(each for each in _fitting() if each.effect not in GROUPS)


@cache
def called(name: str) -> Instr | None:
    """One of the compiler's own, also of those that go on while their lanes do: there are many, so each is read alone."""
    found = _read(each for each in _fitting() if each.name == name)
    return found[0] if found else None


def _fitting() -> Iterable[Instruction]:
    return (each for each in INSTRUCTIONS.values() if all(operand.fragment for operand in each.operands) and each.operands)


def _read(records: Iterable[Instruction]) -> tuple[Instr, ...]:
    return elaborate(parse_text("\n\n".join(each.text for each in records))).instrs


def named(function: ir.Function) -> Mapping[str, Instr]:
    """Instructions by name; those of the text come before the shipped ones. Those that go on are asked for by name alone."""
    return {instr.name: instr for instr in (*shipped(), *function.instrs)}


def by_name(function: ir.Function, name: str) -> Instr | None:
    """The instruction of that name, of the text or shipped."""
    return named(function).get(name) or called(name)


def usable(function: ir.Function, target: Target) -> tuple[Instr, ...]:
    """The instructions that `target` has, those that do most at once first; none whose operands have to be described."""
    found = [instr for instr in named(function).values() if instr.template(target) is not None and instr.group is None]
    return tuple(sorted(found, key=lambda instr: -prod(turn.extent for turn in instr.loops)))


def alike(instr: Instr, operand: Operand) -> tuple[str, ...]:
    """Shipped instructions like one that goes on, of the same shape and types, whose `operand` lies otherwise in its memory."""
    told = [(o.name, o.dtype.name, tuple(e.constant for e in o.memory.shape), o.is_described) for o in instr.operands]
    at, layout = instr.operands.index(operand), operand.fragment.layout
    return tuple(
        each.name
        for each in _fitting()
        if GROUPS.get(each.effect) == instr.group
        and [(o.name, o.dtype, o.shape, o.fragment.startswith(DESCRIBED)) for o in each.operands] == told
        if not each.operands[at].fragment.endswith(layout)
    )
