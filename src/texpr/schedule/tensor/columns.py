"""Columns of pixels, as the im2col mode of the tensor memory accelerator copies them: the conditions on a region.

    X[b, 2 * y + r - 1, 2 * x + s - 1, c]     with (b, y, x) the digits of 32 · bm + tm, c = 16 · co + ci

    lower corner −1, −1; element strides 2, 2;  offsets r, s;  pixels tm, channels ci

Pixels are numbered through a bounding box, W first, then on in the next image. So along each spatial dimension an index is
step · digit + a part that does not depend on the pixel, and the digits form a number that increases by one with the pixel:
this is proved by recomposing them. PTX ISA, "im2col mode"; `texpr.tma.im2col` defines a copy.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from texpr.affine.expr import ONE, ZERO, Expr, Mod, Sym, expr, term
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.support.record import Record
from texpr.tma.rules import CORNERS, OFFSETS


class Window(Record):
    """The bounding box: for each spatial dimension, W first, its start and end relative to the first and the last pixel of
    the tensor, and the distance of pixels."""

    corners: tuple[tuple[int, int], ...]
    steps: tuple[int, ...]

    def counts(self, shape: Sequence[Expr]) -> tuple[Expr, ...]:
        """The pixels of the box along each spatial dimension."""
        every = zip(reversed(shape[1:-1]), self.corners, self.steps, strict=True)
        return tuple(count(size, high - low, step) for size, (low, high), step in every)


class Column(Record):
    """The column of an access. `index`: of the tensor, outermost first; `pixel`, `channel`: the counters of the tile;
    `offsets`: of the filter, W first."""

    index: tuple[Expr, ...]
    pixel: Sym
    channel: Sym
    offsets: tuple[Expr, ...]

    def at(self, pixel: int | Expr, channel: int | Expr) -> tuple[Expr, ...]:
        """The coordinates of a copy that starts there in the tile: channel, pixel of the bounding box, image."""
        first = {self.pixel: expr(pixel), self.channel: expr(channel)}
        image, *space, inner = (e.substitute(first) for e in self.index)
        return (inner, *(e - o for e, o in zip(reversed(space), self.offsets, strict=True)), image)


def count(size: Expr, wider: int, step: int) -> Expr:
    """The number of pixels along a dimension of `size`, where the box is larger by `wider`."""
    return (size - 1 + wider) // step + 1


def fixed(index: Sequence[Expr], pixel: Sym, sizes: Collection[Sym]) -> tuple[Expr, ...]:
    """For each spatial dimension, W first, the part of the index that does not depend on the pixel or the column."""
    image, *space, _ = index
    counted = set(image.syms())
    for e in space:
        for monomial, coefficient in e.terms:
            part = term(monomial, coefficient).syms()
            counted |= part if pixel in part else set()
    counted -= set(sizes)
    return tuple(_without(e, counted) for e in reversed(space))


def _without(e: Expr, counted: Collection[Sym]) -> Expr:
    parts = (term(monomial, coefficient) for monomial, coefficient in e.terms)
    return sum((part for part in parts if part.syms().isdisjoint(counted)), expr(e.constant))


def column(
    index: tuple[Expr, ...],
    shape: Sequence[Expr],
    loops: tuple[Sym, Sym],
    window: Window,
    known: Known,
    sizes: Collection[Sym],
) -> Column:
    """The column of an access, whose `loops` count pixels and channels, where `known` holds. Raises ValueError.

    Proved: the engine's address for a pixel of the tile is that of the index.
    """
    pixel, channel = loops
    simple = Simplifier(known)
    _require_channels(index, channel, pixel)
    rests, counts = fixed(index, pixel, sizes), window.counts(shape)
    number, weight = ZERO, ONE
    offsets: list[Expr] = []
    space = tuple(reversed(index[1:-1]))
    for e, rest, (low, _), step, size in zip(space, rests, window.corners, window.steps, counts, strict=True):
        moved = e - rest
        if any(coefficient % step for _, coefficient in moved.terms):
            raise ValueError(f"the index {e} does not go by steps of {step}")
        digit = moved // step
        if not _is_digit(digit, size, known, simple):
            raise ValueError(f"{digit} may be outside of the {size} pixels that the bounding box has along that dimension")
        number, weight = number + digit * weight, simple(weight * size)
        offsets.append(rest - low)
        most = OFFSETS[len(index)]
        if not (known.nonnegative(rest - low) and known.nonnegative(most - (rest - low))):
            raise ValueError(f"the offset {rest - low} of a filter may be outside of 0..{most}")
    number = simple(number + index[0] * weight)
    if simple(number - number.substitute({pixel: ZERO})) is not expr(pixel):
        raise ValueError("the next pixel is not the next one of the bounding box, or the first of the next image")
    return Column(index, pixel, channel, tuple(offsets))


def _require_channels(index: tuple[Expr, ...], channel: Sym, pixel: Sym) -> None:
    *others, inner = index
    grown = inner.substitute({channel: expr(channel) + 1}) - inner
    if grown is not ONE or pixel in inner.syms() or any(channel in e.syms() for e in others):
        raise ValueError("channels of a pixel are not counted through by one loop, and nothing else by it")


def _is_digit(value: Expr, count: Expr, known: Known, simple: Simplifier) -> bool:
    """Whether 0 ≤ value < count: as a remainder, or by what is known."""
    match value.terms:
        case (((Mod(den=den),), 1),) if value.constant == 0 and simple(den - count) is ZERO and known.positive(den):
            return True
        case _:
            return _at_least(value, ZERO, known, simple) and _at_least(count - 1, value, known, simple)


def _at_least(more: Expr, less: Expr, known: Known, simple: Simplifier) -> bool:
    return known.nonnegative(more - less) or known.nonnegative(simple(more - less))


def found_window(spaces: Sequence[tuple[Expr, int, Expr]], rests: Sequence[Expr], known: Known, rank: int) -> Window:
    """The bounding box of the pixels. `spaces`, W first: the tensor's size, the step, and the number of pixels.

    Raises ValueError where no corners give that number.
    """
    simple = Simplifier(known)
    least, most = CORNERS[rank]
    corners: list[tuple[int, int]] = []
    for (size, step, wanted), rest in zip(spaces, rests, strict=True):
        low = known.bounds(rest)[0]
        if low is None:
            raise ValueError(f"where windows begin, {rest}, has no least value")
        near = sorted(range(2 * least, 2 * most + 1) if rank > 3 else range(-512, 513), key=abs)
        wider = next((n for n in near if simple(count(size, n, step) - wanted) is ZERO), None)
        if wider is None:
            raise ValueError(f"there are {wanted} pixels along a dimension of {size}, which no bounding box has at every size")
        corners.append((low, low + wider))
    return Window(tuple(corners), tuple(step for _, step, _ in spaces))
