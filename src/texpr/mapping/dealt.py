"""Bands distributed over a team of threads: by the solver, where the ownership of elements of the team's arrays is free.

An array can stay in registers if all bands that access it agree on the owner of each element, so such bands keep the mapping
by shape at first. Arrays that need cross-thread accesses under any mapping lie in memory of the block: then σ is solved, bank
conflicts included, and rows are padded where that is cheaper, by as little as possible. If the cost then equals that without
bank conflicts, no σ with another layout is better either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import prod

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.program.marked import is_atomic, mark
from texpr.ir.program.marks import Tensor
from texpr.ir.value import Buffer
from texpr.isa.memories import Coalescing
from texpr.mapping.nest import LoopMap, Nest, Role, Solved, TeamBand
from texpr.mapping.sigma import by_solving
from texpr.support.record import Mutable, field, replace

LONGER = 0, 1, 2, 4
"""The tried paddings of rows, in words: other paddings give the same banks."""

NO_BANKS = 1 << 30
"""So many banks that there are no conflicts."""


def undecided(nest: Nest) -> frozenset[Buffer]:
    """The arrays that force the mapping by shape on a band of `nest`, and would not if they were shared; a single loop has
    only one mapping."""
    dealer, found = _dealer(nest), set[Buffer]()
    for each in nest.bands:
        places = {b: dealer.made[b] for b in dealer.of_team(each)}
        if len(each.loops) > 1 and dealer.is_solvable(each) and "registers" not in places.values():
            found.update(b for b, space in places.items() if space is None)
    return frozenset(found)


def deal(nest: Nest, values: Mapping[Sym, int], met: frozenset[Buffer], room: int) -> Nest:
    """`nest` with the bands of its team solved, where that forces no array out of registers that the mapping by shape keeps
    there.

    `values`: numbers for open sizes in costs; `met`: arrays of the team with elements that several threads access under any
    mapping; `room`: bytes for all shared arrays of a block.
    """
    if not nest.bands:
        return nest
    dealer = _dealer(nest, values, met, room)
    maps = {m.loop: m for m in dealer.run(nest.bands)}
    return replace(nest, loops={**nest.loops, **maps}, solved=tuple(dealer.solved), row_padding=dealer.row_padding)


def _dealer(
    nest: Nest, values: Mapping[Sym, int] | None = None, met: frozenset[Buffer] = frozenset(), room: int = 0
) -> _Dealer:
    return _Dealer(tuple(m.loop for m in nest.grid), nest.body, values or {}, met, room, nest.request, nest.alone)


class _Dealer(Mutable, dict=True):
    """Maps the bands of a team that runs `body` for each iteration of `grid`.

    `met`, `room`: see `deal`; `request`: the machine's model of a request; `lengthens`: whether rows of arrays may be padded.
    """

    grid: tuple[ir.Par, ...]
    body: tuple[ir.Stmt, ...]
    values: Mapping[Sym, int]
    met: frozenset[Buffer]
    room: int
    request: Coalescing
    lengthens: bool = True
    solved: list[Solved] = field(default_factory=list[Solved])
    row_padding: dict[Buffer, int] = field(default_factory=dict[Buffer, int])

    @cached_property
    def made(self) -> Mapping[Buffer, str | None]:
        """The arrays of the team, with their placements by a schedule."""
        return {s.buffer: s.space for s in ir.walk(self.body) if isinstance(s, ir.New) and s.buffer.rank}

    @cached_property
    def described(self) -> frozenset[Buffer]:
        """The arrays whose layout a descriptor says: their rows are as long as they are."""
        uses = [s for s in ir.walk(self.body) if isinstance(s, ir.Instruction) and s.instr is not None]
        pairs = (pair for s in uses if s.instr for pair in zip(s.instr.operands, s.operands, strict=True))
        return frozenset(load.buffer for operand, load in pairs if operand.is_described)

    def run(self, bands: Sequence[TeamBand]) -> Iterator[LoopMap]:
        """The maps of all bands."""
        free = {each: None for each in bands if self._is_free(each)}
        for buffer in sorted((self.met & self.made.keys()) - self.described, key=lambda b: b.name):
            self._lengthen(buffer, [each for each in free if buffer in each.touched])
        for each in bands:
            if each in free:
                maps, result = self._solve(each, self.row_padding)
                self.solved.append(result)
                yield from maps
            else:
                yield from each.shape

    def _is_shared(self, buffer: Buffer) -> bool:
        """Whether it lies in shared memory, not in the workspace."""
        known = all(e.is_constant for e in buffer.shape)
        size = prod(e.constant for e in buffer.shape) * buffer.dtype.bytes if known else self.room + 1
        return self.made[buffer] == "shared" or (buffer in self.met and size <= self.room)

    def _is_free(self, band: TeamBand) -> bool:
        """Whether the ownership of the elements that it accesses is free."""
        local = self.of_team(band)
        return self.is_solvable(band) and all(b in self.met or self.made[b] == "shared" for b in local)

    def is_solvable(self, band: TeamBand) -> bool:
        """Not for a team whose size is not a power of two of whole warps, as a schedule may bind, nor for a copy by an
        engine."""
        threads = band.threads
        return threads % self.request.lanes == 0 and threads & (threads - 1) == 0 and not mark(band.loops[0], Tensor)

    def of_team(self, band: TeamBand) -> frozenset[Buffer]:
        """The arrays of the team that a band accesses."""
        own = {s.buffer for s in ir.walk(band.body) if isinstance(s, ir.New)}
        return frozenset(b for b in band.touched if b in self.made and b not in own)

    def _solve(self, band: TeamBand, row_padding: Mapping[Buffer, int], banks: int = 0) -> tuple[tuple[LoopMap, ...], Solved]:
        local = {b: row_padding.get(b, 0) for b in self.of_team(band) if self._is_shared(b)}
        around = (*self.grid, *_around(self.body, band.loops[0]))
        return by_solving(band.loops, band.body, band.shape, self.values, self.request, around, local, banks)

    def _lengthen(self, buffer: Buffer, bands: Sequence[TeamBand]) -> None:
        """Pads the rows of `buffer` where that is cheaper."""
        if buffer.rank < 2 or not bands or not self.lengthens or not self._is_shared(buffer):
            return
        unit = max(1, self.request.word // buffer.dtype.bytes)
        least = self._cost(bands, self.row_padding, NO_BANKS)
        best: tuple[Fraction, int] | None = None
        for words in LONGER:
            row_padding = {**self.row_padding, buffer: words * unit}
            if words and self._bytes(row_padding) > self.room:
                break
            cost = self._cost(bands, row_padding)
            if best is None or cost < best[0]:
                best = cost, words * unit
            if cost == least:
                break
        if best is not None and best[1]:
            self.row_padding[buffer] = best[1]

    def _cost(self, bands: Iterable[TeamBand], row_padding: Mapping[Buffer, int], banks: int = 0) -> Fraction:
        found = (self._solve(each, row_padding, banks)[1].solution.cost.weighted for each in bands)
        return sum(found, start=Fraction(0))

    def _bytes(self, row_padding: Mapping[Buffer, int]) -> int:
        """The bytes of the team's arrays of known sizes, with padded rows."""
        total = 0
        for buffer in self.made:
            *outer, row = buffer.shape
            if all(e.is_constant for e in buffer.shape):
                total += prod(e.constant for e in outer) * (row.constant + row_padding.get(buffer, 0)) * buffer.dtype.bytes
        return total


def role_of(par: ir.Par) -> Role:
    """The role of a loop that a team shares: whether its iterations are a reduction."""
    return Role.REDUCE if par.reduce and not is_atomic(par) else Role.TEAM


def _around(body: tuple[ir.Stmt, ...], inner: ir.Stmt) -> Iterator[ir.Loop]:
    """The loops of `body` around `inner`, outermost first."""
    for stmt in body:
        if stmt is not inner and any(inner is s for s in ir.walk((stmt,))):
            if isinstance(stmt, ir.Par | ir.Seq):
                yield stmt
            for block in ir.blocks(stmt):
                yield from _around(block, inner)
