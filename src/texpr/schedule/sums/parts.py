"""Sums in parts, as directives ask for them: which statements are sums that memory of their own may hold a part of."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.ir import program as ir
from texpr.ir.program.updates import identity
from texpr.ir.program.uses import loads, symbols, written
from texpr.ir.value import Literal
from texpr.schedule.call import Call
from texpr.schedule.edits import head, words
from texpr.schedule.tree import Body
from texpr.support.diagnostic import Note
from texpr.support.record import replace
from texpr.support.span import NOWHERE


def sums(call: Call, loop: ir.Loop) -> tuple[tuple[ir.Loop, ...], tuple[ir.Bind, ...]]:
    """The perfectly nested loops from `loop` inward, and the updates in the innermost, each of a buffer of its own. Raises
    E0905 or E0906."""
    way = [loop]
    while len(way[-1].body) == 1 and isinstance(inner := way[-1].body[0], ir.Par | ir.Seq):
        way.append(inner)
    updates = tuple(_update(call, loop, stmt) for stmt in way[-1].body)
    if len({each.targets[0].buffer for each in updates}) < len(updates):
        raise call.refuse("E0905", f"a buffer is updated twice in the loop over `{loop.sym.base}`", at=call.plain[0])
    return tuple(way), updates


def _update(call: Call, loop: ir.Loop, stmt: ir.Stmt) -> ir.Bind:
    """A statement as a sum whose parts may be added up."""
    name = loop.sym.base
    if not isinstance(stmt, ir.Bind) or len(stmt.targets) != 1 or not isinstance(stmt.update, str) or stmt.update == "sub":
        reason = f"something else than sums is computed in the loop over `{name}`, so it has no parts to add up"
        raise call.refuse("E0905", reason, Note("here", stmt.span), help=f"`distribute({name})` gives it a loop of its own")
    target = stmt.targets[0]
    if target.buffer not in loop.reduce:
        reason = f"the iterations of `{name}` add to `{target.buffer.name}` in order, and parts of a sum are in another one"
        new = f"reduce({target.buffer.name})"
        offers = words(head(loop) or NOWHERE, f"if any order will do, write `{new}` on this loop", f"… {new} ")
        raise call.refuse("E0906", reason, Note("this update", stmt.span), offers=offers)
    if target.data:
        reason = f"data say which element of `{target.buffer.name}` is updated"
        raise call.refuse("E0905", reason, Note("this update", stmt.span))
    return stmt


def neutral(update: ir.Bind) -> Literal:
    """What a part begins with."""
    assert update.update is not None, "as it is one"
    (value,) = identity(update.update, (update.targets[0].dtype,))
    assert isinstance(value, Literal), "of the built-in updates"
    return value


def require_early(call: Call, where: ir.Stmt, told: str, loop: ir.Loop, updates: Sequence[ir.Bind]) -> None:
    """That sums in `loop` may be done before the statement `where`: nothing there writes what they read, or names a value that
    they use. Raises E0906."""
    inside: Body = (where,)
    values = tuple(replace(each, targets=(), update=None) for each in updates)
    changed = written(inside)
    clash = next((load for stmt in values for load in loads(stmt) if load.buffer in changed), None)
    if clash is not None:
        reason = f"`{clash.buffer.name}` changes in {told}, so nothing that reads it can be summed up before that"
        raise call.refuse("E0906", reason, Note("it is read here", clash.span))
    used = symbols((loop,))
    let = next((s for s in ir.walk(inside) if isinstance(s, ir.Let) and s.sym in used), None)
    if let is not None:
        reason = f"the sum uses `let {let.sym.base}`, a value of {told}, so it cannot be done before that"
        raise call.refuse("E0906", reason, Note("it is named here", let.span))
