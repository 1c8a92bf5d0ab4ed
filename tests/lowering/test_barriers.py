"""Barriers of random trees of steps: every need is covered on every path, and no fewer barriers would do.

Covered is what a run shows: the tree is run with every choice of branch and of trips through its loops, as a sequence of
steps and barriers, and between each pair of ends that a need speaks of there must be a barrier of its level.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, product

import pytest

from texpr.affine.expr import Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.types import BOOL
from texpr.ir.value import Literal
from texpr.lowering import barriers
from texpr.lowering.barriers import Gap, Need, place
from texpr.lowering.team import Branch, Leaf, Loop, Node, Who
from texpr.support.span import NOWHERE

COVERED = k.Covered("RAW", "v", NOWHERE, NOWHERE)
OPEN = expr(Sym("n"))


@dataclass(frozen=True)
class Visit:
    """A leaf as it comes in a run: under which iterations of the loops around it."""

    leaf: Leaf
    loops: tuple[tuple[ir.Seq, int], ...]


Event = Visit | k.Level


@dataclass
class Tree:
    """A random tree. `nodes` is what `place` gets; every list of steps in it keeps its identity."""

    random: random.Random
    leaves: list[tuple[Leaf, tuple[ir.Seq, ...]]] = field(default_factory=list[tuple[Leaf, tuple[ir.Seq, ...]]])
    loops: list[ir.Seq] = field(default_factory=list[ir.Seq])

    def steps(self, depth: int, around: tuple[ir.Seq, ...] = ()) -> tuple[Node, ...]:
        return tuple(self.node(depth, around) for _ in range(self.random.randint(1, 3)))

    def node(self, depth: int, around: tuple[ir.Seq, ...]) -> Node:
        kind = self.random.random() if depth else 1.0
        if kind < 0.35:
            number = len(self.loops)
            extent = self.random.choice([expr(1), expr(2), OPEN])
            seq = ir.Seq(Sym(f"t{number}"), extent, ())
            self.loops.append(seq)
            return Loop(seq, self.steps(depth - 1, (*around, seq)))
        if kind < 0.5:
            then, orelse = self.steps(depth - 1, around), self.steps(depth - 1, around) if self.random.random() < 0.5 else ()
            return Branch(ir.If(Literal(1, BOOL), ()), Sym("c"), then, orelse)
        leaf = Leaf(Who.SPREAD, ir.If(Literal(1, BOOL), ()))
        self.leaves.append((leaf, around))
        return leaf


def runs(nodes: tuple[Node, ...], placed: dict[Gap, k.Level]) -> Iterator[tuple[Event, ...]]:
    """Every run: open loops with 0 to 3 iterations, each branch either way (alike in all iterations of the loops)."""
    numbers = {id(steps.nodes): steps.number for steps in barriers.lists(nodes)}
    open_loops: list[ir.Seq] = []
    branches: list[ir.If] = []

    def collect(nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            match node:
                case Loop(stmt, body):
                    open_loops.extend([] if stmt.extent.is_constant else [stmt])
                    collect(body)
                case Branch():
                    branches.append(node.stmt)
                    collect(node.then)
                    collect(node.orelse)
                case Leaf():
                    pass

    collect(nodes)
    for trips in product(range(4), repeat=len(open_loops)):
        for sides in product((True, False), repeat=len(branches)):
            extents, taken = dict(zip(open_loops, trips, strict=True)), dict(zip(branches, sides, strict=True))
            yield tuple(_run(nodes, (), placed, numbers, extents, taken))


def _run(
    nodes: tuple[Node, ...],
    loops: tuple[tuple[ir.Seq, int], ...],
    placed: dict[Gap, k.Level],
    numbers: dict[int, int],
    extents: dict[ir.Seq, int],
    taken: dict[ir.If, bool],
) -> Iterator[Event]:
    for at, node in enumerate(nodes):
        match node:
            case Leaf():
                yield Visit(node, loops)
            case Loop(stmt, body):
                for turn in range(extents.get(stmt, stmt.extent.constant)):
                    yield from _run(body, (*loops, (stmt, turn)), placed, numbers, extents, taken)
            case Branch(stmt):
                side = node.then if taken[stmt] else node.orelse
                yield from _run(side, loops, placed, numbers, extents, taken)
        level = placed.get((numbers[id(nodes)], at))
        if level is not None:
            yield level


def speaks_of(need: Need, source: Visit, sink: Visit) -> bool:
    """Whether two visits, the one before the other, are ends that `need` is about."""
    one, other = dict(source.loops), dict(sink.loops)
    common = [a for (a, _), (b, _) in zip(source.loops, sink.loops, strict=False) if a is b]
    for loop in common:
        if loop is need.carrier:
            apart = other[loop] - one[loop]
            return apart >= 2 if need.distant else apart >= 1
        if one[loop] != other[loop]:
            return False
    return need.carrier is None


def uncovered(nodes: tuple[Node, ...], needs: list[Need], placed: dict[Gap, k.Level]) -> str | None:
    """A need and a run in which no barrier lies between its ends, if there is one."""
    for events in runs(nodes, placed):
        for need in needs:
            for at, source in enumerate(events):
                if not isinstance(source, Visit) or source.leaf is not need.source:
                    continue
                met = False
                for event in events[at + 1 :]:
                    if not isinstance(event, Visit):
                        met = met or event is k.Level.BLOCK or event is need.level
                    elif event.leaf is need.sink and not met and _asks(need, source, event, events):
                        return f"{need} in {events}"
    return None


def _asks(need: Need, source: Visit, sink: Visit, events: tuple[Event, ...]) -> bool:
    return speaks_of(need, source, sink) and not _excused(need, source, sink, events)


def _excused(need: Need, source: Visit, sink: Visit, events: tuple[Event, ...]) -> bool:
    """A need with `within` is not about the iteration of that loop nearest to the other end."""
    loop = need.within
    if loop is None:
        return False
    of_source, of_sink = dict(source.loops), dict(sink.loops)
    if loop in of_source:
        last = max(dict(e.loops)[loop] for e in events if isinstance(e, Visit) and loop in dict(e.loops))
        return of_source[loop] == last
    return of_sink[loop] == 0


def random_needs(tree: Tree, levels: tuple[k.Level, ...]) -> list[Need]:
    """Needs that the text allows: in order within an iteration, or carried by a loop around both ends."""
    found: list[Need] = []
    for _ in range(tree.random.randint(1, 4)):
        one, other = (tree.random.randrange(len(tree.leaves)) for _ in range(2))
        (source, outer), (sink, inner) = tree.leaves[one], tree.leaves[other]
        common = [a for a, b in zip(outer, inner, strict=False) if a is b]
        carrier = tree.random.choice([None, *common])
        if carrier is None and one >= other:
            continue
        alone = [*outer[len(common) : len(common) + 1], *inner[len(common) : len(common) + 1]]
        within = tree.random.choice([None, *alone]) if carrier is None else None
        distant = carrier is not None and tree.random.random() < 0.25
        found.append(Need(source, sink, carrier, tree.random.choice(levels), COVERED, distant, within))
    return found


def cases(seeds: range, depth: int, levels: tuple[k.Level, ...]) -> Iterator[tuple[int, tuple[Node, ...], list[Need]]]:
    for seed in seeds:
        tree = Tree(random.Random(seed))
        nodes = tree.steps(depth)
        branches = sum(isinstance(n, Branch) for n in _every(nodes))
        if len(tree.loops) <= 3 and branches <= 2 and (needs := random_needs(tree, levels)):
            yield seed, nodes, needs


def _every(nodes: tuple[Node, ...]) -> Iterator[Node]:
    for steps in barriers.lists(nodes):
        yield from steps.nodes


BOTH = (k.Level.BLOCK, k.Level.WARP)


def _levels(placed: dict[Gap, k.Barrier]) -> dict[Gap, k.Level]:
    return {gap: barrier.level for gap, barrier in placed.items()}


@pytest.mark.parametrize("levels", [(k.Level.BLOCK,), BOTH], ids=["one level", "two levels"])
def test_every_need_is_covered(levels: tuple[k.Level, ...]) -> None:
    tried = 0
    for seed, nodes, needs in cases(range(4000), 3, levels):
        tried += 1
        missed = uncovered(nodes, needs, _levels(place(nodes, needs, 32)))
        assert missed is None, f"seed {seed}: {missed}"
    assert tried >= 1300, tried


def test_a_barrier_left_out_is_noticed() -> None:
    noticed = left_out = 0
    for _, nodes, needs in cases(range(300), 3, (k.Level.BLOCK,)):
        levels = _levels(place(nodes, needs, 32))
        for gap in levels:
            left_out += 1
            noticed += uncovered(nodes, needs, {g: level for g, level in levels.items() if g != gap}) is not None
    assert noticed >= 0.6 * left_out > 60, (noticed, left_out)  # some needs speak of iterations that no run has


def test_no_fewer_barriers_would_do_in_a_list() -> None:
    """Against every subset of the gaps, for one loop around plain steps: there the least number is promised."""
    chooser = random.Random(0)
    for seed in range(400):
        tree = Tree(random.Random(seed))
        loop = ir.Seq(Sym("t"), OPEN, ())
        inner = tuple(tree.node(0, (loop,)) for _ in range(chooser.randint(1, 5)))
        nodes: tuple[Node, ...] = (Loop(loop, inner),)
        needs = random_needs(tree, (k.Level.BLOCK,))
        placed = place(nodes, needs, 32)
        assert uncovered(nodes, needs, _levels(placed)) is None, seed
        gaps = [
            (number, at) for number, steps in ((s.number, s.nodes) for s in barriers.lists(nodes)) for at in range(len(steps))
        ]
        for fewer in range(len(placed)):
            for chosen in combinations(gaps, fewer):
                assert uncovered(nodes, needs, dict.fromkeys(chosen, k.Level.BLOCK)) is not None, f"seed {seed}: {chosen} do"
