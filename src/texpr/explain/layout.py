"""The effect of a schedule on a function's loops and on the memory of its locals."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.simplify import Simplifier
from texpr.domain.allocation import items, size
from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transform import Transform
from texpr.explain.data import Data
from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Unguard
from texpr.ir.program.uses import loads
from texpr.relation.facts import known
from texpr.schedule.rewrite.materialise import Guarded, Materialised, given
from texpr.schedule.state import Staged


def layout(made: Materialised) -> Data:
    """`nests`: graph and predicates of each; `allocations`: memory with another shape than the indices; `staged`: the staged
    buffers."""
    facts = Simplifier(known(given(made.function)))
    return {
        "nests": [nest(each) for each in _whole(made.guards)],
        "allocations": [_allocation(buffer.name, graph, facts) for buffer, graph in made.state.allocations.items()],
        "staged": [
            {
                "buffer": s.name,
                "of": s.of,
                "at": s.at,
                "via": s.via,
                "stages": s.stages,
                "ahead": s.stages - 1 - s.lag,
                "base": list(s.base),
                "fill": "weak" if s.fill is None else s.fill,
                "needed": _needed(s, made.state.function),
            }
            for s in made.state.staged
        ],
    }


def _needed(staged: Staged, function: ir.Function) -> str:
    """The fill that consumers require in holes, if they iterate over holes."""
    loops = (s for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq) and mark(s, Unguard))
    for loop in loops:
        if any(load.buffer.name == staged.name for s in ir.walk(loop.body) for load in loads(s)):
            return f"strong({staged.fill}): holes of {loop.sym.base} compute, too"
    return "weak: every read is in bounds"


def _whole(guards: tuple[Guarded, ...]) -> Iterator[Guarded]:
    """The nests of innermost loops: paths that are no prefix of another."""
    for each in guards:
        if not any(other.loops[: len(each.loops)] == each.loops for other in guards if other is not each):
            yield each


def nest(guarded: Guarded) -> Data:
    """One nest: its loops, the transforms above them, the tested comparisons, and those implied, with their theorems."""
    return {
        "line": guarded.loops[-1].span.line,
        "loops": [f"{'par' if isinstance(loop, ir.Par) else 'seq'} {loop.sym}" for loop in guarded.loops],
        "logical": [str(d) for d in guarded.graph.logical],
        "transforms": [_transform(t) for t in guarded.graph.transforms],
        "kept": [str(p) for p in guarded.predicates.kept],
        "removed": [
            {"predicate": str(r.bound), "theorem": r.theorem, "by": [str(b) for b in r.by]} for r in guarded.predicates.removed
        ],
    }


def _transform(transform: Transform) -> str:
    return f"{_names(transform.inputs)} - {transform.title} -> {_names(transform.outputs)}"


def _names(domains: tuple[IterDomain, ...]) -> str:
    return ", ".join(map(str, domains))


def _allocation(name: str, graph: DomainGraph, simple: Simplifier) -> Data:
    return {
        "buffer": name,
        "logical": [str(d) for d in graph.logical],
        "transforms": [_transform(t) for t in graph.transforms],
        "allocated": [str(d) for d in graph.leaves],
        "elements": str(simple(size(graph))),
        "holes": str(simple(size(graph) - items(graph))),
    }
