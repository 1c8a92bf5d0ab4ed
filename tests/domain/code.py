"""Programs made of graphs: loops over the leaves, the kept comparisons, and a count in each logical element."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.expr import Sym
from texpr.domain import DomainGraph
from texpr.domain.predicates.needed import Predicate
from texpr.ir.program import Bind, Function, If, Seq, Stmt
from texpr.ir.value import Buffer, Index, Literal, Load, Op
from texpr.ir.value.types import BOOL, I32, I64


def counting(name: str, graph: DomainGraph, kept: Sequence[Predicate], sizes: Sequence[str]) -> Function:
    """`fn name(counts)`: adds 1 to `counts` at the logical index of each point of the leaves that `kept` let through."""
    indices = graph.indices()
    counts = Buffer("counts", I32, tuple(d.extent for d in graph.logical), "inout")
    target = Load(counts, tuple(indices[d.sym] for d in graph.logical))
    body: Stmt = Bind((target,), (Literal(1, I32),), "add")
    for each in reversed(kept):
        body = If(Op("ge", (Index(each.margin, I64), Index(each.margin - each.margin, I64)), BOOL), (body,))
    for leaf in reversed(graph.leaves):
        body = Seq(leaf.sym, leaf.extent, (body,))
    return Function(name, (counts,), (), tuple(map(Sym, sizes)), (body,))
