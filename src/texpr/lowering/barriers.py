"""The fewest barriers that cover every dependence between threads of a team.

A dependence is covered by a barrier at any of some gaps of one list of steps: those between its ends, or, where a loop carries
it, those after its source and those before its sink. Lists are treated from the inside out, so that a barrier that an
inner loop needs anyway serves the outer list too. In each list the gaps form a least hitting set.

A barrier of an inner list counts where it stands between its end of the dependence and the other end.

A gap `g` of a list of n steps lies after step g; gap n − 1 is the end (of the loop body, where the list is one).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.lowering.team import Branch, Leaf, Loop, Node

EXHAUSTIVE = 4
"""Hitting sets up to this size are found by trying all; larger ones greedily."""


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """A dependence whose ends can lie in different threads. `level`: the narrowest one that holds both ends.

    `distant`: its ends are two or more iterations of the carrier apart, so that a barrier anywhere in the loop covers it.
    `within`: a loop around one end alone, whose nearest iteration is not met by the other end: any barrier in it will do.
    """

    source: Leaf
    sink: Leaf
    carrier: ir.Seq | None
    level: k.Level
    covered: k.Covered
    distant: bool = False
    within: ir.Seq | None = None


Gap = tuple[int, int]
"""A list of steps (its number in the order of `lists`) and a gap in it."""


@dataclass(frozen=True, slots=True)
class _List:
    number: int
    nodes: tuple[Node, ...]
    loop: ir.Seq | None


def lists(nodes: tuple[Node, ...]) -> tuple[_List, ...]:
    """Every list of steps of a tree, outer before inner."""
    found: list[_List] = []

    def visit(nodes: tuple[Node, ...], loop: ir.Seq | None) -> None:
        found.append(_List(len(found), nodes, loop))
        for node in nodes:
            match node:
                case Leaf():
                    pass
                case Loop():
                    visit(node.body, node.stmt)
                case Branch():
                    visit(node.then, None)
                    visit(node.orelse, None)

    visit(nodes, None)
    return tuple(found)


def place(nodes: tuple[Node, ...], needs: Sequence[Need], lanes: int) -> dict[Gap, k.Barrier]:
    """Barriers by gap, so that every need is covered. Numbers of lists are those of `lists(nodes)`.

    `lanes`: threads that run `nodes` together, of one warp. Where that is no power of two they are a block, and meet as one.
    """
    odd = lanes & (lanes - 1) != 0
    every = lists(nodes)
    where = _positions(every)
    placed: dict[Gap, k.Barrier] = {}
    synchronising: dict[int, k.Level] = {}
    loops: dict[ir.Seq | None, bool] = {}
    for steps in reversed(every):
        asked = (need for need in needs if not loops.get(need.within) and not _met_inside(need, placed, where))
        here = [(need, gaps) for need in asked if (gaps := _gaps(need, steps, where)) is not None]
        open_needs = [(need, gaps) for need, gaps in here if not _passes(need, gaps, steps, where, synchronising, every)]
        for gap in _hitting([gaps for _, gaps in open_needs]):
            met = [need for need, gaps in open_needs if gap in gaps]
            block = odd or any(need.level is k.Level.BLOCK for need in met)
            if steps.loop is not None and (block or all(need.level is k.Level.WARP for need in needs)):
                loops[steps.loop] = True
            covers = tuple(dict.fromkeys(need.covered for need in met))
            level = k.Level.BLOCK if block else k.Level.WARP
            placed[steps.number, gap] = k.Barrier(level, covers, 32 if odd else lanes)
            synchronising[steps.number] = k.Level.BLOCK if k.Level.BLOCK in (level, synchronising.get(steps.number)) else level
    return placed


def _met_inside(need: Need, placed: dict[Gap, k.Barrier], where: dict[Leaf, dict[int, int]]) -> bool:
    """Whether a barrier of a list around one end alone lies between that end and the other."""
    source, sink = where[need.source], where[need.sink]
    for (number, gap), barrier in placed.items():
        if need.level is k.Level.BLOCK and barrier.level is not k.Level.BLOCK:
            continue
        after = number in source and number not in sink and gap >= source[number]
        before = number in sink and number not in source and gap < sink[number]
        if after or before:
            return True
    return False


def _positions(every: Sequence[_List]) -> dict[Leaf, dict[int, int]]:
    """For each leaf, the lists it lies in and the step of each that it lies in."""
    where: dict[Leaf, dict[int, int]] = {}

    def visit(steps: _List, path: dict[int, int]) -> None:
        for at, node in enumerate(steps.nodes):
            here = {**path, steps.number: at}
            match node:
                case Leaf():
                    where[node] = here
                case Loop():
                    visit(_of(node.body, every), here)
                case Branch():
                    visit(_of(node.then, every), here)
                    visit(_of(node.orelse, every), here)

    visit(every[0], {})
    return where


def _of(nodes: tuple[Node, ...], every: Sequence[_List]) -> _List:
    if not nodes:
        return _List(-1, (), None)
    return next(steps for steps in every if steps.nodes is nodes)


def _gaps(need: Need, steps: _List, where: dict[Leaf, dict[int, int]]) -> frozenset[int] | None:
    """The gaps of `steps` that cover `need`, or None where it is another list's to cover."""
    source, sink = where[need.source], where[need.sink]
    last = len(steps.nodes) - 1
    if need.carrier is not None:
        if steps.loop is not need.carrier:
            return None
        if need.distant:
            return frozenset(range(last + 1))
        after = range(source[steps.number], last + 1)
        before = (last, *range(sink[steps.number]))
        return frozenset((*after, *before))
    if steps.number not in source or steps.number not in sink:
        return None
    first, second = source[steps.number], sink[steps.number]
    return frozenset(range(first, second)) if first < second else None


def _passes(
    need: Need,
    gaps: frozenset[int],
    steps: _List,
    where: dict[Leaf, dict[int, int]],
    synchronising: dict[int, k.Level],
    every: Sequence[_List],
) -> bool:
    """Whether `need`, with these gaps, passes over a step that itself always meets a barrier."""
    last = len(steps.nodes) - 1
    source, sink = where[need.source].get(steps.number), where[need.sink].get(steps.number)
    for at, node in enumerate(steps.nodes):
        if not (isinstance(node, Loop) and node.stmt.extent.is_constant and node.stmt.extent.constant > 0):
            continue
        level = synchronising.get(_of(node.body, every).number)
        if level is None or (need.level is k.Level.BLOCK and level is not k.Level.BLOCK):
            continue
        around = {at - 1 if at else last, at}
        ends_inside = at == source == sink and not need.distant
        if around <= gaps and (at or steps.loop) and not ends_inside:
            return True
    return False


def _hitting(sets: list[frozenset[int]]) -> tuple[int, ...]:
    """A least set of gaps that meets each of `sets`; among those of equal size the latest gaps, as barriers then wait least."""
    if not sets:
        return ()
    gaps = sorted({gap for each in sets for gap in each}, reverse=True)
    for size in range(1, EXHAUSTIVE + 1):
        for chosen in combinations(gaps, size):
            if all(s & frozenset(chosen) for s in sets):
                return tuple(sorted(chosen))
    return tuple(sorted(_greedy(sets)))


def _greedy(sets: list[frozenset[int]]) -> Iterator[int]:
    while sets:
        left = sets
        gaps = sorted({gap for each in left for gap in each})
        best = max(gaps, key=lambda gap: sum(gap in each for each in left))
        yield best
        sets = [each for each in left if best not in each]
