"""Recast: the same bytes as elements of another width.

upcast(L, n)     n neighbours become one element: n | size, and each group of n is whole
downcast(L, n)   each element becomes n neighbours
"""

from __future__ import annotations

from math import gcd

from texpr.affine.facts import Known
from texpr.layout.basis import scaled
from texpr.layout.error import LayoutError
from texpr.layout.inttuple import Int, times
from texpr.layout.layout import Layout, Mode
from texpr.layout.proof import NOTHING, Prover


def recast(layout: Layout, old_bits: int, new_bits: int, known: Known = NOTHING) -> Layout:
    """The layout of elements of `new_bits` in the memory of those of `old_bits`. Raises LayoutError as the two below do."""
    if old_bits < 1 or new_bits < 1:
        raise LayoutError("recast", f"from {old_bits} to {new_bits} bits: elements have at least one")
    common = gcd(old_bits, new_bits)
    return upcast(downcast(layout, old_bits // common, known), new_bits // common, known)


def upcast(layout: Layout, n: int, known: Known = NOTHING) -> Layout:
    """U whose value v stands for the values n · v, …, n · v + n − 1 of `layout`, which must have all or none of them.

    A mode of stride d with n | d keeps its size. One with d | n is divided by n / d, or vanishes if it is smaller. Raises
    LayoutError where neither holds, or where a group is incomplete: the divisors must multiply to n.
    """
    prover = _checked(layout, n, "upcast", known)
    size, reach = 1, 0
    found: list[Mode] = []
    for leaf in layout.flat:
        if prover.divides(n, leaf.step):
            found.append(Mode(leaf.size, prover.quotient(leaf.step, n)))
            continue
        share = _share(leaf.size, leaf.step, n, prover)
        if share is None or not isinstance(leaf.step, int):
            raise LayoutError(
                "upcast",
                f"{leaf} is not cut by groups of {n} evenly, or not proved to be",
                help=f"its stride must be a multiple of {n}, or divide {n} and fill it",
            )
        size, reach = size * share, reach + (share - 1) * leaf.step
        rest = prover.quotient(leaf.size, share)
        found.append(Mode(rest, 1 if rest != 1 else 0))
    if reach != n - 1 or size != n:
        raise LayoutError(
            "upcast",
            f"{n} neighbours of {layout} do not make whole elements: its strides below {n} lead to {size} of them",
            help=f"a mode of stride 1 whose size is a multiple of {n} would do",
        )
    return layout.with_leaves(found)


def _share(size: Int, step: Int, n: int, prover: Prover) -> int | None:
    """How many of `size` steps lie in one group of n; `None` where groups split the mode unevenly."""
    if not isinstance(step, int) or n % step:
        return None
    if prover.divides(n // step, size):
        return n // step
    return size if isinstance(size, int) and size < n // step else None


def downcast(layout: Layout, n: int, known: Known = NOTHING) -> Layout:
    """D that has the values n · v, …, n · v + n − 1 for each value v of `layout`, along its mode of stride 1.

    Raises LayoutError where there is no such mode, or more than one.
    """
    _checked(layout, n, "downcast", known)
    if n == 1:
        return layout
    units = [at for at, mode in enumerate(layout.flat) if mode.stride == 1]
    units = [at for at in units if layout.flat[at].size != 1] or units[:1]
    if len(units) != 1:
        count = f"{len(units)} modes" if units else "no mode"
        raise LayoutError("downcast", f"{layout} has {count} of stride 1 to hold {n} parts", help="append 1:1, if it has none")
    return layout.with_leaves(
        Mode(times(mode.size, n), 1) if at == units[0] else Mode(mode.size, scaled(mode.stride, n))
        for at, mode in enumerate(layout.flat)
    )


def _checked(layout: Layout, n: int, operation: str, known: Known) -> Prover:
    if n < 1:
        raise LayoutError(operation, f"by {n}, which is not positive")
    if not layout.is_integral:
        raise LayoutError(operation, f"{layout} has basis strides")
    prover = Prover(known, layout)
    worst = next((mode for mode in layout.flat if not prover.at_most(0, mode.step)), None)
    if worst is not None:
        raise LayoutError(operation, f"the stride of {worst} in {layout} is negative, or may be")
    return prover
