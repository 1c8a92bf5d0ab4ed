"""Loop fission of a reducing loop: a loop for each statement, perfectly nested with the loops inside of it.

par n |i| reduce(s, c) { let p = at[i]  if p < k { c[p] += 1  par d |j| { s[p, j] += x[i, j] } } }
    →    par n |i| reduce(c) { let p = at[i]  if p < k { c[p] += 1 } }
         par n |i| reduce(s) { par d |j| { let p = at[i]  if p < k { s[p, j] += x[i, j] } } }

Legal for what the text permits: iterations are dependent only through `reduce`, in any order, so that a statement may wait
for all instances of the one before it; and a `let` or a condition that is evaluated again reads nothing that is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from texpr.ir import program as ir
from texpr.ir.program.copies import copied
from texpr.ir.program.uses import loads, symbols, written
from texpr.ir.value import Buffer
from texpr.mapping.bound import is_asked
from texpr.schedule.tree import Body
from texpr.support.record import replace


def fission(par: ir.Par, fresh: Callable[[str], str]) -> tuple[ir.Par, ...]:
    """`par`, which reduces, as several loops or a perfect nest, or unchanged. `fresh` makes a fresh name from one."""
    pieces = [*_pieces(par.body)]
    if is_asked(par) or not _are_alike(par.body, written(par.body)):
        return (par,)
    if len(pieces) < 2:
        return (_deepened(par),)
    updated = [each for piece in pieces for each in {*par.reduce} & written(piece)]
    if len(updated) > len({*updated}):  # order is free across buffers, but not between updates of one element
        return (par,)
    first, *rest = (_deepened(_alone(par, piece)) for piece in pieces)
    return (first, *(loop for each in rest for loop in copied((each,), fresh) if isinstance(loop, ir.Par)))


def _are_alike(body: Body, changed: frozenset[Buffer]) -> bool:
    """Whether each `let` and condition on the path to a statement has the same value at each evaluation, and there is no
    `new`."""
    for stmt in body:
        match stmt:
            case ir.Let() | ir.If():
                below = (*stmt.then, *stmt.orelse) if isinstance(stmt, ir.If) else ()
                if any(load.buffer in changed for load in loads(stmt)) or not _are_alike(below, changed):
                    return False
            case ir.Bind() | ir.Par() | ir.Seq():
                pass
            case _:
                return False
    return True


def _pieces(body: Body) -> Iterator[Body]:
    """Each statement of `body`, with the conditions around it and the `let`s that it uses."""
    lets: Body = ()
    for stmt in body:
        match stmt:
            case ir.Let():
                lets = (*lets, stmt)
            case ir.If() if not stmt.orelse:
                yield from (_by(lets, replace(stmt, then=inner)) for inner in _pieces(stmt.then))
            case _:
                yield _by(lets, stmt)


def _by(lets: Body, stmt: ir.Stmt) -> Body:
    found: Body = (stmt,)
    for let in reversed(lets):
        if isinstance(let, ir.Let) and let.sym in symbols(found):
            found = (let, *found)
    return found


def _alone(par: ir.Par, piece: Body) -> ir.Par:
    return replace(par, body=piece, reduce=tuple(b for b in par.reduce if b in written(piece)))


def _deepened(par: ir.Par) -> ir.Par:
    """`par` interchanged with its `let`s and conditions, which move into the only loop below them."""
    *ahead, last = par.body
    while isinstance(last, ir.If) and len(last.then) and not last.orelse:
        *more, inner = last.then
        ahead, last = [*ahead, last, *more], inner
    if not isinstance(last, ir.Par) or is_asked(last) or not ahead:
        return par
    if last.extent.syms() & {s.sym for s in ahead if isinstance(s, ir.Let)}:
        return par
    body = last.body
    for stmt in reversed(ahead):
        body = (replace(stmt, then=body),) if isinstance(stmt, ir.If) else (stmt, *body)
    return replace(par, body=(_deepened(replace(last, body=body)),))
