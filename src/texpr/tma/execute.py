"""A copy executed for every index of its loops by the reference function: the final contents of the tile's buffer, or of the
tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

import numpy as np

from texpr.affine.expr import Expr, Sym
from texpr.domain.visits import Sizes
from texpr.tma.correctness import Guarded, Lowering, Redirected
from texpr.tma.elements import Fill
from texpr.tma.model import Copy
from texpr.tma.reference import Address, Bytes, Direction, Mode, Op, tma


def shared_bytes(copy: Copy, sizes: Sizes) -> int:
    """The bytes of the allocation, the product of all of its leaves."""
    leaves = [leaf for leaf in copy.graph.leaves if leaf in copy.bulk or leaf.sym in copy.tile.place.syms()]
    return prod(leaf.extent.evaluate(sizes) for leaf in leaves) * copy.element.size


def execute(copy: Copy, lowering: Lowering, op: Op, tensor: Bytes, shared: Bytes, sizes: Sizes | None = None) -> None:
    """Runs every iteration of the loops in order. `tensor` and `shared` start at address 0."""
    given = sizes or {}
    fill = Fill.ZERO if isinstance(lowering, Guarded) else lowering.fill
    dimensions = copy.dimensions
    for at in _iterations(copy, given):
        coordinates = _coordinates(copy, lowering, at)
        if coordinates is not None:
            tma(
                _values(coordinates, at),
                Address(shared, copy.tile.place.evaluate(at) * copy.element.size),
                ga=Address(tensor, copy.skipped.evaluate(at) * copy.element.size),
                gs=_values((each.size for each in dimensions), at),
                bs=_values((each.box for each in dimensions), at),
                gr=_values((each.stride for each in dimensions), at),
                er=_values((each.element_stride for each in dimensions), at),
                op=op,
                mode=Mode(copy.element, copy.tile.swizzle, fill),
            )


def load(copy: Copy, lowering: Lowering, tensor: Bytes, sizes: Sizes | None = None, before: int = 0xCD) -> Bytes:
    """The allocation after the loops, initialised with the byte `before`."""
    shared = np.full(shared_bytes(copy, sizes or {}), before, np.uint8)
    execute(copy, lowering, Direction.LOAD, tensor, shared, sizes)
    return shared


def _iterations(copy: Copy, sizes: Sizes) -> Iterator[dict[Sym, int]]:
    loops = [leaf for leaf in copy.graph.leaves if leaf not in copy.bulk]
    for index in product(*(range(leaf.extent.evaluate(sizes)) for leaf in loops)):
        yield {**sizes, **dict(zip((leaf.sym for leaf in loops), index, strict=True))}


def _coordinates(copy: Copy, lowering: Lowering, at: Mapping[Sym, int]) -> tuple[Expr, ...] | None:
    """The coordinates of the copy at one iteration; None where it is predicated off."""
    if isinstance(lowering, Redirected | Guarded) and any(each.margin.evaluate(at) < 0 for each in lowering.predicates):
        return lowering.coordinates if isinstance(lowering, Redirected) else None
    return copy.coordinates


def _values(values: Iterator[Expr] | tuple[Expr, ...], at: Mapping[Sym, int]) -> tuple[int, ...]:
    return tuple(value.evaluate(at) for value in values)
