"""How large an index expression is, written out as a tree; what several parts share is looked at once."""

from __future__ import annotations

from functools import lru_cache

from texpr.affine.atoms import children
from texpr.affine.expr import Expr


@lru_cache(maxsize=1 << 16)
def nodes(value: Expr) -> int:
    """The sums and the factors in `value`, each as often as it is written."""
    return 1 + sum(1 + sum(map(nodes, children(atom))) for monomial, _ in value.terms for atom in monomial)
