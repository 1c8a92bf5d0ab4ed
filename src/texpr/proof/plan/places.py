"""Where accesses are: whether two that have one thing in common, as a place, an element or a thread, have another.

That is asked of what is plain of them: by which expressions they say it, and bounds of what these name, loops by numbers. So
a few such questions speak for all accesses. What they leave open is to be asked again, of all that holds there.
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
"""What an access says: its place in memory, which copy of the program's memory that is, the element of it, who does it."""


@interned
class Address:
    """What an access `says`, over coordinates `dims`, of which `facts` hold at instances. `known`: whether that is all."""

    dims: tuple[Sym, ...]
    facts: tuple[Formula, ...]
    says: tuple[tuple[Expr, ...], ...]
    known: bool


def address(site: Site, says: Sequence[Sequence[Expr]]) -> Address:
    """What an access at `site` says, its loops by numbers."""
    used = {sym for exprs in says for e in exprs for sym in e.syms()}
    facts, numbers = list[Formula](), dict[Sym, Expr]()
    for loop in reversed(site.loops):  # bounds name outer ones
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
    """Whether it is shown that two accesses that say the same for all of `given` say the same for `wanted`."""
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
    op = "<" if a is b else "!="  # of one address, which comes first is no matter
    apart = disj(compare(op, x.substitute(left), y.substitute(right)) for x, y in asked)
    if refuted((*facts, apart, premises)):
        return True
    try:
        return bool(divisions((*facts, apart))) and witness((*facts, apart), premises) is None
    except Undecided:
        return False
