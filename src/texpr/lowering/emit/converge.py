"""Moves tests inside, past shuffles, so that all lanes of a warp reach each shuffle.

    if (i < n) {                                      got = t of lane i + 1
        got = t of lane i + 1             becomes     if (i < n) { y[i] = got }
        y[i] = got
    }

The value that a lane gets is not used if its test is false. The order is unchanged, except for shuffles of registers that
nothing in between writes. A test is repeated if none of its operands is written in between, else it is stored in a variable. A
loop with shuffles in it is executed by all lanes. A register is initialised by its value if the tests hold, else by 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir.value import Buffer, Index, Load, Op, Ref, Value, conjunction, walk
from texpr.ir.value.types import BOOL
from texpr.lowering.names import Names
from texpr.support.record import replace

Home: TypeAlias = "Buffer | Sym"


def converged(stmts: Iterable[k.Stmt], names: Names, tests: tuple[Value, ...] = ()) -> Iterator[k.Stmt]:
    """The statements `stmts` under `tests`, each evaluated only if those before it hold, without a shuffle under a test."""
    run: list[k.Stmt] = []
    for stmt in stmts:
        if k.declares(stmt) or _shuffles(stmt):
            yield from _tested(run, tests)
            run = []
        match stmt:
            case k.Declare() if tests and not isinstance(stmt.value, Index):
                zero, assigned = k.postponed(stmt)
                yield zero
                run.append(assigned)
            case k.Declare() | k.Shuffle():
                yield stmt
            case k.For() if _shuffles(stmt):
                yield replace(stmt, body=tuple(converged(stmt.body, names, tests)))
            case k.If() if _shuffles(stmt):
                yield from _branch(stmt, names, tests)
            case _:
                run.append(stmt)
    yield from _tested(run, tests)


def _branch(stmt: k.If, names: Names, tests: tuple[Value, ...]) -> Iterator[k.Stmt]:
    """First the shuffles that can precede the test; if shuffles remain, each arm separately."""
    inside = (*stmt.then, *stmt.orelse)
    movable = frozenset(_movable(inside, _written(inside), k.declared(inside)))
    yield from (each for each in k.walk(inside) if each in movable)
    then, orelse = _without(stmt.then, movable), _without(stmt.orelse, movable)
    if not any(map(_shuffles, (*then, *orelse))):
        yield from _tested([replace(stmt, then=then, orelse=orelse)], tests)
        return
    condition = stmt.condition
    if not _reads(condition).isdisjoint(_written(inside)):
        zero, assigned = k.postponed(k.let(names.sym("tested"), condition, stmt.span))
        yield zero
        yield from _tested([assigned], tests)
        condition = Ref(zero.sym, BOOL)
    for body, each in ((then, condition), (orelse, Op("not", (condition,), BOOL))):
        yield from converged(body, names, (*tests, each))


def _movable(stmts: tuple[k.Stmt, ...], written: frozenset[Home], own: frozenset[Sym]) -> Iterator[k.Shuffle]:
    """The shuffles outside of loops whose source nothing here writes, and whose lane is computed outside."""
    for stmt in stmts:
        match stmt:
            case k.Shuffle():
                used = stmt.lane.syms().union(*(e.syms() for e in stmt.source.index))
                if stmt.source.buffer not in written and own.isdisjoint(used):
                    yield stmt
            case k.If():
                yield from _movable((*stmt.then, *stmt.orelse), written, own)
            case _:
                pass


def _without(stmts: tuple[k.Stmt, ...], gone: frozenset[k.Stmt]) -> tuple[k.Stmt, ...]:
    kept = (stmt for stmt in stmts if stmt not in gone)
    return tuple(
        replace(stmt, then=_without(stmt.then, gone), orelse=_without(stmt.orelse, gone)) if isinstance(stmt, k.If) else stmt
        for stmt in kept
    )


def _tested(run: list[k.Stmt], tests: tuple[Value, ...]) -> Iterator[k.Stmt]:
    """Statements under tests: those of indices are combined, and one that reads memory is evaluated only if those before
    hold."""
    body = tuple(run)
    left = list(tests if body else ())
    while left:
        together = [left.pop()]
        while left and not _reads(together[0]) and not _reads(left[-1]):
            together.insert(0, left.pop())
        condition = conjunction(together)
        body = body if condition is None else (k.If(condition, body, span=body[0].span),)
    yield from body


def _shuffles(stmt: k.Stmt) -> bool:
    return any(isinstance(each, k.Shuffle) for each in k.walk((stmt,)))


def _reads(value: Value) -> frozenset[Home]:
    """The memory and registers that a value depends on."""
    found = (part for part in walk(value) if isinstance(part, Load | Ref))
    return frozenset(part.buffer if isinstance(part, Load) else part.sym for part in found)


def _written(stmts: tuple[k.Stmt, ...]) -> frozenset[Home]:
    """The memory that is written, and the registers that are assigned."""
    stored = (load.buffer for load in k.memory(stmts)[1])
    return frozenset((*stored, *k.reassigned(stmts)))
