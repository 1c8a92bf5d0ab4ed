"""Sums that nobody reads are skipped: a loop marked `#skip` gets an `if` around it, by what is asked where its sums are read.

    seq K |k| reduce(s) #skip { s[i, j] += … }   par 8 |i| { par 8 |j| { if 8 * bj + j <= 8 * bi + i { C[…] += s[i, j] } } }

    if 8 * bj <= 8 * bi + 7 { seq K |k| … }    what follows is as it was

The condition is the weakest one over the loops around that is implied by each test, so that a block asks it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from texpr.affine.expr import Expr, Sym
from texpr.ir import program as ir
from texpr.ir.program.marked import mark, unmarked
from texpr.ir.program.marks import Skip
from texpr.ir.program.rewrite import with_blocks
from texpr.ir.program.uses import loads, written
from texpr.ir.value import Buffer, Value, conjunction, conjuncts
from texpr.schedule.rewrite.partition import greatest_of, holds, margin_of
from texpr.schedule.tree import Body
from texpr.support.record import replace


def skipped(function: ir.Function) -> ir.Function:
    """`function` with an `if` around marked loops, as far as there is a condition; the marks are removed."""
    return replace(function, body=_block(function.body))


def _block(body: Body) -> Body:
    found: list[ir.Stmt] = []
    for at, stmt in enumerate(body):
        made = with_blocks(stmt, tuple(map(_block, ir.blocks(stmt))))
        if isinstance(made, ir.Seq) and mark(made, Skip) is not None:
            test = asked(stmt, body, at)
            made = unmarked(made, Skip)
            found.append(made if test is None else ir.If(test, (made,), span=made.span))
        else:
            found.append(made)
    return tuple(found)


def asked(loop: ir.Stmt, body: Body, at: int) -> Value | None:
    """The condition, before the statement `loop` of `body`, without which nothing behind it reads what it writes; None where
    there is none."""
    sums, own = written((loop,)), {s.buffer for s in body if isinstance(s, ir.New)}
    inside = {s.buffer for s in ir.walk((loop,)) if isinstance(s, ir.New)}
    if not sums - inside <= own:
        return None
    every = [*_readers(body[at + 1 :], sums, (), {})]
    common = [each for each in (every or [{}])[0] if all(each in other for other in every)]
    return conjunction([holds(margin) for margin in common])


def _readers(
    body: Body, sums: frozenset[Buffer], tests: tuple[Value, ...], inner: Mapping[Sym, Expr]
) -> Iterator[dict[Expr, None]]:
    """For each statement that reads one of the sums, what is ≥ 0 outside of the loops around where it is executed."""
    for stmt in body:
        match stmt:
            case ir.If():
                if any(load.buffer in sums for load in loads(replace(stmt, then=(), orelse=()))):
                    yield {}
                yield from _readers(stmt.then, sums, (*tests, *conjuncts(stmt.condition)), inner)
                yield from _readers(stmt.orelse, sums, tests, inner)
            case ir.Par() | ir.Seq():
                yield from _readers(stmt.body, sums, tests, {**inner, stmt.sym: stmt.extent})
            case ir.Instruction():
                if written(stmt.body) & sums or any(load.buffer in sums for s in ir.walk(stmt.body) for load in loads(s)):
                    yield {}
            case _:
                if any(load.buffer in sums for load in loads(stmt)):
                    margins = (margin_of(test) for test in tests)
                    most = (greatest_of(each, inner) for each in margins if each is not None)
                    yield dict.fromkeys(each for each in most if each is not None and not each.is_constant)
