"""Two values compared: they are built alike, and so are their parts, down to what is read and to indices."""

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
    """Two values, or two statements, that are not built alike."""


S = TypeVar("S", Site, Spot)
"""Where a value is computed, in a kernel or in a program."""


def parts(given: Value, meant: Value, where: S) -> tuple[tuple[Value, Value, S], ...] | None:
    """The parts of two values that are built alike: pairs to be compared, each with where it is computed: an arm of a `select`
    where its test says so. None for what has no parts, is read, is an index, or is not built alike."""
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
