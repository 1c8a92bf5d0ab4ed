"""Elements that are kept elsewhere for a while: moved to a register, updated there, and moved back.

The program has no such statement, so a time in it is found for each: before, or behind, the outermost loop that does the
updates. That it is the right time is proved like everything else: what was written before a read was written, or copied since,
to where it is read. At its time a copy touches no element that the program does not touch in the same iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir.value import Buffer, Load, Ref
from texpr.presburger.formula import Eq, rename
from texpr.verifier.actions import Action
from texpr.verifier.events import Event
from texpr.verifier.flow import Access, Flow, Home, when
from texpr.verifier.logic import Point
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
    """`event` as a copy of `source`; None where it is none."""
    outward = isinstance(event.target, Load) and is_plain(event.target.buffer, flow)
    plain = event.target if outward else source
    if source is None or not isinstance(plain, Load) or not is_plain(plain.buffer, flow) or plain.data:
        return None
    if action.stored != plain.buffer or tag.side not in (-1, 1):
        return None
    found = {loop.sym: e for loop, e in zip(action.spot.loops, tag.indices, strict=False)}
    return _made(event, source, plain, action, found, tag.side)


def is_plain(buffer: Buffer, flow: Flow) -> bool:
    """Whether memory is the program's own, of which there is one copy."""
    return buffer not in flow.reading.spaces and flow.program.scopes.get(buffer) == 0


def _made(event: Event, source: Load | Ref, plain: Load, action: Action, found: Mapping[Sym, Expr], side: int) -> Copy:
    *before, place, _ = when(action.spot, found, 0)
    assert isinstance(place, int)
    times = (*before, place + side)

    def access(at: Load | Ref, write: bool) -> Access:
        index = at.index if isinstance(at, Load) else ()
        home: Home = home_of(at)
        return Access(event, event.site, home, index, write, (*times, int(write)), plain.buffer, plain.index, ())

    return Copy(event, action, found, access(source, False), access(event.target, True))


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
