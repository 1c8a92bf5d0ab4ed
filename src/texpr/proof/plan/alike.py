"""Adjacent pairs of equal accesses: few of many pairs need a proof.

Let accesses of one place be *alike* if they access the same element of it in the same instances, in the same loops of the
kernel, in the same list of statements, which has them in the order of the program: statements of a nest one after the other,
and nests, which are again in lists. Then the condition on a pair depends on the list of the program in which it parts, on its
order there and in the kernel, and on the barriers after the first and before the second. The fewer barriers, the more points
there are. So of the pairs that part in one list, in the same order, none has a point if no adjacent one has: each first access
with the next of the others that is in a later statement of that list, or, where the second precedes the first, the last with
the first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import TypeAlias

from texpr.proof.plan.flow import HOLE, Access
from texpr.proof.read.actions import ARMS

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
    found, every = dict[tuple[Access, Access], None](), _lists(two)
    for around, mine in _lists(one).items():
        theirs, depth = every.get(around, []), len(around)
        steps = [_line(each)[depth] for each in theirs]
        for access in mine:
            after = bisect_right(steps, _line(access)[depth])
            found |= dict.fromkeys((access, other) for other in theirs[after : after + 1])
        if theirs and _stands(mine[-1]) >= _stands(theirs[0]):
            found[mine[-1], theirs[0]] = None
    yield from found


def _lists(family: Family) -> Mapping[tuple[int, ...], list[Access]]:
    """By the lists of statements of the program, from outside in, those that are in each."""
    found: dict[tuple[int, ...], list[Access]] = defaultdict(list)
    for access in family:
        for depth in range(len(_line(access))):
            found[_line(access)[:depth]].append(access)
    return found


def _stands(access: Access) -> int:
    return access.site.path[-1][1]


def _line(access: Access) -> tuple[int, ...]:
    """Where it is in the text of the program: its place in each list of statements around, the outermost first."""
    return tuple([step for step in access.when if isinstance(step, int)])


def _in_order(accesses: Sequence[Access]) -> bool:
    """Whether the program has them in textual order, in the same iterations of all loops around two that part."""
    return all(_follows(one, other) for one, other in pairwise(accesses))


def _follows(one: Access, other: Access) -> bool:
    if _stands(one) == _stands(other):
        return one.when[:-1] == other.when[:-1]
    match next((both for both in zip(one.when, other.when, strict=False) if both[0] != both[1]), None):
        case (int(before), int(after)):
            return before < after and [before, after] != ARMS  # of arms, only one executes
        case _:
            return False


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
