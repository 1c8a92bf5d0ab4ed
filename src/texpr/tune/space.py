"""The space of a search: dimensions with their values, from a schedule's consts or from the planner's candidates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from math import prod

from texpr.planner.choice import Point as Choice
from texpr.support.record import Record

MOST = 4096
"""The most values of a dimension."""

AROUND = (4, 2)
"""Without other values a const is searched from a fourth to four times its default, by factors of two."""

_RANGE = re.compile(r"(-?\d+)\.\.(=?)(-?\d+)(?::(\*?)(\d+))?")

Point = Mapping[str, int]
"""A value for each dimension, by name."""


class Wrong(Exception):
    """Values of a dimension that cannot be read, and the reason."""


class Dimension(Record):
    """`values` in the order of the text; `default` is among them. `labels`: what candidates of the planner are. `is_written`:
    whether the text, or the compiler by itself, has the default."""

    name: str
    values: tuple[int, ...]
    default: int
    labels: tuple[str, ...] = ()
    is_written: bool = True

    def label(self, value: int) -> str:
        """What a value stands for; empty where it is a number like any other."""
        return self.labels[self.values.index(value)] if self.labels else ""


class Space(Record):
    """The dimensions of a search."""

    dimensions: tuple[Dimension, ...]

    @property
    def size(self) -> int:
        """The number of points."""
        return prod(len(each.values) for each in self.dimensions)

    @property
    def is_written(self) -> bool:
        """Whether `default` is what the text, or the compiler by itself, has."""
        return all(each.is_written for each in self.dimensions)

    @property
    def default(self) -> dict[str, int]:
        """The point that is measured first: what the text, or the compiler by itself, has, if that is among the points."""
        return {each.name: each.default for each in self.dimensions}

    def points(self) -> Iterator[dict[str, int]]:
        """Every point, the last dimension fastest."""
        return (self.at(number) for number in range(self.size))

    def at(self, number: int) -> dict[str, int]:
        """The point of a number below `size`."""
        found: dict[str, int] = {}
        for each in reversed(self.dimensions):
            number, at = divmod(number, len(each.values))
            found[each.name] = each.values[at]
        return {each.name: found[each.name] for each in self.dimensions}


def around(default: int) -> tuple[int, ...]:
    """The values of a const of which nothing is said but its default."""
    if default < 1:
        return (default,)
    less = (default // by for by in AROUND if default % by == 0)
    return (*less, default, *(default * by for by in reversed(AROUND)))


def parse_values(text: str) -> tuple[int, ...]:
    """The values of `16,32`, `8..64:8` (without its end, in steps of 8), `8..=256:*2` (with its end, by factors of 2).

    Raises Wrong.
    """
    found: dict[int, None] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        for value in _part(part):
            found[value] = None
            if len(found) > MOST:
                raise Wrong(f"`{text}` is more than {MOST} values")
    return tuple(found)


def _part(text: str) -> Iterable[int]:
    if re.fullmatch(r"-?\d+", text):
        return (int(text),)
    match = _RANGE.fullmatch(text)
    if match is None:
        raise Wrong(f"`{text}` is neither a whole number nor a range such as 8..64:8 or 8..=256:*2")
    first, end, step = int(match[1]), int(match[3]) + bool(match[2]), int(match[5] or 1)
    if step < 1 or (match[4] and (step < 2 or first < 1)):
        raise Wrong(f"`{text}` does not get on: a step is at least 1, a factor at least 2, from a first value of at least 1")
    return _powers(first, end, step) if match[4] else range(first, end, step)


def _powers(value: int, end: int, factor: int) -> Iterator[int]:
    while value < end:
        yield value
        value *= factor


def of_choices(choices: Iterable[Choice]) -> tuple[Dimension, ...]:
    """The planner's candidates as dimensions: 0 is what it takes by itself."""
    return tuple(Dimension(each.name, tuple(range(len(each.candidates))), 0, each.candidates) for each in choices)
