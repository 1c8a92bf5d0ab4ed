"""Digits of a thread number as the solver of σ has them: loops of a band and radices."""

from __future__ import annotations

from typing import TypeAlias

from texpr.ir.steps.digits import Digit

Digits: TypeAlias = tuple[tuple[int, int], ...]
"""Loop (its position in the band) and radix of each digit of a thread number, fastest first."""


def of_loops(digits: Digits, loops: int) -> tuple[tuple[Digit, ...], ...]:
    """The digits of each loop; the weight of a digit is the product of the loop's radices before it."""
    own: list[list[Digit]] = [[] for _ in range(loops)]
    weights = [1] * loops
    stride = 1
    for loop, radix in digits:
        own[loop].append(Digit(radix, stride, weights[loop]))
        weights[loop] *= radix
        stride *= radix
    return tuple(map(tuple, own))


def of_lanes(digits: Digits, lanes: int) -> Digits:
    """The digits of a warp's lanes, where the first digits of a block multiply to a warp; otherwise all of them."""
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
