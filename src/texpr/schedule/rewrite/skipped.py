"""Sums that nobody reads are skipped: a loop marked `#skip` gets an `if` around it, by what is asked where its sums are read.

    seq K |k| reduce(s) #skip { s[i, j] += … }   par 8 |i| { par 8 |j| { if 8 * bj + j <= 8 * bi + i { C[…] += s[i, j] } } }

    if 8 * bj <= 8 * bi + 7 { seq K |k| … }    what follows is as it was

The condition is the weakest one over the loops around that is implied by each test, so that a block asks it once. And a loop
ends where no later iteration does more than to copy into memory of its own:

    seq K |k| #skip { t = x[k]  par 8 |i| { if k <= 8 * bi + i { s[i] += t } } }      seq min(K, 8 * bi + 8) |k| { … }
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from texpr.affine.expr import ZERO, Expr, Min, Sym, maximum, minimum
from texpr.ir import program as ir
from texpr.ir.program.marked import mark, unmarked
from texpr.ir.program.marks import Skip
from texpr.ir.program.rewrite import with_blocks
from texpr.ir.program.uses import loads, written
from texpr.ir.value import Buffer, Value, conjunction, conjuncts
from texpr.schedule.rewrite.partition import asks, end_of, greatest_of, holds, implies, margin_of, tests_of
from texpr.schedule.tree import Body
from texpr.support.record import replace


def skipped(function: ir.Function) -> ir.Function:
    """`function` with an `if` around marked loops, as far as there is a condition; the marks are removed."""
    return replace(function, body=_block(function.body))


def ended(function: ir.Function) -> ir.Function:
    """`function` with marked loops that end where no later iteration does anything; the marks are left."""
    return replace(function, body=tuple(map(_ended, function.body)))


def _ended(stmt: ir.Stmt) -> ir.Stmt:
    made = with_blocks(stmt, tuple(tuple(map(_ended, block)) for block in ir.blocks(stmt)))
    if not isinstance(made, ir.Seq) or mark(made, Skip) is None:
        return made
    own = frozenset(s.buffer for s in ir.walk(made.body) if isinstance(s, ir.New))
    body = _without_copies(made.body, own)
    inner = {s.sym: _most(s.extent) for s in ir.walk(made.body) if isinstance(s, ir.Par | ir.Seq)}
    for test in tests_of(body):
        most = greatest_of(test.margin, inner)
        end = None if most is None else end_of(most, made.sym)
        if most is not None and end is not None and asks(body, lambda part, most=most: implies(part, most, inner)):
            return replace(made, extent=minimum(made.extent, maximum(ZERO, end)))
    return made


def _most(extent: Expr) -> Expr:
    """A constant that an extent is at most, if it says one."""
    atom = extent.as_atom
    constants = [each for each in atom.args if each.is_constant] if isinstance(atom, Min) else []
    return constants[0] if constants else extent


def _without_copies(body: Body, own: frozenset[Buffer]) -> Body:
    """`body` without what only writes memory of an iteration's own."""
    kept = (stmt for stmt in body if not isinstance(stmt, ir.New) and not written((stmt,)) <= own)
    return tuple(with_blocks(stmt, tuple(_without_copies(block, own) for block in ir.blocks(stmt))) for stmt in kept)


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
