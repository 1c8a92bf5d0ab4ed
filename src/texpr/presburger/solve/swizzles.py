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

from texpr.affine.expr import ZERO, Expr, Mod, Sym, Xor, children, expr, term
from texpr.affine.simplify import Simplifier
from texpr.presburger.formula import And, Eq, Formula, Ge, Or, conj, disj, leaves, mapped, negate, rename
from texpr.presburger.solve.ranges import ranges_of, simplifier
from texpr.presburger.solve.relaxed import flat

MOST_TERMS = 4
"""The most terms of an equation by which operands are compared."""


def in_bits(facts: Sequence[Formula]) -> Sequence[Formula]:
    """`facts` with equalities of swizzles, and their negations, decomposed."""
    return _in_bits(tuple(facts))[0] if any(map(_is_swizzled, facts)) else facts


def origins(facts: Sequence[Formula], needed: Sequence[int]) -> tuple[int, ...]:
    """The positions in `facts` of those that decomposed ones come from, and of all that are used to decompose any."""
    if not any(map(_is_swizzled, facts)):
        return tuple(needed)
    _, come_from = _in_bits(tuple(facts))
    used = (at for at, fact in enumerate(facts) if not isinstance(fact, Or))
    return tuple(sorted({*used, *(come_from[at] for at in needed)}))


@lru_cache(maxsize=1 << 10)
def _in_bits(facts: tuple[Formula, ...]) -> tuple[Sequence[Formula], Sequence[int]]:
    """The decomposed facts, and the positions of those that they come from."""
    every = [(part, at) for at, fact in enumerate(facts) for part in flat((fact,))]
    same = _equal([fact for fact, _ in every])
    plain = simplifier(frozenset(ranges_of([fact for fact, _ in every], same).items()))
    if plain is None:
        return facts, range(len(facts))
    try:
        parts = [(_apart(mapped(rename(f, same), plain), plain) if _is_swizzled(f) else f, at) for f, at in every]
        apart = [(part, at) for fact, at in parts for part in flat((fact,))]
        return _joined([fact for fact, _ in apart], plain), [at for _, at in apart]
    except ZeroDivisionError:
        return facts, range(len(facts))


def _joined(facts: list[Formula], plain: Simplifier) -> list[Formula]:
    """The same with x = x' for x mod d = x' mod d where ⌊x / d⌋ = ⌊x' / d⌋ is said or follows, from the highest digit on."""
    left = {number: pair for number, fact in enumerate(facts) if (pair := _digits(fact)) is not None}
    equal = {pair for one, other in left.values() for pair in ((one, other), (other, one))}
    for _ in range(len(left)):
        for at, (one, other) in [*left.items()]:
            low, high = one.as_atom, other.as_atom
            if not isinstance(low, Mod) or not isinstance(high, Mod) or low.den is not high.den or not low.den.is_constant:
                continue
            if (plain(low.num // low.den), plain(high.num // high.den)) in equal:
                facts[at] = Eq(low.num - high.num)
                left[at] = low.num, high.num
                equal |= {(low.num, high.num), (high.num, low.num)}
    return facts


def _digits(fact: Formula) -> tuple[Expr, Expr] | None:
    """The sides of an equation between two terms."""
    if not isinstance(fact, Eq) or fact.expr.constant or len(fact.expr.terms) != 2:
        return None
    (one, c), (other, d) = fact.expr.terms
    return (term(one), term(other)) if c == -d else None


@lru_cache(maxsize=1 << 14)
def _is_swizzled(fact: Formula) -> bool:
    return any(map(_has_swizzle, leaves(fact)))


@lru_cache(maxsize=1 << 14)
def _has_swizzle(value: Expr) -> bool:
    atoms = [atom for monomial, _ in value.terms for atom in monomial]
    return any(isinstance(atom, Xor) or any(map(_has_swizzle, children(atom))) for atom in atoms if not isinstance(atom, Sym))


def _equal(facts: Sequence[Formula]) -> dict[Sym, Expr]:
    """Symbols that short equations define, by others."""
    found: dict[Sym, Expr] = {}
    for fact in facts:
        if isinstance(fact, Eq) and 2 <= len(fact.expr.terms) <= MOST_TERMS and fact.expr.is_linear:
            value = fact.expr.substitute(found)
            for (atom, *_), c in value.terms:
                if isinstance(atom, Sym) and abs(c) == 1:
                    meaning = (value - term((atom,), c)) * -c
                    found = {sym: own.substitute({atom: meaning}) for sym, own in found.items()}
                    found[atom] = meaning
                    break
    return found


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
    if one.mask is other.mask or plain((one.mask - other.mask) % size) is ZERO:
        return [Eq(one.value - other.value)]
    if one.value is other.value:
        return [Eq(plain(one.mask % size - other.mask % size))]
    four = one.value, one.mask, other.value, other.mask
    bits = [plain(sum((each // (1 << k) for each in four), expr(0)) % 2) for k in range(one.bits)]
    return [Eq(plain(one.value // size - other.value // size)), *map(Eq, bits)]
