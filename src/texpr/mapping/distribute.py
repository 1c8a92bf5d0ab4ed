"""Interchange of the points of a tile with a `seq`: `par i { a; seq k { b } }` = `par i { a }; seq k { par i { b } }`.

Always legal for a `par`; it requires that all points run the `seq`s, and conditions around them, uniformly, and that
statements have no memory of their own other than scalars, of which each point then has its own.
"""

from __future__ import annotations

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.value import Index, Load, Ref, walk


def distributes(body: tuple[ir.Stmt, ...], points: frozenset[Sym]) -> bool:
    """Whether `body` has a `seq` that can be interchanged with `points`."""
    return any(isinstance(s, ir.Seq) for s in ir.walk(body)) and _regular(body, points)


def is_around_loops(stmt: ir.Stmt) -> bool:
    """Whether a statement is a `seq`, or an `if` around one, with which points are interchanged."""
    return isinstance(stmt, ir.Seq) or (isinstance(stmt, ir.If) and any(isinstance(s, ir.Seq) for s in ir.walk((stmt,))))


def _regular(body: tuple[ir.Stmt, ...], points: frozenset[Sym]) -> bool:
    for stmt in body:
        match stmt:
            case ir.Seq():
                if stmt.extent.syms() & points or not _regular(stmt.body, points):
                    return False
            case ir.If() if is_around_loops(stmt):
                asked = [node for value in ir.values(stmt) for node in walk(value)]
                if any(
                    isinstance(node, Load | Ref) or (isinstance(node, Index) and node.expr.syms() & points) for node in asked
                ):
                    return False
                if not _regular(stmt.then, points) or not _regular(stmt.orelse, points):
                    return False
            case ir.New():
                if stmt.buffer.rank:
                    return False
            case ir.Bind():
                if any(isinstance(node, Ref) for value in stmt.values for node in walk(value)):
                    return False
            case _:
                return False
    return True
