"""Few and long rows, spread over the machine: a block sums up a part of a row, and a second launch adds up the parts of each.

    par M |i| { … par N |j| reduce(s) { s += X[i, j] } … }      split(j, 4096) -> (jo, ji)  partial(jo, at=i)

A block that has a row to itself leaves most of the machine without work where there are fewer rows than blocks that fit. Rows
that go through several phases, as in a norm, get a loop for each phase first (`distribute`): what one sums up is there for the
next one then, and each is spread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.planner.budget import BLOCKS, MULTIPROCESSORS
from texpr.planner.follow import Refused
from texpr.planner.nest import NoPlan, nests, outermost
from texpr.planner.strategies.phases import way_of
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject
from texpr.schedule.rewrite.materialise import materialise
from texpr.support.record import Record

FEW = BLOCKS * MULTIPROCESSORS
"""Rows that a machine has no work for, if each is a block's: fewer than this."""

CHUNK = 4096
"""Elements of a row that are a block's."""

CHUNKS = 16
"""The parts of a row from which on another launch is worth it: a block reads some tens of bytes in a nanosecond."""


class Rows(Record):
    """`way`: the loops over rows, from outside in. `sizes`: the number of statements of each phase. `divided`: the loop of the
    sum of the only phase, if there is one, of which `part` iterations are a block's."""

    way: tuple[ir.Par, ...]
    sizes: tuple[int, ...]
    divided: ir.Par | None = None
    part: int = 0


def rows(par: ir.Par) -> Rows | None:
    """The rows of the nest of `par`, if they are few, and a sum of them is long."""
    way = way_of(par)
    if any(p.reduce or p.fully or p.directives for p in way):
        return None
    if all(p.extent.is_constant for p in way) and prod(p.extent.constant for p in way) >= FEW:
        return None
    statements = [s for s in way[-1].body if not isinstance(s, ir.New)]
    found = {at: loops for at, stmt in enumerate(statements) if (loops := _sum(stmt))}
    if not found:
        return None
    sizes = tuple(_phases(statements))
    if len(sizes) > 1:
        return Rows(tuple(way), sizes)
    (loops,) = found.values()
    extents = [p.extent.constant for p in loops]
    at = next(n for n in range(len(loops)) if prod(extents[: n + 1]) >= CHUNKS)
    return Rows(tuple(way), sizes, loops[at], max(1, CHUNK // prod(extents[at + 1 :])))


def _sum(stmt: ir.Stmt) -> tuple[ir.Par, ...]:
    """The loops of a long sum of which threads share the iterations."""
    loops = way_of(stmt) if isinstance(stmt, ir.Par) else []
    plain = all(p.reduce and not p.fully and not p.directives and p.extent.is_constant for p in loops)
    long = plain and prod(p.extent.constant for p in loops) >= CHUNKS * CHUNK
    return tuple(loops) if loops and long else ()


def _phases(statements: Sequence[ir.Stmt]) -> Iterator[int]:
    """The number of statements of each phase: up to a loop over the row, and what follows before the next one."""
    size, shared = 0, False
    for stmt in statements:
        if isinstance(stmt, ir.Par):
            if shared:
                yield size
                size = 0
            shared = True
        size += 1
    yield size


class Spread(Script, kw_only=True):
    """Gives each phase of `rows` a loop of its own, or spreads the sum of the only one over blocks."""

    rows: Rows

    def run(self) -> Sequence[Subject]:
        """Applies every directive, and leaves the new loops in place of the nest. Raises Refused."""
        before = {par.sym for par in outermost(self.state.function.body)} - {self.rows.way[0].sym}
        *outer, innermost = self.rows.way
        if self.rows.divided is None:
            self.must("distribute", innermost.sym.name, *self.rows.sizes)
            for loop in reversed(outer):
                self.must("distribute", loop.sym.name)
        else:
            self.must("partial", self._part(self.rows.divided), at=self.rows.way[0].sym.name)
        return [*self._left(before)]

    def _part(self, loop: ir.Par) -> str:
        """The loop whose iterations are parts."""
        if self.rows.part == 1:
            return loop.sym.name
        part, inner = self.fresh(loop.sym.name, "o", "i")
        self.must("split", loop.sym.name, self.rows.part, results=(part, inner))
        return part

    def _left(self, before: set[Sym]) -> Iterator[Subject]:
        made = {par.sym for par in outermost(self.state.function.body)} - before
        for par, nest in nests(materialise(self.state).function):
            if par.sym in made:
                yield Subject(par, nest, self.state, is_part=True, named=self.rows.way[0].span.line)


def _applies(subject: Subject) -> bool:
    return subject.state.target.has_warps and isinstance(subject.nest, NoPlan)


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    found = None if refused else rows(subject.par)
    if found is None:
        return None
    return Proposal(Spread(subject.state, subject.span, rows=found, pays=True), said="parts of rows first")


STRATEGY = Strategy(Rank.PARTS, _applies, _propose)
"""Where a block for each row would leave multiprocessors without one."""
