"""Inverses: from values back to coordinates."""

from __future__ import annotations

from texpr.affine.facts import Known
from texpr.layout.algebra.coalesce import from_modes, merged
from texpr.layout.error import LayoutError
from texpr.layout.inttuple import Int, times
from texpr.layout.layout import Layout, Mode
from texpr.layout.proof import NOTHING, Prover


def right_inverse(layout: Layout, known: Known = NOTHING) -> Layout:
    """R with layout(R(x)) = x for every 0 ≤ x < cosize, R(x) being a 1-D coordinate.

    Raises LayoutError where a value below the greatest is not taken, or modes overlap; `contiguous` gives the part that
    exists.
    """
    prover = Prover(known, layout)
    found, left = _consecutive(layout, prover)
    if left:
        reached: Int = found[-1].reach if found else 1
        raise LayoutError(
            "right inverse",
            f"the values of {layout} have no mode {left[0].size}:{reached} where {left[0]} is: they leave gaps or overlap",
            help="take `contiguous` for the values without a gap, or `left_inverse`",
        )
    return from_modes(merged(each.back for each in found))


def contiguous(layout: Layout, known: Known = NOTHING) -> Layout:
    """R with layout(R(x)) = x for 0 ≤ x < size(R), the longest: along the modes that follow each other without a gap from the
    value 0.

    Its size may be 1. It is the number of consecutive values that one access can take.
    """
    found, _ = _consecutive(layout, Prover(known, layout))
    return from_modes(merged(each.back for each in found))


def left_inverse(layout: Layout, known: Known = NOTHING) -> Layout:
    """L with L(layout(i)) = i for every 1-D coordinate i. Its result is meaningless for numbers that are no value of
    `layout`.

    Raises LayoutError where two coordinates have one value, or where the modes, by stride, interleave: each stride must be a
    multiple of the one before it, and at least that times its size.
    """
    repeated = next((mode for mode in layout.flat if mode.size != 1 and mode.stride == 0), None)
    if repeated is not None:
        raise LayoutError("left inverse", f"{repeated} in {layout} gives one value to {repeated.size} coordinates")
    prover = Prover(known, layout)
    left = _placed(layout)
    found: list[Mode] = []
    reached: Int = 1
    coordinate: Int = 0
    last: Mode | None = None
    while left:
        at = next((k for k, (mode, _) in enumerate(left) if _is_next(mode, last, left, prover)), None)
        if at is None:
            listed = ", ".join(str(mode) for mode, _ in left)
            raise LayoutError(
                "left inverse",
                f"the modes {listed} of {layout} meet those before them, or it is not proved that they do not",
                help="each stride, in some order, must be a multiple of the one before it, and at least that times its size",
            )
        last, start = left.pop(at)
        found.append(Mode(prover.quotient(last.step, reached), coordinate))
        reached, coordinate = last.step, start
    if last is not None:
        found.append(Mode(last.size, coordinate))
    return from_modes(merged(found))


def _is_next(mode: Mode, last: Mode | None, left: list[tuple[Mode, Int]], prover: Prover) -> bool:
    """Whether `mode` starts beyond the mode `last`, and the strides of all remaining modes are multiples of its stride."""
    if last is None:
        begins = prover.positive(mode.step)
    else:
        begins = prover.divides(last.step, mode.step) and prover.at_most(times(last.step, last.size), mode.step)
    return begins and all(prover.divides(mode.step, other.step) for other, _ in left)


def nullspace(layout: Layout) -> Layout:
    """N, injective, with layout(N(j)) = layout(0): the coordinates along modes of stride 0.

    Where the other modes are injective, these are all such coordinates.
    """
    size: Int = 1
    found: list[Mode] = []
    for mode in layout.flat:
        if mode.stride == 0:
            found.append(Mode(mode.size, size))
        size = times(size, mode.size)
    return from_modes(merged(found))


class _Link:
    """A mode that starts where the values of the one before it end."""

    __slots__ = ("back", "reach")

    def __init__(self, size: Int, coordinate: Int, reached: Int):
        self.back = Mode(size, coordinate)
        self.reach = times(reached, size)


def _consecutive(layout: Layout, prover: Prover) -> tuple[list[_Link], list[Mode]]:
    """The modes whose values follow each other, and the remaining ones; modes with a single value are in neither."""
    left = _placed(layout)
    found: list[_Link] = []
    reached: Int = 1
    while (at := next((k for k, (mode, _) in enumerate(left) if prover.equal(mode.step, reached)), None)) is not None:
        mode, coordinate = left.pop(at)
        found.append(_Link(mode.size, coordinate, reached))
        reached = found[-1].reach
    return found, [mode for mode, _ in left]


def _placed(layout: Layout) -> list[tuple[Mode, Int]]:
    """The modes with more than one value, each with its stride in the 1-D coordinate."""
    if not layout.is_integral:
        raise LayoutError("inverse", f"{layout} has basis strides", help="compose it with a layout of the coordinates first")
    found: list[tuple[Mode, Int]] = []
    size: Int = 1
    for mode in layout.flat:
        if mode.size != 1 and mode.stride != 0:
            found.append((mode, size))
        size = times(size, mode.size)
    return found
