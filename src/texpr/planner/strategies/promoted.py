"""Products of few bits by the tensor core of a warpgroup, by parts: sums of 128 terms, which lanes add up in registers.

    split(k, 128) -> (k_o, k_i)  partial(k_o, at=k_o) -> part        where the text has no parts
    split, split, …              blocks, warpgroups of a block, and a warpgroup's part, of rows and of columns
    reorder, distribute          grid, parts, warpgroups, their part: which begins, is summed up, and is added, in loops of each
    stage …, mma, pipeline       as of a product that is one sum

A sum of 8-bit floats keeps 13 bits in the tensor core of sm_90a (`texpr.isa.instructions.wgmma`). Any statements may add a part
up, so it may be scaled by what belongs to its rows, columns, and place along the sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.isa.cuda import WARPGROUP
from texpr.planner.follow import Refused
from texpr.planner.nest import Nest
from texpr.planner.strategies.products import LEAST, WORDS, ProductScript, cheapest
from texpr.planner.strategies.warpgroups import (
    Operands,
    WarpgroupScript,
    applies,
    asked,
    chosen,
    every_tile,
)
from texpr.planner.strategy import Proposal, Rank, Strategy, Subject
from texpr.planner.tensor.cores import Asked
from texpr.planner.tensor.described import product_by
from texpr.planner.tensor.gathered import sides
from texpr.planner.tensor.product import Product, by_warps, is_by_parts, keeps_few_bits
from texpr.schedule.joint.records import usable_in
from texpr.support.record import replace


class ByParts(ProductScript, kw_only=True):
    """Gives a tile of `nest` to blocks, warps or warpgroups, and instructions, part by part of the sum."""

    def _turns(self) -> tuple[str, str]:
        """The loops over parts, and over the terms of one."""
        product = self.tile.product
        if is_by_parts(product, self.nest):
            turn, inner = self.nest.seqs[-2].sym.name, self.nest.seqs[-1].sym.name
        else:
            turn, inner = super()._turns()
            names = self.fresh("part", *(each.bind.targets[0].buffer.name for each in product.sums))
            self.must("partial", turn, at=turn, results=names)
        return turn, inner

    def _inside(self, inner: str) -> tuple[str, ...]:
        return ()

    def _apart(self, rows: str, columns: str, inner: str, warps: Sequence[str]) -> list[tuple[str, str, str]]:
        """Gives what begins a part, what sums it up, and what adds it, loops of their own."""
        for name in (columns, rows, *reversed(warps)):
            self.must("distribute", name)
        above = self.above(self.loop(inner))
        own = [next(each.sym.name for each in above if self.is_copy(each, name)) for name in (rows, columns, *warps)]
        return super()._apart(own[0], own[1], inner, own[2:])

    def _sums(self, at: str) -> None:
        """Keeps what parts are added to in registers."""
        for buffer in sums(self.nest, self.tile.product):
            if buffer not in self.nest.local:
                self.in_registers(buffer, at)

    def _ahead(self, turn: str) -> None:
        """A product is waited for in its turn, as its part is added up there."""
        ProductScript._ahead(self, turn)


class PartsScript(ByParts, WarpgroupScript, kw_only=True):
    """The same, by warpgroups."""

    def _ahead(self, turn: str) -> None:
        super()._ahead(turn)
        self.apart_from_copies(turn)


def sums(nest: Nest, product: Product) -> tuple[Buffer, ...]:
    """What parts are added to."""
    if not is_by_parts(product, nest):
        return tuple(each.bind.targets[0].buffer for each in product.sums)
    made = {stmt.buffer for stmt in ir.walk(nest.seqs[-2].body) if isinstance(stmt, ir.New)}
    binds = (stmt for stmt in nest.seqs[-2].body if isinstance(stmt, ir.Bind))
    return tuple(dict.fromkeys(t.buffer for stmt in binds for t in stmt.targets if t.buffer not in made))


def doubled(tile: Operands) -> Asked:
    """What a tile asks of a machine: of registers for parts, too, each of which is added up."""
    found, words = asked(tile), prod(tile.shape.part) * tile.product.words / WARPGROUP
    return replace(found, registers=found.registers + int(words), added=words)


def _fits(tile: Operands) -> bool:
    """Whether sums and their parts fit registers."""
    return 2 * prod(tile.shape.part) * tile.product.words / WARPGROUP <= WORDS


def _tiles(subject: Subject) -> list[Operands]:
    """The tiles for a sum by parts; none where it needs none, or cannot have them."""
    nest, target = subject.nest, subject.state.target
    if not isinstance(nest, Nest) or len(nest.pars) < 2 or not nest.seqs:
        return []
    found = product_by(nest, target)
    if found is None or found[0].wider or min(sides(nest, found[0])) < LEAST or not keeps_few_bits(found[0], nest):
        return []
    tiles = [tile for tile in every_tile(*found, nest, target) if _fits(tile)]
    if is_by_parts(found[0], nest):
        tiles = [tile for tile in tiles if nest.trips[tile.product.sum.sym] == tile.depth and tile.gathered is None]
    return tiles


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    nest, target, every = subject.nest, subject.state.target, _tiles(subject)
    if not every:
        return None
    assert isinstance(nest, Nest), "as it has tiles"
    by_threads = not by_warps(nest, usable_in(subject.state.function, target))
    best = chosen(every, doubled, refused, subject, by_threads)
    if best is None:
        return None
    cost, tile = best
    return Proposal(PartsScript(subject.state, subject.span, nest=nest, tile=tile, by_threads=by_threads), cost, tile)


def _others(subject: Subject) -> Iterator[Proposal]:
    """All tiles that fit a block."""
    nest, target = subject.nest, subject.state.target
    for tile in _tiles(subject):
        assert isinstance(nest, Nest), "as it has tiles"
        cost, _ = cheapest([tile], doubled, nest, target)
        by_threads = not by_warps(nest, usable_in(subject.state.function, target))
        yield Proposal(PartsScript(subject.state, subject.span, nest=nest, tile=tile, by_threads=by_threads), cost, tile)


STRATEGY = Strategy(Rank.PRODUCT, applies, _propose, _others)
"""Where a unit keeps fewer bits of a sum than its type has."""
