"""Adjacent pairs of equal accesses: few of many pairs need a proof.

Let accesses of one place be *alike* if they access the same element of it in the same instances, in the same loops of the
kernel and of the program, in the same list of statements. Then the condition on a pair depends on its order, in the program and
in the kernel, and on the barriers after the first and before the second. The fewer barriers, the more points there are. So of
pairs in the same order, none has a point if no adjacent one has: each first access with the next of the others, or, where the
second precedes the first, the last with the first.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise, product
from typing import TypeAlias

from texpr.proof.plan.flow import HOLE, Access

Family: TypeAlias = "tuple[Access, ...]"
"""Accesses that are alike, in textual order."""


def families(accesses: Sequence[Access]) -> Iterator[Family]:
    """The families of `accesses` of one place."""
    found: dict[Hashable, dict[Hashable, Access]] = defaultdict(dict)
    for access in accesses:
        found[_shape(access)].setdefault((_stands(access), access.when), access)
    for alike in found.values():
        each = sorted(alike.values(), key=_stands)
        yield from [tuple(each)] if _in_order(each) else [(access,) for access in each]


def pairs(one: Family, two: Family) -> Iterator[tuple[Access, Access]]:
    """The representative pairs of `one` and `two`: what holds for none of them holds for no pair."""
    lists = {id(each[0].site.path[-1][0]) for each in (one, two)}
    if len(lists) > 1 or not _in_order(sorted((*one, *two), key=_stands)):
        yield from product(one, two)
        return
    stand = [*map(_stands, two)]
    for access in one:
        at = _stands(access)
        yield from ((access, other) for other in two[bisect_left(stand, at) : bisect_right(stand, at) + 1])
    if _stands(one[-1]) > stand[0]:
        yield one[-1], two[0]


def _stands(access: Access) -> int:
    return access.site.path[-1][1]


def _in_order(accesses: Sequence[Access]) -> bool:
    """Whether the program has them in textual order: in the same iterations of all loops, by the order of statements."""
    for steps in zip(*(access.when for access in accesses), strict=False):
        if any(step != steps[0] for step in steps):
            both = pairwise(zip(map(_stands, accesses), steps, strict=True))
            return all(isinstance(x, int) and isinstance(y, int) and (x < y if s < t else x == y) for (s, x), (t, y) in both)
    return len(accesses) == 1


def _shape(access: Access) -> Hashable:
    """All that the condition depends on, except for the position."""
    event, site = access.event, access.site
    if event.kind not in ("plain", "atomic") or event.engine or access.stored == HOLE:
        return access  # its completion needs a proof of its own
    return (
        access.index, access.write, event.atomic, access.is_free, access.stored, access.meant, access.copies,
        id(site.launch), tuple(map(id, site.loops)), site.domain, site.sender, site.time[:-1],
        tuple([(id(block), at) for block, at in site.path[:-1]]), id(site.path[-1][0]),
    )  # fmt: skip
