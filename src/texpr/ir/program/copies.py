"""Cloning of statements, with fresh names for loops and locals."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, map_value, replace_loads, substitute_block, with_blocks
from texpr.ir.value import Buffer, Load, Ref, Value
from texpr.support.record import replace

Body = tuple[ir.Stmt, ...]


def copied(body: Body, fresh: Callable[[str], str]) -> Body:
    """A copy of `body`. `fresh` makes a name from another one: that, with `_` and a number."""
    syms = {s.sym: Sym(fresh(s.sym.name)) for s in ir.walk(body) if isinstance(s, ir.Par | ir.Seq | ir.Let)}
    made: dict[Buffer, Buffer] = {}
    for stmt in ir.walk(body):
        if isinstance(stmt, ir.New):
            shape = tuple(e.substitute(syms) for e in stmt.buffer.shape)
            made[stmt.buffer] = replace(stmt.buffer, name=fresh(stmt.buffer.name), shape=shape)
    return renamed(body, syms, made)


def renamed(body: Body, syms: Mapping[Sym, Sym], made: Mapping[Buffer, Buffer]) -> Body:
    """`body` with symbols of loops and lets, and buffers, replaced."""

    def load(old: Load) -> Load | None:
        return replace(old, buffer=made[old.buffer]) if old.buffer in made else None

    def target(old: Load) -> Load:
        moved = replace_loads(old, load)
        assert isinstance(moved, Load)
        return moved

    def named(old: Value) -> Value | None:
        return replace(old, sym=syms[old.sym]) if isinstance(old, Ref) and old.sym in syms else None

    def value(old: Value) -> Value:
        return map_value(replace_loads(old, load), named)

    rewriter = Rewriter(value=value, target=target, buffer=lambda b: made.get(b, b))
    return _with_syms(rewriter.block(substitute_block(body, syms)), syms)


def _with_syms(body: Body, syms: Mapping[Sym, Sym]) -> Body:
    found: list[ir.Stmt] = []
    for stmt in body:
        made = with_blocks(stmt, tuple(_with_syms(block, syms) for block in ir.blocks(stmt)))
        if isinstance(made, ir.Par | ir.Seq | ir.Let) and made.sym in syms:
            made = replace(made, sym=syms[made.sym])
        found.append(made)
    return tuple(found)
