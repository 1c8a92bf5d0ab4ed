"""Copies: elements that are stored elsewhere for a while, such as in a register, updated there, and copied back.

The program has no such statement, so each copy gets a time in it: before, or after, the outermost loop of the updates. That
this time is right is proved like everything else: what was written before a read was written, or copied since, to the place
that is read. At its time a copy in a `par` accesses no element but those that the program writes in the same iterations, or
those that neither the program nor another copy accesses in other iterations: so copies add no dependences between iterations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypeAlias

from texpr.affine.expr import Expr, expr
from texpr.ir import program as ir
from texpr.ir.proof.tags import Moved
from texpr.ir.value import Load, Ref, walk
from texpr.isa.levels import Space
from texpr.presburger.existential import ExistsWitness, nowhere
from texpr.presburger.formula import FALSE, Eq, Formula, compare, rename
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.questions import Point, witness
from texpr.proof.plan.flow import Access, Flow, apart, own_names
from texpr.proof.plan.match import home_of, subscripts
from texpr.proof.read.actions import indices
from texpr.proof.read.events import Event
from texpr.proof.read.program_order import is_free, when

Steps: TypeAlias = "Sequence[tuple[ir.Loop, Expr]]"
Other: TypeAlias = "tuple[Steps, Sequence[Formula], Sequence[Expr]]"


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


def untouched(copy: Access, flow: Flow, copies: Sequence[Access]) -> Point | None:
    """An instance of a copy whose element the program does not write in the same iterations, while in another one it, or one of
    `copies`, accesses it. Raises Undecided.

    If no `par` is around it, except those whose iterations have instances of the memory of their own, it is ordered with all
    accesses to the element, as in the program: whatever its time, and whether or not the program writes the element, which may
    depend on data.
    """
    loops = [step[0] for step in copy.when if not isinstance(step, int)]
    if not any(is_free(loop, copy.stored) for loop in loops[len(copy.copies) :]):
        return None
    with suppress(Undecided):
        if nowhere(copy.site.where, [*_beside(copy, flow)], flow.premises) is None:
            return None
    others = (_meets(copy, *other, flow) for other in _others(copy, flow, copies))
    return next((point for point in others if point is not None), None)


def _others(copy: Access, flow: Flow, copies: Sequence[Access]) -> Iterator[Other]:
    """What else the program and `copies` do with the memory that a copy is of. Accesses that depend on data count as executed.

    Raises Undecided where data says which element it is.
    """
    for action in flow.program.actions:
        names, own = apart(action), indices(action.spot)
        used = (action.target, action.value, *(asked for asked, _ in action.spot.tests))
        read = (x for value in used for x in walk(value) if isinstance(x, Load | Ref))
        loops = [(loop, expr(names[loop.sym])) for loop in action.spot.loops]
        for index in dict.fromkeys(subscripts(x) for x in read if home_of(x) == copy.stored):
            if {sym for e in index for sym in e.syms()} - {*own, *flow.program.function.sizes}:
                raise Undecided("data says which element of it the program accesses")
            element = [e.substitute(names) for e in (*map(expr, own[: len(copy.copies)]), *index)]
            yield loops, [rename(f, names) for f in action.spot.domain], element
    for other in (each for each in copies if each.stored == copy.stored):
        names = own_names(other.site)
        loops = [(step[0], step[1].substitute(names)) for step in other.when if not isinstance(step, int)]
        yield loops, [rename(f, names) for f in other.site.where], [e.substitute(names) for e in (*other.copies, *other.meant)]


def _meets(copy: Access, loops: Steps, facts: Iterable[Formula], element: Iterable[Expr], flow: Flow) -> Point | None:
    """Where an access to a copy's element, at some indices of `loops`, is in another iteration of a `par` around the copy."""
    same = (Eq(theirs - mine) for theirs, mine in zip(element, (*copy.copies, *copy.meant), strict=True))
    here, mine = (*copy.site.where, *facts, *same), [step for step in copy.when if not isinstance(step, int)]
    for depth, ((loop, own), (other, theirs)) in enumerate(zip(mine, loops, strict=False)):
        if loop is not other:
            break
        apart = (*here, compare("!=", own, theirs)) if is_free(loop, copy.stored) and depth >= len(copy.copies) else (FALSE,)
        if (point := witness(apart, flow.premises)) is not None:
            return point
        here = (*here, Eq(own - theirs))
    return None


def _beside(copy: Access, flow: Flow) -> Iterator[ExistsWitness]:
    """Statements that write a copy's element in the same iterations, whatever the data."""
    for action in flow.plain[copy.stored]:
        names, index = apart(action), subscripts(action.target)
        if {*copy.indices} <= {*names}:
            facts = *flow.written(action, names, copy), *(Eq(expr(names[s]) - e) for s, e in copy.indices.items())
            said = {e.as_sym: given for e, given in zip(index, copy.meant, strict=True)} | {**copy.indices}
            yield ExistsWitness(names, facts, (tuple(said.get(sym, expr(0)) for sym in names),))
