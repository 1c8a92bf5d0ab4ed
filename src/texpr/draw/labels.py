"""How pictures write IterDomains and their extents."""

from __future__ import annotations

from texpr.affine.expr import Expr, FloorDiv
from texpr.domain.iterdomain import IterDomain


def label(domain: IterDomain) -> str:
    """The name, and the extent in braces; a division that rounds up is written as one."""
    return f"{domain.sym}{{{extent_text(domain.extent)}}}"


def extent_text(extent: Expr) -> str:
    """`⌈n/6⌉` for what is `-((-n) / 6)` or `(n + 5) / 6` in the canonical form."""
    match extent.terms:
        case (((FloorDiv() as part,), -1),) if not extent.constant:
            return _rounded_up(-part.num, part.den)
        case (((FloorDiv() as part,), 1),) if not extent.constant and _rounds_up(part):
            return _rounded_up(part.num - (part.den - 1), part.den)
        case _:
            return str(extent)


def _rounds_up(part: FloorDiv) -> bool:
    """Whether ⌊num / den⌋ is written with num = what is rounded up + den − 1."""
    return part.den.is_constant and part.num.constant == part.den.constant - 1


def _rounded_up(num: Expr, den: Expr) -> str:
    return f"⌈{_operand(num)}/{_operand(den)}⌉"


def _operand(value: Expr) -> str:
    """`value`, in parentheses where it is more than a name, a number or a rounded quotient."""
    text = extent_text(value)
    is_one = value.is_constant or value.as_sym is not None or text.startswith("⌈")
    return text if is_one else f"({text})"
