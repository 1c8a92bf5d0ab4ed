"""Composition by values: whether A(B(c)) is a layout of c at all, decided by evaluating it at every coordinate.

This also covers layouts that the digit-wise composition refuses: with A = (5,3):(0,5) the coordinates 0, 3, 6, 9 have the
values 0, 0, 5, 5, which are those of (2,2):(0,5). The function of one mode of B, f(x) with f(0) = 0, is a layout of x in at
most one coalesced way:

    its first mode has the stride d = f(1), and ends at the first x with f(x) ≠ d · x

since the next stride of a coalesced layout differs from d · x there. A(B(c)) is a layout of c exactly where each mode alone
gives one, and the value is the sum over the modes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import TypeAlias

from texpr.layout.basis import Path, stride
from texpr.layout.layout import Mode
from texpr.support.record import Record

MOST = 4096
"""The most coordinates that are evaluated."""

_Value: TypeAlias = tuple[int, ...]
"""The entries of an arithmetic tuple, one for each path of A's strides."""


class Leaf(Record):
    """A mode with constant size and stride: `size` steps of `step` in the entry `path`."""

    size: int
    step: int
    path: Path


def numbers(modes: Sequence[Mode]) -> list[Leaf] | None:
    """The modes, if all sizes and strides are constant; None otherwise."""
    found: list[Leaf] = []
    for mode in modes:
        if not isinstance(mode.size, int) or not isinstance(mode.step, int):
            return None
        found.append(Leaf(mode.size, mode.step, mode.path))
    return found


def composed(a: Sequence[Leaf], b: Sequence[Leaf]) -> list[list[Mode]] | None:
    """The modes of A(B(c)) for each leaf of `b`, in terms of the coordinate of `a`; None where A(B(c)) is no layout.

    Raises no error: also None where `b` leaves the domain of `a`, or has more than `MOST` coordinates.
    """
    reach = sum((leaf.size - 1) * leaf.step for leaf in b)
    inside = all(leaf.step >= 0 or leaf.size == 1 for leaf in b) and reach < prod(leaf.size for leaf in a)
    if not inside or prod(leaf.size for leaf in b) > MOST:
        return None
    paths = sorted({leaf.path for leaf in a})
    lines = [[_value(a, paths, at * leaf.step) for at in range(leaf.size)] for leaf in b]
    alone = [_modes(line, paths) for line in lines]
    for at in product(*(range(leaf.size) for leaf in b)):
        whole = _value(a, paths, sum(number * leaf.step for number, leaf in zip(at, b, strict=True)))
        if whole != _sum(paths, [line[number] for number, line in zip(at, lines, strict=True)]):
            return None
    found = [modes for modes in alone if modes is not None]
    return found if len(found) == len(alone) else None


def _value(a: Sequence[Leaf], paths: Sequence[Path], at: int) -> _Value:
    total = dict.fromkeys(paths, 0)
    for leaf in a:
        at, digit = divmod(at, leaf.size)
        total[leaf.path] += digit * leaf.step
    return tuple(total.values())


def _sum(paths: Sequence[Path], values: Sequence[_Value]) -> _Value:
    return tuple(sum(value[place] for value in values) for place in range(len(paths)))


def _modes(line: list[_Value], paths: Sequence[Path]) -> list[Mode] | None:
    """The modes of the only coalesced layout with these values, if there is one."""
    found: list[Mode] = []
    while len(line) > 1:
        step = line[1]
        places = [place for place, number in enumerate(step) if number]
        breaks = _breaks(line, step)
        end = next(breaks, len(line))
        if len(places) > 1 or len(line) % end or any(_differs(line, end, at) for at in range(0, len(line), end)):
            return None
        found.append(Mode(end, stride(step[places[0]], paths[places[0]]) if places else 0))
        line = line[::end]
    return found


def _breaks(line: Sequence[_Value], step: _Value) -> Iterator[int]:
    return (at for at, value in enumerate(line) if value != tuple(at * number for number in step))


def _differs(line: Sequence[_Value], end: int, at: int) -> bool:
    """Whether the `end` values from `at` on differ from a translation of the first `end` values."""
    moved = (tuple(map(sum, zip(line[at], value, strict=True))) for value in line[:end])
    return list(moved) != list(line[at : at + end])
