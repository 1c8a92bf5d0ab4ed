"""Elements that are kept elsewhere for a while: moved to a register, updated there, and moved back.

The program has no such statement, so a time in it is found for each: before, or behind, the outermost loop that does the
updates. That it is the right time is proved like everything else: what was written before a read was written, or copied since,
to where it is read. At its time a copy in a `par` touches no element that the program does not touch in the same iterations.
"""

from __future__ import annotations

from texpr.affine.expr import expr
from texpr.ir import program as ir
from texpr.ir.tags import Moved
from texpr.ir.value import Load, Ref
from texpr.isa.levels import Space
from texpr.presburger.formula import Eq
from texpr.presburger.questions import Point
from texpr.presburger.there import There, nowhere
from texpr.reading.events import Event
from texpr.reading.order import is_free, when
from texpr.verifier.flow import Access, Flow, apart
from texpr.verifier.match import home_of, subscripts


def copied(event: Event, source: Load | Ref, tag: Moved, flow: Flow) -> tuple[Access, ...]:
    """What `event` reads and writes as a copy of `source`, of the element that `tag` says; nothing where it is none, or where
    data decides whether it is made."""
    action, scopes = flow.program.actions[tag.action], flow.program.scopes
    found = {loop.sym: e for loop, e in zip(action.spot.loops, tag.indices, strict=False)}
    loops = action.spot.loops[: scopes[action.stored]]
    around, meet = [loop.sym for loop in loops], any(isinstance(loop, ir.Par) for loop in loops)
    for place in (source, event.target):  # memory of the program holds its own elements, of turns one after the other
        if isinstance(place, Load) and flow.space(place.buffer) is Space.GLOBAL:
            own = place.buffer in scopes or place.buffer.role != "local"
            if own and (meet or (place.buffer, place.index) != (action.stored, tag.element)):
                return ()
    *before, at, _ = when(action.spot, found, 0)
    if not {*around} <= found.keys() or tag.side not in (-1, 1) or not isinstance(at, int) or event.site.tests:
        return ()
    about = (action.stored, tag.element, tuple(found[sym] for sym in around), None, found, tag.inverse)
    return tuple(
        Access(event, event.site, home_of(place), subscripts(place), write, (*before, at + tag.side, int(write)), *about)
        for place, write in ((source, False), (event.target, True))
    )


def untouched(copy: Access, flow: Flow) -> Point | None:
    """An instance of a copy whose element the program does not write in the same iterations. Raises Undecided.

    Where no `par` is around it, but for those whose iterations have copies of the memory, it has an order with all that touches
    the element, as the program has: wherever it is, and whether or not data let the program write there.
    """
    loops = [step[0] for step in copy.when if not isinstance(step, int)]
    if not any(is_free(loop, copy.stored) for loop in loops[len(copy.copies) :]):
        return None
    found = list[There]()
    for action in flow.program.actions:
        names, index = apart(action), subscripts(action.target)
        if action.stored == copy.stored and not action.spot.tests and {*copy.indices} <= {*names}:
            facts = *flow.written(action, names, copy), *(Eq(expr(names[sym]) - e) for sym, e in copy.indices.items())
            said = {e.as_sym: given for e, given in zip(index, copy.meant, strict=True)} | {**copy.indices}
            found.append(There(names, facts, (tuple(said.get(sym, expr(0)) for sym in names),)))
    return nowhere(copy.site.where, found, flow.premises)
