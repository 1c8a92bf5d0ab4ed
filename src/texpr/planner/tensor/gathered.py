"""Rows of a product that several loops count, as the pixels of a convolution: a part of each in a tile, and one loop over all.

    par B |b| { par H |p| { par W |q| { par F |f| { … += X[b, p + r, q + s, c] * K[r, s, c, f] } } } }

    split(b, 4) -> (b_b, b_i)  split(p, 2) -> (p_b, p_i)  split(q, 16) -> (q_b, q_i)
    reorder(b_b, p_b, q_b, f, b_i, p_i, q_i)  merge(p_i, q_i)  merge(b_i, …) -> rows          128 of them

What they read is a box, so the copy engine brings it, with zeros where that is outside of the image. Loops are such rows if all
that moves with the product's rows, and nothing of its columns, moves with them. Sizes are those that leave the least of a tile
empty; among equals inner loops have more, as their elements are neighbours in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product as combinations
from math import ceil, prod

from texpr.affine.expr import Sym, expr
from texpr.ir import program as ir
from texpr.planner.nest import Nest
from texpr.planner.tensor.product import Product, moves
from texpr.support.record import Record, replace

OPEN = 16
"""The most iterations in a tile of a loop whose extent nobody knows."""


class Gathered(Record):
    """`sizes`: iterations in a tile of each loop over rows, as they are nested. `nest`, `product`: as the model sees them, with
    one loop over the rows of a tile, and one over tiles along each of the others."""

    sizes: Mapping[Sym, int]
    nest: Nest
    product: Product

    @property
    def rows(self) -> int:
        """Of a tile."""
        return prod(self.sizes.values())


def gatherings(nest: Nest, product: Product, totals: Iterable[int]) -> Iterator[Gathered]:
    """The best of each number of rows in a tile, where several loops have a part of these."""
    loops = _rows(nest, product)
    for total in dict.fromkeys(totals) if len(loops) > 1 else ():
        sizes = _sizes(loops, nest, total)
        if sum(size > 1 for size in sizes) > 1:
            yield _gathered(nest, product, dict(zip((loop.sym for loop in loops), sizes, strict=True)), total)


def sides(nest: Nest, product: Product) -> tuple[int, int]:
    """Rows, whatever loops count them, and columns."""
    return prod(nest.trips[loop.sym] for loop in _rows(nest, product)), nest.trips[product.columns.sym]


def _rows(nest: Nest, product: Product) -> tuple[ir.Loop, ...]:
    """The parallel loops with which the same is read as with the rows."""
    of = [load for load in product.loads if moves(load, product.rows.sym)]
    others = [load for load in product.loads if load not in of]
    pars = (loop for loop in nest.pars if loop is not product.columns)
    return tuple(
        loop for loop in pars if all(moves(load, loop.sym) for load in of) and not any(moves(load, loop.sym) for load in others)
    )


def _sizes(loops: tuple[ir.Loop, ...], nest: Nest, total: int) -> tuple[int, ...]:
    """So many iterations of each loop, `total` together."""
    trips = [nest.trips[loop.sym] for loop in loops]
    most = [trip if loop.extent.is_constant else OPEN for trip, loop in zip(trips, loops, strict=True)]
    powers = [1 << at for at in range(total.bit_length())]
    *outer, inner = ([size for size in powers if size < 2 * limit] for limit in most)
    fitting = (*outer, inner if prod(map(max, (*outer, inner))) >= total else powers)
    every = (sizes for sizes in combinations(*fitting) if prod(sizes) == total)

    def empty(sizes: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        tiles = prod(ceil(trip / size) * size / trip for trip, size in zip(trips, sizes, strict=True))
        return round(tiles, 6), tuple(-size for size in reversed(sizes))

    return min(every, key=empty, default=())


def _gathered(nest: Nest, product: Product, sizes: Mapping[Sym, int], total: int) -> Gathered:
    rows = replace(product.rows, sym=Sym("rows"), extent=expr(total))
    trips = {sym: ceil(trip / sizes.get(sym, 1)) for sym, trip in nest.trips.items()}
    return Gathered(sizes, replace(nest, trips={**trips, rows.sym: total}), replace(product, rows=rows))
