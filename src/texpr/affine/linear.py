"""Expressions as linear forms over given symbols."""

from __future__ import annotations

from collections.abc import Collection

from texpr.affine.expr import ZERO, Atom, Expr, FloorDiv, Mod, Sym, Xor, children, term, without


def coefficients(value: Expr, syms: Collection[Sym]) -> tuple[dict[Sym, Expr], Expr] | None:
    """`(c, rest)` with value = Σ c[s] · s + rest, where neither c nor rest contains any of `syms`; `None` where it is not
    linear.

    `c` has every symbol of `syms`, in their order, with zero for those that do not occur. Coefficients may be symbolic: `i *
    N + j` is linear over i and j, with coefficients N and 1.
    """
    chosen = frozenset(syms)
    found = dict.fromkeys(syms, ZERO)
    rest = value
    for monomial, coefficient in value.terms:
        inside = [atom for atom in monomial if _names_any(atom, chosen)]
        if not inside:
            continue
        (first, *others) = inside
        if others or not isinstance(first, Sym):
            return None
        found[first] += term(without(monomial, (first,)) or (), coefficient)
        rest -= term(monomial, coefficient)
    return found, rest


def integer_coefficients(value: Expr, syms: Collection[Sym]) -> tuple[dict[Sym, int], Expr] | None:
    """`coefficients` where all are constant integers; `None` otherwise."""
    linear = coefficients(value, syms)
    if linear is None or not all(c.is_constant for c in linear[0].values()):
        return None
    return {symbol: c.constant for symbol, c in linear[0].items()}, linear[1]


def is_affine(value: Expr) -> bool:
    """Whether `value` is quasi-affine: no product of symbols, and no division by anything but a constant."""
    return all(len(monomial) == 1 and all(map(_is_affine_atom, monomial)) for monomial, _ in value.terms)


def _is_affine_atom(atom: Atom) -> bool:
    if isinstance(atom, FloorDiv | Mod) and not atom.den.is_constant:
        return False
    return all(map(is_affine, children(atom)))


def bitwise(atom: Xor) -> Expr:
    """The atom without XOR: v + Σ 2^b · ((v_b ⊕ m_b) − v_b) over its bits b, where x_b = ⌊x / 2^b⌋ − 2 · ⌊x / 2^(b+1)⌋.

    For bits, p ⊕ q = p + q − 2 · ⌊(p + q) / 2⌋; a constant q needs no floor. Adjacent bits share their floors.
    """
    total = atom.value
    for weight in (1 << b for b in range(atom.bits)):
        p, q = (each // weight - 2 * (each // (2 * weight)) for each in (atom.value, atom.mask))
        total += weight * (q - 2 * (p * q if q.is_constant else (p + q) // 2))
    return total


def _names_any(atom: Atom, chosen: frozenset[Sym]) -> bool:
    if isinstance(atom, Sym):
        return atom in chosen
    return any(not part.syms().isdisjoint(chosen) for part in children(atom))


def divided(product: Expr, factor: Expr) -> Expr | None:
    """product / factor, where the division is exact by its terms; None otherwise."""
    for monomial, coefficient in factor.terms:
        found = ZERO
        for whole, number in product.terms:
            rest = without(whole, monomial)
            if rest is not None and number % coefficient == 0:
                found = found + term(rest, number // coefficient)
        if factor * found is product:
            return found
    return None
