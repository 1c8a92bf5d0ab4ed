"""Symbols, loads and buffers that statements of a program use or bind."""

from __future__ import annotations

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.value import Buffer, Index, Load, Ref, Value, walk


def bound(body: tuple[ir.Stmt, ...]) -> frozenset[Sym]:
    """The symbols that statements of `body` bind: loop indices and lets."""
    return frozenset(s.sym for s in ir.walk(body) if isinstance(s, ir.Par | ir.Seq | ir.Let))


def loads(stmt: ir.Stmt) -> tuple[Load, ...]:
    """Every element that `stmt` itself reads or writes, loads in indices included."""
    roots: tuple[Value, ...] = ir.values(stmt)
    if isinstance(stmt, ir.Bind) and stmt.update is None:
        roots = (*roots, *stmt.targets)
    return tuple(node for root in roots for node in walk(root) if isinstance(node, Load))


def touched(body: tuple[ir.Stmt, ...]) -> frozenset[Buffer]:
    """The buffers that `body` reads or writes."""
    return frozenset(load.buffer for stmt in ir.walk(body) for load in loads(stmt))


def written(body: tuple[ir.Stmt, ...]) -> frozenset[Buffer]:
    """The buffers that `body` writes."""
    return frozenset(target.buffer for stmt in ir.walk(body) if isinstance(stmt, ir.Bind) for target in stmt.targets)


def symbols(body: tuple[ir.Stmt, ...]) -> frozenset[Sym]:
    """Every symbol that occurs in an extent, index or value of `body`."""
    found: set[Sym] = set()
    for stmt in ir.walk(body):
        if isinstance(stmt, ir.Par | ir.Seq):
            found |= stmt.extent.syms()
        targets = stmt.targets if isinstance(stmt, ir.Bind) else ()
        for node in (inner for value in (*ir.values(stmt), *targets) for inner in walk(value)):
            match node:
                case Ref(sym):
                    found.add(sym)
                case Index(value):
                    found |= value.syms()
                case Load():
                    found |= {s for e in node.index for s in e.syms()}
                case _:
                    pass
    return frozenset(found)


def used(load: Load) -> frozenset[Sym]:
    """The symbols that the address of an element depends on, those of data-dependent indices included."""
    syms = frozenset(s for e in load.index for s in e.syms())
    for sym, meaning in load.data:
        syms -= {sym}
        syms |= frozenset(s for node in walk(meaning) if isinstance(node, Load) for s in used(node))
        syms |= {sym}
    return syms
