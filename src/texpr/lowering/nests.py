"""From a nest to the steps form of its kernel: each pass gives a form, all of which is in its text.

nest ─ build ─▶ steps ─ place ─▶ steps with places ─ synchronise ─▶ steps in order (─ emit ─▶ kernel)
"""

from __future__ import annotations

from texpr.affine.expr import Sym
from texpr.ir.steps import Steps
from texpr.isa.target import Target
from texpr.lowering.build.build import Title, build
from texpr.lowering.build.cluster import Cluster
from texpr.lowering.dependences.lives import Lives
from texpr.lowering.dependences.needs import Needs
from texpr.lowering.names import Names
from texpr.lowering.place.placement import place
from texpr.lowering.sync.synchronise import Ordered, synchronise
from texpr.mapping.nest import Nest
from texpr.relation.facts import known
from texpr.support.record import Record


class Lowered(Record):
    """The steps of a kernel as each pass gives them; `ordered` has the complete form."""

    built: Steps
    placed: Steps
    ordered: Ordered


def lower_nest(nest: Nest, target: Target, names: Names, needs: Needs, sizes: frozenset[Sym], title: Title) -> Lowered:
    """The steps of one nest. `needs` answers queries on dependences; `sizes` are known before any kernel is launched."""
    given = needs.model.given
    cluster = Cluster.of(nest.grid, names, known(given))
    built = build(title, nest, target, names, cluster, given)
    lives = Lives(needs, nest, built.body)
    placed = place(built, nest, target, needs, lives, sizes)
    return Lowered(built, placed, synchronise(placed, nest, target, names, needs, lives, cluster))
