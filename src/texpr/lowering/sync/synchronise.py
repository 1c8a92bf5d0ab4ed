"""Synchronisation of a team: all operations for order between the steps of a kernel, from one kind of dependence.

Before: the steps of a nest, and the places of its arrays. After: for each program point its operations (waits for copies,
phases of barriers, fences, and barriers), and the offsets of shared arrays, since accesses to arrays that share memory must be
ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from texpr.ir import kernel as k
from texpr.ir.steps import Branch, Loop, Node, Step
from texpr.ir.value import Buffer
from texpr.isa.target import Target
from texpr.lowering.build.paths import ProgramPoint
from texpr.lowering.dependences.lives import Lives, Turn
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.place.arena import Arena, Met, share
from texpr.lowering.place.placement import Placement
from texpr.lowering.sync import barriers, warpgroup
from texpr.lowering.sync.asynchronous import Wait, committing, copying_leaves, place_waits
from texpr.lowering.sync.phases import Tensors
from texpr.mapping.nest import Nest
from texpr.support.record import Record, field

Waits: TypeAlias = dict[ProgramPoint, Wait]


class Order(Record):
    """The operations at each program point, in order; the nodes after which a group of copies is closed; the steps that start
    such copies.

    `committing`: the nodes behind which a warpgroup's group is closed. `arena`: where shared arrays lie. `proof`: that no other
    barriers cost less.
    """

    gaps: Mapping[ProgramPoint, tuple[k.Stmt, ...]] = field(default_factory=dict[ProgramPoint, "tuple[k.Stmt, ...]"])
    closing: frozenset[Node] = frozenset()
    copying: frozenset[Step] = frozenset()
    committing: frozenset[Node] = frozenset()
    arena: Arena = field(default_factory=Arena)
    proof: barriers.Proof | None = None


def synchronise(
    nest: Nest,
    nodes: tuple[Node, ...],
    placement: Placement,
    tensors: Tensors,
    needs: Needs,
    lives: Lives,
    target: Target,
    alike: Callable[[Loop | Branch], bool],
) -> Order:
    """The order that `needs` requires, at least cost. `alike`: whether all blocks of a cluster execute a node uniformly.

    Waits for the copies of `tensors` are placed, too. Raises Limitation.
    """
    met = tuple(needs.meetings(nest, nodes, tensors.steps))
    copying, started = copying_leaves(nodes, placement.places, target), tensors.started
    warpgroup.require_apart(copying, started)
    going_on = copying | started.keys()
    between = needs.between(nest, nodes, placement.places, tensors.loads, going_on, tensors.shared)
    found = (*between, *tensors.turns(met, nodes))
    runs = needs.running(nest, nodes)
    closing = committing(nodes, copying)
    copied = tuple(needs.meetings(nest, nodes, copying)) if copying else ()
    groups = tuple(warpgroup.runs(nodes, started))
    closers, committed = {step: run.last for run in groups for step in run.steps}, frozenset(run.last for run in groups)
    waited = tuple(warpgroup.waited_for(needs.meetings(nest, nodes, started), started)) if started else ()

    def meet(turns: Sequence[Turn]) -> Met[tuple[barriers.Placed, Waits, Waits]]:
        asked = (*found, *(turn.need(lives.level, going_on) for turn in turns))
        threads = min(nest.team, nest.threads)
        best = barriers.place(nodes, asked, threads, runs.__contains__, alike, warp=nest.warp)
        landing = (*copied, *(turn.meeting() for turn in turns if turn.source in copying))
        waits = place_waits(nodes, landing, closing, best.barriers) if copying else {}
        ending = (*waited, *(turn.meeting() for turn in turns if turn.source in started))
        own = {meeting for meeting in waited if warpgroup.held(meeting, started)}
        last = place_waits(nodes, ending, committed, best.barriers, closers, own.__contains__) if started else {}
        cost = Fraction(0) if best.proof is None else best.proof.cost
        return Met((best, waits, last), (cost, len(best.barriers) + len(waits) + len(last)))

    arena, chosen = share(_sharing(nest, placement, tensors), lives, meet, placement.budget or target.shared)
    best, waits, last = chosen.made
    tensors.place(needs, nest, nodes, met, best.barriers)
    fences = warpgroup.fences(groups, started)
    asked = dict.fromkeys((*waits, *last, *tensors.before, *best.barriers, *fences))
    landing: dict[ProgramPoint, tuple[k.Stmt, ...]] = {gap: (wait.statement(),) for gap, wait in waits.items()}
    for gap, wait in last.items():
        landing[gap] = (*landing.get(gap, ()), _ended(wait, started))
    gaps = {
        gap: tuple(_done(landing.get(gap, ()), tensors.before.get(gap, ()), best.barriers.get(gap), fences.get(gap)))
        for gap in asked
    }
    return Order(gaps, closing, copying, committed, arena, best.proof)


def _ended(wait: Wait, started: Mapping[Step, warpgroup.Started]) -> k.Stmt:
    """A wait for groups of a warpgroup, behind which its lanes have registers again."""
    registers = dict.fromkeys(each for meeting in wait.meetings for each in warpgroup.held(meeting, started))
    return k.WaitWarpgroup(wait.pending, tuple(registers), wait.covers)


def _done(
    waits: Sequence[k.Stmt], before: Sequence[k.Stmt], barrier: k.Barrier | None, fence: k.Stmt | None
) -> Iterator[k.Stmt]:
    """What all threads do in a gap: they wait for what they started, then for each other, and hand over registers."""
    yield from waits
    yield from before
    if barrier is not None:
        yield barrier
    if fence is not None:
        yield fence


def _sharing(nest: Nest, placement: Placement, tensors: Tensors) -> tuple[tuple[Buffer, k.Array], ...]:
    """The shared arrays of the block, each with its local; none if warps have arrays of their own."""
    if nest.team != nest.threads:
        return ()
    arrays = {array.buffer: tensors.aligned(array) for array in placement.arrays}
    places = placement.places.items()
    return tuple((local, arrays[place.buffer]) for local, place in places if place.space is k.Space.SHARED)
