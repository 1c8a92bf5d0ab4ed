"""Inverse of the index map: the instance of an event that executes a given instance of its statement.

Indices are sums of digits of the kernel's coordinates, so a coordinate is composed of digits of the indices. A coordinate that
the indices do not determine has its first value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from texpr.affine.expr import ONE, Expr, Sym, combination, expr, term
from texpr.affine.facts import Fact
from texpr.affine.simplify import Simplifier
from texpr.presburger.formula import Eq, Ge
from texpr.presburger.solve.relaxed import flat
from texpr.presburger.solve.turned import joined, take, turned
from texpr.proof.read.events import Event, Site, plainly, ranged


def inverse(site: Site, indices: Mapping[Sym, Expr], own: Collection[Sym] = ()) -> tuple[Expr, ...]:
    """The coordinates of `site`, in order, over the indices of the program's loops. The result is to be proved.

    `own`: coordinates that, if undetermined, are those of the asking instance.
    """
    known: dict[Sym, Expr] = {}
    digits: dict[Sym, dict[int, tuple[int | None, Expr]]] = {}
    ends = {
        loop.sym: hi.constant
        for loop, (lo, hi) in site.bounds.items()
        if hi.is_constant and lo.is_constant and lo.constant == 0 < hi.constant
    }
    dims = {*site.dims}
    alone = {a.sym: 0 for a in site.launch.kernel.axes if a.extent is ONE} | {sym: 0 for sym, end in ends.items() if end == 1}
    indices = {sym: value.substitute(alone) for sym, value in indices.items()}
    for loop, value in sorted(indices.items(), key=lambda item: any(len(m) > 1 for m, _ in item[1].terms)):  # plain ones first
        take(*turned(value, expr(loop), dims), known, digits, ends, dims)
    for loop in site.loops:
        lo = plainly(site.bounds[loop][0], site)
        if loop.sym in known and loop.step.is_constant and loop.step.constant > 1:  # 0 ≤ lo < step: cyclic
            take(lo, known[loop.sym] % loop.step, known, digits, ends, dims)
        elif loop.sym in known and not lo.is_constant:  # contiguous shares
            take(lo, known[loop.sym], known, digits, ends, dims)
    for digit, value in _by_turns(site, known):
        take(digit, value, known, digits, ends, dims)
    for sym, value in _equal(site, known, digits):
        known[sym] = value
    for sym, found in digits.items():
        known.setdefault(sym, joined(found, expr(sym) if sym in own else None))
    for loop in site.loops:
        if loop.sym not in known:
            known[loop.sym] = site.bounds[loop][0].substitute({s: known.get(s, s if s in own else 0) for s in site.dims})
    alone = _only(site)
    return tuple(known.get(sym, expr(sym if sym in own else alone.get(sym, 0))) for sym in site.dims)


def _by_turns(site: Site, known: Mapping[Sym, Expr]) -> Iterator[tuple[Expr, Expr]]:
    """Digits of a thread's number that tests in a role equate with a turn: which of its groups has that."""
    threads = {*site.launch.threads}
    for fact in (fact for fact in site.domain if isinstance(fact, Eq) and site.role is not None):
        digit = combination(0, [(m, c) for m, c in fact.expr.terms if not threads.isdisjoint(term(m).syms())])
        turn = digit - fact.expr
        if turn.syms() and {*digit.syms()} <= threads and turn.syms() <= known.keys():
            sign = 1 if all(c > 0 for _, c in digit.terms) else -1
            yield digit * sign, (turn * sign).substitute(known)


def where_done(value: Expr, event: Event) -> Expr:
    """`value`, simplified for the instances of an event; of a copy by the engine also by tests around it: the last turn of a
    ring copies nothing, so the row h · L + 64 · turn + r is of the h-th matrix in all others."""
    plain, site = plainly(value, event.site), event.site
    if plain.is_linear or not event.engine:
        return plain
    tests = [Fact(0, each.expr, None) for each in flat(site.where) if isinstance(each, Ge) and each.expr.is_linear]
    return Simplifier(ranged(site).known.also(tests))(plain)


def _only(site: Site) -> dict[Sym, int]:
    """The threads that tests in a role name, such as that which fills slots for others."""
    if site.role is None:
        return {}
    facts = ((fact.expr, sym) for fact in site.domain if isinstance(fact, Eq) for sym in fact.expr.syms())
    return {sym: rest.constant for e, sym in facts if (rest := expr(sym) - e).is_constant and sym in site.launch.threads}


def _equal(site: Site, known: Mapping[Sym, Expr], digits: Collection[Sym]) -> Iterator[tuple[Sym, Expr]]:
    """Coordinates that are only known to equal determined ones, such as the lane that executes part of an instruction."""
    own = {loop.sym for loop in site.loops if loop.kind == "serial" and not loop.body}
    for fact in (fact for fact in site.domain if isinstance(fact, Eq) and not own.isdisjoint(fact.expr.syms())):
        for sym in fact.expr.syms() & {*site.dims} - {*known, *digits}:
            rest = fact.expr.substitute({sym: 0})
            if rest.syms() <= {*known} and fact.expr - rest in (expr(sym), -expr(sym)):
                yield sym, (-rest if fact.expr - rest is expr(sym) else rest).substitute(known)
