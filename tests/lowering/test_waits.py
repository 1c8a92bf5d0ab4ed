"""Waits for asynchronous copies in random trees of steps: whoever meets a copy finds it landed, in every run.

A run counts groups as a thread does: a commit closes one, a wait leaves so many of the latest on their way. Nothing of that is
taken from what places the waits.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import pytest
from tests.lowering.test_barriers import COVERED, Event, Tree, Visit, runs

from texpr.ir.program import Seq
from texpr.ir.steps import Branch, Loop, Node, Step
from texpr.lowering.build.paths import ProgramPoint, lists
from texpr.lowering.build.team import surroundings
from texpr.lowering.dependences.dependence import Dependence
from texpr.lowering.sync.asynchronous import committing, place_waits

Case = tuple[tuple[Node, ...], frozenset[Step], list[Dependence]]


def case(seed: int) -> Case:
    """A tree, the steps of it that copy, and what meets their copies."""
    tree = Tree(random.Random(seed))
    nodes = tree.steps(3)
    copying = frozenset(leaf for leaf, _ in tree.leaves if tree.random.random() < 0.5)
    found, around = list[Dependence](), surroundings(nodes)
    for _ in range(tree.random.randint(1, 4) if copying else 0):
        one = tree.random.choice([n for n, (leaf, _) in enumerate(tree.leaves) if leaf in copying])
        other = tree.random.randrange(len(tree.leaves))
        (source, outer), (sink, inner) = tree.leaves[one], tree.leaves[other]
        common = [a for a, b in zip(outer, inner, strict=False) if a is b]
        carrier = tree.random.choice([None, *common])
        arms = around[source].excludes(around[sink])
        if carrier is not None or (one < other and not arms):
            distance = 0 if carrier is None else tree.random.choice([1, 1, 2, 3])
            if carrier is not None and carrier.extent.is_constant and carrier.extent.constant <= distance:
                continue
            found.append(Dependence(source, sink, carrier, None, COVERED, distance))
    return nodes, copying, found


def marked(nodes: tuple[Node, ...], copying: frozenset[Step]) -> Mapping[ProgramPoint, bool]:
    """The gaps behind nodes that close a group; of a branch that only copies, the one behind it."""
    commits = committing(nodes, copying)
    return {(each.number, at): True for each in lists(nodes) for at, node in enumerate(each.nodes) if node in commits}


def early(case: Case, waits: Mapping[ProgramPoint, int]) -> str | None:
    """A copy that is met before it has landed, or is on its way at the end, in some run."""
    nodes, copying, asked = case
    closes = marked(nodes, copying)
    for events, _ in runs(nodes):
        if (found := _early(events, closes, copying, asked, waits)) is not None:
            return found
    return None


def _early(
    events: tuple[Event, ...],
    closes: Mapping[ProgramPoint, bool],
    copying: frozenset[Step],
    asked: list[Dependence],
    waits: Mapping[ProgramPoint, int],
) -> str | None:
    closed, landed = 0, 0
    started: list[tuple[Visit, int]] = []
    for event in events:
        if isinstance(event, Visit):
            for visit, group in started:
                if group >= landed and any(_meets(each, visit, event) for each in asked):
                    return f"{event} meets group {group} of {visit}, {landed} landed"
            if event.leaf in copying:
                started.append((event, closed))
        else:
            closed += closes.get(event, False)
            if event in waits:
                landed = max(landed, closed - waits[event])
    return f"{closed - landed} on their way at the end" if landed < closed else None


def _meets(each: Dependence, source: Visit, sink: Visit) -> bool:
    if each.source is not source.leaf or each.sink is not sink.leaf:
        return False
    one, other = dict[Seq, int](source.loops), dict[Seq, int](sink.loops)
    for (loop, turn), (same, _) in zip(source.loops, sink.loops, strict=False):
        if loop is not same:
            break
        if loop is each.carrier:
            return other[loop] - turn >= each.distance
        if one[loop] != other[loop]:
            return False
    return each.carrier is None


def placed(case: Case) -> dict[ProgramPoint, int]:
    nodes, copying, asked = case
    found = place_waits(nodes, asked, committing(nodes, copying), {})
    return {gap: wait.pending for gap, wait in found.items()}


def cases(seeds: range) -> Iterator[Case]:
    for seed in seeds:
        made = case(seed)
        if len([node for node in _every(made[0]) if isinstance(node, Loop | Branch)]) <= 4:
            yield made


def _every(nodes: tuple[Node, ...]) -> Iterator[Node]:
    for steps in lists(nodes):
        yield from steps.nodes


@pytest.mark.parametrize("seeds", [range(n, n + 100) for n in range(0, 300, 100)], ids=str)
def test_every_copy_has_landed(seeds: range) -> None:
    for made in cases(seeds):
        assert (found := early(made, placed(made))) is None, found


def test_what_is_left_out_shows() -> None:
    """Each wait is needed in most cases, and waits for no group too many in most."""
    left_out, less, seen = 0, 0, 0
    for made in cases(range(300, 500)):
        waits = placed(made)
        for gap, pending in waits.items():
            seen += 1
            left_out += early(made, {other: n for other, n in waits.items() if other != gap}) is not None
            less += early(made, {**waits, gap: pending + 1}) is not None
    assert seen > 60 and left_out > 0.9 * seen and less > 0.9 * seen, (seen, left_out, less)
