"""Copies: elements that are stored elsewhere for a while, such as in a register, updated there, and copied back.

The program has no such statement, so each copy gets a time in it: before, or after, the outermost loop of the updates. That
this time is right is proved like everything else: what was written before a read was written, or copied since, to the place
that is read. At its time a copy in a `par` accesses no element but those that the program writes in the same iterations, or
accesses in these and in no others: so copies add no dependences between iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from texpr.affine.expr import expr
from texpr.ir import program as ir
from texpr.ir.proof.tags import Moved
from texpr.ir.value import Load, Ref, walk
from texpr.isa.levels import Space
from texpr.presburger.existential import ExistsWitness, nowhere
from texpr.presburger.formula import Eq, compare, rename
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.questions import Point, witness
from texpr.proof.plan.flow import Access, Flow, apart
from texpr.proof.plan.match import home_of, subscripts
from texpr.proof.read.actions import Action, indices
from texpr.proof.read.events import Event
from texpr.proof.read.order import is_free, when


def copied(event: Event, source: Load | Ref, tag: Moved, flow: Flow) -> tuple[Access, ...]:
    """The accesses of `event` as a copy of `source`, of the element in its tag; none if it is no copy, or depends on data."""
    action, scopes = flow.program.actions[tag.action], flow.program.scopes
    found = {loop.sym: e for loop, e in zip(action.spot.loops, tag.indices, strict=False)}
    loops = action.spot.loops[: scopes[action.stored]]
    around, meet = [loop.sym for loop in loops], any(isinstance(loop, ir.Par) for loop in loops)
    for place in (source, event.target):  # program memory holds its own elements, in successive iterations
        if isinstance(place, Load) and flow.space(place.buffer) is Space.GLOBAL:
            own = place.buffer in scopes or place.buffer.role != "local"
            if own and (meet or (place.buffer, place.index) != (action.stored, tag.element)):
                return ()
    *before, at, _ = when(action.spot, found, 0)
    known = {*around} <= found.keys() and tag.side in (-1, 1) and len(tag.element) == len(subscripts(action.target))
    if not known or not isinstance(at, int) or event.site.tests:
        return ()
    about = (action.stored, tag.element, tuple(found[sym] for sym in around), None, found, tag.inverse)
    return tuple(
        Access(event, event.site, home_of(place), subscripts(place), write, (*before, at + tag.side, int(write) - 2), *about)
        for place, write in ((source, False), (event.target, True))
    )


def untouched(copy: Access, flow: Flow) -> Point | None:
    """An instance of a copy whose element the program does not write in the same iterations, and accesses in others, or
    nowhere. Raises Undecided.

    If no `par` is around it, except those whose iterations have instances of the memory of their own, it is ordered with all
    accesses to the element, as in the program: whatever its time, and whether or not the program writes the element, which may
    depend on data.
    """
    loops = [step[0] for step in copy.when if not isinstance(step, int)]
    if not any(is_free(loop, copy.stored) for loop in loops[len(copy.copies) :]):
        return None
    writes = [place for place in _touches(copy, flow) if place[1] is place[0].target and not place[0].spot.tests]
    try:
        point = nowhere(copy.site.where, [*_beside(copy, flow, writes)], flow.premises)
    except Undecided:
        if _alone(copy, flow):
            return None
        raise
    return None if point is None or _alone(copy, flow) else point


def _alone(copy: Access, flow: Flow) -> bool:
    """Whether the program accesses a copy's element in the same iterations, and in no others of a `par` around the copy.

    Accesses that depend on data count as executed, in both claims. So there are no two copies of one element in different
    iterations: one of them would be in an iteration other than that of the access. Raises Undecided.
    """
    touches, loops = _touches(copy, flow), [step for step in copy.when if not isinstance(step, int)]
    known = {*flow.program.function.sizes}
    for action, place in touches:
        if {s for e in subscripts(place) for s in e.syms()} - {*indices(action.spot), *known}:
            return False  # the element depends on data
        names = apart(action)
        element = [Eq(e.substitute(names) - given) for e, given in zip(subscripts(place), copy.meant, strict=True)]
        element += [Eq(expr(names[loop.sym]) - own) for loop, own in zip(action.spot.loops, copy.copies, strict=False)]
        here = (*copy.site.where, *(rename(f, names) for f in action.spot.domain), *element)
        for depth, ((loop, own), other) in enumerate(zip(loops, action.spot.loops, strict=False)):
            if loop is not other:
                break
            elsewhere = (*here, compare("!=", own, expr(names[loop.sym])))
            is_par = is_free(loop, copy.stored) and depth >= len(copy.copies)
            if is_par and witness(elsewhere, flow.premises) is not None:
                return False
            here = (*here, Eq(own - names[loop.sym]))
    return nowhere(copy.site.where, [*_beside(copy, flow, touches)], flow.premises) is None


def _touches(copy: Access, flow: Flow) -> list[tuple[Action, Load | Ref]]:
    """The reads and writes of statements in the memory that a copy is of."""
    places = [
        (a, place)
        for a in flow.program.actions
        for place in (a.target, *(each for v in (a.target, a.value) for each in walk(v) if each is not a.target))
        if isinstance(place, Load | Ref) and home_of(place) == copy.stored
    ]
    return list(dict.fromkeys(places))


def _beside(copy: Access, flow: Flow, places: Iterable[tuple[Action, Load | Ref]]) -> Iterator[ExistsWitness]:
    """Instances of statements that access a copy's element in the same iterations."""
    for action, place in places:
        names, index = apart(action), subscripts(place)
        if {*copy.indices} <= {*names}:
            facts = *flow.written(action, names, copy, place), *(Eq(expr(names[s]) - e) for s, e in copy.indices.items())
            said = {e.as_sym: given for e, given in zip(index, copy.meant, strict=True)} | {**copy.indices}
            yield ExistsWitness(names, facts, (tuple(said.get(sym, expr(0)) for sym in names),))
