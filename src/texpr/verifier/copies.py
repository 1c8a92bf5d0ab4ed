"""Elements that are kept elsewhere for a while: moved to a register, updated there, and moved back.

The program has no such statement, so a time in it is found for each: before, or behind, the outermost loop that does the
updates. That it is the right time is proved like everything else: what was written before a read was written, or copied since,
to where it is read. At its time a copy touches no element that the program does not touch in the same iterations.
"""

from __future__ import annotations

from texpr.affine.expr import Expr, expr
from texpr.ir.tags import Moved
from texpr.ir.value import Load, Ref
from texpr.isa.levels import Space
from texpr.presburger.formula import Eq
from texpr.presburger.questions import Point
from texpr.reading.events import Event
from texpr.verifier.flow import Access, Flow, apart, when
from texpr.verifier.match import home_of
from texpr.verifier.there import There, nowhere


def copied(event: Event, source: Load | Ref, tag: Moved, flow: Flow) -> tuple[Access, ...]:
    """What `event` reads and writes as a copy of `source`; nothing where it is none. What a register holds, `tag` says."""
    action = flow.program.actions[tag.action]
    plain = event.target if tag.side == 1 else source
    found = {loop.sym: e for loop, e in zip(action.spot.loops, tag.indices, strict=False)}
    if not isinstance(action.target, Load) or tag.side not in (-1, 1):
        return ()
    meant, copies = plain.index if isinstance(plain, Load) else (), tuple[Expr, ...]()
    shared = isinstance(plain, Load) and flow.space(plain.buffer) is Space.GLOBAL
    if isinstance(plain, Load) and shared and (plain.buffer in flow.program.scopes or plain.buffer.role != "local"):
        if plain.data or action.stored != plain.buffer or flow.program.scopes.get(plain.buffer) != 0:
            return ()
    else:
        around = [loop.sym for loop in action.spot.loops[: flow.program.scopes[action.stored]]]
        named = {sym for e in action.target.index for sym in e.syms()} & {loop.sym for loop in action.spot.loops}
        if not {*around, *named} <= found.keys():
            return ()
        meant, copies = tuple(e.substitute(found) for e in action.target.index), tuple(found[sym] for sym in around)
    *before, place, _ = when(action.spot, found, 0)
    assert isinstance(place, int)
    index = [at.index if isinstance(at, Load) else () for at in (source, event.target)]
    about = (action.stored, meant, copies, None, found, tag.inverse)
    read, write = ((*before, place + tag.side, number) for number in (0, 1))
    return (
        Access(event, event.site, home_of(source), index[0], False, read, *about),
        Access(event, event.site, home_of(event.target), index[1], True, write, *about),
    )


def untouched(copy: Access, flow: Flow) -> Point | None:
    """An instance of a copy whose element the program does not write in the same iterations. Raises Undecided."""
    found = list[There]()
    for action in flow.program.actions:
        names, target = apart(action), action.target
        if action.stored == copy.stored and not action.spot.tests and isinstance(target, Load) and {*copy.indices} <= {*names}:
            facts = *flow.written(action, names, copy), *(Eq(expr(names[sym]) - e) for sym, e in copy.indices.items())
            said = {e.as_sym: given for e, given in zip(target.index, copy.meant, strict=True)} | {**copy.indices}
            found.append(There(names, facts, (tuple(said.get(sym, expr(0)) for sym in names),)))
    return nowhere(copy.site.where, found, flow.premises)
