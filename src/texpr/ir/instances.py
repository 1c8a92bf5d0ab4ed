"""Which statement of the program that was written a statement does, and for which indices: noted before a schedule changes it.

Every rewrite keeps the note up, as it does any other index expression. It is a hint for who proves that nothing was changed but
the order of things, and where they are kept (`texpr.faithful`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from texpr.affine.expr import Sym, expr
from texpr.ir import program as ir
from texpr.support.record import replace


def numbered(function: ir.Function) -> ir.Function:
    """`function` with each of its statements noted as itself."""
    return replace(function, body=tuple(_noted(function.body, (), count())))


def _noted(body: tuple[ir.Stmt, ...], around: tuple[Sym, ...], numbers: Iterator[int]) -> Iterator[ir.Stmt]:
    for stmt in body:
        match stmt:
            case ir.Par() | ir.Seq():
                yield replace(stmt, body=tuple(_noted(stmt.body, (*around, stmt.sym), numbers)))
            case ir.If():
                then, orelse = (tuple(_noted(block, around, numbers)) for block in (stmt.then, stmt.orelse))
                yield replace(stmt, then=then, orelse=orelse)
            case ir.Instruction():
                yield replace(stmt, body=tuple(_noted(stmt.body, around, numbers)))
            case ir.Bind() | ir.Let():
                yield replace(stmt, instance=tuple(map(expr, (next(numbers), *around))))
            case _:
                yield stmt


def statements(function: ir.Function) -> tuple[ir.Bind | ir.Let, ...]:
    """The statements of `function`, by their numbers."""
    return tuple(stmt for stmt in ir.walk(function.body) if isinstance(stmt, ir.Bind | ir.Let))
