"""Loops whose first and last turns differ from those between: printers write each of these turns as a loop of its own.

    for t in 0..n apart 2 1 { A }      →      for t in 0..min(1, n) { A }      for t in 1..min(2, n) { A }
                                              for t in 2..n - 1 { A }          for t in max(2, n - 1)..n { A }

The same turns in the same order, for every n. How a test of t ends in all turns of one of these loops is decided where its
margin is a number at the ends of the loop, and so the turns between are straight code: what goes on by itself is started and
waited for without a branch in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from texpr.affine.expr import ONE, Expr, Sym, maximum, minimum
from texpr.ir import kernel as k
from texpr.ir.operation import Bound
from texpr.ir.value import Index, Literal, Op, Ref, Value
from texpr.ir.value.types import BOOL
from texpr.support.record import Record, as_dict, replace

if TYPE_CHECKING:
    from texpr.ir.kernel.place import Place

MOST = 16
"""The most turns that are told apart at either end."""


def turns_apart_are_few(stmt: k.Stmt, at: Place) -> Iterator[str]:
    """The turns that are told apart are those of a serial loop of step 1, and not many."""
    if isinstance(stmt, k.For) and (stmt.first or stmt.last):
        if stmt.kind != "serial" or stmt.step is not ONE:
            yield f"turns of a {stmt.kind} loop by {stmt.step} are told apart"
        if not (0 <= stmt.first <= MOST and 0 <= stmt.last <= MOST):
            yield f"{stmt.first} and {stmt.last} turns are told apart"


def spread(body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
    """`body` with each loop whose turns are told apart as several ones."""
    return tuple(made for stmt in body for made in _spread(stmt))


def _spread(stmt: k.Stmt) -> Iterator[k.Stmt]:
    match stmt:
        case k.For():
            whole = replace(stmt, body=spread(stmt.body), first=0, last=0)
            yield from _ranges(whole, stmt.first, stmt.last) if stmt.first or stmt.last else (whole,)
        case k.If():
            yield replace(stmt, then=spread(stmt.then), orelse=spread(stmt.orelse))
        case _:
            yield stmt


class _Turns(Record):
    """Some turns of a loop: `sym` is each of `least` or more, and less than each of `below`. `changed`: variables that
    operations name, as they may change them."""

    sym: Sym
    least: tuple[Expr, ...]
    below: tuple[Expr, ...]
    changed: frozenset[Sym]

    def of(self, loop: k.For) -> k.For:
        """The loop of these turns alone."""
        lo, hi = maximum(*self.least), minimum(*self.below)
        return replace(loop, lo=lo, hi=hi, body=_decided(loop.body, self, {}))

    def never_negative(self, margin: Expr) -> bool:
        """Whether an expression is a number of 0 or more at the end where it is least."""
        step = margin.substitute({self.sym: ONE + self.sym}) - margin
        if not step.is_constant:
            return False
        ends = self.least if step.constant >= 0 else tuple(end - 1 for end in self.below)
        found = (margin.substitute({self.sym: end}) for end in ends)
        return any(each.is_constant and each.constant >= 0 for each in found)

    def holds(self, test: Value) -> bool | None:
        """How a test ends in all of these turns, where that is known."""
        match test:
            case Op("lt" | "ge" as name, (Index(one), Index(other))):
                least = one - other  # 0 or more: it is not less
                found = True if self.never_negative(least) else False if self.never_negative(-least - 1) else None
                return found if found is None or name == "ge" else not found
            case _:
                return None


def _ranges(loop: k.For, first: int, last: int) -> Iterator[k.For]:
    sym, lo, hi = loop.sym, loop.lo, loop.hi
    others = (each for each in k.walk(loop.body) if isinstance(each, k.Operation) and not each.DECLARES)
    changed = frozenset(value for each in others for value in as_dict(each).values() if isinstance(value, Sym))
    for at in range(first):
        yield _Turns(sym, (lo + at,), (lo + at + 1, hi), changed).of(loop)
    yield _Turns(sym, (lo + first,), (hi - last,), changed).of(loop)
    if last:
        yield _Turns(sym, (lo + first, hi - last), (hi,), changed).of(loop)


def _decided(body: tuple[k.Stmt, ...], turns: _Turns, known: Mapping[Sym, bool]) -> tuple[k.Stmt, ...]:
    """Statements in some turns of a loop, without the tests of its index whose end is known there."""
    found, known = list[k.Stmt](), dict(known)
    for stmt in body:
        match stmt:
            case k.Operation(DECLARES=True, bound=(Bound(sym=sym, value=value),)) if (
                value is not None and sym not in turns.changed and (holds := turns.holds(value)) is not None
            ):
                known[sym] = holds
                found.append(k.let(sym, Literal(holds, BOOL), stmt.span))
            case k.If(Ref(sym)) if sym in known and stmt.role is None:
                found += _decided(stmt.then if known[sym] else stmt.orelse, turns, known)
            case k.If():
                then, orelse = (_decided(each, turns, known) for each in (stmt.then, stmt.orelse))
                found.append(replace(stmt, then=then, orelse=orelse))
            case _:
                found.append(stmt)
    return tuple(found)
