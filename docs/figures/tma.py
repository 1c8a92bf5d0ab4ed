"""The figures about IterDomains of "Introduction to TMA Support" and of "TMA Modeling In Depth"."""

from __future__ import annotations

import numpy as np

from texpr.affine.expr import Sym
from texpr.domain.allocation import items
from texpr.domain.contiguity import Memory
from texpr.domain.graph import DomainGraph
from texpr.domain.visits import visits
from texpr.draw.allocation import Cells, allocation_picture
from texpr.draw.domain import Marks, describe, domain_picture, draw_domain
from texpr.draw.page.picture import arrow, beside, captioned, document, stacked
from texpr.draw.tensor import Seen, draw_tensor
from texpr.tma.correctness import Plain, analysis
from texpr.tma.elements import ELEMENTS
from texpr.tma.execute import load
from texpr.tma.model import Copy, plan

BY_PARTITIONING = DomainGraph.of(("I1", 16), ("I2", 12)).split("I1", 4, ("I3", "I4")).split("I2", 6, ("I5", "I6"))
BY_COMPOSITING = (
    DomainGraph.of(("I1", 1024), ("I2", 2), ("I3", 4), ("I4", 8))
    .merge("I1", "I2", "I1·I2")
    .merge("I1·I2", "I3", "I1·I2·I3")
    .merge("I1·I2·I3", "I4", "I5")
    .split("I5", 32, ("I6", "I7"))
    .split("I6", 2, ("I1′", "I2′"))
    .split("I7", 8, ("I3′", "I4′"))
)
BOTH_STYLES = DomainGraph.of(*((f"I{i}", Sym(f"n{i}")) for i in range(1, 10))).split("I3", Sym("b"), ("I10", "I11"))
STRIDED = BY_PARTITIONING.split("I4", 3, ("I7", "I8"))
WEAK = (
    DomainGraph.of(("I1", 12))
    .split("I1", 2, ("I2", "I3"))
    .split("I2", 2, ("I4", "I5"))
    .split("I5", 4, ("I6", "I7"))
    .reorder("I4", "I6", "I7", "I3")
)
_HALVES = DomainGraph.of(("I1", 6), ("I2", 6)).split("I1", 2, ("I3", "I4")).split("I2", 4, ("I5", "I6"))
STRONG = _HALVES.merge("I3", "I5", "I7").merge("I4", "I6", "I8").split("I7", 4, ("I9", "I10")).reorder("I9", "I10", "I8")
STRONG_TOO = (
    _HALVES.split("I3", 2, ("I7", "I8"))
    .merge("I4", "I6", "I9")
    .merge("I5", "I8", "I10")
    .split("I10", 3, ("I11", "I12"))
    .reorder("I7", "I11", "I12", "I9")
)
NOT_STRONG = (
    DomainGraph.of(("I1", 8), ("I2", 2))
    .split("I1", 4, ("I3", "I4"))
    .split("I4", 3, ("I5", "I6"))
    .reorder("I3", "I6", "I5", "I2")
)
CONTIGUITY = "TTTFTTTTT"
DENSE_TILE = Seen(sizes=(12, 16), box=(6, 4), steps=(1, 1), corner=(8, 4), pitch=14)
STRIDED_TILE = Seen(sizes=(12, 16), box=(6, 4), steps=(1, 3), corner=(8, 4), pitch=14)


def copied(graph: DomainGraph, bulk: str) -> Copy:
    """The copy of a dense tensor of 32-bit integers, of which the hardware runs the leaves `bulk`."""
    found = plan(Memory.dense(graph), bulk.split(), ELEMENTS["int32"])
    assert isinstance(found, Copy), str(found)
    return found


def loaded(copy: Copy) -> Cells:
    """What an unpredicated load leaves in memory; what is outside of the tensor is filled with zero (`Z`)."""
    item = visits(copy.graph).visited
    tensor = np.arange(1, items(copy.graph).constant + 1, dtype=np.int32)
    place = load(copy, Plain(), tensor.view(np.uint8)).view(np.int32) - 1
    texts = np.where(place >= 0, place.astype(np.str_), "Z")
    kinds = np.where(item, "value", np.where(place >= 0, "filled", "zero"))
    shape = tuple(leaf.extent.constant for leaf in copy.graph.leaves)
    return Cells(texts.reshape(shape), kinds.reshape(shape))


def dense_and_strided_tile() -> str:
    """Introduction, figures 1 and 2: two boxes on a tensor with two columns of padding, and the tiles that they leave."""
    return draw_tensor((DENSE_TILE, STRIDED_TILE), "Figures 1 and 2: dense and strided tile")


