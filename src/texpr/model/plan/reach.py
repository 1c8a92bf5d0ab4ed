"""Which bytes of global memory a kernel reaches, at least once: the box of each buffer that its subscripts span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from texpr.affine.expr import Expr, Sym
from texpr.affine.ranges import Range, bounds
from texpr.ir import kernel as k
from texpr.ir.kernel.point import SIZE, touched
from texpr.ir.value import Buffer, Index, Load
from texpr.ir.value import walk as value_walk
from texpr.support.record import Mutable, field

Box = list[tuple[int, int]]


class Reach(Mutable):
    """Boxes by buffer and by how it is touched: "load" or "store"."""

    boxes: dict[tuple[Buffer, str], Box] = field(default_factory=dict[tuple[Buffer, str], Box])

    def bytes_of(self, buffer: Buffer, kind: str) -> int:
        """Bytes of the box of one buffer; 0 where it is not touched so."""
        box = self.boxes.get((buffer, kind))
        return 0 if box is None else prod(high - low + 1 for low, high in box) * buffer.dtype.bytes


def reach(kernel: k.Kernel, sizes: Mapping[Sym, int], axes: Mapping[Sym, Range]) -> Reach:
    """What threads reach whose coordinates lie in these ranges, at these sizes. Conditions are not looked at, but no box is
    larger than its buffer."""
    found = Reach()
    own = {array.buffer for array in kernel.arrays}
    ranges: dict[Sym, Range] = {**{sym: (value, value) for sym, value in sizes.items()}, **axes}
    _block(kernel.body, ranges, found, own, sizes, kernel)
    return found


def _block(
    body: tuple[k.Stmt, ...],
    ranges: dict[Sym, Range],
    found: Reach,
    own: set[Buffer],
    sizes: Mapping[Sym, int],
    kernel: k.Kernel,
) -> None:
    for stmt in body:
        if isinstance(stmt, k.For):
            low, _ = bounds(stmt.lo, ranges)
            _, high = bounds(stmt.hi, ranges)
            ranges[stmt.sym] = (low, None if high is None else high - 1)
        else:
            for made in stmt.bound if isinstance(stmt, k.Operation) else ():
                if isinstance(made.value, Index):
                    ranges[made.sym] = bounds(made.value.expr, ranges)
            for load, kind in _touched(stmt):
                if load.buffer not in own and load.buffer not in kernel.scalars:
                    _add(found, load, kind, ranges, sizes)
        for block in k.blocks(stmt):
            _block(block, ranges, found, own, sizes, kernel)


def every_touch(stmt: k.Stmt) -> Iterator[tuple[Load, str, int]]:
    """What a statement touches, what it reads to find the places of its own operands first."""
    if isinstance(stmt, k.Operation):
        for operand in stmt.operands:
            for _, meaning in operand.first.data:
                yield from ((node, "load", 1) for node in value_walk(meaning) if isinstance(node, Load))
    yield from touched(stmt)


def _touched(stmt: k.Stmt) -> Iterator[tuple[Load, str]]:
    for load, kind, count in every_touch(stmt):
        for each in k.consecutive(load, count)[:: max(1, count - 1)]:
            if kind != "store":
                yield each, "load"
            if kind != "load":
                yield each, "store"


def _add(found: Reach, load: Load, kind: str, ranges: Mapping[Sym, Range], sizes: Mapping[Sym, int]) -> None:
    data = {sym for sym, _ in load.data}
    box = [
        _within(index, extent_of(extent, sizes), ranges, data)
        for index, extent in zip(load.index, load.buffer.shape, strict=True)
    ]
    before = found.boxes.get((load.buffer, kind))
    if before is not None:
        box = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(before, box, strict=True)]
    found.boxes[load.buffer, kind] = box


def _within(index: Expr, extent: int, ranges: Mapping[Sym, Range], data: set[Sym]) -> tuple[int, int]:
    low, high = (None, None) if index.syms() & data else bounds(index, ranges)
    first = 0 if low is None else min(max(low, 0), max(0, extent - 1))
    last = extent - 1 if high is None else min(high, extent - 1)
    return first, max(first, last)


def extent_of(extent: Expr, sizes: Mapping[Sym, int]) -> int:
    """An extent at these sizes."""
    return max(1, extent.evaluate({**dict.fromkeys(extent.syms(), SIZE), **sizes}))


def size_of(buffer: Buffer, sizes: Mapping[Sym, int]) -> int:
    """Bytes of a whole buffer."""
    return extent_of(buffer.room, sizes) * buffer.dtype.bytes if buffer.shape else buffer.dtype.bytes
