"""Products of a warpgroup of which lanes compute one operand: weights of few bits, which are converted and scaled in registers.

split, split, …        blocks, warpgroups of a block, and a warpgroup's part, of rows and of columns; turns of the sum
reorder, bind          grid, the sum's turns, warpgroups, their part
stage … in=registers   what is summed up
stage … via=tma        the operand in shared memory, as a descriptor says, and what the other one is computed of, as it is, with
                       what that has alike for many terms, as scales
mma, pipeline          lanes compute their fragments of a turn, and then instructions do the part of a warpgroup

What lanes compute is the left operand: rows of the product are those of the text, or its columns, as the narrow one has them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import ceil, prod

from texpr.ir import program as ir
from texpr.ir.value import Cast, Load, Op, walk
from texpr.isa.cuda import WARPGROUP, WGMMA
from texpr.isa.engine import CHUNK
from texpr.isa.instructions.wgmma import ROWS
from texpr.isa.target import Target
from texpr.planner.copies import Copies
from texpr.planner.follow import Refused, Value
from texpr.planner.nest import Nest
from texpr.planner.strategies.products import ADDRESSES, LEAST, WORD, WORDS, Shape, in_turn
from texpr.planner.strategies.warpgroups import BARRIERS, FEW, STAGES, Operands, WarpgroupScript
from texpr.planner.strategies.warpgroups import asked as asked_of
from texpr.planner.strategy import Proposal, Rank, Strategy, Subject
from texpr.planner.tensor.boxed import SPAN, by_engine, extent
from texpr.planner.tensor.cores import Asked, microseconds, require_filled
from texpr.planner.tensor.described import Together, columns_of, product_by
from texpr.planner.tensor.gathered import sides
from texpr.planner.tensor.product import Product, elements, is_by_parts, keeps_few_bits
from texpr.planner.tensor.units import OF_WARPGROUPS
from texpr.support.record import replace

DEPTHS = (1, 2)
"""Lines of a row of the operand in shared memory that a turn has."""

SWIZZLES = tuple(CHUNK << bits for bits in (3, 2, 1))
"""Bytes of a row within which the engine may move chunks, to other banks (PTX ISA, "Swizzling modes")."""

BANK = 4
"""Bytes that a lane reads at once, of however few an element has."""


class Converted(Operands):
    """A tile one of whose operands lanes compute."""

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        every = (*self.product.loads, *self.product.alike)
        return self.shape.stages * sum(self.bytes(load) for load in every) + BARRIERS

    def bytes(self, load: Load) -> int:
        """Bytes of an array that a turn has."""
        return prod(extent(e, self.sizes) for e in load.index) * load.buffer.dtype.bytes

    @property
    def described(self) -> frozenset[Load]:
        """What instructions read where it is."""
        found = self.product.sums
        return frozenset(m.reads[o.memory] for m in found for o in m.instr.operands if o.is_described)

    @property
    def computed(self) -> float:
        """Elements that a lane computes in a turn."""
        return self.shape.part[0] * self.depth * len(self.product.sums) / WARPGROUP

    @property
    def kept(self) -> int:
        """Registers of a thread for what it sums up, and what it computes."""
        return int(self.unit.kept(self.shape.part, self.product.words) + self.computed * self.product.of.bytes / WORD)


class ConvertedScript(WarpgroupScript, kw_only=True):
    """Gives such a tile to blocks, warpgroups and instructions."""

    def to_shared(self, load: Load, at: str) -> None:
        """Has the engine copy an operand in rows of a swizzle, and what the other one is computed of as its rows are."""
        tile = self.tile
        assert isinstance(tile, Converted)
        (name,) = self.fresh(load.buffer.name, "s")
        keys: dict[str, Value] = {"at": at, **self._how(tile, load), **self.which(load)}
        self.must("stage", load.buffer.name, results=(name,), of=load.buffer, **keys)

    def alike_to_shared(self, load: Load, at: str) -> None:
        """Has the engine copy it, too, as copies of threads would be waited for in each turn; or those, where it does not."""
        state, directives = self.state, list(self.directives)
        try:
            self.to_shared(load, at)
        except Refused as reason:
            self.state, self.directives = state, directives
            self.dropped.append(str(reason))
            Copies.to_shared(self, load, at)

    def _how(self, tile: Converted, load: Load) -> dict[str, Value]:
        if load in tile.described:
            return by_engine(load, tile.sizes)
        extents, size = [extent(e, tile.sizes) for e in load.index], load.buffer.dtype.bytes
        row = next((each for each in SWIZZLES if extents[-1] * size % each == 0), 0)
        keys: dict[str, Value] = {"via": "tma", "space": "shared"}
        if row:
            keys["swizzle"] = f"{row}B"
        if row and extents[-1] * size > row:
            keys["box"] = ir.Group(tuple(ir.Argument(each) for each in (*extents[:-1], row // size)))
        return keys


def _tiles(product: Product, records: Sequence[Together], nest: Nest, target: Target) -> Iterator[Converted]:
    """The tiles that fit a block."""
    unit, line = OF_WARPGROUPS, SPAN // product.of.bytes
    widest = sorted(records, key=lambda each: columns_of(each[0]), reverse=True)
    for lines, together, (down, across), tiles in itertools.product(DEPTHS, widest, unit.teams, unit.tiles):
        part = tiles * ROWS, columns_of(together[0])
        names, depth = tuple(each.name for each in together), lines * line
        turns = prod(ceil(nest.trips[loop.sym] / (depth if loop is product.sum else 1)) for loop in nest.seqs)
        if product.sum.extent.is_constant and product.sum.extent.constant % depth:
            continue  # what is computed of holes is not zero
        for stages in dict.fromkeys(min(stages, turns) for stages in (STAGES if turns <= FEW else STAGES[:1])):
            shape = Shape(down * part[0], across * part[1], part, depth, stages)
            tile = Converted(shape, product, depth, names=names)
            whole = all(extent(load.index[-1], tile.sizes) * product.of.bytes % SPAN == 0 for load in tile.described)
            if whole and tile.kept <= WORDS and tile.shared <= target.shared:
                yield tile


def asked(tile: Converted) -> Asked:
    """What a tile asks of a machine: instructions read their columns, and lanes what they compute their rows of."""
    found, product, shape = asked_of(tile), tile.product, tile.shape
    parts = shape.rows * shape.columns // prod(shape.part)
    read = len(product.sums) * parts * (shape.part[0] // ROWS) * shape.part[1] * tile.depth * product.of.bytes
    lanes = parts * WARPGROUP * tile.computed * BANK
    return replace(found, read=read + lanes, registers=tile.kept + ADDRESSES, added=tile.computed * _work(product))


def _work(product: Product) -> int:
    """Instructions for an element that lanes compute."""
    values = [value for found in product.sums for value in found.computed.values()]
    loads = [load for m in product.sums for o in m.instr.operands if o.memory in m.computed for load in elements(m, o)]
    dense = sum(any(load is each for each in product.loads) for load in loads)
    return dense + max(sum(isinstance(node, Op | Cast) for node in walk(value)) for value in values)


def _applies(subject: Subject) -> bool:
    return WGMMA in subject.state.target.features and isinstance(subject.nest, Nest) and not subject.nest.whole


def _every(subject: Subject) -> list[tuple[float, Converted]]:
    """The tiles, with their modelled time."""
    nest, target = subject.nest, subject.state.target
    if not isinstance(nest, Nest) or len(nest.pars) < 2 or not nest.seqs:
        return []
    found = product_by(nest, target, computed=True)
    if found is None or min(sides(nest, found[0])) < LEAST or is_by_parts(found[0], nest) or keeps_few_bits(found[0], nest):
        return []
    return [(microseconds(asked(tile), nest, target), tile) for tile in _tiles(*found, nest, target)]


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    nest, every = subject.nest, _every(subject)
    found = in_turn(every, refused)
    if found is None:
        return None
    assert isinstance(nest, Nest), "as it has tiles"
    cost, tile = found
    require_filled(asked(tile), nest, subject.state.target)
    return Proposal(ConvertedScript(subject.state, subject.span, nest=nest, tile=tile), cost, tile)


def _others(subject: Subject) -> Iterator[Proposal]:
    """All tiles that fit a block."""
    for cost, tile in sorted(_every(subject), key=lambda each: each[0]):
        assert isinstance(subject.nest, Nest), "as it has tiles"
        yield Proposal(ConvertedScript(subject.state, subject.span, nest=subject.nest, tile=tile), cost, tile)


STRATEGY = Strategy(Rank.PRODUCT, _applies, _propose, _others)
"""Where no instruction reads both operands as the text has them."""
