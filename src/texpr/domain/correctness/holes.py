"""Weak and strong correctness: what the holes of a buffer must hold, for each of its consumers.

    requirement = WEAK | Strong fill       holes may hold anything | every hole holds `fill`

A consumer that never reads a hole has no requirement. Others require the neutral element of their computation: 0 for a sum, 1
for a product, the least value for a maximum. The terms are those of "Divisibility of Split"; statements and proofs are in
docs/theory/correctness.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import copysign
from typing import TypeAlias

from texpr.support.record import Record

Number: TypeAlias = int | float
"""A constant as written; bool is 0 and 1."""


class Weak(Record):
    """Holes may hold anything."""

    def __str__(self) -> str:
        return "weak"


class Strong(Record, eq=False):
    """Every hole holds `fill`. Two are equal where their fills have one representation in memory: −0 differs from 0, and nan
    equals nan."""

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
"""What a consumer requires of holes, and what a producer provides."""

WEAK = Weak()


class Consumer(Record):
    """A reader of the buffer. `neutral`: the neutral element of its result; None where there is none, as for a copy."""

    name: str
    sees_holes: bool
    neutral: Number | None = None

    @property
    def requirement(self) -> Requirement:
        """Weak where no hole is read. Raises NoFill where one is, and there is no neutral element."""
        if not self.sees_holes:
            return WEAK
        if self.neutral is None:
            raise NoFill(f"{self.name} reads holes, and no value of theirs leaves its result as it is")
        return Strong(self.neutral)


class NoFill(ValueError):
    """No fill is right; the message names the consumer."""


def required(consumers: Iterable[Consumer]) -> Requirement:
    """The requirement of all `consumers` together. Raises NoFill where one has no neutral element, or two need different
    fills."""
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
    """What a producer provides that writes every item and, into holes, `fill`; with None it does not write holes."""
    return WEAK if fill is None else Strong(fill)


def suffices(given: Requirement, need: Requirement) -> bool:
    """Whether the producer's `given` meets the requirement `need`."""
    return isinstance(need, Weak) or given == need


def carried(given: Requirement, function: Callable[[Number], Number]) -> Requirement:
    """What is provided after `function` is applied to each element, holes included: its value at the fill."""
    return Strong(function(given.fill)) if isinstance(given, Strong) else WEAK


def same_fill(first: Number, second: Number) -> bool:
    """Whether both have one representation in memory."""
    if first != first or second != second:
        return first != first and second != second
    return first == second and (first != 0 or copysign(1, first) == copysign(1, second))
