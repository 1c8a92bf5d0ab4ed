"""Parallel bands: perfectly nested `par`s, and their syntactic properties."""

from __future__ import annotations

from texpr.affine.expr import Atom, Sym, children
from texpr.ir import program as ir
from texpr.ir.program.marked import level_of
from texpr.ir.value import Load
from texpr.support.record import replace


def band(par: ir.Par) -> tuple[tuple[ir.Par, ...], tuple[ir.Stmt, ...]]:
    """The longest rectangular band of perfectly nested `par`s from `par` inward, and the body below it.

    A `fully par` may be part of one after it was bound to threads.
    """
    found = [par]
    syms = {par.sym}
    while len(found[-1].body) == 1:
        inner = found[-1].body[0]
        if not isinstance(inner, ir.Par) or (inner.fully and level_of(inner) is None) or inner.extent.syms() & syms:
            break
        found.append(inner)
        syms.add(inner.sym)
    return tuple(found), found[-1].body


def rebuild(loops: tuple[ir.Loop, ...], body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """`loops` nested in order around `body`."""
    for loop in reversed(loops):
        body = (replace(loop, body=body),)
    return body


def contiguous(load: Load) -> frozenset[Sym]:
    """The symbols along which the access is contiguous: coefficient ±1 in the last index and 0 in all others."""
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
