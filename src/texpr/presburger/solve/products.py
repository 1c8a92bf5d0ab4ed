"""Products of unknowns and quotients by unknowns, by what is known of their factors.

Elimination treats each product as an unknown. So these consequences of two facts are added to the system:

    s ≥ 0 and e ≥ 0   ⊢   s · e ≥ 0, and s · e ≥ e where s > 0
    s ≥ 0, s · e > 0  ⊢   s > 0
    d > 0             ⊢   ⌊(d · p + q) / d⌋ = p + ⌊q / d⌋  and  (d · p + q) mod d = q mod d
    0 ≤ q < d         ⊢   ⌊q / d⌋ = 0  and  q mod d = q
    0 ≤ x < c · d     ⊢   0 ≤ ⌊x / d⌋ < c, where d > 0
    d > 0, c > 0      ⊢   ⌊x / (c · d)⌋ = ⌊⌊x / d⌋ / c⌋
    d > 0, c > 0      ⊢   ⌊(x mod (c · d)) / d⌋ = ⌊x / d⌋ mod c  and  (x mod (c · d)) mod d = x mod d
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from math import prod

from texpr.affine.expr import ZERO, Atom, Expr, FloorDiv, Max, Min, Mod, Monomial, Sym, children, expr, rebuilt, term, without
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.presburger.formula import And, Eq, Formula, Ge, Or, conj, disj, leaves, mapped
from texpr.presburger.linear import taken_apart
from texpr.presburger.solve.omega import refuted
from texpr.presburger.solve.relaxed import products_in
from texpr.support.record import Mutable, field

_PLAIN = Simplifier(Known({}))

MOST = 64
"""The number of products of facts that are added to a question."""


def without_divisions(facts: Sequence[Formula], premises: Formula) -> list[Formula]:
    """`facts` with quotients and remainders by unknowns simplified."""
    if not any(map(_divides, (e for fact in facts for e in leaves(fact)))):
        return list(facts)
    taken = _Taken(facts, premises)
    found = [mapped(fact, lambda value: _plainly(taken.apart(value))) for fact in facts]
    return [*found, *taken.said]


class _Taken(Mutable):
    facts: Sequence[Formula]
    premises: Formula
    said: list[Formula] = field(default_factory=list[Formula])
    known: dict[Expr, bool] = field(default_factory=dict[Expr, bool])

    def shown(self, value: Expr) -> bool:
        """Whether `value` is not negative."""
        if value not in self.known:
            self.known[value] = refuted((*self.facts, self.premises, Ge(-value - 1)))
        return self.known[value]

    def digit(self, atom: FloorDiv | Mod, num: Expr, den: Expr) -> Expr | None:
        """An atom whose `num` is a remainder by a multiple of `den`, as a digit of that remainder's dividend."""
        inner = num.as_atom
        if not isinstance(inner, Mod) or any(len(e.terms) != 1 or e is not term(e.terms[0][0]) for e in (den, inner.den)):
            return None
        above = without(inner.den.terms[0][0], den.terms[0][0])
        if above is None or not is_positive(term(above), self.facts, self.premises):
            return None
        return inner.num % den if isinstance(atom, Mod) else inner.num // den % term(above)

    def is_digit(self, value: Expr, end: Expr) -> bool:
        """Whether 0 ≤ `value` < `end`; for ⌊x / d⌋ also by 0 ≤ x < d · `end`."""
        if self.shown(value) and self.shown(end - value - 1):
            return True
        atom = value.as_atom
        if isinstance(atom, Mod) and atom.den is end:
            return is_positive(end, self.facts, self.premises)
        if not isinstance(atom, FloorDiv) or not self.shown(atom.num) or not self.shown(atom.den * end - atom.num - 1):
            return False
        return is_positive(atom.den, self.facts, self.premises)

    def apart(self, value: Expr) -> Expr:
        """`value` with its quotients and remainders simplified."""
        if not _divides(value):
            return value
        total = expr(value.constant)
        for monomial, coefficient in value.terms:
            total = total + prod(map(self.atom, monomial), start=expr(coefficient))
        return total

    def atom(self, atom: Atom) -> Expr:
        """The same of an atom."""
        if isinstance(atom, Sym):
            return expr(atom)
        parts = tuple(map(self.apart, children(atom)))
        if not isinstance(atom, FloorDiv | Mod) or parts[1].is_constant or not is_positive(parts[1], self.facts, self.premises):
            return rebuilt(atom, parts)
        num, den = parts
        if not self.shown(den - 1):
            self.said.append(Ge(den - 1))
        if (digit := self.digit(atom, num, den)) is not None:
            return self.apart(digit)
        monomial, scale = den.terms[0] if len(den.terms) == 1 and not den.constant else ((), 0)
        if scale > 1:  # ⌊x / n⌋ has a name: its quotient by a number is not rewritten as one of x by a product
            inner = self.apart(num // term(monomial))
            name = expr(Sym(f"⟪{inner}⟫")) if _divides(inner) else inner
            self.said += (Ge(name - inner), Ge(inner - name)) if name is not inner else ()
            return name // scale if isinstance(atom, FloorDiv) else num - den * (name // scale)
        whole, rest = parted(num, monomial) if scale == 1 else (ZERO, num)
        small = self.is_digit(rest, den)
        if isinstance(atom, Mod):
            return rest if small else rest % den
        return whole if small else whole + rest // den


def is_positive(value: Expr, facts: Sequence[Formula], premises: Formula) -> bool:
    """Whether `value` > 0 where `facts` hold: directly, or as a non-negative factor of a positive product."""
    every = (*map(_without_extrema, facts), premises)
    if refuted((*every, Ge(-value))):
        return True
    ((factor, by), *more) = value.terms or (((), 0),)
    if more or value.constant or by < 1 or not all(refuted((*every, Ge(-term((atom,)) - 1))) for atom in factor):
        return False
    products = dict.fromkeys(m for fact in facts for e in leaves(fact) for m in products_in(e))
    return any(without(m, factor) is not None and refuted((*every, Ge(-term(m)))) for m in products)


def is_never_negative(value: Expr, facts: Iterable[Formula]) -> bool:
    """Whether `value` ≥ 0 where `facts` hold: directly, or as a sum of products of non-negative factors."""
    every = tuple(facts)

    def holds(part: Expr) -> bool:
        return refuted((*every, Ge(-part - 1)))

    return holds(value) or (
        value.constant >= 0 and all(by > 0 and all(holds(term((atom,))) for atom in factors) for factors, by in value.terms)
    )


def _plainly(value: Expr) -> Expr:
    """`value` simplified with quotients by unknowns left as they are: digits of one number add up, times a quotient as well."""
    kept = {atom: Sym(f"⟪{term((atom,))}⟫") for m, _ in value.terms for atom in m if _divides(term((atom,)))}
    total = expr(value.constant)
    for monomial, coefficient in value.terms:
        total = total + prod((term((kept.get(atom, atom),)) for atom in monomial), start=expr(coefficient))
    return _PLAIN(total).substitute({name: term((atom,)) for atom, name in kept.items()})


def parted(value: Expr, factor: Monomial) -> tuple[Expr, Expr]:
    """(p, q) with value = factor · p + q, where no term of q contains the factor."""
    row, column = ZERO, expr(value.constant)
    for monomial, coefficient in value.terms:
        left = without(monomial, factor)
        if left is None:
            column = column + term(monomial, coefficient)
        else:
            row = row + term(left, coefficient)
    return row, column


@lru_cache(maxsize=1 << 14)
def _divides(value: Expr) -> bool:
    """Whether the expression divides by an unknown."""
    atoms = (atom for monomial, _ in value.terms for atom in monomial if not isinstance(atom, Sym))
    return any((isinstance(a, FloorDiv | Mod) and not a.den.is_constant) or any(map(_divides, children(a))) for a in atoms)


def multiplied(facts: Sequence[Formula], premises: Formula) -> list[Formula]:
    """`facts`, and the non-negative ones multiplied by non-negative unknowns, restricted to products that occur already.
    Alternatives are treated each by itself."""
    facts = [*map(_without_extrema, facts)]
    every = dict.fromkeys(m for fact in facts for e in leaves(fact) for m, _ in e.terms if len(m) > 1)
    atoms = dict.fromkeys(a for m in every for a in m if isinstance(a, Sym | FloorDiv))
    single = [a for a in atoms if refuted((premises, Ge(-term((a,)) - 1)))]
    if not single:
        return facts
    sizes: list[Monomial] = [*((a,) for a in single), *(m for m in every if {*m} <= {*single})]  # also H · W
    beside = dict.fromkeys(rest for size in sizes for m in every if (rest := without(m, size)))
    numbers = [term(size) for size in sizes]
    factors = [each - refuted((*facts, premises, Ge(-each))) for each in numbers]  # less 1, where that is not negative
    plain = [Ge(e) for e in map(term, beside) if refuted((*facts, premises, Ge(-e - 1)))]

    def made(fact: Formula) -> Iterator[Formula]:
        for product in (fact.expr * size for size in factors) if isinstance(fact, Ge) else ():
            degrees = [len(m) for m, _ in product.terms if len(m) < 2 or m in every]
            if len(degrees) == len(product.terms) and max(degrees, default=0) > 1:
                yield Ge(product)

    def beyond(fact: Formula) -> Formula:
        return disj(conj((p, *made(p))) for p in fact.parts) if isinstance(fact, Or) else fact

    return [*map(beyond, facts), *islice((p for fact in (*plain, *facts) for p in made(fact)), MOST)]


def _without_extrema(fact: Formula) -> Formula:
    """`fact` without minima and maxima of products."""
    match fact:
        case Ge(value):
            extrema = (m[0] for m, _ in value.terms if len(m) == 1 and isinstance(m[0], Min | Max))
            products = any(len(m) > 1 for atom in extrema for arg in atom.args for m, _ in arg.terms)
            return taken_apart(value) if products else fact
        case And(parts):
            return conj(map(_without_extrema, parts))
        case Or(parts):
            return disj(map(_without_extrema, parts))
        case Eq():
            return fact
