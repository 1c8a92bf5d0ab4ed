"""Order of accesses to one element as in the written program, and conflicts of iterations of a `par`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from texpr.affine.expr import expr
from texpr.ir.program.marks import Tensor
from texpr.presburger.formula import FALSE, And, Formula, between, compare, conj, differ, disj, negate
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.questions import Point, is_refuted_by_equations, witness
from texpr.presburger.solve.omega import refuted
from texpr.proof.read.program_order import When, cases
from texpr.proof.schedule.accesses import Home, Named, same

EVERY = 1 << 10
"""A number of loops greater than any depth."""


def misordered(a: Named, b: Named, premises: Formula) -> Point | None:
    """Two accesses to one element in this order in the written program, and perhaps not in the scheduled one. Raises
    Undecided."""
    one, other = a.access, b.access
    meant, times = (a.meant, b.meant), (a.time, b.time)
    if one.is_update and other.is_update and one.does and other.does and one.does.update == other.does.update:
        meant = strict(a.meant, one.stored), strict(b.meant, one.stored)
        times = (strict(a.time, one.home), strict(b.time, one.home)) if one.home == other.home else times
    wanted = [f for free, f in cases(*meant, one.stored, whole=True) if not free and f != FALSE]
    late = negate(disj(f for free, f in cases(*times, None, whole=True) if not free))
    try:
        return any_of((*a.where, *b.where, *same(a.element, b.element), late), wanted, premises)
    except Undecided:  # of all iterations, whatever tests say of them, there may be no such two either
        if any_of((*_iterations(a), *_iterations(b), *same(a.element, b.element), late), wanted, premises) is not None:
            raise
        return None


def _iterations(each: Named) -> Iterator[Formula]:
    """The bounds of the loops around an access."""
    for loop in each.access.action.spot.loops:
        yield between(0, each.names(expr(loop.sym)), each.names(loop.extent))


def meeting(a: Named, b: Named, home: Home, premises: Formula) -> Point | None:
    """Two iterations of a `par` with a conflict at one place. Raises Undecided."""
    if _is_joined(a) and _is_joined(b):
        return None  # the engine combines atomically
    free = home if a.access.is_update and b.access.is_update else None  # a `reduce` allows conflicts of updates
    never = {compare("!=", x, y) for x, y in zip(a.place, b.place, strict=True)}  # iterations with memory of their own
    wanted = [f for f in _unordered(a.time, b.time, free) if never.isdisjoint(f.parts if isinstance(f, And) else (f,))]
    return any_of((*a.where, *b.where, *same(a.place, b.place), *legal(a, b, premises)), wanted, premises) if wanted else None


def _is_joined(each: Named) -> bool:
    """Whether an update combines a partial sum by the engine's reduction."""
    engine = any(isinstance(mark, Tensor) for loop in each.access.action.spot.loops for mark in loop.directives)
    return each.access.is_update and engine and not each.access.action.stmt.instance


def any_of(facts: Sequence[Formula], wanted: Sequence[Formula], premises: Formula) -> Point | None:
    """A point with `facts` and one of the `wanted` formulas. Raises Undecided."""
    left = [case for case in wanted if not is_refuted_by_equations((*facts, case), premises)]
    return next((point for case in left if (point := witness((*facts, case), premises)) is not None), None)


def legal(a: Named, b: Named, premises: Formula) -> Iterator[Formula]:
    """Facts about two accesses to an element that the written program writes: they are in no two iterations of a `par`."""
    stored = a.access.stored
    if stored is not None and stored == b.access.stored and a.legal and b.legal:
        doubts = (negate(conj(each.is_one)) for each in (a, b) if each.is_one)
        there = ((*a.where, *b.where, premises, doubt) for doubt in doubts)
        unless = [differ(a.element, b.element), *(facts[-1] for facts in there if not refuted(facts))]
        yield from (disj((*unless, negate(f))) for f in _unordered(a.legal, b.legal, stored))


def _unordered(a: When, b: When, home: Home | None) -> list[Formula]:
    """The condition that two are in different iterations of a `par` that does not reduce into `home`."""
    return [f for free, f in cases(a, b, home, whole=True, either=EVERY) if free and f != FALSE]


def strict(time: When, home: Home | None) -> When:
    """A time without the order that a `reduce` relaxes."""
    return tuple(takewhile(lambda step: isinstance(step, int) or home not in step[0].reduce, time))
