"""Coordinates of a shape: one number, one for each mode, one for each leaf, or anything between.

All are read colexicographically, the leftmost leaf fastest, as in CuTe. Each conversion is total: beyond the shape, the last
leaf of the mode takes the overflow.
"""

from __future__ import annotations

from texpr.layout.error import LayoutError
from texpr.layout.inttuple import Int, IntTree, plus, product, quotient, remainder, times, tree_text


def natural(coord: IntTree, shape: IntTree) -> IntTree:
    """The coordinate with one number for each leaf of `shape`. Raises LayoutError where `coord` is finer than `shape`."""
    if not isinstance(shape, tuple):
        if isinstance(coord, tuple):
            raise LayoutError("coordinate", f"{tree_text(coord)} is finer than the shape {tree_text(shape)}")
        return coord
    if isinstance(coord, tuple):
        if len(coord) != len(shape):
            raise LayoutError("coordinate", f"{tree_text(coord)} does not fit the shape {tree_text(shape)}")
        return tuple(natural(c, s) for c, s in zip(coord, shape, strict=True))
    parts: list[IntTree] = []
    for mode in shape[:-1]:
        size = product(mode)
        parts.append(natural(remainder(coord, size), mode))
        coord = quotient(coord, size)
    return (*parts, natural(coord, shape[-1])) if shape else ()


def linear(coord: IntTree, shape: IntTree) -> Int:
    """The coordinate as one number, 0 ≤ number < size for those in the shape. Raises LayoutError as `natural` does."""
    if not isinstance(coord, tuple):
        return coord
    if not isinstance(shape, tuple) or len(coord) != len(shape):
        raise LayoutError("coordinate", f"{tree_text(coord)} does not fit the shape {tree_text(shape)}")
    total, size = 0, 1
    for c, s in zip(coord, shape, strict=True):
        total = plus(total, times(size, linear(c, s)))
        size = times(size, product(s))
    return total


def at_profile(coord: IntTree, profile: IntTree, shape: IntTree) -> IntTree:
    """The coordinate with one number for each leaf of `profile`, which is weakly congruent to `shape`."""
    if not isinstance(profile, tuple):
        return linear(coord, shape)
    if not isinstance(shape, tuple) or len(profile) != len(shape):
        raise LayoutError("coordinate", f"the profile {tree_text(profile)} does not fit the shape {tree_text(shape)}")
    parts = coord if isinstance(coord, tuple) and len(coord) == len(shape) else natural(coord, shape)
    assert isinstance(parts, tuple)
    return tuple(at_profile(c, p, s) for c, p, s in zip(parts, profile, shape, strict=True))
