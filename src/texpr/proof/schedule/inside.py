"""Accesses of the scheduled program are in bounds, which is a premise of the proof of a plan.

In parameters and results a statement accesses what the written program does, which is legal. Copies do not, nor do statements
outside of the written loops; of memory that only the scheduled program has the written one says nothing. Subscripts that are
read from data are left to the checks of programs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from texpr.affine.expr import Expr, Sym
from texpr.ir.value import Buffer
from texpr.presburger.formula import Formula, between, conj, negate
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.questions import Point, witness
from texpr.presburger.solve.digits import below
from texpr.presburger.solve.ranges import is_below, ranges_of
from texpr.presburger.solve.relaxed import flat
from texpr.proof.common.asked import Asked, Claim
from texpr.proof.schedule.accesses import Access


def inside(
    accesses: Iterable[Access], given: Container[object], names: Mapping[Sym, Expr], premises: Formula
) -> Iterator[Asked]:
    """The obligations. `given`: the parameters and results; `names`: numbers by their names in the written program."""
    asked = dict[object, Access]()
    for access in accesses:
        if isinstance(access.home, Buffer) and access.home.rank and not (access.does and access.home in given):
            asked.setdefault((access.home, access.place, access.where, access.does and access.element), access)
    for access in asked.values():
        told = Claim("is inside", str(access), "subscripts are below extents", access.action.span)
        yield told, outside, (access, names, premises)


def outside(access: Access, names: Mapping[Sym, Expr], premises: Formula) -> Point | None:
    """An instance that is out of bounds. Raises Undecided."""
    assert isinstance(access.home, Buffer)
    place, shape = access.place[len(access.place) - access.home.rank :], [e.substitute(names) for e in access.home.shape]
    facts = [*access.where]
    if access.does is not None and isinstance(access.stored, Buffer):  # an element, as the written program is legal
        element = access.element[len(access.element) - access.stored.rank :]
        facts += (between(0, e, size) for e, size in zip(element, access.stored.shape, strict=True))
    ranges = ranges_of(flat((*facts, premises)))
    pairs = [pair for pair in zip(place, shape, strict=True) if not is_below(*pair, ranges)]
    asked = [pair for pair in pairs if not any(access.is_data(s) for e in pair for s in e.syms())]
    try:
        return witness((*facts, negate(conj(between(0, e, size) for e, size in asked))), premises)
    except Undecided:
        if all(any(_is_never(facts, each, premises) for each in below(e, size)) for e, size in asked):
            return None
        raise


def _is_never(facts: Sequence[Formula], goals: Sequence[Formula], premises: Formula) -> bool:
    """Whether `goals` are proved to hold."""
    try:
        return witness((*facts, negate(conj(goals))), premises) is None
    except Undecided:
        return False
