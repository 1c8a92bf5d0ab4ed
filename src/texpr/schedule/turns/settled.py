"""Choices in values whose test always holds where they are made, by the loops around.

Before: seq 64 |kb| { par 64 |j| { s[j] = select(64 * kb + j < 4096, s[j], 0.0) } }     After: … s[j] = s[j]

A compiler of C sees that in a loop, and no more where turns of a loop are told apart. The proof of a schedule asks whether each
such test holds.
"""

from __future__ import annotations

from collections.abc import Iterable

from texpr.affine.expr import Expr
from texpr.ir import program as ir
from texpr.ir.program.rewrite import map_value, with_blocks
from texpr.ir.value import Literal, Op, Value
from texpr.presburger.formula import Or
from texpr.relation.conditions import condition
from texpr.relation.facts import facts_of, in_loop, known
from texpr.schedule.tree import Body
from texpr.support.record import replace


def settled(body: Body, facts: Iterable[Expr]) -> Body:
    """`body` without the choices that `facts`, expressions that are not negative, decide; other statements stay the same."""
    return tuple(_settled(stmt, tuple(facts)) for stmt in body)


def _settled(stmt: ir.Stmt, facts: tuple[Expr, ...]) -> ir.Stmt:
    match stmt:
        case ir.Bind():
            values = tuple(_chosen(value, facts) for value in stmt.values)
            same = all(new is old for new, old in zip(values, stmt.values, strict=True))
            return stmt if same else replace(stmt, values=values)
        case ir.Par() | ir.Seq():
            facts = (*facts, *in_loop(stmt.sym, stmt.extent))
        case _:
            pass
    blocks = ir.blocks(stmt)
    return with_blocks(stmt, tuple(settled(block, facts) for block in blocks)) if blocks else stmt


def _chosen(value: Value, facts: tuple[Expr, ...]) -> Value:
    def leaf(node: Value) -> Value | None:
        match node:
            case Op("select", (test, arm, Literal())) if _holds(test, facts):
                return _chosen(arm, facts)
            case _:
                return None

    return map_value(value, leaf)


def _holds(test: Value, facts: tuple[Expr, ...]) -> bool:
    found = condition(test)
    if not found.exact or isinstance(found.formula, Or):
        return False
    asked, promised = tuple(facts_of((found.formula,))), known(facts)
    return bool(asked) and all(map(promised.nonnegative, asked))
