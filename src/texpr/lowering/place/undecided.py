"""Locals that need a barrier under any mapping: they do not constrain the mapping of bands to the array's shape."""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.lowering.build.team import replicated_buffers, tree
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.names import Names
from texpr.lowering.place.owners import Unfit
from texpr.lowering.place.shuffles import Shuffles
from texpr.mapping.dealt import undecided
from texpr.mapping.nest import Nest


def met(nest: Nest, names: Names, needs: Needs) -> frozenset[Buffer]:
    """Those of the arrays that constrain bands of `nest` to the shape which mapping by shape neither leaves to one thread for
    each element nor keeps in registers of lanes."""
    kept = undecided(nest)
    if not kept:
        return frozenset()
    nodes = tree(nest, {s: names.sym("decided") for s in ir.walk(nest.body) if isinstance(s, ir.If)})
    apart = kept - replicated_buffers(nest)
    shuffles = Shuffles(needs, nest, nodes)

    def in_lanes(buffer: Buffer) -> bool:
        try:
            return shuffles.lanes(buffer, False).price.is_less
        except Unfit:
            return False

    return frozenset(b for b in apart if needs.slots(nest, nodes, b) is None and not in_lanes(b))
