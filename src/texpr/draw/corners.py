"""The coordinates of a kernel's copies, as computed by its blocks at fixed sizes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from texpr.affine.expr import Sym
from texpr.draw.owners import run
from texpr.draw.tensor import Seen
from texpr.ir import kernel as k
from texpr.ir.kernel.point import number
from texpr.isa.levels import Level
from texpr.support.record import replace

MOST_BLOCKS = 512
"""The most blocks that are simulated; of a larger grid, those at its ends."""

MOST_STEPS = 4000
"""The most statements of one block that are simulated."""


def corners(kernel: k.Kernel, sizes: dict[Sym, int]) -> dict[str, list[tuple[int, ...]]]:
    """The coordinates of every tensor map's copies, innermost first, in the order of blocks and statements, without
    repetitions."""
    found: dict[str, dict[tuple[int, ...], None]] = {map.name: {} for map in kernel.maps}
    maps = kernel.map_of
    for block in _blocks(kernel):
        bases = {axis.base: 0 for axis in kernel.axes if axis.base is not None}
        for stmt, at in islice(run(kernel.body, {**sizes, **block, **bases}), MOST_STEPS):
            moved = stmt.moved(maps) if isinstance(stmt, k.Operation) else None
            if moved is not None and moved.map is not None and moved.corner is not None:
                values = [number(each, at) for each in moved.corner]
                known = tuple(value for value in values if value is not None)
                if len(known) == len(values):
                    found[moved.map][known] = None
    return {name: list(places) for name, places in found.items()}


def most_telling(copy: Seen, places: list[tuple[int, ...]]) -> Seen | None:
    """The copy at the last of the corners whose boxes cover most kinds of cells; None where none is known."""
    seen = [replace(copy, corner=corner) for corner in places]
    return max(reversed(seen), key=lambda each: (len(each.kinds), "loaded" in each.kinds), default=None)


def _blocks(kernel: k.Kernel) -> Iterator[dict[Sym, int]]:
    """The first thread of each block, as values of the kernel's axes."""
    grid = [axis for axis in kernel.axes if axis.level is Level.GRID]
    extents = [number(axis.extent, {}) or 1 for axis in grid]
    count = 1
    for extent in extents:
        count *= extent
    whole = count <= MOST_BLOCKS
    ranges = [range(extent) if whole else sorted({0, extent // 2, extent - 1}) for extent in extents]
    within = {axis.dim: axis for axis in kernel.axes if axis.level is Level.CLUSTER}
    others = {axis.sym: 0 for axis in kernel.axes if axis.level not in (Level.GRID, Level.CLUSTER)}
    for indices in product(*ranges):
        at = dict(zip(grid, indices, strict=True))
        ranks = {within[axis.dim].sym: i % within[axis.dim].extent.constant for axis, i in at.items() if axis.dim in within}
        yield {**others, **ranks, **{axis.sym: i for axis, i in at.items()}}
