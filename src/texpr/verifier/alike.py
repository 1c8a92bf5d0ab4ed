"""Accesses that differ in nothing but where they stand: of so many pairs few need to be asked about.

Let accesses of one place be *alike* where they touch the same element of it in the same instances, in the same loops of the
kernel and of the program, and stand in the same list of statements. What is asked of a pair then depends on which of both comes
first, in the program and in the kernel, and on the barriers that lie behind the first and before the second. The fewer these
are, the more points there are. So of pairs in the same order, there is no point for any if there is none for those that stand
nearest: each first one with the next of the others, or, where the second stands before the first, the last with the first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise, product
from typing import TypeAlias

from texpr.verifier.flow import Access

Family: TypeAlias = "tuple[Access, ...]"
"""Accesses that are alike, in the order of the kernel."""


def families(accesses: Sequence[Access]) -> Iterator[Family]:
    """`accesses` of one place, those together that are alike."""
    found: dict[Hashable, list[Access]] = defaultdict(list)
    for access in accesses:
        found[_shape(access)].append(access)
    for each in found.values():
        depth = _depth(each)
        many = Counter(access.when[depth] for access in each if depth is not None)
        alike = [access for access in each if depth is None or many[access.when[depth]] == 1]
        if depth is None:
            yield from ((access,) for access in each)
        elif alike:
            yield tuple(sorted(alike, key=_stands))
        yield from ((access,) for access in each if access not in alike)


def pairs(one: Family, two: Family) -> Iterator[tuple[Access, Access]]:
    """Pairs of `one` and `two` that speak for all: what holds of none of them holds of none."""
    depth = _depth((*one, *two)) if len(one) * len(two) > 1 else None
    if depth is None or one[0].site.path[-1][0] is not two[0].site.path[-1][0]:
        yield from product(one, two)
        return
    mine, theirs = ([(_stands(access), _at(access, depth)) for access in each] for each in (one, two))
    if any(a[1] > b[1] for a, b in pairwise(sorted((*mine, *theirs)))):  # the program has them in another order
        yield from product(one, two)
        return
    at = 0
    for x, (stands, time) in zip(one, mine, strict=True):
        while at < len(two) and theirs[at][0] < stands and theirs[at][1] < time:
            at += 1
        for y, (other, later) in zip(two[at:], theirs[at:], strict=True):
            yield x, y
            if stands < other and time < later:
                break
    if mine[-1][0] > theirs[0][0] and mine[-1][1] > theirs[0][1]:
        yield one[-1], two[0]


def _stands(access: Access) -> int:
    return access.site.path[-1][1]


def _at(access: Access, depth: int) -> int:
    found = access.when[depth]
    assert isinstance(found, int), "times differ in the order of statements"
    return found


def _depth(accesses: Sequence[Access]) -> int | None:
    """Where times first differ, all of them in the order of statements; None where that is not so."""
    for depth, steps in enumerate(zip(*(access.when for access in accesses), strict=False)):
        turns = [step if isinstance(step, int) else step[0] for step in steps]
        if any(turn != turns[0] for turn in turns):
            return depth if all(isinstance(turn, int) for turn in turns) else None
    return None


def _shape(access: Access) -> Hashable:
    """All that is asked about, but for when."""
    event, site = access.event, access.site
    if event.kind not in ("plain", "atomic") or event.engine or access.is_hole or not site.path:
        return access  # when it is done is another question
    return (
        access.index, access.write, event.atomic, access.is_free, access.stored, access.meant, access.copies,
        id(site.launch), tuple(map(id, site.loops)), site.domain, site.sender, site.time[:-1],
        tuple([(id(block), at) for block, at in site.path[:-1]]), id(site.path[-1][0]),
    )  # fmt: skip
