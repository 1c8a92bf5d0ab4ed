"""Representatives of pairs of accesses, where many statements make the same access one after the other.

Accesses of the same elements at the same places, in the same loops, are a family: obligations of a pair depend only on their
families, on the kinds of access, and on the order of the two, in each program. So the number of obligations depends on
families.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product
from typing import TypeAlias

from texpr.proof.read.actions import ARMS
from texpr.proof.read.program_order import When, cases
from texpr.proof.schedule.accesses import Access

Kind: TypeAlias = tuple[object, ...]


def pairs(accesses: Sequence[Access], *, both: bool = False) -> Iterator[tuple[Access, Access]]:
    """The first pair of each kind, including pairs of an access with itself; in `both` orders if asked."""
    found = families(accesses)
    for one, other in product(found, found) if both else combinations_with_replacement(found, 2):
        yield from _kinds(one, other)


def families(accesses: Sequence[Access]) -> list[list[Access]]:
    """Groups of accesses that differ only in their textual position."""
    found: dict[Kind, list[Access]] = defaultdict(list)
    for each in accesses:
        found[_family(each)].append(each)
    return [*found.values()]


def _family(each: Access) -> Kind:
    updates = (each.write, each.is_update, each.does is not None, each.does and each.does.update)
    legal = each.is_one if each.legal else None
    return (each.home, each.place, each.dims, each.where, each.stored, each.element, _heads(each), updates, legal)


def _loops(time: When) -> int:
    """The number of leading elements of a time that belong to loops."""
    return max((at + 1 for at, step in enumerate(time) if not isinstance(step, int)), default=0)


def _kinds(one: Sequence[Access], other: Sequence[Access]) -> Iterator[tuple[Access, Access]]:
    mine, theirs = ([tuple(_after_loops(time) for time in _times(each)) for each in family] for family in (one, other))
    heads = zip(_heads(one[0]), _heads(other[0]), _times(one[0]), _times(other[0]), strict=True)
    together = all(x == y or not (a and b) for x, y, a, b in heads) and not any(map(_is_branched, (*mine, *theirs)))
    seen: set[Kind] = set()
    for a, where in zip(one, mine, strict=True):
        for b, there in zip(other, theirs, strict=True):
            if together:  # in one list of statements, in each program
                kind: Kind = tuple([(x > y) - (x < y) for x, y in zip(where, there, strict=True)])
            else:
                kind = (a is b, *(_order(x, y) for x, y in zip(_times(a), _times(b), strict=True)))
            if kind not in seen:
                seen.add(kind)
                yield a, b


def _times(each: Access) -> tuple[When, When, When]:
    return each.time, each.meant, each.legal


def _heads(each: Access) -> tuple[When, ...]:
    return tuple(time[: _loops(time)] for time in _times(each))


def _after_loops(time: When) -> tuple[int, ...]:
    return tuple([step for step in time[_loops(time) :] if isinstance(step, int)])


def _is_branched(tails: Sequence[tuple[int, ...]]) -> bool:
    """Whether some time ends in the second arm of a branch; otherwise no two are in different arms."""
    return any(ARMS[1] in tail for tail in tails)


def _order(a: When, b: When) -> Kind:
    """The order of two times by the text alone, and the depth at which they differ; statements of different arms have none."""
    for at, (mine, theirs) in enumerate(zip(a, b, strict=False)):
        if isinstance(mine, int) and isinstance(theirs, int) and mine != theirs:
            return at, mine < theirs, not any((*cases((mine,), (theirs,), None), *cases((theirs,), (mine,), None)))
        if isinstance(mine, int) is not isinstance(theirs, int):
            return at, mine if isinstance(mine, int) else theirs if isinstance(theirs, int) else 0, "in a loop"
    return len(a), len(b)
