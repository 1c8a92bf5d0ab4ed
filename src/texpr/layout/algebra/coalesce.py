"""Coalesce: the same function of the 1-D coordinate with the fewest modes; and filter: the modes that matter for the image."""

from __future__ import annotations

from collections.abc import Iterable

from texpr.layout.basis import scaled
from texpr.layout.error import LayoutError, in_mode
from texpr.layout.inttuple import IntTree, times, tree_text
from texpr.layout.layout import Layout, Mode


def coalesce(layout: Layout, profile: IntTree = 1) -> Layout:
    """R with R(i) = layout(i) for every 1-D coordinate i, with the fewest modes; it is flat.

    With a tuple for `profile` each mode is coalesced by itself, as its part of the profile says; the numbers in the profile
    are ignored, and modes beyond it stay. Raises LayoutError where the profile has more modes than the layout.
    """
    if not isinstance(profile, tuple):
        return from_modes(merged(layout.flat))
    if len(profile) > layout.rank or layout.is_leaf:
        raise LayoutError("coalesce", f"the profile {tree_text(profile)} has more modes than {layout}")
    found: list[Layout] = []
    for place, mode in enumerate(layout.modes):
        with in_mode(place):
            found.append(coalesce(mode, profile[place]) if place < len(profile) else mode)
    return Layout.of(*found)


def merged(modes: Iterable[Mode]) -> tuple[Mode, ...]:
    """The fewest modes that are the same function of a 1-D coordinate; none where the only coordinate is 0."""
    found: list[Mode] = []
    for mode in modes:
        if mode.size == 1:
            continue
        if found and scaled(found[-1].stride, found[-1].size) == mode.stride:
            found[-1] = Mode(times(found[-1].size, mode.size), found[-1].stride)
        else:
            found.append(mode)
    return tuple(found)


def from_modes(modes: Iterable[Mode]) -> Layout:
    """The flat layout of these leaves: 1:0 of none, a leaf of one."""
    found = tuple(modes)
    if len(found) == 1:
        return Layout(found[0].size, found[0].stride)
    if not found:
        return Layout(1, 0)
    return Layout(tuple(mode.size for mode in found), tuple(mode.stride for mode in found))


def filtered(layout: Layout) -> Layout:
    """The layout without modes of size 1 or stride 0, coalesced: the same image, with fewer repetitions."""
    return from_modes(merged(mode for mode in layout.flat if mode.stride != 0))
