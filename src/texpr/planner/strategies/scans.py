"""Running values along rows: a block does a row, or many blocks share one.

    par M |i| { new s: f32 = 0.0  seq N |j| scan(s) { s += X[i, j]  Y[i, j] = s } }

A thread that does a row alone reads it with gaps between lanes, one after the other. In tiles a block has neighbouring
elements, copied through shared memory, of which threads do chunks (`scan`). Where rows are few, blocks first add up a long
chunk each; then each starts with what those before it have, and does its chunk as a row of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from texpr.affine.expr import Sym, expr
from texpr.affine.facts import Known
from texpr.ir import program as ir
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer, Load
from texpr.planner.follow import Refused
from texpr.planner.nest import NOMINAL
from texpr.planner.strategies.phases import Phased, Phases, way_of
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject
from texpr.planner.sums.chunks import Sizes, is_carried, of_block, of_grid
from texpr.planner.vectors import rows_begin_even
from texpr.relation.facts import known
from texpr.schedule.rewrite.materialise import given
from texpr.schedule.tree import loops
from texpr.support.record import Record


class Row(Record):
    """A loop with running values, and the arrays whose rows it goes along, in the order of the text."""

    loop: ir.Seq
    moved: tuple[Buffer, ...]


def rows(par: ir.Par, function: ir.Function) -> tuple[Row, ...]:
    """The rows of the nest of `par`, which is alone in `function`, that a block may do."""
    way = way_of(par)
    if any(p.reduce or p.fully or p.directives for p in way):
        return ()
    own = {s.buffer for s in ir.walk(function.body) if isinstance(s, ir.New) and s.buffer.role == "local"}
    found = (Row(s, tuple(_moved(s, own))) for s in way[-1].body if isinstance(s, ir.Seq) and is_carried(s))
    return tuple(row for row in found if row.moved)


def _moved(loop: ir.Seq, own: set[Buffer]) -> Iterator[Buffer]:
    """The arrays of which neighbouring iterations access neighbouring elements."""
    every = dict.fromkeys(load for stmt in ir.walk(loop.body) for load in loads(stmt))
    along = [load for load in every if load.buffer not in own and _goes_along(load, loop.sym)]
    yield from dict.fromkeys(load.buffer for load in along)


def _goes_along(load: Load, sym: Sym) -> bool:
    if not load.index or load.data or any(sym in e.syms() for e in load.index[:-1]):
        return False
    last = load.index[-1]
    step = next((c for m, c in last.terms if m == (sym,)), 0)
    return abs(step) == 1 and sym not in (last - step * expr(sym)).syms()


class InBlocks(Script, kw_only=True):
    """Each of `rows` in tiles of so many iterations, and these in chunks."""

    rows: tuple[tuple[Row, Sizes], ...]

    def run(self) -> Sequence[Subject]:
        """Applies every directive. Raises Refused."""
        promised = known(given(self.state.function))
        for row, sizes in self.rows:
            name = row.loop.sym.name
            tile, inside = self.fresh(name, "tile", "in")
            self.must("split", name, sizes.tile, results=(tile, inside))
            names = self.fresh(name, "part", "term", "over", "chunk", "item")
            self.must("scan", inside, sizes.chunk, results=names)
            if sizes.part:
                over = self.fresh(names[2], "part", "term", "over", "chunk", "item")
                self.must("scan", names[2], sizes.part, results=over)
            for buffer in row.moved:
                self._staged(buffer, tile, promised)
        return ()

    def _staged(self, buffer: Buffer, tile: str, promised: Known) -> None:
        """A tile of `buffer` in shared memory, copied by vectors where rows begin at multiples of them."""
        (name,) = self.fresh(buffer.name, "s")
        try:
            self.must("stage", buffer.name, results=(name,), of=buffer, at=tile, space="shared")
        except Refused as reason:
            self.dropped.append(str(reason))
            return
        lanes, copy = self.state.target.vector // buffer.dtype.bytes, f"{name}_{buffer.rank - 1}"
        is_there = any(loop.sym.name == copy for loop in loops(self.state.function.body))
        if lanes > 1 and is_there and rows_begin_even(buffer, lanes, promised):
            self.may("vectorize", copy, lanes, results=self.fresh(copy, "part", "lane"))


class OverGrid(Script, kw_only=True):
    """A row by many blocks, which do so many iterations each; `way`: the loops over rows."""

    way: tuple[ir.Par, ...]
    row: Row
    size: int
    pays: bool = True

    def run(self) -> Sequence[Subject]:
        """Applies every directive, and leaves what blocks do to other strategies. Raises Refused."""
        name = self.row.loop.sym.name
        names = self.fresh(name, "part", "term", "over", "chunk", "item")
        self.must("scan", name, self.size, results=names)
        self.must("scan", names[2])
        innermost = self.loop(self.way[-1].sym.name)
        statements = sum(not isinstance(s, ir.New) for s in innermost.body)
        phases = Phased(self.state, self.span, phases=Phases(self.way, (1,) * statements))
        left = phases.run()
        self.state, self.directives = phases.state, [*self.directives, *phases.directives]
        return left


def _trips(par: ir.Par) -> int:
    return par.extent.constant if par.extent.is_constant else NOMINAL


def _applies(subject: Subject) -> bool:
    return subject.state.target.has_warps and not subject.tiles_only


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    if refused:
        return None
    par, function = subject.alone()
    found = rows(par, function)
    if not found:
        return None
    way = tuple(way_of(par))
    size = of_grid(found[0].loop.extent, prod(map(_trips, way))) if len(found) == 1 and not subject.is_part else 0
    if size:
        script = OverGrid(subject.state, subject.span, way=way, row=found[0], size=size)
        return Proposal(script, said=f"rows in chunks of {size}, one a block")
    sized = tuple(
        (row, of_block(row.loop.extent, sum(b.dtype.bytes for b in row.moved), subject.state.target)) for row in found
    )
    return Proposal(InBlocks(subject.state, subject.span, rows=sized), said=f"rows in {sized[0][1]}")


STRATEGY = Strategy(Rank.SCAN, _applies, _propose)
