"""Weak and strong correctness: what the holes of a buffer must hold, for each of its consumers.

    requirement = WEAK | Strong fill       holes may hold anything | every hole holds `fill`

A consumer that never sees a hole needs nothing. One that does needs the value that changes nothing in what it computes: 0 for a
sum, 1 for a product, the least value for a maximum. The words are those of "Divisibility of Split"; the statements, with their
proofs, are in docs/theory/correctness.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import copysign
from typing import TypeAlias

from texpr.support.record import Record

Number: TypeAlias = int | float
"""A value as it is written; bool is 0 and 1."""


class Weak(Record):
    """Holes may hold anything."""

    def __str__(self) -> str:
        return "weak"


class Strong(Record, eq=False):
    """Every hole holds `fill`. Two are equal where their fills are one value in memory: −0 is not 0, and nan is nan."""

    fill: Number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Strong) and same_fill(self.fill, other.fill)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash("nan" if self.fill != self.fill else self.fill)

    def __str__(self) -> str:
        return f"strong({self.fill})"


Requirement: TypeAlias = Weak | Strong
"""What a consumer needs of holes, and as well what a producer provides."""

WEAK = Weak()


class Consumer(Record):
    """A reader of the buffer. `neutral`: what changes nothing in its result; None where no value does, as in a copy."""

    name: str
    sees_holes: bool
    neutral: Number | None = None

    @property
    def requirement(self) -> Requirement:
        """Weak where no hole is seen. Raises NoFill where one is, and no value is neutral."""
        if not self.sees_holes:
            return WEAK
        if self.neutral is None:
            raise NoFill(f"{self.name} reads holes, and no value of theirs leaves its result as it is")
        return Strong(self.neutral)


class NoFill(ValueError):
    """No value of the holes is right. The message says for whom."""


def required(consumers: Iterable[Consumer]) -> Requirement:
    """What all `consumers` together need. Raises NoFill where one has no neutral value, or two need different ones."""
    strongest: tuple[Consumer, Strong] | None = None
    for consumer in consumers:
        need = consumer.requirement
        if isinstance(need, Weak):
            continue
        if strongest is None:
            strongest = consumer, need
        elif strongest[1] != need:
            first, other = strongest
            raise NoFill(f"{first.name} needs holes that hold {other.fill}, and {consumer.name} needs {need.fill}")
    return WEAK if strongest is None else strongest[1]


def provided(fill: Number | None) -> Requirement:
    """What a producer gives that writes every item, and into the holes `fill`; with None it leaves them as they are."""
    return WEAK if fill is None else Strong(fill)


def suffices(given: Requirement, need: Requirement) -> bool:
    """Whether a producer that provides `given` is right for who needs `need`."""
    return isinstance(need, Weak) or given == need


def carried(given: Requirement, function: Callable[[Number], Number]) -> Requirement:
    """What is provided after `function` is applied to each element, holes and items alike: its value at the fill."""
    return Strong(function(given.fill)) if isinstance(given, Strong) else WEAK


def same_fill(first: Number, second: Number) -> bool:
    """Whether both are one value in memory."""
    if first != first or second != second:
        return first != first and second != second
    return first == second and (first != 0 or copysign(1, first) == copysign(1, second))
