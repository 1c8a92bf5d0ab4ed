"""From a nest to the steps form of its kernel: each pass is a function of the earlier results.

nest ─ build ─▶ steps ─ place ─▶ places of locals ─ synchronise ─▶ order of the steps ─ assemble ─▶ the form (─ emit ─▶ kernel)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.marked import atomic_binds
from texpr.ir.program.rewrite import replace_loads
from texpr.ir.steps import Branch, Loop, Node, Steps
from texpr.ir.value import Load, Ref, Value, walk
from texpr.isa.target import Target
from texpr.lowering.assemble import Title, assemble
from texpr.lowering.build.cluster import Cluster
from texpr.lowering.build.coordinates import Coordinates, coordinates
from texpr.lowering.build.team import replicated_buffers, tree
from texpr.lowering.dependences.lives import Lives
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.names import Names
from texpr.lowering.place.arena import Arena, room
from texpr.lowering.place.distributed import distributed
from texpr.lowering.place.placement import Placement, Placer
from texpr.lowering.place.shuffles import Shuffles
from texpr.lowering.sync import barriers
from texpr.lowering.sync.phases import Tensors
from texpr.lowering.sync.synchronise import Order, synchronise
from texpr.mapping.nest import Nest
from texpr.relation.facts import known
from texpr.support.record import Record
from texpr.tma.model import Copy


class Lowered(Record):
    """The steps of a kernel, and the decisions and proofs behind them."""

    steps: Steps
    placement: Placement
    copies: tuple[tuple[str, Copy], ...]
    proof: barriers.Proof | None
    arena: Arena


def lower_nest(nest: Nest, target: Target, names: Names, needs: Needs, sizes: frozenset[Sym], title: Title) -> Lowered:
    """The steps of one nest. `needs` answers queries on dependences; `sizes` are known before any kernel is launched."""
    alone = nest.team == 1
    cluster = Cluster()
    if any(m.cluster > 1 for m in nest.grid):
        cluster = Cluster.of(nest.grid, names, known(needs.model.given))
    at = coordinates(nest, target, names, cluster, needs.model.given)
    nodes = () if alone else tree(nest, {s: names.sym("decided") for s in _conditions(nest)})
    lives = Lives(needs, nest, nodes)
    placement = _placed(nest, target, names, needs, sizes, at, nodes, lives)
    tensors = Tensors.of(nodes, placement.places, names, needs, nest, cluster)
    order = Order()
    if not alone:
        alike = partial(_is_alike, at=at, cluster=cluster, placement=placement)
        order = synchronise(nest, nodes, placement, tensors, needs, lives, target, alike)
    steps = assemble(title, nest, nodes, target, names, at, cluster, placement, tensors, order)
    return Lowered(steps, placement, tensors.maps.copies(), order.proof, order.arena)


def _conditions(nest: Nest) -> Iterator[ir.If]:
    return (s for s in ir.walk(nest.body) if isinstance(s, ir.If))


def _placed(
    nest: Nest,
    target: Target,
    names: Names,
    needs: Needs,
    sizes: frozenset[Sym],
    at: Coordinates,
    nodes: tuple[Node, ...],
    lives: Lives,
) -> Placement:
    """The place of every local of a nest."""
    atomics = atomic_binds(tuple(m.loop for m in nest.grid), nest.body)
    return Placer(
        nest,
        target,
        names,
        at.thread,
        {m.loop: m.loop.extent for m in nest.grid},
        sizes,
        frozenset() if nest.team == 1 else replicated_buffers(nest),
        lambda buffer: needs.slots(nest, nodes, buffer),
        Shuffles(needs, nest, nodes, atomics).lanes,
        lambda sizes: room(sizes, lives),
        lambda buffer: None if at.rank is None else distributed(needs, nest, nodes, buffer, at.rank),
    ).run()


def _is_alike(node: Loop | Branch, at: Coordinates, cluster: Cluster, placement: Placement) -> bool:
    """Whether a node is proved uniform in a cluster. Locals that each thread replicates are not known to be uniform."""
    if at.rank is not None and isinstance(node, Branch):
        kept = [place.register for place in placement.places.values() if place.register is not None]
        own = [array.buffer for array in placement.arrays if array.space is not k.Space.CLUSTER]
        parts = tuple(walk(_moved(node.stmt.condition, placement)))
        known = not any(isinstance(part, Ref) and part.sym in kept for part in parts)
        return known and not any(isinstance(part, Load) and part.buffer in own for part in parts)
    return cluster.is_alike(node)


def _moved(value: Value, placement: Placement) -> Value:
    """A value with every element replaced by the one in its place."""
    places = placement.places
    return replace_loads(value, lambda load: places[load.buffer].element(load) if load.buffer in places else None)
