"""Equalities of swizzles, bit by bit: as sums of floors they hide from elimination what is equal.

    xor(v, m, b) = xor(v', m, b)    ⇔   v = v'                                   a swizzle by one mask is one-to-one
    xor(v, m, b) = xor(v, m', b)    ⇔   m mod 2^b = m' mod 2^b
    xor(v, m, b) = xor(v', m', b)   ⇔   ⌊v / 2^b⌋ = ⌊v' / 2^b⌋, and v_k ⊕ m_k = v'_k ⊕ m'_k for each bit k < b

Operands are compared after substitution of equal symbols, and simplified by the ranges of symbols. The facts that say so
remain, so the conjunction has the same points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import inf

from texpr.affine.expr import Expr, Sym, Xor, children, expr, term
from texpr.affine.facts import Known
from texpr.affine.ranges import EVERYTHING, Interval, as_range
from texpr.affine.simplify import Simplifier
from texpr.presburger.formula import And, Eq, Formula, Ge, Or, conj, disj, leaves, mapped, negate, rename
from texpr.presburger.solve.relaxed import flat


def in_bits(facts: Sequence[Formula]) -> Sequence[Formula]:
    """`facts` with equalities of swizzles, and their negations, decomposed."""
    if not any(map(_is_swizzled, facts)):
        return facts
    return _in_bits(tuple(facts))


@lru_cache(maxsize=1 << 10)
def _in_bits(facts: tuple[Formula, ...]) -> Sequence[Formula]:
    every = list(flat(facts))
    same = _equal(every)
    plain = _simplifier(frozenset(_ranges(every, same).items()))
    if plain is None:
        return facts
    try:
        return [_apart(mapped(rename(fact, same), plain), plain) if _is_swizzled(fact) else fact for fact in every]
    except ZeroDivisionError:
        return facts


@lru_cache(maxsize=1 << 14)
def _is_swizzled(fact: Formula) -> bool:
    return any(map(_has_swizzle, leaves(fact)))


@lru_cache(maxsize=1 << 14)
def _has_swizzle(value: Expr) -> bool:
    atoms = [atom for monomial, _ in value.terms for atom in monomial]
    return any(isinstance(atom, Xor) or any(map(_has_swizzle, children(atom))) for atom in atoms if not isinstance(atom, Sym))


def _equal(facts: Sequence[Formula]) -> dict[Sym, Expr]:
    """Symbols that equations between two symbols define, by others."""
    found: dict[Sym, Expr] = {}
    for fact in facts:
        if isinstance(fact, Eq) and len(fact.expr.terms) == 2 and fact.expr.is_linear:
            value = fact.expr.substitute(found)
            for (atom, *_), c in value.terms:
                if isinstance(atom, Sym) and abs(c) == 1:
                    meaning = (value - term((atom,), c)) * -c
                    found = {sym: own.substitute({atom: meaning}) for sym, own in found.items()}
                    found[atom] = meaning
                    break
    return found


def _ranges(facts: Sequence[Formula], same: dict[Sym, Expr]) -> dict[Sym, Interval]:
    """What facts about one symbol each say of it, or of the one that it equals."""
    found: dict[Sym, Interval] = {}
    for fact in facts:
        if isinstance(fact, Ge) and len(fact.expr.terms) == 1 and fact.expr.is_linear:
            value = fact.expr.substitute(same)
            if len(value.terms) == 1:
                (((sym, *_), by),) = value.terms
                if isinstance(sym, Sym):
                    low, high = found.get(sym, EVERYTHING)
                    end = -(value.constant // by) if by > 0 else value.constant // -by
                    found[sym] = (max(low, end), high) if by > 0 else (low, min(high, end))
    return found


@lru_cache(maxsize=1 << 8)
def _simplifier(ranges: frozenset[tuple[Sym, Interval]]) -> Simplifier | None:
    """One that knows these ranges; None where one of them is empty."""
    known = {sym: as_range(ends) for sym, ends in ranges if ends != (-inf, inf)}
    return None if any(low > high for _, (low, high) in ranges) else Simplifier(Known(known))


def _apart(formula: Formula, plain: Simplifier) -> Formula:
    match formula:
        case Ge():
            return formula
        case Eq(value):
            return conj(_same(value, plain) or (formula,))
        case And(parts):
            return conj(_apart(part, plain) for part in parts)
        case Or(parts):
            return disj(_unequal(parts, plain))


def _unequal(parts: Sequence[Formula], plain: Simplifier) -> Iterator[Formula]:
    """Alternatives, two of which say that two swizzles differ."""
    left = dict.fromkeys(parts)
    for part in parts:
        if part not in left:
            continue
        if isinstance(part, Ge) and (other := Ge(-part.expr - 2)) in left and other is not part:
            found = _same(part.expr + 1, plain)
            if found is not None:
                del left[other]
                yield negate(conj(found))
                continue
        yield _apart(part, plain)


def _same(value: Expr, plain: Simplifier) -> list[Formula] | None:
    """The equations that say that `value` = 0, the difference of two swizzles; None where it is another one."""
    if value.constant or len(value.terms) != 2:
        return None
    ((one, *more), c), ((other, *others), d) = value.terms
    if more or others or c != -d or not isinstance(one, Xor) or not isinstance(other, Xor) or one.bits != other.bits:
        return None
    size = 1 << one.bits
    if one.mask is other.mask:
        return [Eq(one.value - other.value)]
    if one.value is other.value:
        return [Eq(plain(one.mask % size - other.mask % size))]
    four = one.value, one.mask, other.value, other.mask
    bits = [plain(sum((each // (1 << k) for each in four), expr(0)) % 2) for k in range(one.bits)]
    return [Eq(plain(one.value // size - other.value // size)), *map(Eq, bits)]
