"""How pictures write IterDomains and their extents."""

from __future__ import annotations

from texpr.affine.expr import Expr, FloorDiv
from texpr.domain.iterdomain import IterDomain


def label(domain: IterDomain) -> str:
    """The name, and the extent in braces; a division that rounds up is written as one."""
    return f"{domain.sym}{{{extent_text(domain.extent)}}}"


def extent_text(extent: Expr) -> str:
    """`⌈n/6⌉` for what is `-((-n) / 6)` in the canonical form."""
    if not extent.constant and len(extent.terms) == 1:
        ((monomial, coefficient),) = extent.terms
        if coefficient == -1 and len(monomial) == 1 and isinstance(monomial[0], FloorDiv):
            part = monomial[0]
            up, down = extent_text(-part.num), extent_text(part.den)
            return f"⌈{up if _is_one_word(up) else f'({up})'}/{down if _is_one_word(down) else f'({down})'}⌉"
    return str(extent)


def _is_one_word(text: str) -> bool:
    return text.isalnum() or (text.startswith("⌈") and text.endswith("⌉") and text.count("⌈") == 1)
