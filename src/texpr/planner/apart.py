"""Parts of one array that are read along different loops, as arrays of their own: A[i, k] * A[j, k] is a product of two.

A tile has a box of each, which `stage` tells apart by the loop that it varies with (`along=`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from texpr.affine.expr import Sym
from texpr.ir.value import Buffer
from texpr.planner.model import form
from texpr.planner.nest import Nest, Touch
from texpr.support.record import Record, replace


class Part(Record):
    """A part of `buffer` that is read where its element depends on the loop `along`, which that of others does not."""

    buffer: Buffer
    along: Sym


def apart(nest: Nest) -> tuple[Nest, Mapping[Buffer, Part]]:
    """A nest in which such parts, of several dimensions, are arrays, and what these are."""
    parts: dict[Buffer, Part] = {}
    names: dict[Touch, Buffer] = {}
    for buffer in nest.read_only():
        groups = _groups(nest.of(buffer)) if form(nest.of(buffer)) is None else []
        syms = [*_own(groups)]
        if buffer.rank > 1 and len(groups) > 1 and len(syms) == len(groups) and all(map(form, groups)):
            for sym, group in zip(syms, groups, strict=True):
                alias = replace(buffer, name=f"{buffer.name} along {sym}")
                parts[alias] = Part(buffer, sym)
                names |= dict.fromkeys(group, alias)
    if not parts:
        return nest, {}
    return replace(nest, touches=tuple(replace(t, buffer=names.get(t, t.buffer)) for t in nest.touches)), parts


def _groups(touches: tuple[Touch, ...]) -> list[tuple[Touch, ...]]:
    """Accesses of one array whose subscripts differ by constants."""
    found: list[list[Touch]] = []
    for touch in touches:
        group = next((each for each in found if form((each[0], touch)) is not None), None)
        if group is None:
            found.append([touch])
        else:
            group.append(touch)
    return [*map(tuple, found)]


def _own(groups: list[tuple[Touch, ...]]) -> Iterator[Sym]:
    """For each group a loop with which it varies, and others do not, as far as there are some."""
    for group in groups:
        others = [touch for each in groups if each is not group for touch in each]
        mine = (sym for part in group[0].index or () for sym in part.steps)
        sym = next((sym for sym in mine if not any(touch.along(sym) for touch in others)), None)
        if sym is not None:
            yield sym
