"""Digits of a thread number, and what they add to the indices of loops."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from texpr.affine.expr import ZERO, Expr
from texpr.support.record import Record


class Digit(Record, order=True):
    """One digit of a thread number, `thread / stride % radix`, and what a step of it adds to a loop's index."""

    radix: int
    stride: int = 1
    weight: int = 1


def radix(digits: Iterable[Digit]) -> int:
    """How many iterations of a loop with these digits threads run side by side."""
    return prod(digit.radix for digit in digits)


def share(digits: Iterable[Digit], thread: Expr, threads: int = 0) -> Expr:
    """What a thread's number adds to a loop's index; `threads`: that the number is less than, where that is known."""
    total = ZERO
    for digit in digits:
        high = thread // digit.stride
        total = total + (high if digit.radix * digit.stride == threads else high % digit.radix) * digit.weight
    return total


def turns(extent: Expr, digits: Iterable[Digit]) -> Expr:
    """How many iterations of a loop that threads share one of them may have."""
    side = radix(digits)
    return (extent + (side - 1)) // side
