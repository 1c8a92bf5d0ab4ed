"""Addresses: whether two accesses that agree in one thing, such as the place, the element or the thread, agree in another.

This is decided by address expressions and bounds of their symbols only, with loops numbered, so that a few lemmas cover all
accesses. What remains open is decided by a formula with all facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from texpr.affine.expr import ONE, Expr, Number, Sym, expr
from texpr.affine.interned import interned
from texpr.presburger.formula import Eq, Formula, between, compare, disj, rename, syms
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.questions import witness
from texpr.presburger.solve.digits import whole_of
from texpr.presburger.solve.omega import refuted
from texpr.presburger.solve.relaxed import divisions
from texpr.proof.read.events import Site

PLACE, COPY, ELEMENT, THREAD = range(4)
"""Components of an address: the place in memory, the instance of program memory, the element of it, the thread."""


@interned
class Address:
    """What an access `says`: expressions over coordinates `dims` with `facts`. `known`: whether these are all facts."""

    dims: tuple[Sym, ...]
    facts: tuple[Formula, ...]
    says: tuple[tuple[Expr, ...], ...]
    known: bool


def address(site: Site, says: Sequence[Sequence[Expr]]) -> Address:
    """The address of an access at `site`, with its loops numbered."""
    used = {sym for exprs in says for e in exprs for sym in e.syms()}
    facts, numbers = list[Formula](), dict[Sym, Expr]()
    for loop in reversed(site.loops):  # bounds use outer indices
        if loop.sym in used:
            lo, hi = site.bounds[loop]
            used |= lo.syms() | hi.syms()
            facts += [between(lo, loop.sym, hi), *([] if loop.step is ONE else [Eq((expr(loop.sym) - lo) % loop.step)])]
            numbers[loop.sym] = expr(Sym(f"□{len(numbers)}"))
    around = [s for s in site.dims if s in used and s not in numbers]
    sizes = {*site.launch.kernel.sizes}.difference(site.launch.host)
    facts += [f for f in site.launch.domain if syms(f) <= used | sizes]
    named = tuple([tuple([e.substitute(numbers) for e in exprs]) for exprs in says])
    dims = (*around, *(sym for e in numbers.values() for sym in e.syms()))
    known = {s for s in used if not isinstance(s, Number)} <= {*site.dims, *sizes}
    return Address(dims, tuple([rename(f, numbers) for f in facts]), named, known)


@lru_cache(maxsize=1 << 14)
def follows(a: Address, b: Address, given: tuple[int, ...], wanted: int, premises: Formula) -> bool:
    """Whether it is proved that two accesses which agree in all of `given` agree in `wanted`."""
    same = [pair for n in given for pair in zip(a.says[n], b.says[n], strict=True)]
    asked = [pair for pair in zip(a.says[wanted], b.says[wanted], strict=True) if pair not in same]
    if not asked or not (a.known and b.known):
        return not asked
    plain = {x.as_sym for x, y in same if x is y}
    left, right = (
        {s: expr(s if s in plain else Sym(f"{s.name}{mark}")) for s in each.dims} for each, mark in ((a, "◁"), (b, "▷"))
    )
    mine, theirs = ([rename(f, names) for f in each.facts] for each, names in ((a, left), (b, right)))
    alike = [(x.substitute(left), y.substitute(right)) for x, y in same]
    facts = [*mine, *theirs, *(Eq(x - y) for x, y in (*alike, *whole_of(alike, mine, theirs, premises)))]
    op = "<" if a is b else "!="  # for one address, the order is irrelevant
    apart = disj(compare(op, x.substitute(left), y.substitute(right)) for x, y in asked)
    if refuted((*facts, apart, premises)):
        return True
    try:
        return bool(divisions((*facts, apart))) and witness((*facts, apart), premises) is None
    except Undecided:
        return False
