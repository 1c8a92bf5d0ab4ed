"""Accesses that differ in nothing but where they stand: of so many pairs few need to be asked about.

Let accesses of one place be *alike* where they touch the same element of it in the same instances, in the same loops of the
kernel and of the program, and stand in the same list of statements. What is asked of a pair then depends on which of both comes
first, in the program and in the kernel, and on the barriers that lie behind the first and before the second. The fewer these
are, the more points there are. So of pairs in the same order, there is no point for any if there is none for those that stand
nearest: each first one with the next of the others, or, where the second stands before the first, the last with the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import pairwise, product
from typing import TypeAlias, TypeVar

from texpr.affine.expr import Sym
from texpr.ir.value import Load
from texpr.presburger.formula import rename
from texpr.reading.actions import Action
from texpr.reading.events import Site
from texpr.reading.order import meets
from texpr.verifier.flow import Access

Family: TypeAlias = "tuple[Access, ...]"
"""Accesses that are alike, in the order of the kernel."""

Time: TypeAlias = "tuple[object, ...]"

T = TypeVar("T", Access, Action)


def families(accesses: Sequence[Access]) -> list[Family]:
    """`accesses` of one place, those together that are alike."""
    found: dict[Hashable, list[Access]] = defaultdict(list)
    for access in accesses:
        found[_shape(access)].append(access)
    alike = [part for each in found.values() for part in _split(each, lambda access: access.when)]
    return [tuple(sorted(part, key=_stands)) for part in alike]


def pairs(one: Family, two: Family) -> Iterator[tuple[Access, Access]]:
    """Pairs of `one` and `two` that speak for all: what holds of none of them holds of none."""
    a, b = one[0].site, two[0].site
    depth = _depth([_loops(access) for access in {*one, *two}])
    if len(one) * len(two) == 1 or depth is None:
        yield from product(one, two)
    elif a.launch is b.launch and a.path[-1][0] is b.path[-1][0] and _consistent(one, two, depth):
        yield from _near(one, two, depth)
    elif a.launch is not b.launch or (_parted(a, b) and not meets(a.path[-1][0]) and not meets(b.path[-1][0])):
        yield from _either(one, two, depth)
    else:
        yield from product(one, two)


def _near(one: Family, two: Family, depth: int) -> Iterator[tuple[Access, Access]]:
    """Of one list, where the program has both in the same order as the kernel."""
    mine, theirs = ([(_stands(access), _at(access.when, depth)) for access in each] for each in (one, two))
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


def _either(one: Sequence[Access], two: Sequence[T], depth: int) -> Iterator[tuple[Access, T]]:
    """One pair for each order in the program, and all of one time, where nothing else matters."""
    mine = sorted([(_at(access.when, depth), n) for n, access in enumerate(one)])
    theirs = sorted([(_at(each.when if isinstance(each, Access) else each.spot.time, depth), n) for n, each in enumerate(two)])
    if mine[0][0] < theirs[-1][0]:
        yield one[mine[0][1]], two[theirs[-1][1]]
    if mine[-1][0] > theirs[0][0]:
        yield one[mine[-1][1]], two[theirs[0][1]]
    at: dict[int, list[T]] = defaultdict(list)
    for time, n in theirs:
        at[time].append(two[n])
    for time, n in mine:
        yield from ((one[n], each) for each in at[time])


def _consistent(one: Family, two: Family, depth: int) -> bool:
    """Whether what stands behind something in the list comes no earlier in the program."""
    times = sorted((_stands(access), _at(access.when, depth)) for access in (*one, *two))
    return all(a[1] <= b[1] for a, b in pairwise(times))


def _parted(a: Site, b: Site) -> bool:
    """Whether the ways to both part above the lists that they stand in."""
    outer = zip(a.path[:-1], b.path[:-1], strict=False)
    return any(block is not other or at != to for (block, at), (other, to) in outer)


def _stands(access: Access) -> int:
    return access.site.path[-1][1] if access.site.path else 0


def _at(time: Time, depth: int) -> int:
    found = time[depth]
    assert isinstance(found, int), "times differ in the order of statements"
    return found


def _loops(access: Access) -> Time:
    return tuple([step if isinstance(step, int) else step[0] for step in access.when])


def _depth(times: Sequence[Time]) -> int | None:
    """Where times first differ, all of them in the order of statements; None where that is not so."""
    for depth, steps in enumerate(zip(*times, strict=False)):
        if any(step != steps[0] for step in steps):
            return depth if all(isinstance(step, int) for step in steps) else None
    return None


def _split(items: Sequence[T], time: Callable[[T], Time]) -> Iterator[Sequence[T]]:
    """Parts of `items` that differ first in the order of statements of one list, each of them in another one of these."""
    depth = _depth([time(item) for item in items])
    if len(items) == 1 or depth is None:
        yield from ((item,) for item in items)
        return
    at: dict[int, list[T]] = defaultdict(list)
    for item in items:
        at[_at(time(item), depth)].append(item)
    single = [each[0] for each in at.values() if len(each) == 1]
    if single:
        yield single
    for each in at.values():
        if len(each) > 1:
            yield from _split(each, time)


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


def readings(reads: Family, actions: Sequence[Action], writes: Sequence[Access]) -> Iterator[tuple[Access, Action]]:
    """Pairs of a read and of a statement that writes what is read, which speak for all of them."""
    if any(write.does is None for write in writes):  # when something is copied decides, too
        yield from product(reads, actions)
        return
    by_action: dict[Action | None, list[Access]] = defaultdict(list)
    for write in writes:
        by_action[write.does].append(write)
    alike: dict[Hashable, list[Action]] = defaultdict(list)
    for action in actions:
        alike[_manner(action, by_action[action]) if len(reads) > 1 else action].append(action)
    for same in (part for each in alike.values() for part in _split(each, lambda action: action.spot.time)):
        depth = _depth([*map(_loops, reads), *(action.spot.time for action in same)])
        if len(reads) * len(same) == 1 or depth is None:
            yield from product(reads, same)
        else:
            yield from _either(reads, same, depth)


def _manner(action: Action, writes: Sequence[Access]) -> Hashable:
    """All of a statement and of what does it that reads of it ask for, but for when."""
    loops = action.spot.loops
    names = {loop.sym: Sym(f"●{number}") for number, loop in enumerate(loops)}
    index = action.target.index if isinstance(action.target, Load) else ()
    done: list[Hashable] = []
    for write in writes:
        site, said = write.site, tuple([e.substitute(names) for e in write.said])
        given = tuple([write.indices.get(loop.sym) for loop in loops])
        done.append((id(site.launch), site.dims, site.domain, write.home, write.index, said, given))
    domain = tuple([rename(fact, names) for fact in action.spot.domain])
    return tuple([e.substitute(names) for e in index]), domain, tuple(done), len(loops)