def matmul_tma_domain() -> str:
    """Introduction, figure 3."""
    m1, m2, k1, k2, k3, n = ((name.upper(), Sym(name)) for name in ("m1", "m2", "k1", "k2", "k3", "n"))

    def viewed(*domains: tuple[str, Sym]) -> DomainGraph:
        graph = DomainGraph.of(*domains)
        for parts in (("M1", "M2"), ("K1", "K2", "K3")):
            if parts[0] in {name for name, _ in domains}:
                for at in range(1, len(parts)):
                    before, after = "*".join(parts[:at]), "*".join(parts[: at + 1])
                    graph = graph.merge(before, parts[at], after)
        return graph

    graphs = viewed(m1, m2, k1, k2, k3), viewed(k1, k2, k3, n), viewed(m1, m2, n)
    a, b, c = (domain_picture(graph) for graph in graphs)
    inputs = beside((captioned("A′, in shared memory", a), captioned("B′, in shared memory", b)))
    picture = stacked((inputs, arrow("MMA gives C′, in shared memory; stored to"), captioned("C, in global memory", c)), 16)
    words = " ".join(f"{name}: {describe(graph)}" for name, graph in zip(("A′", "B′", "C"), graphs, strict=True))
    return document(picture, "Figure 3: the TMA domain of the matmul example", words)


def box_by_partitioning() -> str:
    """Introduction, figure 4. The published picture labels I6 with 8; its box has size (6, 4), and 12 by 6 is 2 × 6."""
    roles = _roles(partitioned="I1 I2", coordinate="I3 I5", box="I4 I6")
    return draw_domain(BY_PARTITIONING, Marks(roles=roles), title="Figure 4: boxing by partitioning")


def box_by_compositing() -> str:
    """Introduction, figure 5: the primed IterDomains at the end are those of the start."""
    roles = _roles(partitioned="I5", coordinate="I6 I1′ I2′", box="I7 I3′ I4′")
    return draw_domain(BY_COMPOSITING, Marks(roles=roles), title="Figure 5: define box by compositing")


def box_by_partitioning_and_compositing() -> str:
    """Introduction, figure 6. A line beside an IterDomain says where it is not contiguous with the next."""
    roles = _roles(partitioned="I3", coordinate="I1 I4 I7 I10", box="I2 I5 I6 I8 I9 I11")
    notes = {f"I{at}": "not contiguous" for at, is_contiguous in enumerate(CONTIGUITY, 1) if is_contiguous == "F"}
    return draw_domain(BOTH_STYLES, Marks(roles=roles, notes=notes), title="Figure 6: boxing in both ways")


def strided_tile() -> str:
    """Introduction, figure 7."""
    roles = _roles(partitioned="I1 I2", coordinate="I3 I5", box="I4 I6", tile="I7", stride="I8")
    return draw_domain(STRIDED, Marks(roles=roles), title="Figure 7: strided tile")


def weak_correctness_holes_nonzero() -> str:
    """In depth, figure 2."""
    roles = _roles(partitioned="I1", coordinate="I2", box="I3")
    return _schedule_and_data(copied(WEAK, "I3"), roles, "Figure 2: holes filled with data from inside the tensor")


def strong_correctness() -> str:
    """In depth, figure 3."""
    roles = _roles(partitioned="I1 I2", coordinate="I3 I5", box="I4 I6")
    return _schedule_and_data(copied(STRONG, "I8"), roles, "Figure 3: strong correctness")


def strong_correctness_2() -> str:
    """In depth, figure 4."""
    roles = _roles(partitioned="I1 I2", coordinate="I3 I5", box="I4 I6")
    return _schedule_and_data(copied(STRONG_TOO, "I9"), roles, "Figure 4: strong correctness, again")


def no_strong_correctness_schedule() -> str:
    """In depth, figure 5. All of I2 is in each box: it is partitioned, and a box, too."""
    roles = _roles(partitioned="I1 I2", coordinate="I3", box="I4", tile="I5", stride="I6")
    marks = Marks(roles=roles, notes=_shown(copied(NOT_STRONG, "I5 I2")))
    return draw_domain(NOT_STRONG, marks, title="Figure 5: indivisible strided tile")


def no_strong_correctness_data() -> str:
    """In depth, figure 6."""
    copy = copied(NOT_STRONG, "I5 I2")
    return document(
        allocation_picture(NOT_STRONG, loaded(copy)), "Figure 6: indivisible strided tile, data", _data_in_words(copy)
    )


def _schedule_and_data(copy: Copy, roles: dict[str, str], title: str) -> str:
    schedule = domain_picture(copy.graph, Marks(roles=roles, notes=_shown(copy)))
    return document(stacked((schedule, allocation_picture(copy.graph, loaded(copy)))), title, _data_in_words(copy))


def _data_in_words(copy: Copy) -> str:
    return f"{describe(copy.graph)} Loaded: {' '.join(loaded(copy).texts.flat)}."


def _shown(copy: Copy) -> dict[str, str]:
    return {domain.sym.name: "TMA-protected" for domain in analysis(copy).protected}


def _roles(**named: str) -> dict[str, str]:
    """`box="I4 I6"` and so on as a role for each name."""
    return {name: role for role, names in named.items() for name in names.split()}
