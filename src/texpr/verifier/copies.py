"""Elements that are kept elsewhere for a while: moved to a register, updated there, and moved back.

The program has no such statement, so a time in it is found for each: before, or behind, the outermost loop that does the
updates. That it is the right time is proved like everything else: what was written before a read was written, or copied since,
to where it is read. At its time a copy touches no element that the program does not touch in the same iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir.value import Load, Ref
from texpr.isa.levels import Space
from texpr.presburger.formula import Eq, rename
from texpr.presburger.questions import Point
from texpr.reading.actions import Action
from texpr.reading.events import Event
from texpr.verifier.flow import Access, Flow, when
from texpr.verifier.match import home_of
from texpr.verifier.tags import Moved


@dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """An event that moves an element. `indices`: of the program's loops around its time, which is that of `action`."""

    event: Event
    action: Action
    indices: Mapping[Sym, Expr]
    read: Access
    write: Access


def copy_of(event: Event, source: Load | Ref | None, action: Action, tag: Moved, flow: Flow) -> Copy | None:
    """`event` as a copy of `source`; None where it is none. Which element memory of a kernel holds, `tag` says."""
    plain = event.target if tag.side == 1 else source
    if source is None or plain is None or tag.side not in (-1, 1):
        return None
    found = {loop.sym: e for loop, e in zip(action.spot.loops, tag.indices, strict=False)}
    meant, copies = (plain.index, tuple[Expr, ...]()) if isinstance(plain, Load) else ((), ())
    if isinstance(plain, Load) and flow.space(plain.buffer) is Space.GLOBAL:
        if plain.data or action.stored != plain.buffer or flow.program.scopes.get(plain.buffer) != 0:
            return None
    else:
        around = [loop.sym for loop in action.spot.loops[: flow.program.scopes[action.stored]]]
        if not isinstance(action.target, Load) or not {*around, *_loops(action)} <= found.keys():
            return None
        meant, copies = tuple(e.substitute(found) for e in action.target.index), tuple(found[sym] for sym in around)
    *before, place, _ = when(action.spot, found, 0)
    assert isinstance(place, int)

    def access(at: Load | Ref, write: bool) -> Access:
        index, times = at.index if isinstance(at, Load) else (), (*before, place + tag.side, int(write))
        where = (event.site, home_of(at), index, write, times, action.stored, meant, copies)
        return Access(event, *where, said=tag.inverse)

    return Copy(event, action, found, access(source, False), access(event.target, True))


def _loops(action: Action) -> set[Sym]:
    """The loops that say which element an action writes."""
    assert isinstance(action.target, Load)
    return {sym for e in action.target.index for sym in e.syms()} & {loop.sym for loop in action.spot.loops}


def untouched(copy: Copy, flow: Flow) -> Point | None:
    """An instance of a copy whose element the program does not write in the same iterations. Raises Undecided."""
    dims = copy.event.site.dims
    left = flow.points(dims, copy.event.site.where, ())
    for action in flow.program.actions:
        if action.stored == copy.action.stored and not action.spot.tests and _around(action, copy):
            assert isinstance(action.target, Load)
            names = {loop.sym: Sym(f"{loop.sym.name}●") for loop in action.spot.loops}
            facts = [rename(f, names) for f in action.spot.domain]
            facts += [Eq(e.substitute(names) - given) for e, given in zip(action.target.index, copy.read.meant, strict=True)]
            facts += [Eq(expr(names[sym]) - meaning) for sym, meaning in copy.indices.items()]
            left = left.subtract(flow.points(dims, facts, tuple(names.values())))
    return left.sample()


def _around(action: Action, copy: Copy) -> bool:
    count = len(copy.indices)
    return action.spot.loops[:count] == copy.action.spot.loops[:count]
