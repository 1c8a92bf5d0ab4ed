"""Digits of a thread's number, and their shares of loop indices."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from texpr.affine.expr import ZERO, Expr
from texpr.support.record import Record


class Digit(Record, order=True):
    """One digit of a thread's number, `thread / stride % radix`; a loop's index grows by `weight` with each step of it."""

    radix: int
    stride: int = 1
    weight: int = 1


def radix(digits: Iterable[Digit]) -> int:
    """The number of iterations of a loop with these digits that execute concurrently."""
    return prod(digit.radix for digit in digits)


def share(digits: Iterable[Digit], thread: Expr, threads: int = 0) -> Expr:
    """The share of a thread's number in a loop's index; `threads`: an upper bound of the number, 0 if unknown."""
    total = ZERO
    for digit in digits:
        high = thread // digit.stride
        total = total + (high if digit.radix * digit.stride == threads else high % digit.radix) * digit.weight
    return total


def turns(extent: Expr, digits: Iterable[Digit]) -> Expr:
    """The greatest number of iterations that one thread executes of a loop with these digits."""
    side = radix(digits)
    return (extent + (side - 1)) // side
