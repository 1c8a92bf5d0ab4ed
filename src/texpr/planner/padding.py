"""Padding of the rows of a staged box against bank conflicts in shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from math import inf, prod

from texpr.affine.expr import Sym
from texpr.isa.memories import Coalescing
from texpr.isa.requests import conflicts
from texpr.planner.nest import Nest
from texpr.planner.search import Candidate, Staging
from texpr.planner.vectors import along

MOST = 16
"""The most elements of padding."""


def padding(
    nest: Nest, candidate: Candidate, staging: Staging, machine: Coalescing, vectors: Mapping[Sym, int], lanes: int = 1
) -> int:
    """The least padding with the fewest bank conflicts, of reads and of the copy into the box; whole vectors of `lanes`, and of
    those that are read along a loop (`vectors`)."""
    if len(staging.box) < 2:
        return 0
    size, width = staging.form.buffer.dtype.bytes, staging.box[-1]
    sym = along(nest.of(staging.form.buffer), staging)
    read = 1 if sym is None else vectors.get(sym, 1)
    requests = list(_requests(nest, candidate, staging, machine.lanes, vectors, read))
    best, least = 0, inf
    for pad in range(0, MOST + 1, max(lanes, read)):
        starts = (([(row * (width + pad) + at) * size for row, at in cells], count) for cells, count in requests)
        total = sum(conflicts(each, count * size, machine.banks, machine.word) for each, count in starts)
        if total < least:
            best, least = pad, total
        if not total:
            break
    return best


def _requests(
    nest: Nest, candidate: Candidate, staging: Staging, warp: int, vectors: Mapping[Sym, int], read: int
) -> Iterator[tuple[list[tuple[int, int]], int]]:
    """The simultaneous accesses of a warp: for each lane its row of the box, and its place in the row; of so many elements."""
    *outer, _ = _strides((*staging.box[:-1], 1))
    warps = list(_warps(nest, candidate, warp, vectors))
    for touch in nest.of(staging.form.buffer):
        assert touch.index is not None, "only what is affine is staged"
        steps = [tuple(part.steps.items()) for part in touch.index]
        for lanes in warps:
            cells = [[sum(step * lane.get(sym, 0) for sym, step in part) for part in steps] for lane in lanes]
            yield [_placed(outer, cell) for cell in cells], read
    yield [_placed(outer, cell) for cell in islice(product(*map(range, staging.box)), warp)], 1


def _placed(strides: Sequence[int], cell: Sequence[int]) -> tuple[int, int]:
    return sum(s * c for s, c in zip(strides, cell, strict=False)), cell[-1]


def _warps(nest: Nest, candidate: Candidate, warp: int, vectors: Mapping[Sym, int]) -> Iterator[list[dict[Sym, int]]]:
    """The lanes of the first two warps, with the iterations of each."""
    order = [candidate.lane, *(p.sym for p in reversed(nest.pars) if p.sym != candidate.lane)]
    threads = [(sym, candidate.tile[sym] // candidate.own.get(sym, 1)) for sym in order]
    every = prod(width for _, width in threads)
    for first in range(0, min(every, 2 * warp), warp):
        lanes: list[dict[Sym, int]] = []
        for number in range(first, min(first + warp, every)):
            lane: dict[Sym, int] = {}
            for sym, width in threads:
                lane[sym], number = number % width * vectors.get(sym, 1), number // width
            lanes.append(lane)
        yield lanes


def _strides(box: Sequence[int]) -> list[int]:
    strides = [1]
    for extent in reversed(box[1:]):
        strides.append(strides[-1] * extent)
    return list(reversed(strides))
