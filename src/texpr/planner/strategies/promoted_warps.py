"""Products of few bits by instructions of warps, by parts, as warpgroups do them (`texpr.planner.strategies.promoted`).

Where the text has no parts, one is what a turn brings: at most 128 terms. Where it has, a turn is one of its parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from texpr.isa.levels import WARP
from texpr.planner.copies import COPIED
from texpr.planner.follow import Refused
from texpr.planner.nest import Nest
from texpr.planner.strategies.products import LEAST, SHAPES, WORDS, Tile, asked, cheapest
from texpr.planner.strategies.promoted import ByParts
from texpr.planner.strategy import Proposal, Rank, Strategy, Subject
from texpr.planner.tensor.cores import Asked, require_filled
from texpr.planner.tensor.gathered import sides
from texpr.planner.tensor.product import Product, is_by_parts, keeps_few_bits, product_of
from texpr.schedule.joint.records import usable_in
from texpr.support.record import replace


def parts_kept(tile: Tile) -> int:
    """Registers of a thread for parts."""
    return int(prod(tile.shape.part) * tile.product.words / WARP)


def doubled(tile: Tile) -> Asked:
    """What a tile asks of a machine: of registers for parts, too."""
    found = asked(tile)
    return replace(found, registers=found.registers + parts_kept(tile))


def _tiles(subject: Subject) -> list[Tile]:
    """The tiles for a sum by parts; none where it needs none, or cannot have them."""
    nest, target = subject.nest, subject.state.target
    if not isinstance(nest, Nest) or len(nest.pars) < 2 or not nest.seqs:
        return []
    found = product_of(nest, usable_in(subject.state.function, target))
    if found is None or found.wider or min(sides(nest, found)) < LEAST or not keeps_few_bits(found, nest):
        return []
    return list(_fitting(nest, found, target.shared))


def _fitting(nest: Nest, product: Product, most: int) -> Iterator[Tile]:
    """The shapes that instructions divide, whose sums, parts and operands fit registers, and operands shared memory."""
    rows, columns, step = product.extents
    for shape in SHAPES:
        depth = nest.trips[product.sum.sym] if is_by_parts(product, nest) else shape.depth // product.size
        tile = Tile(shape, product, depth)
        even = shape.part[0] % rows == 0 and shape.part[1] % columns == 0 and depth % step == 0
        operands = sum(shape.part) * step * product.size / 4 / WARP
        bytes = shape.stages * product.brought(shape.rows, shape.columns) * (depth * product.size + COPIED[0])
        if even and 2 * parts_kept(tile) + operands <= WORDS and bytes <= most:
            yield tile


def _applies(subject: Subject) -> bool:
    return subject.state.target.has_warps and isinstance(subject.nest, Nest) and not subject.nest.whole


def _proposal(subject: Subject, cost: float, tile: Tile) -> Proposal:
    assert isinstance(subject.nest, Nest), "as it has tiles"
    return Proposal(ByParts(subject.state, subject.span, nest=subject.nest, tile=tile), cost, tile)


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    every = _tiles(subject)
    if not every or refused:
        return None
    nest, target = subject.nest, subject.state.target
    assert isinstance(nest, Nest), "as it has tiles"
    cost, tile = cheapest(every, doubled, nest, target)
    require_filled(doubled(tile), tile.seen_in(nest), target)
    return _proposal(subject, cost, tile)


def _others(subject: Subject) -> Iterator[Proposal]:
    """All tiles that fit a block."""
    for tile in _tiles(subject):
        assert isinstance(subject.nest, Nest), "as it has tiles"
        yield _proposal(subject, cheapest([tile], doubled, subject.nest, subject.state.target)[0], tile)


STRATEGY = Strategy(Rank.PRODUCT, _applies, _propose, _others)
"""Where a unit keeps fewer bits of a sum than its type has, and no warpgroup does it faster."""
