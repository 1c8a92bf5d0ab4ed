"""A nest with transposed reads and writes: reads go through a tile of shared memory, where they are transposed.

    par N |j| { par M |i| { B[j, i] = A[i, j] } }      neighbours of A lie along j, of B along i

No mapping to lanes coalesces both: 32 neighbours along one loop are in 32 rows along the other. So a block copies a tile of
as many rows and columns as a warp has lanes: lanes run along the rows of the source, and then along the rows of the result.
Rows of the tile are padded by a word, so that a column lies in all banks.

Where rows of both begin at multiples of a vector, a lane moves a vector to a tile of twice as many rows and columns, and a
vector from it, whose elements lie in a column of the tile. Rows are padded by one element: then lanes meet in no bank.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.expr import Sym
from texpr.ir.value import Buffer
from texpr.isa.target import Target
from texpr.planner.follow import Refused
from texpr.planner.model import form
from texpr.planner.nest import Nest, Touch
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject
from texpr.planner.vectors import begins_even
from texpr.support.record import Record

WARPS = 8
"""The warps of a block, each with every eighth row of a tile."""

AHEAD = 16
"""Vectors of a tile that a thread moves: many are on their way at once, and few addresses are computed for each."""

SIDE = 2
"""The side of a tile that vectors move, in warps: rows of it are lines of memory, and a thread has several vectors ahead."""

SHORT = 16
"""Loops known to be shorter are no rows for a warp."""


class Crossed(Record):
    """`across`: the loop along which neighbours of `buffers`, which are read, lie; `along`: that of the written elements."""

    across: Sym
    along: Sym
    buffers: tuple[Buffer, ...]


class Turned(Script, kw_only=True):
    """Stages what `crossed` names in transposed tiles."""

    nest: Nest
    crossed: Crossed
    lanes: int = 1
    """Elements of a vector."""

    def run(self) -> Sequence[Subject]:
        """Applies every directive. Raises Refused."""
        if self.lanes > 1:
            self._by_vectors()
        else:
            self._by_elements()
        return ()

    def _by_elements(self) -> None:
        across, along, machine = self.crossed.across.name, self.crossed.along.name, self.state.target.coalescing
        row_block, row = self.fresh(across, "b", "t")
        self.must("split", across, machine.lanes, results=(row_block, row))
        lane_block, lane = self.fresh(along, "b", "t")
        self.must("split", along, machine.lanes, results=(lane_block, lane))
        step, warp = self.fresh(row, "step", "warp")
        self.must("split", row, WARPS, results=(step, warp))
        others = [p.sym.name for p in self.nest.pars if p.sym not in (self.crossed.across, self.crossed.along)]
        self.must("reorder", *others, row_block, lane_block, step, warp, lane)
        self.must("bind", lane, "block.x")
        self.must("bind", warp, "block.y")
        for buffer in self.crossed.buffers:
            (name,) = self.fresh(buffer.name, "s")
            self.must("stage", buffer.name, results=(name,), of=buffer, at=lane_block, space="shared")
            dims = next(len(t.index or ()) for t in self.nest.of(buffer))
            self.may("resize", f"{name}.d{dims - 1}", 0, max(1, machine.word // buffer.dtype.bytes))
        self.may("unroll", step)

    def _by_vectors(self) -> None:
        across, along, warp = self.crossed.across.name, self.crossed.along.name, self.state.target.warp
        side = SIDE * warp
        row_block, row = self.fresh(across, "b", "t")
        self.must("split", across, side, results=(row_block, row))
        vector_block, inner = self.fresh(along, "b", "t")
        self.must("split", along, side, results=(vector_block, inner))
        vector, lane = self.fresh(inner, "vector", "lane")
        self.must("split", inner, self.lanes, results=(vector, lane))
        step, thread = self.fresh(row, "step", "thread")
        threads = max(side // AHEAD, warp * self.lanes // side)
        self.must("split", row, threads, results=(step, thread))
        others = [p.sym.name for p in self.nest.pars if p.sym not in (self.crossed.across, self.crossed.along)]
        self.must("reorder", *others, row_block, vector_block, step, thread, vector, lane)
        self.must("bind", vector, "block.x")
        self.must("bind", thread, "block.y")
        for buffer in self.crossed.buffers:
            self._copied_by_vectors(buffer, vector_block, threads)
        self.must("vectorize", lane)
        self.may("unroll", step)

    def _copied_by_vectors(self, buffer: Buffer, at: str, threads: int) -> None:
        """Stages `buffer`, copied by so many rows at once."""
        (name,) = self.fresh(buffer.name, "s")
        self.must("stage", buffer.name, results=(name,), of=buffer, at=at, space="shared")
        *outer, _ = next(t.index for t in self.nest.of(buffer) if t.index)
        self.must("resize", f"{name}.d{len(outer)}", 0, 1)
        row = f"{name}_{next(dim for dim, part in enumerate(outer) if part.varies(self.crossed.along))}"
        column = f"{name}_{len(outer)}"
        vector, lane = self.fresh(column, "vector", "lane")
        self.must("vectorize", column, self.lanes, results=(vector, lane))
        step, thread = self.fresh(row, "step", "thread")
        self.must("split", row, threads, results=(step, thread))
        self.must("bind", vector, "block.x")
        self.must("bind", thread, "block.y")
        self.may("unroll", step)


def crossed(nest: Nest) -> Crossed | None:
    """The transposed reads of a nest, if there are any."""
    if nest.seqs or nest.local or any(t.updates for t in nest.touches):
        return None
    written = {_row(t) for t in nest.touches if t.writes}
    along = written.pop() if len(written) == 1 else None
    if along is None or nest.trips[along] < SHORT:
        return None
    found: dict[Buffer, Sym] = {}
    for buffer in nest.read_only():
        touches = nest.of(buffer)
        rows = {_row(t) for t in touches}
        across = rows.pop() if len(rows) == 1 else None
        if across is not None and across != along and form(touches) and all(t.along(along) for t in touches):
            found[buffer] = across
    ways = tuple(dict.fromkeys(found.values()))
    if len(ways) != 1 or nest.trips[ways[0]] < SHORT:
        return None
    return Crossed(ways[0], along, tuple(found))


def _row(touch: Touch) -> Sym | None:
    """The loop along which neighbouring elements lie, None where there is none or several."""
    if not touch.index:
        return None
    *outer, last = touch.index
    steps = tuple(last.steps.items())
    if len(steps) != 1 or steps[0][1] != 1 or any(each.varies(steps[0][0]) for each in outer):
        return None
    return steps[0][0]


def _lanes(nest: Nest, found: Crossed, target: Target) -> int:
    """The elements of a vector that all copies may use, or 1; loops known to be shorter than half of a tile are left to
    smaller ones."""
    moved = [t for t in nest.touches if t.writes or t.buffer in found.buffers]
    lanes = target.vector // max(t.buffer.dtype.bytes for t in moved)
    least = SIDE * target.warp // 2
    whole = all(nest.trips[sym] >= least and nest.trips[sym] % lanes == 0 for sym in (found.across, found.along))
    return lanes if whole and all(begins_even(t, lanes, nest.known) for t in moved) else 1


def _applies(subject: Subject) -> bool:
    is_plain = isinstance(subject.nest, Nest) and not subject.nest.whole and not subject.tiles_only
    return subject.state.target.has_blocks and is_plain


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    assert isinstance(subject.nest, Nest), "as it applies"
    nest, target = subject.nest, subject.state.target
    found = crossed(nest)
    if found is None:
        return None
    lanes = _lanes(nest, found, target)
    if len(refused) > (lanes > 1):
        return None
    lanes = 1 if refused else lanes
    names = ", ".join(f"`{buffer.name}`" for buffer in found.buffers)
    side = target.warp * (SIDE if lanes > 1 else 1)
    script = Turned(subject.state, subject.span, nest=nest, crossed=found, lanes=lanes)
    return Proposal(script, said=f"{names}: turned round in tiles of {side} × {side}")


STRATEGY = Strategy(Rank.TURN, _applies, _propose)
