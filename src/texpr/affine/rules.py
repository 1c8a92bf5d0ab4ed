"""The rules of the simplifier, each a theorem with its side condition.

A rule takes an atom (or a sum) and the `Known` facts, and gives an equal expression or `None`. Equal means: at every point
that obeys ranges and facts and at which the old expression is defined (no division by zero), the new one is defined and has
the same value. A side condition asks `Known` only. ⌊x / d⌋ and x mod d = x − d · ⌊x / d⌋ hold for all integers d ≠ 0,
negative ones included, unless a condition says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import gcd
from typing import TypeAlias, TypeVar, assert_never

from texpr.affine.expr import (
    ZERO,
    Atom,
    Expr,
    FloorDiv,
    Max,
    Min,
    Mod,
    Monomial,
    Sym,
    Xor,
    combination,
    expr,
    maximum,
    minimum,
    term,
    without,
    xor,
)
from texpr.affine.facts import Known

Factor: TypeAlias = tuple[Monomial, int]
"""A single term: its monomial and its coefficient, which is not zero."""

QuotientRule: TypeAlias = Callable[[Expr, Expr, Known], Expr | None]
"""A rule on ⌊num / den⌋ or on num mod den."""

SwizzleRule: TypeAlias = Callable[[Xor, Known], Expr | None]
"""A rule on the XOR of the low bits of a value."""

SumRule: TypeAlias = Callable[[Expr, Known], Expr | None]
"""A rule on a whole sum."""


# Floors


def floor_in_range(num: Expr, den: Expr, known: Known) -> Expr | None:
    """⌊x / d⌋ = q where q · d ≤ x < (q + 1) · d."""
    q = known.quotient(num, den)
    return None if q is None else expr(q)


def floor_leaves_multiples(num: Expr, den: Expr, known: Known) -> Expr | None:
    """⌊(d · q + r) / d⌋ = q + ⌊r / d⌋."""
    if den.is_constant:
        return None  # done by the constructor of the floor, as in the next rule
    q, r = _divide(num, den)
    return None if q is ZERO else q + r // den


def floor_drops_factor(num: Expr, den: Expr, known: Known) -> Expr | None:
    """⌊(g · a) / (g · k)⌋ = ⌊a / k⌋."""
    if den.is_constant:
        return None
    for g, k in _factors(num, den):
        a, r = _split(num, g)
        if r is ZERO:
            return a // k
    return None


def floor_drops_remainder(num: Expr, den: Expr, known: Known) -> Expr | None:
    """⌊(g · a + r) / (g · k)⌋ = ⌊(a + q) / k⌋ where q · g ≤ r < (q + 1) · g and k > 0."""
    for g, k in _factors(num, den):
        a, r = _split(num, g)
        q = known.quotient(r, term(*g))
        if q is not None and known.positive(k):
            return (a + q) // k
    return None


def floor_of_floor(num: Expr, den: Expr, known: Known) -> Expr | None:
    """⌊(⌊x / a⌋ + k) / b⌋ = ⌊(x + a · k) / (a · b)⌋ where b > 0."""
    for monomial, coefficient in num.terms:
        inner = monomial[0]
        if coefficient == 1 and len(monomial) == 1 and isinstance(inner, FloorDiv) and known.positive(den):
            k = num - term(monomial)
            return (inner.num + inner.den * k) // (inner.den * den)
    return None


def floor_of_mod(num: Expr, den: Expr, known: Known) -> Expr | None:
    """⌊(x mod (b · c)) / b⌋ = ⌊x / b⌋ mod c where c > 0."""
    inner = num.as_atom
    if isinstance(inner, Mod):
        c, r = _divide(inner.den, den)
        if r is ZERO and known.positive(c):
            return inner.num // den % c
    return None


def floor_leaves_known_multiples(num: Expr, den: Expr, known: Known) -> Expr | None:
    """⌊(m · x + r) / d⌋ = ⌊m / d⌋ · x + ⌊r / d⌋ where d divides m."""
    if not known.divides or not den.is_constant:
        return None
    multiples, rest = _known_multiples(num, den.constant, known)
    changed = sum((_exact_floor(each, den, known) for each in multiples), rest // den)
    return None if changed is num // den else changed


def floor_of_xor(num: Expr, den: Expr, known: Known) -> Expr | None:
    """⌊(xor(x, m, b) + y) / d⌋ = ⌊(x + y) / d⌋ where 2^b divides y and d > 0."""
    for atom, rest, size in _swizzles(num):
        if known.multiple(den, size) and known.positive(den) and known.multiple(rest, size):
            return (atom.value + rest) // den
    return None


def floor_goes_into_xor(num: Expr, den: Expr, known: Known) -> Expr | None:
    """⌊xor(x, m, b) / 2^k⌋ = xor(⌊x / 2^k⌋, ⌊m / 2^k⌋, b − k) where 0 ≤ k ≤ b."""
    atom = num.as_atom
    if isinstance(atom, Xor) and (k := _exponent(den)) is not None and k <= atom.bits:
        return xor(atom.value // den, atom.mask // den, atom.bits - k)
    return None


# Remainders


def mod_in_range(num: Expr, den: Expr, known: Known) -> Expr | None:
    """x mod d = x − q · d where q · d ≤ x < (q + 1) · d."""
    q = known.quotient(num, den)
    return None if q is None else num - den * q


def mod_drops_multiples(num: Expr, den: Expr, known: Known) -> Expr | None:
    """(d · q + r) mod d = r mod d."""
    if den.is_constant:
        return None  # done by the constructor of the remainder, as in the rule for factors
    q, r = _divide(num, den)
    return None if q is ZERO else r % den


def mod_takes_factor_out(num: Expr, den: Expr, known: Known) -> Expr | None:
    """(g · a) mod (g · k) = g · (a mod k)."""
    if den.is_constant:
        return None
    for g, k in _factors(num, den):
        a, r = _split(num, g)
        if r is ZERO:
            return term(*g) * (a % k)
    return None


def mod_takes_remainder_out(num: Expr, den: Expr, known: Known) -> Expr | None:
    """(g · a + r) mod (g · k) = g · ((a + q) mod k) + r − q · g where q · g ≤ r < (q + 1) · g and k > 0."""
    for g, k in _factors(num, den):
        a, r = _split(num, g)
        q = known.quotient(r, term(*g))
        if q is not None and known.positive(k):
            return term(*g) * ((a + q) % k) + r - term(*g) * q
    return None


def mod_of_mod(num: Expr, den: Expr, known: Known) -> Expr | None:
    """(c · (x mod (a · d)) + y) mod d = (c · x + y) mod d, and so for c · (x mod a) where d divides c · a."""
    for monomial, coefficient in num.terms:
        for atom in monomial:
            if isinstance(atom, Mod):
                outer = term(without(monomial, (atom,)) or (), coefficient)
                if _divide(outer * atom.den, den)[1] is ZERO:
                    return (num + outer * (atom.num - term((atom,)))) % den
    return None


def mod_drops_known_multiples(num: Expr, den: Expr, known: Known) -> Expr | None:
    """(m + r) mod d = r mod d where d divides m."""
    if not known.divides or not den.is_constant:
        return None
    multiples, rest = _known_multiples(num, den.constant, known)
    return rest % den if multiples else None


def mod_goes_into_xor(num: Expr, den: Expr, known: Known) -> Expr | None:
    """(xor(x, m, b) + y) mod d = xor((x + y) mod d, m, b) where 2^b divides y and d, and d > 0."""
    for atom, rest, size in _swizzles(num):
        if known.multiple(den, size) and known.positive(den) and known.multiple(rest, size):
            return xor((atom.value + rest) % den, atom.mask, atom.bits)
    return None


def mod_of_xor(num: Expr, den: Expr, known: Known) -> Expr | None:
    """xor(x, m, b) mod 2^k = xor(x mod 2^k, m, k) where 0 ≤ k ≤ b."""
    atom = num.as_atom
    if isinstance(atom, Xor) and (k := _exponent(den)) is not None and k <= atom.bits:
        return xor(atom.value % den, atom.mask, k)
    return None


# Swizzles


def xor_leaves_known_multiples(atom: Xor, known: Known) -> Expr | None:
    """xor(y + x, m, b) = y + xor(x, m, b) where 2^b divides y."""
    multiples, rest = _known_multiples(atom.value, 1 << atom.bits, known) if known.divides else ([], ZERO)
    return xor(rest, atom.mask, atom.bits) + (atom.value - rest) if multiples else None


def xor_drops_known_multiples(atom: Xor, known: Known) -> Expr | None:
    """xor(x, y + m, b) = xor(x, m, b) where 2^b divides y."""
    multiples, rest = _known_multiples(atom.mask, 1 << atom.bits, known) if known.divides else ([], ZERO)
    return xor(atom.value, rest, atom.bits) if multiples else None


def xor_takes_fewer_bits(atom: Xor, known: Known) -> Expr | None:
    """xor(x, m, b) = xor(x, m, k) where 0 ≤ m < 2^k and k ≤ b."""
    lo, hi = known.bounds(atom.mask)
    if lo is None or hi is None or lo < 0 or hi.bit_length() >= atom.bits:
        return None
    return xor(atom.value, atom.mask, hi.bit_length())


# Sums


def sum_joins_floor_and_mod(value: Expr, known: Known) -> Expr | None:
    """d · ⌊x / d⌋ + x mod d = x."""
    if len(value.terms) < 2:
        return None
    for outer, atom in _occurrences(value, Mod):
        whole = outer * atom.den * _simple_floor(atom, known)
        if _contains(value, whole):
            return value - whole + outer * (atom.num - term((atom,)))
    return None


def sum_makes_mod(value: Expr, known: Known) -> Expr | None:
    """x − d · ⌊x / d⌋ = x mod d."""
    if len(value.terms) < 2:
        return None
    for outer, atom in _occurrences(value, FloorDiv):
        multiple, rest = _divide(outer, atom.den)
        if rest is ZERO:
            changed = value + multiple * (atom.num - atom.den * term((atom,)) - term((Mod(atom.num, atom.den),)))
            if len(changed.terms) < len(value.terms):
                return changed
    return None


def sum_joins_digits(value: Expr, known: Known) -> Expr | None:
    """x mod a + a · (⌊x / a⌋ mod b) = x mod (a · b) where b > 0."""
    digits = list(_occurrences(value, Mod))
    for outer, low in digits if len(digits) > 1 else ():
        floor = _simple_floor(low, known)
        for weight, high in digits:
            if high.num is floor and weight is outer * low.den and known.positive(high.den):
                joined = low.num % (low.den * high.den)
                return value + outer * (joined - term((low,))) - weight * term((high,))
    return None


def sum_drops_exact_floor(value: Expr, known: Known) -> Expr | None:
    """d · ⌊x / d⌋ = x where d divides x."""
    if not known.divides:
        return None
    for outer, atom in _occurrences(value, FloorDiv):
        multiple, rest = _divide(outer, atom.den)
        if rest is ZERO and atom.den.is_constant and known.multiple(atom.num, atom.den.constant):
            return value + multiple * atom.num - outer * term((atom,))
    return None


def sum_joins_floor_and_xor(value: Expr, known: Known) -> Expr | None:
    """d · ⌊x / d⌋ + xor(x mod d, m, b) = xor(x, m, b) where 2^b divides d."""
    if len(value.terms) < 2:
        return None
    for outer, atom in _occurrences(value, Xor):
        low = atom.value.as_atom
        if isinstance(low, Mod) and known.multiple(low.den, 1 << atom.bits):
            whole = outer * low.den * _simple_floor(low, known)
            if _contains(value, whole):
                return value - whole + outer * (xor(low.num, atom.mask, atom.bits) - term((atom,)))
    return None


def sum_in_range(value: Expr, known: Known) -> Expr | None:
    """x = c where c ≤ x ≤ c."""
    lo, hi = known.bounds(value)
    return expr(lo) if lo is not None and lo == hi and not value.is_constant else None


# Symbols, minima, maxima


def symbol_is_fixed(symbol: Sym, known: Known) -> Expr | None:
    """i = c where c ≤ i ≤ c."""
    value = known.fixed.get(symbol)
    return None if value is None else expr(value)


def min_drops_greater(args: tuple[Expr, ...], known: Known) -> Expr | None:
    """min(a, b, …) = min(a, …) where b − a ≥ 0."""
    kept = _undominated(args, lambda dropped, other: known.nonnegative(dropped - other))
    return None if kept == args else minimum(*kept)


def max_drops_less(args: tuple[Expr, ...], known: Known) -> Expr | None:
    """max(a, b, …) = max(a, …) where a − b ≥ 0."""
    kept = _undominated(args, lambda dropped, other: known.nonnegative(other - dropped))
    return None if kept == args else maximum(*kept)


FLOOR_RULES: tuple[QuotientRule, ...] = (
    floor_in_range, floor_leaves_multiples, floor_leaves_known_multiples, floor_drops_factor, floor_drops_remainder,
    floor_of_floor, floor_of_mod, floor_of_xor, floor_goes_into_xor,
)  # fmt: skip
MOD_RULES: tuple[QuotientRule, ...] = (
    mod_in_range, mod_drops_multiples, mod_drops_known_multiples, mod_of_mod, mod_takes_factor_out, mod_takes_remainder_out,
    mod_goes_into_xor, mod_of_xor,
)  # fmt: skip
SWIZZLE_RULES: tuple[SwizzleRule, ...] = (xor_leaves_known_multiples, xor_drops_known_multiples, xor_takes_fewer_bits)
SUM_RULES: tuple[SumRule, ...] = (
    sum_drops_exact_floor, sum_joins_floor_and_mod, sum_joins_floor_and_xor, sum_makes_mod, sum_joins_digits, sum_in_range,
)  # fmt: skip


def apply_to_atom(atom: Atom, known: Known) -> Expr | None:
    """An atom with simplified operands, rewritten by the first rule that applies; None where none does."""
    match atom:
        case Sym():
            return symbol_is_fixed(atom, known)
        case FloorDiv():
            return _first(FLOOR_RULES, atom.num, atom.den, known)
        case Mod():
            return _first(MOD_RULES, atom.num, atom.den, known)
        case Min():
            return min_drops_greater(atom.args, known)
        case Max():
            return max_drops_less(atom.args, known)
        case Xor():
            return next((changed for rule in SWIZZLE_RULES if (changed := rule(atom, known)) is not None), None)
        case _:
            assert_never(atom)


def _first(rules: tuple[QuotientRule, ...], num: Expr, den: Expr, known: Known) -> Expr | None:
    for rule in rules:
        changed = rule(num, den, known)
        if changed is not None:
            return changed
    return None


def apply_to_sum(value: Expr, known: Known) -> Expr | None:
    """A sum with simplified atoms, rewritten by the first rule that applies; None where none does."""
    for rule in SUM_RULES:
        changed = rule(value, known)
        if changed is not None:
            return changed
    return None


def _undominated(args: tuple[Expr, ...], dominated: Callable[[Expr, Expr], bool]) -> tuple[Expr, ...]:
    kept = list(args)
    for arg in args:
        if any(other is not arg and dominated(arg, other) for other in kept):
            kept.remove(arg)
    return tuple(kept)


def _size(value: Expr) -> int:
    return len(value.terms) + (value.constant != 0)


def _divide(num: Expr, den: Expr) -> tuple[Expr, Expr]:
    """`(q, r)` with num = den · q + r, where r has fewer terms than num unless q is 0."""
    if len(den.terms) + (den.constant != 0) == 1:
        return _split(num, den.terms[0] if den.terms else ((), den.constant))
    lead, size = max(den.terms, key=lambda each: len(each[0]))
    q, r = ZERO, num
    for monomial, coefficient in num.terms:
        rest = without(monomial, lead) if coefficient % size == 0 else None
        if rest is not None:
            share = term(rest, coefficient // size)
            smaller = r - share * den
            if _size(smaller) < _size(r):
                q, r = q + share, smaller
    return q, r


def _split(num: Expr, factor: Factor) -> tuple[Expr, Expr]:
    """`(a, r)` with num = factor · a + r, where no term of r is a multiple of the factor."""
    atoms, size = factor
    whole = not atoms and num.constant % size == 0
    constant = num.constant // size if whole else 0
    multiples: list[Factor] = []
    others: list[Factor] = []
    for monomial, coefficient in num.terms:
        rest = without(monomial, atoms) if coefficient % size == 0 else None
        if rest is None:
            others.append((monomial, coefficient))
        elif rest:
            multiples.append((rest, coefficient // size))
        else:
            constant += coefficient // size
    return combination(constant, multiples), combination(0 if whole else num.constant, others)


def _factors(num: Expr, den: Expr) -> Iterator[tuple[Factor, Expr]]:
    """Each `(g, k)` with den = g · k where g is the greatest common factor of den and of a term of num, and is not 1."""
    if len(den.terms) + (den.constant != 0) != 1:
        return
    atoms, size = den.terms[0] if den.terms else ((), den.constant)
    seen: set[Factor] = set()
    for monomial, coefficient in num.terms:
        common = _common(monomial, atoms) if atoms else ()
        factor = common, gcd(coefficient, size)
        if factor != ((), 1) and factor not in seen:
            seen.add(factor)
            yield factor, term(without(atoms, common) or (), size // factor[1])


def _common(a: Monomial, b: Monomial) -> Monomial:
    left = list(b)
    shared: list[Atom] = []
    for atom in a:
        if atom in left:
            left.remove(atom)
            shared.append(atom)
    return tuple(shared)


def _known_multiples(value: Expr, of: int, known: Known) -> tuple[list[Expr], Expr]:
    """The terms that are known to be multiples of `of`, and the rest of the sum."""
    parts = [term(monomial, coefficient) for monomial, coefficient in value.terms]
    multiples = [part for part in parts if known.multiple(part, of)]
    return multiples, value - sum(multiples, ZERO)


def _exact_floor(multiple: Expr, den: Expr, known: Known) -> Expr:
    """⌊c · m · x / d⌋ of one term, as (c / g) · ⌊m / (d / g)⌋ · x for the first atom m that d / g divides, g = gcd(c, d)."""
    ((monomial, coefficient),) = multiple.terms
    common = gcd(coefficient, den.constant)
    for atom in monomial:
        factor = term((atom,))
        if known.multiple(factor, den.constant // common):
            return factor // (den.constant // common) * term(without(monomial, (atom,)) or (), coefficient // common)
    return multiple // den


def _swizzles(value: Expr) -> list[tuple[Xor, Expr, int]]:
    """Each swizzle term of the sum, with the rest of the sum and the block size of the swizzle."""
    found: list[tuple[Xor, Expr, int]] = []
    for monomial, coefficient in value.terms:
        atom = monomial[0]
        if coefficient == 1 and len(monomial) == 1 and isinstance(atom, Xor):
            found.append((atom, value - term(monomial), 1 << atom.bits))
    return found


def _exponent(value: Expr) -> int | None:
    """k where the value is the constant 2^k."""
    power = value.constant
    return power.bit_length() - 1 if value.is_constant and power > 0 and power & (power - 1) == 0 else None


_Kind = TypeVar("_Kind", FloorDiv, Mod, Xor)


def _occurrences(value: Expr, kind: type[_Kind]) -> Iterator[tuple[Expr, _Kind]]:
    """Each atom of a kind, with its cofactor."""
    for monomial, coefficient in value.terms:
        for atom in monomial:
            if isinstance(atom, kind):
                yield term(without(monomial, (atom,)) or (), coefficient), atom


def _simple_floor(atom: Mod, known: Known) -> Expr:
    """⌊x / d⌋ for an atom x mod d, as the simplifier would write it."""
    changed = _first(FLOOR_RULES, atom.num, atom.den, known)
    return atom.num // atom.den if changed is None else changed


def _contains(value: Expr, part: Expr) -> bool:
    """Whether every term of `part` is a term of `value`."""
    return all(each in value.terms for each in part.terms)
