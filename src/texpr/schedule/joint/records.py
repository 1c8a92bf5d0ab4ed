"""The instructions that a schedule may use: those that the text of a function has, and those that are shipped."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import prod

from texpr.frontend import elaborate, parse_text
from texpr.ir import program as ir
from texpr.ir.instr import GROUPS, Instr
from texpr.isa.registry import INSTRUCTIONS
from texpr.isa.target import Target


@cache
def shipped() -> tuple[Instr, ...]:
    """The compiler's own, read from the text of their records like those of a user; none that goes on while its lanes do."""
    fitting = (each for each in INSTRUCTIONS.values() if all(operand.fragment for operand in each.operands) and each.operands)
    return elaborate(parse_text("\n\n".join(each.text for each in fitting if each.effect not in GROUPS))).instrs


def named(function: ir.Function) -> Mapping[str, Instr]:
    """Instructions by name; those of the text come before the shipped ones."""
    return {instr.name: instr for instr in (*shipped(), *function.instrs)}


def usable(function: ir.Function, target: Target) -> tuple[Instr, ...]:
    """The instructions that `target` has, those that do most at once first; none whose operands have to be described."""
    found = [instr for instr in named(function).values() if instr.template(target) is not None and instr.group is None]
    return tuple(sorted(found, key=lambda instr: -prod(turn.extent for turn in instr.loops)))
