"""Sizes and points for trials, where no proof or refutation is found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from texpr.affine.expr import Expr, Sym
from texpr.affine.facts import Known
from texpr.domain.iterdomain import IterDomain

POINTS = 1 << 14
"""The number of points tried at one choice of sizes."""

_VALUES = (2, 3, 4, 1, 5, 6, 8, 12, 16)


def trial_sizes(
    values: Iterable[Expr], apart: Iterable[Sym], known: Known, tried: Sequence[int] = _VALUES
) -> Iterator[dict[Sym, int]]:
    """Some sizes that `known` admits, for the symbols of `values` other than `apart`; a single empty choice if there are
    none."""
    facts = list(known.nonnegatives())
    loops = set(apart)
    names = {name for each in values for name in each.syms()} - loops
    related = names | {name for each in facts for name in each.syms()} - loops
    ordered = sorted(related, key=str)
    for at in range(len(tried)) if names else ():
        for step in (0, 1)[: len(ordered)]:  # all sizes equal first, then all different
            sizes = {name: tried[(at + step * k) % len(tried)] for k, name in enumerate(ordered)}
            if all(_admits(fact, sizes) for fact in facts):
                yield {name: value for name, value in sizes.items() if name in names}
    if not names:
        yield {}


def _admits(fact: Expr, sizes: Mapping[Sym, int]) -> bool:
    if not fact.syms() <= sizes.keys():
        return True  # it mentions a loop
    try:
        return fact.evaluate(sizes) >= 0
    except ZeroDivisionError:
        return False


def points(domains: Sequence[IterDomain], sizes: Mapping[Sym, int]) -> Iterator[dict[Sym, int]] | None:
    """Every index of `domains`, with `sizes`; None where there are too many."""
    extents = [max(0, domain.extent.evaluate(sizes)) for domain in domains]
    if prod(extents) > POINTS:
        return None
    names = [domain.sym for domain in domains]
    return ({**sizes, **dict(zip(names, at, strict=True))} for at in product(*map(range, extents)))
