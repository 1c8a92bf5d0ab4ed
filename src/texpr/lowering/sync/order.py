"""Synchronisation of a team: all operations for order between the steps of a kernel, from one kind of dependence.

Before: the steps of a nest, and the places of its arrays. After: for each program point its operations (waits for copies,
phases of barriers, fences, and barriers), and the offsets of shared arrays, since accesses to arrays that share memory must be
ordered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import TypeAlias

from texpr.ir import kernel as k
from texpr.ir.program.rewrite import replace_loads
from texpr.ir.steps import Branch, Loop, Node, Step, Steps
from texpr.ir.steps.place import Place
from texpr.ir.value import Buffer, Load, Ref, Value, walk
from texpr.isa.target import Target
from texpr.lowering.build.cluster import Cluster
from texpr.lowering.build.paths import ProgramPoint
from texpr.lowering.dependences.dependence import Dependence
from texpr.lowering.dependences.lives import Lives, Turn
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.engine.box_copy import BoxCopy
from texpr.lowering.engine.tensor import Maps
from texpr.lowering.names import Names
from texpr.lowering.place.arena import Arena, Met, share
from texpr.lowering.sync import barriers, columns, warpgroup
from texpr.lowering.sync.asynchronous import Wait, committing, copying_leaves, place_waits
from texpr.lowering.sync.barriers import Barriers
from texpr.lowering.sync.channel import relay, roles
from texpr.lowering.sync.engines import Engines
from texpr.lowering.sync.fences import across_proxies, fenced
from texpr.lowering.sync.operations import Operations, is_left_out
from texpr.lowering.sync.phases import Turns, phases, turns
from texpr.lowering.sync.stored import later
from texpr.lowering.sync.turns import Ring
from texpr.mapping.nest import Nest
from texpr.support.record import Record, replace

Waits: TypeAlias = dict[ProgramPoint, Wait]


class Order(Record):
    """The operations at each program point, in order; the nodes after which a group of copies is closed; the steps that start
    such copies.

    `committing`: the nodes behind which a warpgroup's group is closed. `arena`: where shared arrays lie. `operations`: those of
    engines. `proof`: that no other barriers cost less. `columns`: what one thread has tensor cores do in tensor memory.
    """

    gaps: Mapping[ProgramPoint, tuple[k.Stmt, ...]]
    closing: frozenset[Node]
    copying: frozenset[Step]
    committing: frozenset[Node]
    arena: Arena
    operations: Operations
    proof: barriers.Proof | None
    channel: roles.Channel | None = None
    columns: columns.InColumns | None = None


def decide(
    steps: Steps, nest: Nest, target: Target, engines: Engines, needs: Needs, lives: Lives, names: Names, cluster: Cluster
) -> Order:
    """The order of `steps` that `needs` requires, at least cost. Raises Limitation."""
    nodes, places = steps.body, dict(steps.places)
    met = tuple(needs.meetings(nest, nodes, engines.copies))
    copying, started = copying_leaves(nodes, places, target), engines.by_lanes
    warpgroup.require_apart(copying, engines.started)
    launched = columns.in_columns(steps, nest, engines.launched, needs, names)
    going_on = copying | started.keys()
    between = needs.between(nest, nodes, places, engines.loads, going_on, engines.shared)
    turned, split = turns(engines, met, nodes), roles.split(steps, nest, engines, cluster)
    met, between = relay.own_turns(met, split), relay.own_turns(between, split)
    if launched is not None:
        between = tuple(launched.needs(nodes, between, engines.level, split))
    late = turned.needs if launched is None else tuple(need for need in turned.needs if need.source not in launched.paired)
    found = tuple(need for need in (*between, *late) if not (need.in_text or (split is not None and split.covers(need))))
    alike, settled = partial(_is_alike, steps=steps, cluster=cluster), partial(_is_settled, turned=turned, engines=engines)
    runs = needs.running(nest, nodes)
    closing = committing(nodes, copying)
    copied = tuple(needs.meetings(nest, nodes, copying)) if copying else ()
    groups = tuple(warpgroup.runs(nodes, started))
    closers, committed = {step: run.last for run in groups for step in run.steps}, frozenset(run.last for run in groups)
    lent = frozenset(warpgroup.lent(started))
    ended = tuple(warpgroup.waited_for(needs.meetings(nest, nodes, started, lent), started)) if started else ()
    along = tuple(need for need in (*met, *ended) if split is not None and split.covers(need))
    waited = tuple(need for need in ended if need not in along)

    def meet(sharing: Sequence[Turn]) -> Met[tuple[barriers.Placed, Waits, Waits, tuple[Dependence, ...]]]:
        asked = (*found, *(turn.need(lives.level, going_on) for turn in sharing))
        threads = min(nest.team, nest.threads)
        best = barriers.place(nodes, asked, threads, runs.__contains__, alike, warp=nest.warp, settled=settled)
        landing = (*copied, *(turn.meeting() for turn in sharing if turn.source in copying))
        waits = place_waits(nodes, landing, closing, best.barriers) if copying else {}
        ending = (*waited, *(turn.meeting() for turn in sharing if turn.source in started))
        own = {meeting for meeting in waited if warpgroup.held(meeting, started)}
        last = place_waits(nodes, ending, committed, best.barriers, closers, own.__contains__) if started else {}
        cost = Fraction(0) if best.proof is None else best.proof.cost
        return Met((best, waits, last, asked), (cost, len(best.barriers) + len(waits) + len(last)))

    arena, chosen = share(_sharing(nest, steps, engines), lives, meet, steps.budget)
    best, waits, last, asked = chosen.made
    placed = best.barriers if split is None else split.meeting(best.barriers, asked, nodes)
    operations = _operations(steps, engines, turned.rings, met, placed, needs, names, cluster)
    before: dict[ProgramPoint, tuple[k.Stmt, ...]] = operations.waits
    if split is not None:
        stored = later(placed, operations.phases, engines.stores, met, nodes, split.own(steps.thread), asked, runs.__contains__)
        placed, operations = stored.barriers, replace(operations, phases=stored.phases)
        before |= {gap: (*before.get(gap, ()), wait) for gap, wait in stored.waits.items()}
    across = across_proxies(needs, nest, nodes, engines.copies, {leaf: each.tiles for leaf, each in engines.started.items()})
    for gap, each in fenced(nodes, across, placed, runs.__contains__).items():
        before[gap] = (*before.get(gap, ()), k.Fence("async", span=each.sink.stmt.span))
    fences = warpgroup.fences(groups, started)
    ending = {gap: _ended(wait, started) for gap, wait in last.items()}
    gaps = _gaps({gap: wait.statement() for gap, wait in waits.items()}, ending, before, placed, fences)
    if split is None:
        return Order(gaps, closing, copying, committed, arena, operations, best.proof, columns=launched)
    filled = operations.phases.groups, turned.rings
    channel = roles.channel(split, nodes, *filled, groups, ending, along, started, names)
    return Order(channel.beside(gaps), closing, copying, committed, arena, operations, best.proof, channel)


def _is_settled(need: Dependence, turned: Turns, engines: Engines) -> bool:
    """Whether tensor cores read what engines write next, or threads only wait for a phase before its next one begins."""
    return need in turned.needs or (need.source in engines.started and need.sink in engines.loads)


def _operations(
    steps: Steps,
    engines: Engines,
    rings: Mapping[Step, Ring],
    met: Sequence[Dependence],
    placed: Barriers,
    needs: Needs,
    names: Names,
    cluster: Cluster,
) -> Operations:
    """The operations of copies, with barriers of groups, and a map for each copy of boxes."""
    stored = {copy.tensor.buffer for copy in engines.stores.values()}
    maps = Maps(dict(steps.places), names, needs.around, needs.model.params, cluster, stored)

    def is_parted(one: BoxCopy, other: BoxCopy) -> bool:
        return is_left_out(one, maps) or is_left_out(other, maps)

    made = phases(engines, rings, steps.body, met, placed, is_parted, needs.around, names)
    for copy in engines.copies.values():
        if not copy.in_runs:
            maps.of(copy)
    return Operations(engines, made, maps)


def _ended(wait: Wait, started: Mapping[Step, warpgroup.Started]) -> k.WaitWarpgroup:
    """A wait for groups of a warpgroup, behind which its lanes have registers again: for all, where it has read some of them
    (`proof.plan.landing.landed`)."""
    registers = dict.fromkeys(each for meeting in wait.meetings for each in warpgroup.held(meeting, started))
    lent = {(step, local.name) for step, local in warpgroup.lent(started)}
    whole = any((meeting.source, meeting.covered.buffer) in lent for meeting in wait.meetings)
    return k.WaitWarpgroup(0 if whole else wait.pending, tuple(registers), wait.covers)


def _gaps(
    waits: Mapping[ProgramPoint, k.Stmt],
    ending: Mapping[ProgramPoint, k.Stmt],
    before: Mapping[ProgramPoint, tuple[k.Stmt, ...]],
    barriers: Barriers,
    fences: Mapping[ProgramPoint, k.Stmt],
) -> dict[ProgramPoint, tuple[k.Stmt, ...]]:
    """The operations of each program point that has some."""
    asked = dict.fromkeys((*waits, *ending, *before, *barriers, *fences))
    landing = {gap: [each[gap] for each in (waits, ending) if gap in each] for gap in asked}
    return {gap: tuple(_done(landing[gap], before.get(gap, ()), barriers.get(gap), fences.get(gap))) for gap in asked}


def _done(waits: Sequence[k.Stmt], before: Sequence[k.Stmt], barrier: k.Stmt | None, fence: k.Stmt | None) -> Iterator[k.Stmt]:
    """What all threads do in a gap: they wait for what they started, then for each other, and hand over registers."""
    yield from waits
    yield from before
    if barrier is not None:
        yield barrier
    if fence is not None:
        yield fence


def _sharing(nest: Nest, steps: Steps, engines: Engines) -> tuple[tuple[Buffer, k.Array], ...]:
    """The shared arrays of the block, each with its local; none if warps have arrays of their own."""
    if nest.team != nest.threads:
        return ()
    places = dict(steps.places)
    arrays = {array.buffer: engines.aligned(array, places) for array in steps.arrays}
    return tuple((local, arrays[place.buffer]) for local, place in steps.places if place.space is k.Space.SHARED)


def _is_alike(node: Loop | Branch, steps: Steps, cluster: Cluster) -> bool:
    """Whether a node is proved uniform in a cluster. Locals that each thread replicates are not known to be uniform."""
    if steps.rank is not None and isinstance(node, Branch):
        places = dict(steps.places)
        kept = [place.register for place in places.values() if place.register is not None]
        own = [array.buffer for array in steps.arrays if array.space is not k.Space.CLUSTER]
        parts = tuple(walk(_moved(node.stmt.condition, places)))
        known = not any(isinstance(part, Ref) and part.sym in kept for part in parts)
        return known and not any(isinstance(part, Load) and part.buffer in own for part in parts)
    return cluster.is_alike(node)


def _moved(value: Value, places: Mapping[Buffer, Place]) -> Value:
    """A value with every element replaced by the one in its place."""
    return replace_loads(value, lambda load: places[load.buffer].element(load) if load.buffer in places else None)
