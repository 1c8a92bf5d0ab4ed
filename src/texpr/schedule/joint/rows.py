"""Whether rows that an instruction moves are rows of memory.

As[t % 3, i, xor(2 * kk + k / 8, i, 3), k % 8] along k, 8 elements at a time      →      they are, whatever the swizzle
"""

from __future__ import annotations

from collections.abc import Mapping

from texpr.affine.expr import ZERO, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.ranges import Range
from texpr.affine.simplify import Simplifier
from texpr.ir.value import Load
from texpr.support.record import replace


def in_rows(load: Load, row: Sym, count: int, ranges: Mapping[Sym, Range]) -> bool:
    """Whether `count` elements along a loop, from each multiple of that on, are neighbours in memory, in a row that begins at
    such a multiple."""
    part, inside = Sym("row"), Sym("in it")
    simple = Simplifier(Known({**ranges, part: (0, (ranges[row][1] or 0) // count), inside: (0, count - 1)}))
    index = [e.substitute({row: expr(part) * count + inside}) for e in load.index]
    first = [simple(e.substitute({inside: ZERO})) for e in index]
    moved = [simple(e) - simple(start) for e, start in zip(index, first, strict=True)]
    plain = all(e is ZERO for e in moved[:-1]) and moved[-1] is expr(inside) and not load.data
    return plain and simple(replace(load, index=tuple(first)).offset % count) is ZERO
