"""Instance notes: which statement of the program as written a statement executes, and with which loop indices.

They are recorded before a schedule is applied, and every rewrite updates them like other index expressions. They are hints for
the proof that a schedule changes only the order of statements and the placement of data (`texpr.proof.schedule`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import program as ir
from texpr.support.record import replace

_Note: TypeAlias = Callable[[ir.Bind | ir.Let, tuple[Sym, ...]], tuple[Expr, ...]]


def numbered(function: ir.Function) -> ir.Function:
    """`function` with each statement noted as an instance of itself."""
    numbers = count()

    def note(stmt: ir.Bind | ir.Let, around: tuple[Sym, ...]) -> tuple[Expr, ...]:
        return tuple(map(expr, (next(numbers), *around)))

    return replace(function, body=_noted(function.body, (), note))


def numbered_from(body: tuple[ir.Stmt, ...], around: tuple[Sym, ...], first: int) -> tuple[ir.Stmt, ...]:
    """Statements in loops `around`, each noted as an instance of itself, with numbers from `first` on."""
    numbers = count(first)
    return _noted(body, around, lambda _, loops: tuple(map(expr, (next(numbers), *loops))))


def with_notes(function: ir.Function, notes: Mapping[ir.Stmt, tuple[Expr, ...]]) -> ir.Function:
    """`function` with the given `notes`, and no others."""
    return replace(function, body=_noted(function.body, (), lambda stmt, _: notes.get(stmt, ())))


def statements(function: ir.Function) -> tuple[ir.Bind | ir.Let, ...]:
    """The statements of `function`, in the order of their numbers."""
    return tuple(stmt for stmt in ir.walk(function.body) if isinstance(stmt, ir.Bind | ir.Let))


def _noted(body: tuple[ir.Stmt, ...], around: tuple[Sym, ...], note: _Note) -> tuple[ir.Stmt, ...]:
    found: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.Par() | ir.Seq():
                found.append(replace(stmt, body=_noted(stmt.body, (*around, stmt.sym), note)))
            case ir.If():
                then, orelse = (_noted(block, around, note) for block in (stmt.then, stmt.orelse))
                found.append(replace(stmt, then=then, orelse=orelse))
            case ir.Instruction():
                found.append(replace(stmt, body=_noted(stmt.body, around, note)))
            case ir.Bind() | ir.Let():
                found.append(replace(stmt, instance=note(stmt, around)))
            case _:
                found.append(stmt)
    return tuple(found)
