"""Synchronisation: all operations for order between the steps of a kernel, from one kind of dependence.

Before: the steps of a nest with the places of its locals. After: the complete form. Waits for copies, phases of barriers,
fences and barriers stand between the steps as steps of their own; engines are started by operations; shared arrays have offsets
where they share memory, since accesses to arrays that share it must be ordered, too.

    place t: f32[64] in t                               place t: f32[64] in t
    all spread reads x writes t { … }                   all spread reads x writes t { … }
    all spread reads t writes y { … }             →     all order { barrier block covers RAW t from 5 to 6 }
                                                        all spread reads t writes y { … }
"""

from __future__ import annotations

from texpr.ir.steps import Step, Steps
from texpr.ir.steps.names import names_in
from texpr.ir.steps.plain import plain
from texpr.isa.target import Target
from texpr.lowering.build import signals
from texpr.lowering.build.cluster import Cluster
from texpr.lowering.dependences.lives import Lives
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.names import Names
from texpr.lowering.place.arena import Arena
from texpr.lowering.sync import barriers
from texpr.lowering.sync.engines import engines
from texpr.lowering.sync.order import decide
from texpr.lowering.sync.weave import woven
from texpr.mapping.nest import Nest
from texpr.support.record import Record, field, replace
from texpr.tma.model import Copy


class Ordered(Record):
    """The complete form, and how it was found: the derivation of each copy by its map, the proof that no other barriers cost
    less, and the storage sharing."""

    steps: Steps
    copies: tuple[tuple[str, Copy], ...] = ()
    proof: barriers.Proof | None = None
    arena: Arena = field(default_factory=Arena)


def synchronise(
    steps: Steps, nest: Nest, target: Target, names: Names, needs: Needs, lives: Lives, cluster: Cluster
) -> Ordered:
    """The order that `needs` requires, at least cost, in the placed `steps` of `nest`. Raises Limitation."""
    if nest.team == 1:
        body = tuple(replace(node, stmts=plain(node.stmts)) for node in steps.body if isinstance(node, Step))
        return Ordered(_complete(replace(steps, body=body), names))
    found = engines(steps, nest, needs, cluster)
    order = decide(steps, nest, target, found, needs, lives, names, cluster)
    operations, places = order.operations, dict(steps.places)
    made = woven(steps, order, cluster, signals.made(nest.body))
    arrays = (*(found.aligned(array, places) for array in steps.arrays), *(group.array for group in operations.phases.groups))
    arrays = (*arrays, *order.channel.arrays) if order.channel is not None else arrays
    arrays = (*arrays, *signals.arrays(nest.body))
    if order.columns is not None:
        arrays = (*map(order.columns.placed, arrays), *order.columns.arrays)
    made = replace(made, arrays=order.arena.placed(arrays), maps=tuple(operations.maps.found))
    return Ordered(_complete(made, names), operations.maps.copies(), order.proof, order.arena)


def _complete(steps: Steps, names: Names) -> Steps:
    """The form with the names that emission must leave to other kernels; its arrays need no more memory."""
    return replace(steps, budget=0, avoid=tuple(sorted(names.plain - {*names_in(steps)})))
