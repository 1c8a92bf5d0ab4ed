"""Parallel bands: perfectly nested `par`s, and what can be said of them by looking."""

from __future__ import annotations

from dataclasses import replace

from texpr.affine.expr import Atom, Sym, children
from texpr.ir import program as ir
from texpr.ir.value import Index, Load, Ref, Value, walk


def band(par: ir.Par) -> tuple[tuple[ir.Par, ...], tuple[ir.Stmt, ...]]:
    """The longest rectangular band of perfectly nested `par`s from `par` inward, and the body below it."""
    found = [par]
    syms = {par.sym}
    while len(found[-1].body) == 1:
        inner = found[-1].body[0]
        if not isinstance(inner, ir.Par) or inner.fully or inner.extent.syms() & syms:
            break
        found.append(inner)
        syms.add(inner.sym)
    return tuple(found), found[-1].body


def rebuild(loops: tuple[ir.Loop, ...], body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """`loops` nested in order around `body`."""
    for loop in reversed(loops):
        body = (replace(loop, body=body),)
    return body


def bound(body: tuple[ir.Stmt, ...]) -> frozenset[Sym]:
    """Symbols that statements of `body` bind: loop indices and lets."""
    return frozenset(s.sym for s in ir.walk(body) if isinstance(s, ir.Par | ir.Seq | ir.Let))


def loads(stmt: ir.Stmt) -> tuple[Load, ...]:
    """Every element that `stmt` itself reads or writes, those in indices included."""
    roots: tuple[Value, ...] = ir.values(stmt)
    if isinstance(stmt, ir.Bind) and stmt.update is None:
        roots = (*roots, *stmt.targets)
    return tuple(node for root in roots for node in walk(root) if isinstance(node, Load))


def symbols(body: tuple[ir.Stmt, ...]) -> frozenset[Sym]:
    """Every symbol that `body` uses: in extents, indices and values."""
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
    """Symbols on which the place of an element depends, those of data-dependent indices included."""
    syms = frozenset(s for e in load.index for s in e.syms())
    for sym, meaning in load.data:
        syms -= {sym}
        syms |= frozenset(s for node in walk(meaning) if isinstance(node, Load) for s in used(node))
        syms |= {sym}
    return syms


def contiguous(load: Load) -> frozenset[Sym]:
    """Symbols whose step by one moves the element by one: coefficient ±1 in the last index and nowhere else."""
    if not load.index or load.data:
        return frozenset()
    *outer, last = load.index
    elsewhere = [s for e in outer for s in e.syms()]
    steps: list[Sym] = []
    for monomial, coefficient in last.terms:
        (atom, *others) = monomial
        if isinstance(atom, Sym) and not others and abs(coefficient) == 1:
            steps.append(atom)
        else:
            elsewhere.extend(s for each in monomial for s in syms_of(each))
    return frozenset(steps) - frozenset(elsewhere)


def syms_of(atom: Atom) -> frozenset[Sym]:
    """Every symbol in an atom."""
    return frozenset({atom}) if isinstance(atom, Sym) else frozenset(s for child in children(atom) for s in child.syms())
