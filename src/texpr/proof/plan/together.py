"""Uniformity: which threads reach an operation together."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.presburger.formula import Eq, Formula, conj, differ, disj, equal, negate, rename
from texpr.presburger.questions import Point, witness
from texpr.proof.plan.match import Match
from texpr.proof.read.events import Meeting, Site
from texpr.proof.read.order import Sides, ranks, sides_of


def diverging(meeting: Meeting, matches: Sequence[Match], premises: Formula) -> Point | None:
    """Two threads that must reach something together, one of which does so more often.

    Raises Undecided, or ValueError if a test of data that corresponds to none of the program is around it.
    """
    site, launch = meeting.site, meeting.site.launch
    width = launch.kernel.group(meeting.meets)  # of an exchange or barrier
    sides = sides_of(site, site, (*launch.host, *(launch.blocks if width >= 0 else ()), *(loop.sym for loop in site.loops)))
    here = [rename(f, names) for names in (sides.left, sides.right) for f in launch.domain]
    ends = [(sides.a(e), sides.b(e)) for loop in site.loops for e in site.bounds[loop]]
    wrong = [differ([x], [y]) for x, y in ends if x is not y]
    if width < 0:
        if not (wide := ranks(launch)):
            raise ValueError("which blocks are a cluster is not known")
        here += [Eq(sides.a(s) // wide.get(s, 1) - sides.b(s) // wide.get(s, 1)) for s in launch.blocks]
        wrong += [differ([a.extent % wide.get(a.sym, 1)], [0]) for a in launch.kernel.axes]  # a block that does not exist
    if width > 0:
        here.append(Eq(sides.a(launch.thread) // width - sides.b(launch.thread) // width))
    for fact in site.domain:
        one, two = rename(fact, sides.left), rename(fact, sides.right)
        wrong += [] if one == two else [conj((one, negate(two)))]
    wrong += [_unlike(test, matches, sides) for test in site.tests]
    return witness((*here, disj(wrong)), premises) if wrong else None


def _unlike(test: tuple[object, Site], matches: Sequence[Match], sides: Sides) -> Formula:
    """The condition that two threads evaluate different instances of a test of the program, or one of them another test."""
    for match in matches:
        found = match.event.site.tests
        if test in found and len(match.action.spot.tests) == len(found):
            _, spot = match.action.spot.tests[found.index(test)]
            values = [match.indices[loop.sym] for loop in spot.loops]
            asked = [meant.substitute(match.indices) - given for meant, given in match.tested]
            right = (Eq(side(e)) for e in asked for side in (sides.a, sides.b))
            return negate(conj((equal(map(sides.a, values), map(sides.b, values)), *right)))
    raise ValueError("a test of data decides, which no statement of the program has")
