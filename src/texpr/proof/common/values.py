"""Comparison of the structure of two values, down to loads, references and index expressions."""

from __future__ import annotations

from typing import TypeVar

from texpr.ir.value import Cast, Literal, Op, Value
from texpr.ir.value.structure import same_constant
from texpr.presburger.formula import Formula, negate
from texpr.proof.read.actions import Spot
from texpr.proof.read.conditions import test
from texpr.proof.read.events import Site
from texpr.support.record import replace


class Unlike(Exception):
    """Two values, or two statements, have different structure."""


S = TypeVar("S", Site, Spot)
"""The context of a value, in a kernel or in a program."""


def parts(given: Value, meant: Value, where: S) -> tuple[tuple[Value, Value, S], ...] | None:
    """The pairs of operands of two values with the same operation, each with its context: in an arm of a `select` the test has
    a known result. None for a value without operands, a load, a reference or an index, or if the operations differ."""
    match given, meant:
        case Literal(), Literal() if same_constant(given, meant):
            return ()
        case Op("select", (asked, *arms)), Op("select", (wanted, *others)):
            fact = test(asked)
            taken = (where, where) if fact is None else (_inside(where, fact), _inside(where, negate(fact)))
            return ((asked, wanted, where), *zip(arms, others, taken, strict=True))
        case Op(), Op() if given.name == meant.name and given.dtype == meant.dtype and len(given.args) == len(meant.args):
            return tuple((mine, theirs, where) for mine, theirs in zip(given.args, meant.args, strict=True))
        case Cast(), Cast() if given.dtype == meant.dtype:
            return ((given.arg, meant.arg, where),)
        case _:
            return None


def _inside(where: S, fact: Formula) -> S:
    return replace(where, domain=(*where.domain, fact))
