"""Products that a tensor core does by itself, of operands that the copy engine brings turns ahead.

split, split, …        blocks, warpgroups of a block, and a warpgroup's part, of rows and of columns; turns of the sum
reorder, bind          grid, the sum's turns, warpgroups, their part
stage … in=registers   what is summed up
stage … via=tma        both operands, in rows of as many bytes as the widest swizzle, as a descriptor says where elements lie
mma, pipeline          the part of a warpgroup as instructions; copies some turns ahead

A warpgroup's sums are in its registers; those that one thread launches are in tensor memory, one such part a block.
The instruction follows from types, and from which elements of an operand are neighbours in memory. The engine copies rows that
begin at multiples of 16 bytes: where that is not promised, `stage` refuses, and another strategy has the nest; or threads copy
them, of types that no instruction of a warp has.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from math import ceil, prod
from typing import Any, TypeAlias

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.value import Load
from texpr.isa.cuda import WARPGROUP
from texpr.isa.engine import CHUNK
from texpr.isa.instructions.tcgen05 import PAIR
from texpr.isa.instructions.tcgen05_scaled import QUARTER
from texpr.isa.levels import WARP
from texpr.isa.target import Target
from texpr.model.tiles import Goes
from texpr.planner.clocks.products import timed
from texpr.planner.follow import Refused, Value
from texpr.planner.nest import Nest
from texpr.planner.strategies.products import (
    ADDRESSES,
    LEAST,
    WORDS,
    Loops,
    ProductScript,
    Shape,
    Tile,
    allowed,
    cheapest,
    in_turn,
    unmarked,
)
from texpr.planner.strategy import Proposal, Rank, Strategy, Subject
from texpr.planner.tensor.boxed import SPAN, by_engine, extent, grouped
from texpr.planner.tensor.cores import Asked, at_once, microseconds, most_saved, require_filled, tiles_in
from texpr.planner.tensor.described import Together, columns_of, of_pairs, product_by
from texpr.planner.tensor.gathered import Gathered, gatherings, sides
from texpr.planner.tensor.going import Limits, alternated, by_parts, limits_of, ordered, paired, ways, written
from texpr.planner.tensor.product import Along, Product, by_warps, is_by_parts, keeps_few_bits
from texpr.planner.tensor.units import LAG, OF_WARPGROUPS, Unit, unit_of
from texpr.schedule.joint.records import usable_in
from texpr.schedule.tree import path_to
from texpr.support.record import field, replace

BARRIERS = 1024
"""Bytes of shared memory for barriers, and for where arrays begin."""

STAGES, FEW = (4, 3), 8
"""Turns that are in shared memory at once; of so few in all, fewer may leave room for another block."""

CLUSTER = 2
"""Blocks of a cluster, which share a strip of one operand."""

GAIN = 0.95
"""What a cluster has to save of the bound, which says nothing of how blocks wait for each other in each turn."""

WORTH = 0.98
"""What another way of blocks through tiles has to save: less is within what a model can tell."""

Asks: TypeAlias = Callable[["Operands"], Asked]
"""What a tile asks of a machine."""


class Operands(Tile):
    """A tile whose instructions, `names` for each sum, read operands in shared memory. `cluster`: blocks of one along rows, and
    columns; `goes`: how blocks go through tiles; `result`: what is written of each place, where that is one
    element; `along`: the loops with which operands vary; `halves`: blocks that multiply together, each with such a part of the
    columns in its shared memory."""

    names: tuple[str, ...] = ()
    cluster: tuple[int, int] = (1, 1)
    unit: Unit = OF_WARPGROUPS
    goes: Goes = Goes()
    result: Load | None = None
    along: Along = (frozenset(), frozenset())
    halves: int = 1

    @property
    def instructions(self) -> tuple[str, ...]:
        """What does the part of a warpgroup of each sum."""
        return self.names

    @property
    def groups(self) -> int:
        """Warpgroups of a block that multiply."""
        return self.shape.rows * self.shape.columns // prod(self.shape.part)

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        shape, result = self.shape, self.result
        stored = shape.rows * shape.columns * result.dtype.bytes if result is not None and self.goes.stored else 0
        stored = stored // self.goes.parts * self.goes.groups
        return shape.stages * self.product.brought(shape.rows, shape.columns // self.halves) * SPAN + stored + BARRIERS

    @property
    def is_clustered(self) -> bool:
        """Whether blocks are in clusters."""
        return prod(self.cluster) > 1

    @property
    def can_leave(self) -> bool:
        """Whether rows of results are whole rows of a swizzle, or of one, as the engine stores them."""
        row = 0 if self.result is None else self.shape.columns * self.result.dtype.bytes
        return 0 < row <= SPAN or (row > 0 and row % SPAN == 0)

    @property
    def apart(self) -> int:
        """Rows of a swizzle that a warpgroup's columns of results are; 1 where other warpgroups have columns beside them."""
        if self.result is None or self.shape.columns != self.shape.part[1]:
            return 1
        return max(1, self.shape.columns * self.result.dtype.bytes // SPAN)

    def data(self) -> dict[str, Any]:
        """For `explain`."""
        pairs = {"pairs": True} if self.halves > 1 else {}
        goes = {"blocks": self.goes.blocks, "stored": self.goes.stored, "parts": self.goes.parts, "groups": self.goes.groups}
        return {**super().data(), "team": "warpgroup", "cluster": list(self.cluster), **goes, **pairs}


class WarpgroupScript(ProductScript, kw_only=True):
    """Gives a tile of `nest` to blocks, warpgroups and instructions."""

    clusters: dict[Sym, str] = field(default_factory=dict[Sym, str])
    """Loops of a product along which blocks are in clusters, and the loops over these blocks."""
    shared_by: str = ""
    """The loop over blocks that share all tiles."""
    turn: str = ""
    """The loop over the tiles of one of them."""
    by_threads: bool = False
    """Whether threads copy what the engine does not."""

    def _grid(self, grid: Sequence[str], rows: Loops, columns: Loops) -> str:
        """Has neighbours in clusters, or blocks go through tiles, if that pays; and the engine store what is written."""
        tile = self.tile
        assert isinstance(tile, Operands)
        own = self._shared_out(grid) if tile.goes.blocks else grid[-1]
        if tile.goes.stored and tile.result is not None:
            (name,) = self.fresh(tile.result.buffer.name, "s")
            across = tile.product.columns.sym
            keys = by_engine(tile.result, {**tile.sizes, across: tile.shape.columns // tile.goes.parts})
            at = own if tile.goes.parts == 1 else self._by_parts(tile, own, columns[2])
            self.must("stage", tile.result.buffer.name, results=(name,), of=tile.result.buffer, at=at, **keys)
        loops = (tile.product.rows.sym, tile.product.columns.sym)
        for sym, name, blocks, level in zip(loops, (rows[0], columns[0]), tile.cluster, ("grid.x", "grid.y"), strict=True):
            if tile.is_clustered and not tile.goes.blocks:
                self.must("bind", name, level)
            if blocks > 1:
                self.clusters[sym] = self.shared_by or name
                self.must("cluster", self.clusters[sym], blocks)
        return own

    def _by_parts(self, tile: Operands, own: str, columns: str) -> str:
        """Has results of a tile, in iterations of the loop `own`, leave part by part; the loop over the parts."""
        assert tile.result is not None
        body, buffer = self.state.function.body, tile.result.buffer
        stored = next(s for s in ir.walk(body) if isinstance(s, ir.Bind) and any(t.buffer is buffer for t in s.targets))
        path = [loop for loop in path_to(body, stored) or () if isinstance(loop, ir.Par | ir.Seq)]
        inside = path[path.index(self.loop(own)) + 1 :]
        across = next(loop for loop in inside if self.is_copy(loop, columns)).sym.name
        part, inner = self.fresh(tile.product.columns.sym.name, "h", "n")
        self.must("split", across, tile.shape.columns // tile.goes.parts, results=(part, inner), of=buffer)
        others = [loop.sym.name for loop in inside if loop.sym.name != across]
        self.must("reorder", part, *others, inner, of=buffer)
        return part

    def _shared_out(self, grid: Sequence[str]) -> str:
        """Has blocks go through all tiles; the loop over those of a block."""
        tile = self.tile
        assert isinstance(tile, Operands)
        block, turn = self.fresh("tile", "b", "t")
        keys: dict[str, Value] = {"blocks": tile.goes.blocks}
        if tile.goes.group != 1:
            keys["order"] = grouped(tile.goes.group) if tile.goes.group else "columns"
        self.must("persistent", *grid, results=(block, turn), of=None, **keys)
        self.must("bind", block, "grid.x")
        self.shared_by, self.turn = block, turn
        return turn

    def require_laid_out(self) -> None:
        """The same; results that leave part by part may be what is in the way."""
        tile = self.tile
        assert isinstance(tile, Operands)
        try:
            super().require_laid_out()
        except Refused as reason:
            if tile.goes.parts > 1 and tile.result is not None:
                reason.buffer = tile.result.buffer
            raise

    def to_shared(self, load: Load, at: str) -> None:
        """Has the engine copy an operand, in rows of as many bytes as the swizzle."""
        buffer = load.buffer
        (name,) = self.fresh(buffer.name, "s")
        keys: dict[str, Value] = {"at": at, **by_engine(load, self.tile.sizes), **self.which(load)}
        alike = [name for sym, name in self.clusters.items() if all(sym not in e.syms() for e in load.index)]
        if alike:
            keys["multicast"] = alike[0]
        state, directives = self.state, list(self.directives)
        try:
            self.must("stage", buffer.name, results=(name,), of=buffer, **keys)
        except Refused as reason:
            if not self.by_threads or self.clusters or "box" in keys:
                raise
            self.state, self.directives = state, directives
            self.dropped.append(str(reason))
            self._written(load, name, at)

    def _written(self, load: Load, name: str, at: str) -> None:
        """Has threads copy an operand, to where the engine would."""
        buffer = load.buffer
        self.must("stage", buffer.name, results=(name,), of=buffer, at=at, space="shared", **self.which(load))
        last = self.last(name)
        chunk, inside = self.fresh(f"{name}_d{last}", "chunk", "lane")
        self.must("split", f"{name}.d{last}", CHUNK // buffer.dtype.bytes, results=(chunk, inside))
        self.must("swizzle", f"{name}.d{last - 1}", f"{name}.{chunk}", xor=SPAN // CHUNK)

    def _ahead(self, turn: str) -> None:
        """The same, so that a turn's product goes on in the next turn, if there are slots for that."""
        assert isinstance(self.tile, Operands)
        stages, lag = self.tile.shape.stages, self.tile.unit.lag
        if not lag or stages < 2 + lag or not self.may("pipeline", turn, stages=stages, lag=lag):
            super()._ahead(turn)
        self.apart_from_copies(turn)

    def apart_from_copies(self, turn: str) -> None:
        """Has a warp of its own copy, where blocks go through tiles: the operands of the next one, while results leave."""
        tile = self.tile
        assert isinstance(tile, Operands)
        if tile.goes.groups > 1:
            self.must("alternate", self.turn, groups=tile.goes.groups)
        if tile.goes.blocks:
            self.must("roles", turn, copy=1, compute=tile.groups * tile.goes.groups)


def tiles_of(
    product: Product, records: Sequence[Together], nest: Nest, target: Target, gathered: Gathered | None = None
) -> Iterator[Operands]:
    """The tiles that fit a block; `gathered`: of as many rows as those."""
    size, unit, result, along = product.size, unit_of(target), written(nest, product), product.along
    assert unit is not None, "as it applies"
    depth = SPAN // size
    turns = prod(ceil(nest.trips[loop.sym] / (depth if loop is product.sum else 1)) for loop in nest.seqs)
    widest = sorted(records, key=lambda each: columns_of(each[0]), reverse=True)
    rings = dict.fromkeys(min(stages, turns) for stages in (STAGES if turns <= FEW else STAGES[:1]))
    for stages, together, (down, across), tiles in itertools.product(rings, widest, unit.teams, unit.tiles):
        part = tiles * unit.rows, columns_of(together[0])
        rows, columns = down * part[0], across * part[1]
        names = tuple(each.name for each in together)
        shape = Shape(rows, columns, part, SPAN, stages)
        tile = Operands(shape, product, depth, gathered, names, unit=unit, result=result, along=along)
        whole = all(extent(load.index[-1], tile.sizes) * size % SPAN == 0 for load in product.loads)
        whole = whole and (gathered is None or gathered.rows == rows)
        scales = stages * (rows * product.scaled[0] + columns * product.scaled[1]) // QUARTER
        sums = tiles * part[1] * len(product.sums)
        whole = whole and sums + scales <= (unit.columns or sums)
        if whole and unit.kept(part, product.words) <= WORDS and tile.shared <= target.shared:
            yield tile


def every_tile(product: Product, records: Sequence[Together], nest: Nest, target: Target) -> list[Operands]:
    """The tiles that fit a block, of rows that one loop counts, and then of those that several do."""
    unit = unit_of(target)
    assert unit is not None, "as it applies"
    totals = sorted({down * tiles * unit.rows for (down, _), tiles in itertools.product(unit.teams, unit.tiles)})
    ways = (None, *gatherings(nest, product, totals))
    return [tile for way in ways for tile in tiles_of(product, records, nest, target, way)]


def asked(tile: Operands) -> Asked:
    """What a tile asks of a machine: each instruction reads its rows and columns."""
    product, shape, unit = tile.product, tile.shape, tile.unit
    times = len(product.sums) * shape.rows * shape.columns // (unit.rows * shape.part[1])
    return Asked(
        loops=(tile.seen.rows.sym, product.columns.sym, product.sum.sym),
        rows=shape.rows,
        columns=shape.columns,
        depth=tile.depth,
        read=times * (unit.rows + shape.part[1] / tile.halves) * SPAN,
        threads=WARPGROUP * tile.groups * tile.goes.groups + WARP * (tile.goes.blocks > 0),
        registers=int(unit.kept(shape.part, product.words)) + ADDRESSES,
        shared=tile.shared,
        of=product.of,
        into=product.found.result.dtype,
        sync=False,
        sums=len(product.sums),
        strips=product.strips,
        cluster=tile.cluster,
        halves=tile.halves,
        along=tile.along,
        goes=tile.goes,
        writes=0 if tile.result is None else tile.result.dtype.bytes,
        groups=tile.groups,
    )


def _clusters(tile: Operands) -> Iterator[Operands]:
    """The same in clusters of two blocks, whole at the sizes that are known; of sums in tensor memory, in pairs."""
    if tile.unit.columns:
        blocks = -(-tile.product.rows.extent.constant // tile.shape.rows) if tile.product.rows.extent.is_constant else 1
        names = of_pairs(tile.names)
        if names and blocks % PAIR == 0 and tile.gathered is None and not any(tile.product.scaled):
            yield replace(tile, names=names, cluster=(PAIR, 1), halves=PAIR, goes=Goes(group=0))
        return
    sides = (tile.product.rows, tile.shape.rows), (tile.product.columns, tile.shape.columns)
    for at, (loop, size) in enumerate(sides):
        blocks = -(-loop.extent.constant // size) if loop.extent.is_constant else 1
        if blocks % CLUSTER == 0:
            yield replace(tile, cluster=(CLUSTER, 1) if at == 0 else (1, CLUSTER), goes=Goes(group=0))


def going(tile: Operands, asks: Asks, limits: Limits, nest: Nest, target: Target) -> Iterator[Operands]:
    """The same as blocks may go through tiles, with as many slots of the ring as there is room for: of sums in registers."""
    if tile.unit.columns:
        return
    seen, slots = tile.seen_in(nest), range(tile.shape.stages, min(tile.shape.stages, LAG + 2) - 1, -1)
    fixed = all(loop.extent.is_constant for loop in nest.loops)
    bare = not {*nest.read_only()} - {*tile.product.operands}
    every = ways(limits, tile.can_leave and (fixed or bare))  # else ptxas 13.0 serialises products (C7515)
    for each in (way for goes in every for way in alternated(goes, tile.groups)):
        longer = ((way, replace(tile.shape, stages=n)) for goes in each for n in slots for way in by_parts(goes, tile.apart))
        made = (replace(tile, goes=way, shape=shape) for way, shape in longer)
        fits = next((one for one in made if one.shared <= target.shared), None)
        if fits is None or not fits.goes.blocks:
            yield from () if fits is None else (fits,)
            continue
        blocks, tiles = at_once(asks(fits), seen, target), tiles_in(asks(fits), seen)
        if not 0 < blocks < tiles:
            continue
        alone = replace(fits, goes=replace(fits.goes, blocks=blocks))
        yield alone
        if limits.clusters and fits.gathered is None:
            rows, columns = counts(fits, nest)
            pairs = paired(alone.goes, rows, columns, tiles // (rows * columns), CLUSTER)
            yield from (replace(alone, cluster=cluster, goes=goes) for cluster, goes in pairs)


def counts(tile: Operands, nest: Nest) -> tuple[int, int]:
    """Rows and columns of tiles."""
    trips = tile.seen_in(nest).trips
    return ceil(trips[tile.seen.rows.sym] / tile.shape.rows), ceil(trips[tile.product.columns.sym] / tile.shape.columns)


def applies(subject: Subject) -> bool:
    """Whether a target has such units, and the nest whole boxes."""
    return unit_of(subject.state.target) is not None and isinstance(subject.nest, Nest) and not subject.nest.whole


def _is_alone(refused: Sequence[Refused], by_threads: bool) -> bool:
    """Whether blocks are to be in no cluster, as what clusters need was refused."""
    names = [each.directive.name for each in refused]
    return names in (["bind"], ["cluster"]) or (by_threads and names == ["stage"])


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    assert isinstance(subject.nest, Nest), "as it applies"
    nest, target = subject.nest, subject.state.target
    if len(nest.pars) < 2 or not nest.seqs:
        return None
    found = allowed(product_by(nest, target), lambda: product_by(unmarked(nest), target), lambda o: o[0].found.instr.name)
    if found is None or min(sides(nest, found[0])) < LEAST:
        return None
    if is_by_parts(found[0], nest) or keeps_few_bits(found[0], nest):
        return None  # what adds parts up would be shared out otherwise than the tile is
    by_threads = not by_warps(nest, usable_in(subject.state.function, target))
    best = chosen(every_tile(*found, nest, target), asked, refused, subject, by_threads)
    if best is None:
        return None
    cost, tile = best
    script = WarpgroupScript(subject.state, subject.span, nest=nest, tile=tile, by_threads=by_threads)
    return Proposal(script, cost, timed(tile, asked(tile), tile.shape.stages, tile.seen_in(nest), target))


def chosen(
    every: Sequence[Operands], asks: Asks, refused: Sequence[Refused], subject: Subject, by_threads: bool
) -> tuple[float, Operands] | None:
    """The cheapest of tiles, in clusters or with blocks that go through tiles where that pays, with its cost; None where all
    were refused. Raises Forbidden."""
    assert isinstance(subject.nest, Nest), "as it has tiles"
    nest, target = subject.nest, subject.state.target
    limits, refused = limits_of(nest, subject.in_step, refused)
    gathered, tiles = ([tile for tile in every if (tile.gathered is None) is plain] for plain in (False, True))
    alone = _is_alone(refused, by_threads) and not gathered
    costs = [[(microseconds(asks(tile), tile.seen_in(nest), target), tile) for tile in ways] for ways in (tiles, gathered)]
    best = in_turn([min(each, key=lambda way: way[0]) for each in costs if each], () if alone else refused)
    if best is None:
        return None
    cost, tile = best
    if not alone and len(nest.pars) == len(tile.cluster):
        clustered = cheapest([*(each for tile in tiles for each in _clusters(tile))] or tiles, asks, nest, target)
        cost, tile = clustered if clustered[0] < GAIN * cost else (cost, tile)
    limits = replace(limits, clusters=not alone)
    least = (cost, asks, limits, nest, target)
    saving = [each for before, each in costs[tile.gathered is not None] if _may_save(each, before, *least)]
    shared = _going(saving, asks, limits, nest, target)
    cost, tile = shared if shared is not None and shared[0] < WORTH * cost else (cost, tile)
    require_filled(asks(tile), tile.seen_in(nest), target)
    return cost, tile


def _may_save(tile: Operands, before: float, best: float, asks: Asks, limits: Limits, nest: Nest, target: Target) -> bool:
    """Whether a tile that takes so long where each has a block may be better than the best in another way."""
    together = _clusters(tile) if limits.clusters and tile.gathered is None else ()
    before = min((before, *(microseconds(asks(each), each.seen_in(nest), target) for each in together)))
    return before - most_saved(asks(tile), tile.seen_in(nest), target) < WORTH * best


def _going(tiles: Sequence[Operands], asks: Asks, limits: Limits, nest: Nest, target: Target) -> tuple[float, Operands] | None:
    """The cheapest way of blocks through tiles, if there is one: the best tile line by line, and for that the best order; in
    clusters where that pays."""
    ways = [way for tile in tiles for way in going(tile, asks, limits, nest, target)]
    if not ways:
        return None
    found = (_worth([way for way in ways if way.is_clustered is each], asks, nest, target) for each in (False, True))
    alone, together = found
    if alone is None or (together is not None and together[0] < WORTH * alone[0]):
        return together
    return alone


def _worth(ways: Sequence[Operands], asks: Asks, nest: Nest, target: Target) -> tuple[float, Operands] | None:
    """The cheapest of some ways, in the best order; with groups that take turns where that pays."""
    together, turned = (
        _in_order([w for w in ways if (w.goes.groups > 1) is each], asks, nest, target) for each in (False, True)
    )
    if together is None or (turned is not None and turned[0] < WORTH * together[0]):
        return turned
    return together


def _in_order(ways: Sequence[Operands], asks: Asks, nest: Nest, target: Target) -> tuple[float, Operands] | None:
    """The cheapest of some ways, and for that the best order of tiles."""
    if not ways:
        return None
    cost, best = cheapest(ways, asks, nest, target)
    if not best.goes.blocks:
        return cost, best
    rows, _ = counts(best, nest)
    return cheapest([replace(best, goes=each) for each in ordered(best.goes, rows, best.cluster)], asks, nest, target)


def _others(subject: Subject) -> Iterator[Proposal]:
    """All tiles that fit a block, alone and in clusters."""
    assert isinstance(subject.nest, Nest), "as it applies"
    nest, target = subject.nest, subject.state.target
    found = product_by(nest, target)
    if found is None:
        return
    by_threads = not by_warps(nest, usable_in(subject.state.function, target))
    alone = every_tile(*found, nest, target)
    tiles = alone + [each for tile in alone if len(nest.pars) == len(tile.cluster) for each in _clusters(tile)]
    costs = ((microseconds(asked(tile), tile.seen_in(nest), target), tile) for tile in tiles)
    for cost, tile in sorted(costs, key=lambda each: each[0]):
        yield Proposal(WarpgroupScript(subject.state, subject.span, nest=nest, tile=tile, by_threads=by_threads), cost, tile)


STRATEGY = Strategy(Rank.PRODUCT, applies, _propose, _others)
"""Where nothing else is as fast; of products that a warp may do as well, by the bound of both."""
