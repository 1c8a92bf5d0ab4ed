"""Tests that stand around all of a loop's body, and beside it: printers have one around all.

    if c { A }                                if c {
    for k in 0..n {                               A
        if c { B }                  →             for k in 0..n { B }
    }                                             C
    if c { C }                                }

So it is where groups of threads take the turns of a loop: in the text of a kernel each role has a test of its own, as roles
stand turn by turn there (`ir.kernel.roles`). The test is of indices that do not change on the way, so each thread executes the
same, in the same order; and what stands in between is straight code for compilers.
"""

from __future__ import annotations

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir.value import Index, Literal, Op, Value, walk
from texpr.support.record import as_dict, replace


def gathered(body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
    """`body` with one test around statements that have the same one each."""
    found: list[k.Stmt] = []
    for stmt in map(_within, body):
        last = _kept(found[-1]) if found else None
        if last is not None and isinstance(stmt, k.If) and last.condition == _test(stmt):
            found[-1] = replace(last, then=gathered((*last.then, *stmt.then)))
        else:
            found.append(stmt)
    return tuple(found)


def _within(stmt: k.Stmt) -> k.Stmt:
    """A statement with its parts gathered; a loop around a test as a test around the loop."""
    match stmt:
        case k.For():
            body = gathered(stmt.body)
            only = _kept(body[0]) if len(body) == 1 else None
            if only is not None and stmt.sym not in k.value_symbols(only.condition):
                return replace(only, then=(replace(stmt, body=only.then),))
            return replace(stmt, body=body)
        case k.If():
            return replace(stmt, then=gathered(stmt.then), orelse=gathered(stmt.orelse))
        case _:
            return stmt


def _test(stmt: k.Stmt) -> Value | None:
    """The test of a statement that is nothing but a branch without another arm, of indices alone."""
    if not isinstance(stmt, k.If) or stmt.orelse or stmt.role is not None:
        return None
    plain = all(isinstance(part, Op | Index | Literal) for part in walk(stmt.condition))
    return stmt.condition if plain else None


def _kept(stmt: k.Stmt) -> k.If | None:
    """The branch that a statement is, if nothing in it gives another value to a variable of its test."""
    test = _test(stmt)
    if test is None or not isinstance(stmt, k.If):
        return None
    every = (each for each in k.walk(stmt.then) if isinstance(each, k.Operation))
    named = {value for each in every for value in as_dict(each).values() if isinstance(value, Sym)}
    return stmt if named.isdisjoint(k.value_symbols(test)) else None
