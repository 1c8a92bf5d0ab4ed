"""Coverage: each instance of a statement is executed, and none twice.

Tags give the coordinates of an instance, and are queried with the digits of its indices: all i are d₀ + 16 · d₁ + 4096 · d₂
with 0 ≤ d₀ < 16 and 0 ≤ d₁ < 256. So quotients and remainders of i become affine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise

from texpr.affine.expr import Expr, FloorDiv, Mod, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.isa.levels import Space
from texpr.presburger.existential import is_plain, nowhere
from texpr.presburger.formula import Eq, Formula, between, conj, differ, equal, mapped, negate, rename
from texpr.presburger.questions import Point, witness
from texpr.presburger.solve.omega import refuted
from texpr.presburger.solve.relaxed import flat
from texpr.proof.plan.flow import Flow, Home, instances
from texpr.proof.plan.match import Match, home_of
from texpr.proof.read.actions import Action
from texpr.proof.read.events import plainly
from texpr.proof.read.order import domains, equal_all, sides_of
from texpr.support.record import Mutable, field


class Coverage(Mutable):
    """The events that execute a statement. `indices`: those of an instance, in terms of digits with the given `facts`."""

    flow: Flow
    action: Action
    found: Sequence[Match]
    parts: Collection[Home]
    indices: dict[Sym, Expr] = field(default_factory=dict[Sym, Expr])
    facts: tuple[Formula, ...] = ()
    plain: Simplifier = field(init=False)
    told: dict[Match, tuple[Formula, ...]] = field(default_factory=dict["Match", "tuple[Formula, ...]"])

    def __post_init__(self) -> None:
        ranges, facts = dict[Sym, tuple[int, int]](), list[Formula]()
        for sym in (loop.sym for loop in self.action.spot.loops):
            strides = [1]
            for stride in sorted({n for match in self.found for e in match.inverse for n in _strides(e, sym)}):
                strides += [stride] if stride > strides[-1] and stride % strides[-1] == 0 else []
            digits = [Sym(f"⟪{sym} / {stride}⟫") for stride in strides]
            ranges |= {digit: (0, high // low - 1) for digit, (low, high) in zip(digits, pairwise(strides), strict=False)}
            self.indices[sym] = sum((expr(d) * stride for d, stride in zip(digits, strides, strict=True)), expr(0))
            facts.append(Eq(expr(Sym(f"{sym.name}●")) - self.indices[sym]))
        self.plain = Simplifier(Known(ranges))
        facts += (between(lo, digit, hi + 1) for digit, (lo, hi) in ranges.items())
        self.facts = (*flat((*facts, *(mapped(rename(f, self.indices), self.plain) for f in self.action.spot.domain))),)
        self.told = {match: there for match in self.found for there in self.where(match)}

    def own(self, match: Match) -> tuple[Sym, ...]:
        """The coordinates that select the memory that a match writes; each such memory may have an instance of its own."""
        home = home_of(match.event.target)
        private = self.flow.space(home) is Space.LOCAL and home not in self.parts
        return self.flow.instance(home, match.event.site) if private else ()

    def uncovered(self) -> Point | None:
        """An instance that no event executes. Raises Undecided."""
        plain = self.told.keys() >= {*self.found} and not any(map(self.own, self.found))
        if plain and self.refuted(negate(conj(here)) for here in self.told.values()):
            return None
        pairs = ([(e, self.indices[s]) for s, e in match.indices.items() if s in self.indices] for match in self.found)
        done = [instances(m.event.site, each, (_at(m, (), self.indices),)) for m, each in zip(self.found, pairs, strict=True)]
        return nowhere(self.facts, done, self.flow.premises, self.plain)

    def twice(self, a: Match, b: Match) -> Point | None:
        """Two executions of one instance, in one thread if the memory is that thread's own. Raises Undecided."""
        one, two, own = a.event, b.event, self.own(a)
        if home_of(one.target) != home_of(two.target) and not {home_of(one.target), home_of(two.target)} & {*self.parts}:
            return None
        if {a, b} <= self.told.keys() and (a is b or self.refuted(self.told[a], self.told[b])):
            return None
        sides = sides_of(one.site, two.site, own)
        facts = [*domains(one.site, two.site, sides), *equal_all(own, sides)]
        facts += [Eq(sides.a(e) - sides.b(b.indices[s])) for s, e in a.indices.items() if s in self.indices]
        if one is two:
            facts.append(differ(map(sides.a, one.site.dims), map(sides.b, one.site.dims)))
        return witness(facts, self.flow.premises)

    def refuted(self, *more: Iterable[Formula]) -> bool:
        """Whether it is quickly proved that no instance satisfies all of these facts."""
        return refuted((*self.facts, *chain(*more), self.flow.premises))

    def where(self, match: Match) -> Iterator[tuple[Formula, ...]]:
        """The condition that a match executes an instance, if the inverse of its tag is quickly proved to be exact."""
        site, own = match.event.site, self.own(match)
        back = [plainly(e, site) for e in _at(match, own, match.indices)]
        moved = [Eq(e - s) for e, s in zip(back, site.dims, strict=False) if e is not expr(s)]
        if len(back) == len(site.dims) and (not moved or refuted((*site.where, negate(conj(moved)), self.flow.premises))):
            at = dict(zip(site.dims, map(self.plain, _at(match, own, self.indices)), strict=True))
            same = [Eq(e.substitute(at) - self.indices[s]) for s, e in match.indices.items() if s in self.indices]
            facts = flat((*(rename(f, at) for f in site.where), *same, equal((at[s] for s in own), own)))
            yield tuple(f for f in facts if f not in self.facts and not is_plain(f, self.plain.known))


def _at(match: Match, own: Collection[Sym], indices: Mapping[Sym, Expr]) -> tuple[Expr, ...]:
    """The claimed coordinates of the instance with these indices; the coordinates `own` are those of the asking one."""
    values = {**dict.fromkeys(match.event.site.dims, expr(0)), **{s: expr(s) for s in own}, **indices}
    return tuple(e.substitute(values) for e in match.inverse)


def _strides(value: Expr, sym: Sym) -> Iterator[int]:
    """The divisors of `sym` in an expression."""
    for atom in (atom for monomial, _ in value.terms for atom in monomial):
        if isinstance(atom, FloorDiv | Mod) and atom.den.is_constant:
            low = 1 if atom.num.as_sym == sym else max(_strides(atom.num, sym), default=0)
            yield from (low, low * atom.den.constant)
