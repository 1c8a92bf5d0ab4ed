"""Digits of a thread number, and what they add to the indices of loops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from texpr.affine.expr import ZERO, Expr
from texpr.support.record import Record

Digits: TypeAlias = tuple[tuple[int, int], ...]
"""Loop (its place in the band) and radix of each digit of a thread number, fastest first."""


class Digit(Record, order=True):
    """One digit of a thread number, `thread / stride % radix`, and what a step of it adds to a loop's index."""

    radix: int
    stride: int = 1
    weight: int = 1


def of_loops(digits: Digits, loops: int) -> tuple[tuple[Digit, ...], ...]:
    """The digits of each loop; those of one loop weigh the product of those before them."""
    own: list[list[Digit]] = [[] for _ in range(loops)]
    weights = [1] * loops
    stride = 1
    for loop, radix in digits:
        own[loop].append(Digit(radix, stride, weights[loop]))
        weights[loop] *= radix
        stride *= radix
    return tuple(map(tuple, own))


def share(digits: Iterable[Digit], thread: Expr, threads: int = 0) -> Expr:
    """What a thread's number adds to a loop's index; `threads`: that the number is less than, where that is known."""
    total = ZERO
    for digit in digits:
        high = thread // digit.stride
        total = total + (high if digit.radix * digit.stride == threads else high % digit.radix) * digit.weight
    return total


def of_lanes(digits: Digits, lanes: int) -> Digits:
    """The digits of a warp's lanes, of those of a block, where the first ones multiply to a warp; else all of them."""
    found: list[tuple[int, int]] = []
    left = lanes
    for loop, radix in digits:
        if left > 1:
            part = min(radix, left)
            if radix % part or left % part:
                return digits
            found.append((loop, part))
            left //= part
    return tuple(found)
