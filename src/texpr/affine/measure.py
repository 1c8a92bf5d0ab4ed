"""The size of an index expression as a tree; shared subexpressions are visited once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod

from texpr.affine.atoms import children
from texpr.affine.expr import Expr, Sym


@lru_cache(maxsize=1 << 16)
def nodes(value: Expr) -> int:
    """The number of sums and factors in `value`, each counted as often as it is written."""
    return 1 + sum(1 + sum(map(nodes, children(atom))) for monomial, _ in value.terms for atom in monomial)


def replaced(value: Expr, parts: Mapping[Sym, int]) -> int:
    """An estimate of `nodes` after symbols are replaced by `parts` parts each and products are expanded."""
    factors = (
        [parts.get(a, 1) if isinstance(a, Sym) else 1 + sum(replaced(c, parts) for c in children(a)) for a in monomial]
        for monomial, _ in value.terms
    )
    return 1 + sum(prod(each) + len(each) for each in factors)
