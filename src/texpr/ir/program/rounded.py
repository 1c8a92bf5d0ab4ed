"""Sums that are to be rounded as IEEE 754 says, after a schedule: no instruction of another arithmetic may have them."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.ir import program as ir
from texpr.ir.program.instances import statements
from texpr.ir.value import Buffer


def given_away(written: ir.Function, laid: ir.Function) -> Iterator[str]:
    """What is wrong with `laid`, the program `written` after its schedule, whose notes are proved: each sum that the text marks
    `#ieee` and that an instruction does in its own arithmetic."""
    marked = frozenset(_marked(written.body, frozenset()))
    there = statements(written)
    for use in ir.walk(laid.body) if marked else ():
        if isinstance(use, ir.Instruction) and ir.summed_by(use):
            for stmt in ir.walk(use.body):
                if isinstance(stmt, ir.Bind) and stmt.update is not None and _meant(stmt, there) in marked:
                    yield f"`{use.name}` rounds in its own way what line {stmt.span.line} sums up, which is marked `#ieee`"


def _meant(stmt: ir.Bind, there: tuple[ir.Bind | ir.Let, ...]) -> ir.Stmt | None:
    number = stmt.instance[0].constant if stmt.instance and stmt.instance[0].is_constant else -1
    return there[number] if 0 <= number < len(there) else None


def _marked(body: tuple[ir.Stmt, ...], kept: frozenset[Buffer]) -> Iterator[ir.Stmt]:
    """The updates of sums that are marked."""
    for stmt in body:
        if isinstance(stmt, ir.Bind) and stmt.update is not None and any(t.buffer in kept for t in stmt.targets):
            yield stmt
        inside = kept | {*stmt.reduce} if isinstance(stmt, ir.Par | ir.Seq) and stmt.ieee else kept
        for block in ir.blocks(stmt):
            yield from _marked(block, inside)
