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
from texpr.support.record import replace


def gathered(body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
    """`body` with one test around statements that have the same one each."""
    found: list[k.Stmt] = []
    for stmt in map(_within, body):
        last, test = found[-1] if found else None, _test(stmt)
        if isinstance(last, k.If) and isinstance(stmt, k.If) and test is not None and _test(last) == test:
            found[-1] = replace(last, then=gathered((*last.then, *stmt.then)))
        else:
            found.append(stmt)
    return tuple(found)


def _within(stmt: k.Stmt) -> k.Stmt:
    """A statement with its parts gathered; a loop around a test as a test around the loop."""
    match stmt:
        case k.For():
            body = gathered(stmt.body)
            only = body[0] if len(body) == 1 else None
            test = None if only is None else _test(only)
            if isinstance(only, k.If) and test is not None and stmt.sym not in _symbols(test):
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


def _symbols(value: Value) -> frozenset[Sym]:
    return k.value_symbols(value)
