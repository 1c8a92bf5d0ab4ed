"""The implications for factors and inner extents that are symbolic: each follows linearly from a few products of signs.

Of u ≥ 0 and v ≥ 0 follows u · v ≥ 0. With these lemmas every product is a number of its own, and isl finds the rest empty.
Floors are named: q = ⌊x / n⌋ means n · q ≤ x < n · q + n.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from tests.domain.test_theorems import merge, split

from texpr.affine.expr import Expr, FloorDiv, Max, Mod, Sym, expr, sym, term
from texpr.domain.iterdomain import Bound, Implication
from texpr.domain.transform import Transform
from texpr.presburger.formula import Ge, conj
from texpr.presburger.isl.sets import Set

N, P, S = sym("N"), sym("P"), sym("S")


class Proof:
    """One implication, to be refuted: what is ≥ 0, products and all."""

    def __init__(self, size: Expr):
        self.size = size  # every divisor is this one, which is positive
        self.floors: dict[Expr, Expr] = {}

    def plain(self, value: Expr) -> Expr:
        """`value` with floors and remainders by the size named, and max(n, 1) = n."""
        total = expr(value.constant)
        for monomial, coefficient in value.terms:
            made = expr(coefficient)
            for atom in monomial:
                match atom:
                    case FloorDiv(num, _):
                        made = made * self.floor(self.plain(num))
                    case Mod(num, _):
                        made = made * (self.plain(num) - self.size * self.floor(self.plain(num)))
                    case Max():
                        made = made * self.size
                    case _:
                        made = made * term((atom,))
            total = total + made
        return total

    def floor(self, num: Expr) -> Expr:
        return self.floors.setdefault(num, sym(f"⌊{num}⌋"))

    def facts(self) -> Iterator[Expr]:
        yield self.size - 1
        for num, floor in self.floors.items():
            yield num - self.size * floor
            yield self.size * floor + self.size - 1 - num


def linear(value: Expr) -> Expr:
    """Products of symbols as symbols."""
    total = expr(value.constant)
    for monomial, coefficient in value.terms:
        total += coefficient * (term(monomial) if len(monomial) == 1 else sym(f"⟨{term(monomial)}⟩"))
    return total


def follows(transform: Transform, claim: Implication, size: Expr) -> bool:
    """Whether `claim` is proved where `size`, by which alone is divided, is positive."""
    outputs = tuple(expr(d.sym) for d in transform.outputs)
    above = dict(zip((d.sym for d in transform.inputs), transform.up(outputs), strict=True))
    proof = Proof(size)

    def margin(bound: Bound) -> Expr:
        return proof.plain(bound.margin(above.get(bound.domain.sym, expr(bound.domain.sym))))

    said = [*map(margin, claim.given), *map(proof.plain, claim.premises), -margin(claim.then) - 1]
    if not claim.divides:
        return refuted(said, proof)
    ((_, value),) = claim.divides  # value = n · times; then ⌊−value / n⌋ is −times: it is no greater, and no less
    times, floor = sym("times"), proof.floor(-value)
    said += [value - size * times, size * times - value]
    exact = {name: -times for name in floor.syms()}
    return (
        refuted([*said, floor + times - 1], proof)
        and refuted([*said, -floor - times - 1], proof)
        and refuted([*said, floor + times, -floor - times], proof, exact)
    )


def refuted(said: list[Expr], proof: Proof, values: Mapping[Sym, Expr] | None = None) -> bool:
    """Whether no numbers, products being numbers of their own, make everything ≥ 0, each n · v for a linear v among it."""
    facts = [each.substitute(values or {}) for each in (*said, *proof.facts())]
    affine = [each for each in facts if all(len(monomial) == 1 for monomial, _ in each.terms)]
    lemmas = [one * other for one, other in product((proof.size, proof.size - 1), affine)]
    return Set.of([], conj(map(Ge, map(linear, (*facts, *lemmas))))).is_empty()


def test_splits_by_a_symbolic_factor() -> None:
    step = split(S, N)
    for claim in step.implications():
        assert follows(step, claim, N), claim


def test_merges_with_a_symbolic_inner_extent() -> None:
    step = merge(P, N)
    for claim in step.implications():
        assert follows(step, claim, N), claim


def test_what_is_false_is_not_proved() -> None:
    step = split(S, N)
    for claim in step.implications():
        for bound in claim.given:
            weaker = Implication(claim.theorem, claim.given - {bound}, claim.then, claim.premises, claim.divides)
            assert not follows(step, weaker, N), weaker
