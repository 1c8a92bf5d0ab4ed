"""The notation of IterDomains, their extents and the comparisons on their indices in pictures."""

from __future__ import annotations

from texpr.affine.expr import Atom, Expr, FloorDiv, Monomial, term
from texpr.domain.iterdomain import Bound, IterDomain, Side


def label(domain: IterDomain) -> str:
    """The name, and the extent in braces."""
    return f"{domain.sym}{{{extent_text(domain.extent)}}}"


def bound_text(bound: Bound) -> str:
    """The comparison."""
    domain = bound.domain
    return f"0 <= {domain.sym}" if bound.side is Side.LOW else f"{domain.sym} < {extent_text(domain.extent)}"


def extent_text(extent: Expr) -> str:
    """Products with quotients as ⌊n/6⌋, and as ⌈n/6⌉ for what is `-((-n) / 6)` or `(n + 5) / 6` in the canonical form.

    A number beside a single quotient goes into it: `2 - (7 - n) / 10` is ⌈(n + 13)/10⌉.
    """
    match extent.terms:
        case (((FloorDiv(num, den),), -1),) if extent.constant and den.is_constant:
            return f"⌈({extent.constant * den.constant - num})/{den}⌉"
        case (((FloorDiv(num, den),), 1),) if extent.constant and den.is_constant:
            return f"⌊({num + extent.constant * den.constant})/{den}⌋"
        case _:
            pass
    if extent.constant or len(extent.terms) != 1:
        return str(extent)
    ((monomial, coefficient),) = extent.terms
    if _signed(monomial, coefficient) < 0:
        return str(extent)
    factors = map(_factor, monomial)
    return " * ".join(factors if abs(coefficient) == 1 else [str(abs(coefficient)), *factors])


def _signed(monomial: Monomial, coefficient: int) -> int:
    """The coefficient, if quotients of negative values are written as negated ceilings."""
    turned = sum(isinstance(atom, FloorDiv) and _is_negative(atom.num) for atom in monomial)
    return -coefficient if turned % 2 else coefficient


def _is_negative(value: Expr) -> bool:
    """Whether every term of `value` is negative."""
    return value.constant <= 0 and all(_signed(monomial, coefficient) < 0 for monomial, coefficient in value.terms)


def _factor(atom: Atom) -> str:
    match atom:
        case FloorDiv(num, den) if _is_negative(num):
            return f"⌈{_quotient(-num, den)}⌉"
        case FloorDiv(num, den) if den.is_constant and num.constant == den.constant - 1:
            return f"⌈{_quotient(num - num.constant, den)}⌉"
        case FloorDiv(num, den):
            return f"⌊{_quotient(num, den)}⌋"
        case _:
            return str(term((atom,)))


def _quotient(num: Expr, den: Expr) -> str:
    return f"{_operand(num)}/{_operand(den)}"


def _operand(value: Expr) -> str:
    """`value`, in parentheses unless it is a name, a number or a rounded quotient."""
    text = extent_text(value)
    is_one = value.is_constant or value.as_sym is not None or (text[0] in "⌈⌊" and text[-1] in "⌉⌋" and " * " not in text)
    return text if is_one else f"({text})"
