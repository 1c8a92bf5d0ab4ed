"""What engines do for the steps of a nest: copies by the tensor memory accelerator, and products by tensor cores.

Before: steps marked `#tma`, and uses of instructions that lanes only start. After: for each what it is a copy of, or what it
holds. Raised are refusals of those that are no longer as the schedule made them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from texpr.affine.expr import Expr
from texpr.affine.facts import Known
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Tensor
from texpr.ir.steps import Node, Step, Steps, leaves
from texpr.ir.steps.place import Place
from texpr.ir.value import Buffer, Load
from texpr.isa.engine import CHUNK
from texpr.lowering.build.cluster import Cluster
from texpr.lowering.build.paths import lists
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.engine.box_copy import BoxCopy, changed, step_of
from texpr.lowering.sync.turns import around
from texpr.lowering.sync.warpgroup import Started, started
from texpr.mapping.nest import Nest
from texpr.relation.facts import known
from texpr.schedule.edits import staged_by, without
from texpr.support.diagnostic import Note, limitation
from texpr.support.record import Record, replace


class Engines(Record):
    """The copies of one nest, by step, and what tensor cores of warpgroups do, by step.

    `level`: the scope of all threads that execute them. `given`: expressions that are non-negative everywhere.
    """

    copies: Mapping[Step, BoxCopy]
    started: Mapping[Step, Started]
    level: k.Level
    given: tuple[Expr, ...]

    @property
    def by_lanes(self) -> dict[Step, Started]:
        """What lanes of a warpgroup start."""
        return {step: each for step, each in self.started.items() if not each.instr.is_alone}

    @property
    def launched(self) -> dict[Step, Started]:
        """What one thread starts, in tensor memory."""
        return {step: each for step, each in self.started.items() if each.instr.is_alone}

    @property
    def led(self) -> frozenset[BoxCopy]:
        """The copies of tiles that pairs of blocks read alone: they are counted at barriers of the first block of each."""
        pairs = [each for each in self.started.values() if each.instr.is_pair]
        others = {tile for each in self.started.values() if not each.instr.is_pair for tile in each.tiles}
        tiles = {tile for each in pairs for tile in each.tiles} - others
        boxes = (each for each in self.loads.values() if not (each.in_runs or each.by_rows or each.window))
        return frozenset(copy for copy in boxes if copy.tile.buffer in tiles)

    @property
    def loads(self) -> dict[Step, BoxCopy]:
        """The copies to shared memory."""
        return {leaf: copy for leaf, copy in self.copies.items() if not copy.stores}

    @property
    def shared(self) -> frozenset[Step]:
        """The multicast copies: they write tiles of all blocks of a cluster."""
        return frozenset(leaf for leaf, copy in self.loads.items() if copy.among)

    @property
    def stores(self) -> dict[Step, BoxCopy]:
        """The copies from shared memory."""
        return {leaf: copy for leaf, copy in self.copies.items() if copy.stores}

    def aligned(self, array: k.Array, places: Mapping[Buffer, Place]) -> k.Array:
        """The array with the alignment that its copies and readers need."""
        own = (c for c in self.copies.values() if places[c.tile.buffer].buffer is array.buffer)
        read = (h for each in self.started.values() for h in each.matrices.values() if h.first.buffer is array.buffer)
        periods = (h.how.period for h in read if h.how is not None)
        return replace(array, align=max((array.align, *(c.align for c in own), *periods)))


def engines(steps: Steps, nest: Nest, needs: Needs, cluster: Cluster) -> Engines:
    """What engines do for the placed `steps`. Raises Limitation."""
    nodes, places = steps.body, dict(steps.places)
    shared = (each.loop for each in lists(nodes) if each.loop is not None and mark(each.loop, Tensor))
    if (loop := next(shared, None)) is not None:
        raise changed(loop)
    halved = {array.buffer for array in steps.arrays if array.halved is not None}
    copies = {leaf: found for leaf in leaves(nodes) if (found := step_of(leaf, places, needs.around))}
    if copies and nest.blocks > 1:
        reason = "where blocks of a cluster share an iteration, copies of the tensor memory accelerator are not supported"
        span = next(iter(copies.values())).span
        raise limitation("E0918", span, reason, offers=staged_by(span, "ld"))
    for leaf, copy in copies.items():
        _require_shared(copy, places, known(needs.around(leaf.stmt)))
        if copy.among:
            corner = copy.at(copy.seen, tuple(0 for _ in copy.loops)).index
            cluster.require_same(corner, copy.among, needs.around(leaf.stmt), copy.span)
            cluster.require_alike(around(nodes, leaf), f"copy `{copy.tensor.buffer.name}`", copy.span)
    _require_for_both(nodes, copies, {local for local, place in steps.places if place.buffer in halved})
    level = k.Level.WARP if nest.team <= nest.warp else k.Level.BLOCK
    return Engines(copies, started(nodes, places, needs.around), level, needs.model.given)


def _require_shared(step: BoxCopy, places: Mapping[Buffer, Place], here: Known) -> None:
    """Refuses tiles that other directives moved: E0913 outside of shared memory, E0916 at a misaligned offset."""
    tile = step.at(step.tile, tuple(0 for _ in step.loops))
    place = places.get(tile.buffer)
    if place is None or place.space is not k.Space.SHARED:
        reason = f"`{tile.buffer.name}` is copied by an engine, which copies between global and shared memory alone"
        raise limitation("E0913", step.span, reason, offers=(*staged_by(step.span, "ld"), *without(step.span, "in")))
    begin = Load(place.buffer, place.index(tile.index)).offset * place.buffer.dtype.bytes
    align = CHUNK if step.in_runs else step.align
    if not here.multiple(begin, align):
        reason = f"tiles of `{tile.buffer.name}` need not begin at multiples of {align} bytes: {begin} bytes"
        raise limitation("E0916", step.span, reason, offers=staged_by(step.span, "ld"))


def _require_for_both(nodes: tuple[Node, ...], copies: Mapping[Step, BoxCopy], halved: Collection[Buffer]) -> None:
    """Refuses steps that touch locals of which blocks of a pair have halves, unless they copy for both blocks, or are what both
    blocks do together: E0918."""
    for leaf in leaves(nodes) if halved else ():
        use, copy = leaf.stmts[0] if leaf.stmts else None, copies.get(leaf)
        if copy.among if copy else isinstance(use, ir.Instruction) and use.instr is not None and use.instr.is_pair:
            continue
        touched = next((each.buffer for each in (*leaf.reads, *leaf.writes) if each.buffer in halved), None)
        if touched is not None:
            told = f"`{touched.name}` is read in halves, one in each of two blocks, and each of both would have all of it"
            help = "a copy of the engine that both blocks share brings each of them its half"
            raise limitation("E0918", leaf.stmt.span, told, Note("it is declared here", touched.span), help=help)
