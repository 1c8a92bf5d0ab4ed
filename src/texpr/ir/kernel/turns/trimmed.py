"""Loops that do something in some of their turns only: printers let them begin and end there.

    for t in 0..n + 2 { if (t >= 2) { A } }      →      for t in 2..n + 2 { A }

The same turns in the same order. A role of a kernel has such loops, where its turns lag behind those of another role.
"""

from __future__ import annotations

from texpr.affine.expr import ONE, Expr
from texpr.ir import kernel as k
from texpr.ir.operation import Bound
from texpr.ir.value import Index, Op, Ref, Value
from texpr.support.record import replace


def trimmed(body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
    """`body` with each loop from the first turn to the last in which it does something, where these are known."""
    return tuple(map(_trimmed, body))


def _trimmed(stmt: k.Stmt) -> k.Stmt:
    match stmt:
        case k.For():
            stmt = replace(stmt, body=trimmed(stmt.body))
            return stmt if stmt.kind != "serial" or stmt.step is not ONE or stmt.first or stmt.last else _bounded(stmt)
        case k.If():
            return replace(stmt, then=trimmed(stmt.then), orelse=trimmed(stmt.orelse))
        case _:
            return stmt


def _bounded(loop: k.For) -> k.For:
    """The loop without the test around all that it does, where that is of its index and the ends differ by a number."""
    tested = _tested(loop.body)
    if tested is None:
        return loop
    test, body = tested
    margin = _margin(test)
    if margin is None or not margin.syms().isdisjoint(k.reassigned(loop.body)):
        return loop
    later, sooner = loop.sym - margin - loop.lo, margin + loop.sym + 1 - loop.hi
    if later.is_constant:  # t ≥ lo + later
        return _bounded(replace(loop, lo=loop.lo + max(later.constant, 0), body=body))
    if sooner.is_constant:  # t < hi + sooner
        return _bounded(replace(loop, hi=loop.hi + min(sooner.constant, 0), body=body))
    return loop


def _tested(body: tuple[k.Stmt, ...]) -> tuple[Value, tuple[k.Stmt, ...]] | None:
    """The test around all statements of a loop, and these; the test may have been given a name in front."""
    match body:
        case (k.If(condition, then, ()) as branch,) if branch.role is None:
            return condition, then
        case (
            k.Operation(DECLARES=True, bound=(Bound(sym=sym, value=value),)),
            k.If(Ref(of), then, ()) as branch,
        ) if of == sym and value is not None and branch.role is None:
            return None if sym in k.symbols(then) | k.reassigned(then) else (value, then)
        case _:
            return None


def _margin(test: Value) -> Expr | None:
    """What is not negative where a comparison of indices holds; None for other tests."""
    match test:
        case Op("ge", (Index(one), Index(other))):
            return one - other
        case Op("lt", (Index(one), Index(other))):
            return other - one - 1
        case _:
            return None
