"""The cost of an access for one warp, by enumeration of its lanes: sectors, lines, and bank conflicts.

The model of one request is `isa.requests`. Counted for the first warp of block 0, at the first iteration of each loop, with
open sizes taken as `SIZE`, and arrays aligned to 256 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from texpr.ir import kernel as k
from texpr.ir.kernel.point import SIZE, Point, address, holds, number, touched
from texpr.ir.value import Buffer, Load
from texpr.isa.levels import Level, Space
from texpr.isa.memories import Coalescing
from texpr.isa.requests import bank_rounds, conflicts, windows
from texpr.support.record import Record


class Access(Record):
    """One load, store or atomic of one warp. Counts are None where the element depends on data.

    Global: `sectors` transferred, the `least` that hold the same bytes, `lines`. Shared: `conflicts`, the extra rounds due to
    bank conflicts.
    """

    buffer: str
    kind: str
    space: str
    line: int
    lanes: int
    sectors: int | None = None
    least: int | None = None
    lines: int | None = None
    conflicts: int | None = None


class Request(Record):
    """One load, store or atomic of one warp: the first element that each lane accesses, and the number `count` of consecutive
    ones."""

    load: Load
    kind: str
    count: int
    space: Space
    lanes: list[Point]
    line: int

    @property
    def width(self) -> int:
        """The bytes that one lane accesses."""
        return self.load.dtype.bytes * self.count

    @property
    def starts(self) -> list[int] | None:
        """The byte offset of each lane in the buffer; None where one depends on data."""
        found = [address(self.load, lane) for lane in self.lanes]
        known = [at * self.load.dtype.bytes for at in found if at is not None]
        return None if self.load.data or len(known) < len(found) else known


def accesses(kernel: k.Kernel, machine: Coalescing) -> tuple[Access, ...]:
    """The cost of every access in `kernel` to memory that is not private to a thread, in textual order."""
    return tuple(_cost(request, machine) for request in requests(kernel))


def requests(kernel: k.Kernel) -> Iterator[Request]:
    """Every access in `kernel` to memory that is not private to a thread, in textual order."""
    spaces = {a.buffer: a.space for a in kernel.arrays}
    sizes = {s: SIZE for s in kernel.sizes} | {a.base: 0 for a in kernel.axes if a.base is not None}
    lanes: list[Point] = []
    for lane in range(min(kernel.warp, kernel.threads)):
        point: Point = {a.sym: lane if a.level is Level.BLOCK and a.dim == "x" else 0 for a in kernel.axes}
        lanes.append({**sizes, **point})
    yield from _block(kernel.body, lanes, spaces, kernel)


def _block(body: tuple[k.Stmt, ...], lanes: list[Point], spaces: Mapping[Buffer, Space], kernel: k.Kernel) -> Iterator[Request]:
    for stmt in body:
        for load, kind, count in touched(stmt):
            space = spaces.get(load.buffer, Space.GLOBAL)
            if space not in (Space.LOCAL, Space.LANES) and load.buffer not in kernel.scalars:
                yield Request(load, kind, count, space, lanes, stmt.span.line)
        match stmt:
            case k.For():
                yield from _block(stmt.body, list(_entering(stmt, lanes)), spaces, kernel)
            case k.If():
                yield from _block(stmt.then, [lane for lane in lanes if holds(stmt.condition, lane, True)], spaces, kernel)
                yield from _block(
                    stmt.orelse, [lane for lane in lanes if not holds(stmt.condition, lane, False)], spaces, kernel
                )
            case _:
                for sym, value in k.indices(stmt).items():
                    for lane in lanes:
                        known = number(value, lane)
                        if known is not None:
                            lane[sym] = known


def _entering(loop: k.For, lanes: list[Point]) -> Iterator[Point]:
    """The lanes for which the loop runs an iteration."""
    for lane in lanes:
        lo, hi = number(loop.lo, lane), number(loop.hi, lane)
        if lo is not None and (hi is None or lo < hi):
            yield {**lane, loop.sym: lo}


def _cost(request: Request, machine: Coalescing) -> Access:
    starts, width, lanes = request.starts, request.width, len(request.lanes)
    head = (request.load.buffer.name, request.kind, request.space.value, request.line, lanes)
    if starts is None:
        return Access(*head)
    own = request.space is Space.CLUSTER and request.load.index[0].as_sym is not None
    if request.space is Space.CLUSTER and not own:
        return Access(*head)  # may involve several blocks
    if request.space is not Space.GLOBAL:
        return Access(*head, conflicts=conflicts(starts, width, machine.banks, machine.word))
    size = len(set(starts)) * width
    sectors, lines = windows(starts, machine.sector, width), windows(starts, machine.line, width)
    return Access(*head, len(sectors), -(-size // machine.sector), len(lines))


def rounds(load: Load, lanes: list[Point], machine: Coalescing) -> int:
    """The rounds of a shared memory request for an element of each lane, at least one for each part of the lanes."""
    found, width = [address(load, lane) for lane in lanes], load.dtype.bytes
    starts = [at * width for at in found if at is not None]
    if len(starts) < len(found):
        starts = [lane * width for lane in range(len(found))]
    return bank_rounds(starts, width, machine.banks, machine.word)
