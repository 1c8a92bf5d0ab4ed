"""The made-up transform in every place that works on graphs, and in a schedule that is built, proved and run."""

from __future__ import annotations

import numpy as np
from texpr.domain.transforms.reverse import Reverse

import texpr
from texpr.affine.expr import Sym, expr
from texpr.affine.facts import Known
from texpr.domain.contiguity import Memory, stride
from texpr.domain.correctness.holes import Strong
from texpr.domain.coverage import coverage
from texpr.domain.equivalence.decide import Different, Same, compare
from texpr.domain.graph import DomainGraph
from texpr.domain.iteration import Iteration, Notion
from texpr.domain.iterdomain import IterDomain
from texpr.domain.predicates.needed import predicates
from texpr.domain.visits import visits
from texpr.tma.correctness import Plain, lower_load
from texpr.tma.elements import ELEMENTS
from texpr.tma.execute import load
from texpr.tma.model import Copy, Refusal, plan

N = Sym("N")
SIZES = Known({N: (0, None)})


def reversed_leaf(graph: DomainGraph, name: str) -> DomainGraph:
    leaf = graph[name]
    return graph.apply(Reverse(leaf, IterDomain(Sym(f"{name}_b"), leaf.extent)))


def graphs() -> None:
    """Coverage, predicates, equal schedules and strides."""
    plain = DomainGraph.of(("x", N))
    once = reversed_leaf(plain, "x")
    twice = reversed_leaf(once, "x_b")
    assert coverage(once, SIZES).each_once
    assert not predicates(once, SIZES).kept
    cut = reversed_leaf(plain.split("x", 4), "x_i")
    assert coverage(cut, SIZES).each_once
    assert len(predicates(cut, SIZES).kept) == 1
    assert isinstance(compare(Iteration(plain), Iteration(twice), Notion.POSITION, SIZES), Same)
    assert isinstance(compare(Iteration(plain), Iteration(once), Notion.POSITION, SIZES), Different)
    assert isinstance(compare(Iteration(plain), Iteration(once), Notion.MULTISET, SIZES), Same)
    assert stride(Memory.dense(once), "x_b", SIZES) is expr(-1)


def boxes() -> None:
    """A copy that is refused, and those that are taken: against an enumeration."""
    loops = reversed_leaf(DomainGraph.of(("x", 24)).split("x", 8), "x_o")
    tile = reversed_leaf(DomainGraph.of(("x", 24)).split("x", 8), "x_i")
    whole = reversed_leaf(DomainGraph.of(("x", 24)), "x").split("x_b", 8)
    element = ELEMENTS["int32"]
    made = plan(Memory.dense(loops), ["x_i"], element)
    assert isinstance(made, Copy), made
    lowered = lower_load(made, Strong(0))
    assert isinstance(lowered, Plain), lowered
    tensor = np.arange(1, 25, dtype=np.int32)
    found = visits(loops)
    got = load(made, lowered, tensor.view(np.uint8)).view(np.int32)
    assert (got[found.visited] == tensor[found.logical[0][found.visited]]).all()
    for graph, bulk, reason in ((tile, "x_i_b", "as the engine writes it"), (whole, "x_b_i", "a Reverse between")):
        refused = plan(Memory.dense(graph), [bulk], element)
        assert isinstance(refused, Refusal) and reason in refused.reason, refused


SOURCE = """
fn scale(x: f32[n]): f32[n] {
    new y: f32[n]
    par n |i| { y[i] = 2 * x[i] }
    return y
}

schedule scale for cpu {
    reverse(i) -> r
    split(r, 4) -> (o, t)
}
"""


def built() -> None:
    """Parsed, laid out, proved against what was written, and run."""
    kernel = texpr.compile(texpr.parse(SOURCE)["scale"], target="cpu")
    for n in (0, 1, 7, 64):
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(kernel(x), 2 * x)


graphs()
boxes()
built()
