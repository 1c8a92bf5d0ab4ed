"""Composition: R with R(c) = A(B(c)).

B's values are 1-D coordinates of A, which has digits: with sizes s₀, s₁, … coalesced, digit k of x is
⌊x / (s₀ · … · s_{k−1})⌋ mod s_k.
A leaf n:r of B counts 0, r, …, r · (n − 1). It goes through the digits from the first on, and in each one of these holds:

    fits      r · (n − 1) < s      it stays in this digit: n steps of r
    skips     s | r                this digit stays 0: go on with n:(r / s)
    fills     r | s and s / r | n  it fills the digit with s / r steps of r: go on with n / (s / r) steps of 1

A is a sum over digits, so A(B(c)) is a sum over the leaves of B where the digits of all leaves add up without a carry: the
sum of the maxima of each digit is less than its size. This is checked, and implies that B stays within A.

Where it fails, A∘B may still be a layout: digits of stride 0 may carry, and a leaf may cross digits unevenly with even
values. For constants, and up to `by_values.MOST` coordinates, that is decided by values; otherwise it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from texpr.affine.expr import IntoExpr
from texpr.affine.facts import Known
from texpr.layout.algebra import by_values
from texpr.layout.algebra.coalesce import from_modes, merged
from texpr.layout.basis import Path, scaled
from texpr.layout.error import LayoutError, in_mode
from texpr.layout.inttuple import Int, minus, plus, tidy
from texpr.layout.layout import Layout, Mode
from texpr.layout.proof import NOTHING, Prover
from texpr.layout.slices import ALL, All

Tiler: TypeAlias = "Layout | IntoExpr | All | tuple[Tiler, ...]"
"""What each mode is composed with: a layout of its 1-D coordinates, a number n for n:1, `ALL` for no change, or a tuple of
these."""


def composition(a: Layout, b: Tiler, known: Known = NOTHING) -> Layout:
    """R with R(c) = a(b(c)) for every coordinate c of `b`; its shape refines that of `b`.

    `b` may have basis strides: then its values are coordinates of `a`, with 0 in entries without a stride. With a tuple each
    mode of `a` is composed by itself, and modes beyond the tuple stay. Raises LayoutError where there is no such layout or,
    for symbols or many coordinates, where the condition above is not proved.
    """
    if not isinstance(b, Layout):
        return by_mode("composition", a, b, lambda mode, tiler: composition(mode, tiler, known))
    prover = Prover(known, a, b)
    digits: dict[Path, _Digits] = {}
    try:
        found = _composed(a, b, digits, prover)
        for each in digits.values():
            each.check(b, prover)
    except LayoutError:
        by_value = _by_values(a, b)
        if by_value is None:
            raise
        return by_value
    return found


def _by_values(a: Layout, b: Layout) -> Layout | None:
    """The composition by its values, where all sizes and strides are constant and there is one."""
    leaves = by_values.numbers(b.flat)
    found: dict[int, Layout] = {}
    for path in {leaf.path for leaf in leaves or ()}:
        try:
            modes = by_values.numbers(a[path].flat)
        except LayoutError:  # b names a mode that a does not have
            return None
        here = [at for at, leaf in enumerate(leaves or ()) if leaf.path == path]
        composed = None if leaves is None or modes is None else by_values.composed(modes, [leaves[at] for at in here])
        if composed is None:
            return None
        found.update((at, from_modes(each)) for at, each in zip(here, composed, strict=True))
    return None if leaves is None else _shaped(b, (found[at] for at in range(len(leaves))))


def _shaped(b: Layout, parts: Iterator[Layout]) -> Layout:
    """The nesting of `b` with each leaf replaced by a layout."""
    return next(parts) if b.is_leaf else Layout.of(*[_shaped(mode, parts) for mode in b.modes])


def by_mode(operation: str, a: Layout, tiler: Tiler, each: Callable[[Layout, Layout], Layout]) -> Layout:
    """`each` applied to the modes of `a` with their parts of the tiler. Raises LayoutError where the tiler has more modes
    than `a`."""
    if isinstance(tiler, Layout):
        return each(a, tiler)
    if isinstance(tiler, All):
        return a
    if not isinstance(tiler, tuple):
        return each(a, Layout(tidy(tiler), 1))
    if len(tiler) > a.rank or (a.is_leaf and len(tiler) > 0):
        raise LayoutError(operation, f"the tiler has {len(tiler)} modes, and {a} has fewer")
    found: list[Layout] = []
    for place, mode in enumerate(a.modes):
        with in_mode(place):
            found.append(by_mode(operation, mode, tiler[place] if place < len(tiler) else ALL, each))
    return Layout.of(*found)


class _Digits:
    """The digits of a layout's 1-D coordinate, with the maximum that the composed leaves together reach in each."""

    __slots__ = ("_layout", "_modes", "_reach")

    def __init__(self, layout: Layout):
        self._layout = layout
        self._modes = merged(layout.flat) or (Mode(1, 0),)
        self._reach: list[Int] = [0] * len(self._modes)

    def compose(self, size: Int, step: Int, prover: Prover) -> Layout:
        """The composition of one leaf size:step of B."""
        if step == 0 or size == 1:
            return Layout(size, 0)
        if not prover.at_most(0, step):
            raise LayoutError("composition", f"the stride {step} of {size}:{step} is negative, or may be")
        pieces: list[Mode] = []
        for place, mode in enumerate(self._modes):
            last = place == len(self._modes) - 1
            if last or prover.at_most(prover.last(size, step), minus(mode.size, 1)):
                pieces.append(self._take(place, size, step, prover))
                break
            if prover.divides(mode.size, step):
                step = prover.quotient(step, mode.size)
                continue
            steps = self._filling(mode, size, step, prover)
            pieces.append(self._take(place, steps, step, prover))
            size, step = prover.quotient(size, steps), 1
        return from_modes(pieces)

    def _filling(self, mode: Mode, size: Int, step: Int, prover: Prover) -> Int:
        """The number of steps that fill the digit of `mode`; refused where it is not an integer, or does not divide `size`."""
        if not prover.divides(step, mode.size):
            raise LayoutError(
                "composition",
                f"{size}:{step} meets a mode of size {mode.size} in {self._layout}, and neither is proved to divide the other",
                help=f"the stride must divide {mode.size}, or be a multiple of it",
            )
        steps = prover.quotient(mode.size, step)
        if not prover.divides(steps, size):
            raise LayoutError(
                "composition",
                f"{size}:{step} fills a mode of size {mode.size} in {self._layout} after {steps} steps, which is not proved "
                f"to divide {size}",
                help=f"the size must be a multiple of {steps}, or stay within the mode",
            )
        return steps

    def _take(self, place: int, size: Int, step: Int, prover: Prover) -> Mode:
        self._reach[place] = plus(self._reach[place], prover.last(size, step))
        return Mode(size, scaled(self._modes[place].stride, step))

    def check(self, b: Layout, prover: Prover) -> None:
        """Raises LayoutError where digits carry."""
        for place, (mode, reach) in enumerate(zip(self._modes, self._reach, strict=True)):
            if prover.at_most(reach, minus(mode.size, 1)):
                continue
            if place == len(self._modes) - 1:
                raise LayoutError(
                    "composition",
                    f"{b} reaches {reach} in the last mode of {self._layout}, which is not proved to be less than {mode.size}",
                    help="take fewer, or pad the first layout",
                )
            raise LayoutError(
                "composition",
                f"the modes of {b} add up to {reach} in a mode of size {mode.size} of {self._layout}, and carry",
                help="let them count in different digits of the first layout",
            )


def _composed(a: Layout, b: Layout, digits: dict[Path, _Digits], prover: Prover) -> Layout:
    if not b.is_leaf:
        found: list[Layout] = []
        for place, mode in enumerate(b.modes):
            with in_mode(place):
                found.append(_composed(a, mode, digits, prover))
        return Layout.of(*found)
    (leaf,) = b.flat
    if leaf.path not in digits:
        digits[leaf.path] = _Digits(a[leaf.path])
    return digits[leaf.path].compose(leaf.size, leaf.step, prover)
