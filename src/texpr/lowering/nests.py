"""One nest becomes one kernel, in four passes, each a function of what came before.

nest ─ team.build ─▶ steps ─ Placer ─▶ where locals live ─ synchronise ─▶ order in the steps ─ Statements ─▶ body
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.marked import atomic_binds
from texpr.ir.steps import Branch, Loop
from texpr.ir.value import Buffer, Load, Ref, walk
from texpr.isa.target import Target
from texpr.lowering.build.cluster import Cluster
from texpr.lowering.build.coordinates import Coordinates, coordinates
from texpr.lowering.build.team import Team, build
from texpr.lowering.dependences.lives import Lives
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.emit import lanes, vectors
from texpr.lowering.emit.emitter import Emitter, free_sums
from texpr.lowering.emit.statements import Statements
from texpr.lowering.names import Names
from texpr.lowering.place.arena import Arena, room
from texpr.lowering.place.distributed import distributed
from texpr.lowering.place.placement import Placement, Placer
from texpr.lowering.place.shuffles import Shuffles
from texpr.lowering.steps import Steps, whole
from texpr.lowering.sync import barriers
from texpr.lowering.sync.phases import Tensors
from texpr.lowering.sync.synchronise import Order, synchronise
from texpr.mapping.nest import Nest
from texpr.relation.facts import known
from texpr.support.record import Mutable, field
from texpr.tma.model import Copy


class Lowered(Mutable):
    """A kernel's parts, before its arguments are collected."""

    axes: tuple[k.Axis, ...]
    arrays: tuple[k.Array, ...]
    placement: Placement
    body: tuple[k.Stmt, ...]
    maps: tuple[k.TensorMap, ...] = ()
    copies: tuple[tuple[str, Copy], ...] = ()
    proof: barriers.Proof | None = None
    arena: Arena = field(default_factory=Arena)
    steps: Steps = field(default_factory=Steps)


def lower_nest(
    nest: Nest, target: Target, names: Names, needs: Needs, sizes: frozenset[Sym], lets: Mapping[Sym, Buffer]
) -> Lowered:
    """The kernel of one nest. `needs` answers what depends on what; `sizes` are known before anything runs; `lets` are values
    kept by earlier kernels."""
    alone = nest.team == 1
    cluster = Cluster()
    if any(m.cluster > 1 for m in nest.grid):
        cluster = Cluster.of(nest.grid, names, known(needs.model.given))
    at = coordinates(nest, target, names, cluster, needs.model.given)
    team = Team((), frozenset()) if alone else build(nest, {s: names.sym("decided") for s in _conditions(nest)})
    grid = tuple(m.loop for m in nest.grid)
    atomics = atomic_binds(grid, nest.body)
    lives = Lives(needs, nest, team)
    placement = _placed(nest, target, names, needs, sizes, at, team, lives, atomics)
    places = placement.places
    tensors = Tensors.of(team.nodes, places, names, needs, nest, cluster)
    emitter = Emitter(places, names, simd=target.has_vector_lanes, atomics=atomics, known=needs.known)
    emitter.loops = needs.loops
    statements = Statements(nest, names, at, placement, tensors, cluster, emitter)
    emitter.within = statements.within_warp
    if target.has_vector_lanes:
        emitter.free = free_sums(grid, nest.body)
        emitter.reduce = lanes.in_lanes(needs.around, target) if alone else emitter.reduce
    else:
        emitter.vector = vectors.in_lanes
    order, steps = Order(), Steps()
    if not alone:
        alike = partial(_is_alike, at=at, cluster=cluster, placement=placement, emitter=emitter)
        order = synchronise(nest, team, placement, tensors, needs, lives, target, alike)
        statements.copying, steps = order.copying, whole(team.nodes, order, tensors)
    body = statements.of_threads() if alone else statements.of_team(steps)
    own = map(tensors.aligned, placement.arrays)
    arrays = order.arena.placed((*own, *emitter.arrays, *statements.scratch(), *tensors.arrays))
    maps = tensors.maps
    body = (*at.prelude, *_let_loads(lets, body), *body)
    return Lowered(at.axes, arrays, placement, body, tuple(maps.found), maps.copies(), order.proof, order.arena, steps)


def _conditions(nest: Nest) -> Iterator[ir.If]:
    return (s for s in ir.walk(nest.body) if isinstance(s, ir.If))


def _placed(
    nest: Nest,
    target: Target,
    names: Names,
    needs: Needs,
    sizes: frozenset[Sym],
    at: Coordinates,
    team: Team,
    lives: Lives,
    atomics: frozenset[ir.Bind],
) -> Placement:
    """Where every local of a nest lives."""
    return Placer(
        nest,
        target,
        names,
        at.thread,
        {m.loop: m.loop.extent for m in nest.grid},
        sizes,
        team.replicated,
        lambda buffer: needs.slots(nest, team, buffer),
        Shuffles(needs, nest, team, atomics).lanes,
        lambda sizes: room(sizes, lives),
        lambda buffer: None if at.rank is None else distributed(needs, nest, team, buffer, at.rank),
    ).run()


def _is_alike(node: Loop | Branch, at: Coordinates, cluster: Cluster, placement: Placement, emitter: Emitter) -> bool:
    """Whether all blocks of a cluster surely run a node alike. What each thread keeps a copy of is not known to be."""
    if at.rank is not None and isinstance(node, Branch):
        kept = [place.register for place in placement.places.values() if place.register is not None]
        own = [array.buffer for array in placement.arrays if array.space is not k.Space.CLUSTER]
        parts = tuple(walk(emitter.value(node.stmt.condition)))
        known = not any(isinstance(part, Ref) and part.sym in kept for part in parts)
        return known and not any(isinstance(part, Load) and part.buffer in own for part in parts)
    return cluster.is_alike(node)


def _let_loads(lets: Mapping[Sym, Buffer], body: tuple[k.Stmt, ...]) -> Iterator[k.Stmt]:
    used = k.symbols(body)
    for sym, buffer in lets.items():
        if sym in used:
            yield k.Declare(sym, buffer.dtype, Load(buffer, ()), span=buffer.span)
