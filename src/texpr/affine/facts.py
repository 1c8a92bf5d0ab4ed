"""What is known of symbols: ranges with constant ends, and facts with symbolic ends.

`Known` answers the four questions that a side condition may ask: is this never negative; is it positive; what is its quotient
by d, if that is constant; and does d divide it. `False` or `None` means "not proved", never "disproved".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from math import gcd

from texpr.affine.divisors import Divisors
from texpr.affine.expr import Expr, FloorDiv, IntoExpr, Mod, Monomial, Sym, expr, term, without
from texpr.affine.ranges import EVERYTHING, Interval, Range, as_interval, as_range, interval, monomial_interval
from texpr.support.record import Record

_DEPTH = 6
"""How many facts one proof may combine; deeper proofs were not seen to be worth their time."""

_ROUNDS = 2
"""How often facts narrow the ranges: from 0 ≤ j, j < N gives 1 ≤ N, and facts on N may then give more."""


class Fact(Record):
    """lo ≤ value < hi; `None` is no bound. The ends may be symbolic, as in 0 ≤ j < N."""

    lo: IntoExpr | None
    value: IntoExpr
    hi: IntoExpr | None

    def nonnegatives(self) -> Iterator[Expr]:
        """The expressions that are never negative by this fact."""
        if self.lo is not None:
            yield expr(self.value) - self.lo
        if self.hi is not None:
            yield expr(self.hi) - self.value - 1


def multiple_of(value: IntoExpr, divisor: int) -> Fact:
    """The fact that `divisor` > 0 divides `value`: value % divisor < 1."""
    return Fact(None, expr(value) % divisor, 1)


class Known:
    """Ranges and facts together; proofs are memoised, so make one and reuse it."""

    __slots__ = ("_divides", "_divisors", "_facts", "_failed", "_fixed", "_intervals", "_monomials", "_proofs", "_ranges")

    def __init__(self, ranges: Mapping[Sym, Range], facts: Iterable[Fact] = ()):
        self._ranges: dict[Sym, Interval] = {symbol: as_interval(ends) for symbol, ends in ranges.items()}
        self._facts = tuple(e for fact in facts for e in fact.nonnegatives() if not e.is_constant)
        for _ in range(_ROUNDS):
            for fact in self._facts:
                self._tighten(fact)
        multiples = [multiple for fact in self._facts for multiple in self._multiples(fact)]
        self._round(multiples)
        self._fixed = {symbol: lo for symbol, (lo, hi) in self._ranges.items() if lo == hi and isinstance(lo, int)}
        self._divides, self._divisors = bool(multiples), Divisors(multiples, self._fixed)
        if self._divides:
            self._facts = tuple(dict.fromkeys((*self._facts, *map(self._without_exact_floors, self._facts))))
        self._intervals: dict[Expr, Interval] = {}
        self._monomials: dict[Monomial, Interval] = {}
        self._failed: dict[Expr, int] = {}
        self._proofs: dict[Expr, bool] = {}

    def _tighten(self, fact: Expr) -> None:
        """Narrows the range of each symbol s of a fact c · s + rest ≥ 0: c · s is at least −(the maximum of rest)."""
        if fact.is_linear:
            self._tighten_sum(fact)
            return
        for monomial, coefficient in fact.terms:
            symbol = monomial[0]
            if len(monomial) > 1 or not isinstance(symbol, Sym):
                continue
            lo, hi = self._ranges.get(symbol, EVERYTHING)
            most = interval(fact - term(monomial, coefficient), self._ranges)[1]
            if not isinstance(most, int):
                continue
            if coefficient > 0:
                self._ranges[symbol] = max(lo, -(most // coefficient)), hi
            else:
                self._ranges[symbol] = lo, min(hi, most // -coefficient)

    def _tighten_sum(self, fact: Expr) -> None:
        """The same where each symbol occurs once: the maximum of all terms but one follows from that of the whole sum."""
        ranges = self._ranges
        parts = [(s, c, c * ranges.get(s, EVERYTHING)[c > 0]) for (s,), c in fact.terms if isinstance(s, Sym)]
        endless = [symbol for symbol, _, most in parts if isinstance(most, float)]
        total = fact.constant + sum([most for _, _, most in parts if isinstance(most, int)])
        for symbol, coefficient, most in parts if len(endless) < 2 else ():
            if endless and endless[0] is not symbol:
                continue
            rest = total - most if isinstance(most, int) else total
            lo, hi = ranges.get(symbol, EVERYTHING)
            ranges[symbol] = (max(lo, -(rest // coefficient)), hi) if coefficient > 0 else (lo, min(hi, rest // -coefficient))

    def also(self, facts: Iterable[Fact], ranges: Mapping[Sym, Range] | None = None) -> Known:
        """This with further `facts`; `ranges` are those of further symbols."""
        ends = {symbol: as_range(each) for symbol, each in self._ranges.items()}
        return Known({**ends, **(ranges or {})}, (*(Fact(0, each, None) for each in self._facts), *facts))

    def nonnegatives(self) -> Iterator[Expr]:
        """All that is known, as expressions that are never negative."""
        for symbol, (lo, hi) in self._ranges.items():
            if isinstance(lo, int):
                yield expr(symbol) - lo
            if isinstance(hi, int):
                yield hi - expr(symbol)
        yield from self._facts

    def _multiples(self, fact: Expr) -> Iterator[tuple[Expr, int]]:
        """Each `(x, d)` for which c · (x mod d) + rest ≥ 0 forces the remainder to 0: c < 0 and rest < −c."""
        for monomial, coefficient in fact.terms:
            atom = monomial[0]
            if coefficient > 0 or len(monomial) > 1 or not isinstance(atom, Mod) or not atom.den.is_constant:
                continue
            if interval(fact - term(monomial, coefficient), self._ranges)[1] < -coefficient:
                yield atom.num, atom.den.constant

    def _round(self, multiples: Iterable[tuple[Expr, int]]) -> None:
        """Rounds the ends of a symbol's range to multiples of d, where d divides the symbol."""
        for value, divisor in multiples:
            symbol = value.as_sym
            if symbol is not None:
                lo, hi = self._ranges.get(symbol, EVERYTHING)
                least = -(-lo // divisor) * divisor if isinstance(lo, int) else lo
                self._ranges[symbol] = least, hi // divisor * divisor if isinstance(hi, int) else hi

    @property
    def divides(self) -> bool:
        """Whether a fact states that something is a multiple of a number; without one, `multiple` proves little."""
        return self._divides

    @property
    def fixed(self) -> Mapping[Sym, int]:
        """The symbols with a single value."""
        return self._fixed

    def bounds(self, value: Expr) -> Range:
        """The range of `value` with constant ends; None where an end is unbounded."""
        return as_range(self.interval(value))

    def interval(self, value: Expr) -> Interval:
        """`bounds` with infinite ends."""
        found = self._intervals.get(value)
        if found is None:
            found = self._intervals[value] = interval(value, self._ranges)
        return found

    def nonnegative(self, value: Expr) -> bool:
        """Whether value ≥ 0 is proved, from ranges first and then by adding up facts."""
        if self.interval(value)[0] >= 0:
            return True
        if not self._facts or value.is_constant:
            return False
        if self._divides:
            value = self._without_exact_floors(value)
            value = value + max(0, self._divisors.of(value) - 1)  # a multiple of d that is more than −d is not negative
        found = self._proofs.get(value)
        if found is None:
            found = self._proofs[value] = self._prove(value, _DEPTH)
        return found

    def positive(self, value: Expr) -> bool:
        """Whether value ≥ 1 is proved; of a product, that each factor is."""
        if self.nonnegative(value - 1):
            return True
        ((monomial, times),) = value.terms if len(value.terms) == 1 and not value.constant else (((), 0),)
        return times > 0 and len(monomial) > 1 and all(self.nonnegative(term((each,)) - 1) for each in monomial)

    def quotient(self, value: Expr, den: Expr) -> int | None:
        """The integer q, if one is proved, with q · den ≤ value < (q + 1) · den at every point."""
        lo, hi = self.interval(value)
        if den.is_constant and isinstance(lo, int) and isinstance(hi, int):
            size = den.constant
            if size > 0 and lo // size == hi // size:
                return lo // size
        elif lo >= 0 and hi < self.interval(den)[0]:
            return 0
        if self._facts and self.nonnegative(value) and self.nonnegative(den - value - 1):
            return 0
        return None

    def multiple(self, value: Expr, of: int) -> bool:
        """Whether `of` > 0 is proved to divide `value`."""
        return self._divisors.of(value) % of == 0

    def _without_exact_floors(self, value: Expr) -> Expr:
        """A positive multiple of `value` without any ⌊x / d⌋ where d is known to divide x: d · ⌊x / d⌋ = x."""
        for monomial, coefficient in value.terms:
            for atom in monomial:
                if isinstance(atom, FloorDiv) and atom.den.is_constant and self.multiple(atom.num, atom.den.constant):
                    outer = term(without(monomial, (atom,)) or (), coefficient)
                    rest = value - term(monomial, coefficient)
                    return self._without_exact_floors(rest * atom.den + outer * atom.num)
        return value

    def _prove(self, value: Expr, depth: int) -> bool:
        """value ≥ 0, proved by n · value − k · fact ≥ 0 with n > 0, k ≥ 0; each step cancels a term that may be negative."""
        if self.interval(value)[0] >= 0:
            return True
        if depth <= self._failed.get(value, 0):  # failed before, with these facts in another order
            return False
        if any(self._prove(rest, depth - 1) for rest in self._reductions(value)):
            return True
        self._failed[value] = depth
        return False

    def _reductions(self, value: Expr) -> Iterator[Expr]:
        suspects = self._suspects(value)
        if not suspects:  # such as a + b - 1, where an index is less than a + b
            present = {monomial for monomial, _ in value.terms}
            lower = (fact for fact in self._facts if fact.constant < 0)
            yield from (value - fact for fact in lower if any(m in present and n > 0 for m, n in fact.terms))
        yield from self._over_floors(value, suspects)
        for monomial, coefficient in suspects:
            floor = monomial[0]
            if coefficient < 0 and len(monomial) == 1 and isinstance(floor, FloorDiv) and floor.den.is_constant:
                common = gcd(floor.den.constant, coefficient)  # d · ⌊x / d⌋ ≤ x
                slack = floor.num - term(monomial) * floor.den
                yield value * (floor.den.constant // common) - slack * (-coefficient // common)
            for fact in self._facts:
                for other, share in fact.terms:
                    rest = without(monomial, other) if share * coefficient > 0 else None
                    if rest is None or self._monomial(rest)[0] < 0:
                        continue
                    common = gcd(share, coefficient)
                    yield value * (abs(share) // common) - fact * term(rest, abs(coefficient) // common)

    def _over_floors(self, value: Expr, suspects: Collection[tuple[Monomial, int]]) -> Iterator[Expr]:
        """The value less a multiple of d · ⌊x / d⌋ − x + d − 1 ≥ 0, for each ⌊x / d⌋ in it whose −x cancels a suspect."""
        for monomial, coefficient in value.terms:
            floor = monomial[0]
            if coefficient < 0 or len(monomial) > 1 or not isinstance(floor, FloorDiv) or not floor.den.is_constant:
                continue
            size, inside = floor.den.constant, dict(floor.num.terms)
            if any(share * inside.get(each, 0) < 0 for each, share in suspects):
                common = gcd(size, coefficient)
                slack = term(monomial, size) - floor.num + (size - 1)
                yield value * (size // common) - slack * (coefficient // common)

    def _monomial(self, monomial: Monomial) -> Interval:
        """The interval of a product of atoms."""
        found = self._monomials.get(monomial)
        if found is None:
            found = self._monomials[monomial] = monomial_interval(monomial, self._ranges)
        return found

    def _suspects(self, value: Expr) -> list[tuple[Monomial, int]]:
        """Terms that may be negative. A term without a lower bound has to be cancelled in every proof, so it alone is tried.

        Of these, the longest product: a fact that cancels it may cancel shorter ones too, as n · (m − x − 1) cancels −n.
        """
        finite: list[tuple[Monomial, int]] = []
        endless: list[tuple[Monomial, int]] = []
        for monomial, coefficient in value.terms:
            lo, hi = self._monomial(monomial)
            least = coefficient * (lo if coefficient > 0 else hi)
            if isinstance(least, float):
                endless.append((monomial, coefficient))
            elif least < 0:
                finite.append((monomial, coefficient))
        return [max(endless, key=lambda each: len(each[0]))] if endless else finite
