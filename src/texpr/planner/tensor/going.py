"""How blocks may go through the tiles of a product: each has one; or as many as there is room for share all, with a warp of its
own that copies (`persistent`, `roles`), in one of several orders; and whether the engine stores what they write.

What is best follows from the model: a block to which a multiprocessor belongs is waited for between tiles, or not
(`texpr.model.tiles`). So blocks share tiles only where sizes are known, as nobody knows otherwise how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.ir import program as ir
from texpr.ir.value import Load
from texpr.model.tiles import Goes
from texpr.planner.follow import Refused
from texpr.planner.nest import Nest
from texpr.planner.tensor.product import Product
from texpr.support.record import Record, replace

GROUPS = (1, 16, 8, 4, 2, 0)
"""Rows of tiles that are counted together: whole lines first, which need no more than a number of tiles."""

PARTS = (1, 2, 4)
"""Parts of a tile that the engine stores one after the other, which leaves room for a longer ring."""

SHARES = ("persistent", "roles")
"""Directives by which blocks share tiles."""


class Limits(Record):
    """What is allowed: `shares`: that blocks share tiles; `stores`: that the engine stores results; `clusters`: that blocks
    which share tiles are in clusters."""

    shares: bool
    stores: bool
    clusters: bool = False


def limits_of(nest: Nest, in_step: bool, refused: Sequence[Refused]) -> tuple[Limits, tuple[Refused, ...]]:
    """What is left after what was refused, and refusals of other things. `in_step`: no warps have work of their own."""
    read = {*nest.read_only()}
    shares = [each for each in refused if each.directive.name in SHARES]
    stores = [each for each in refused if each.buffer is not None and each.buffer not in read]
    fixed = all(loop.extent.is_constant for loop in nest.pars)
    others = tuple(each for each in refused if each not in shares and each not in stores)
    return Limits(fixed and not in_step and not shares, not stores), others


def ways(limits: Limits, can_store: bool) -> Iterator[tuple[Goes, ...]]:
    """How blocks may go, line by line, with 1 for the number of those that share tiles; of several ways the first one that fits
    a block is the best. `can_store`: whether there is an array that the engine stores."""
    stores = can_store and limits.stores
    if limits.shares:
        yield (Goes(1, stored=True), Goes(1)) if stores else (Goes(1),)
    if stores:
        yield (Goes(stored=True),)


def alternated(goes: Sequence[Goes], warpgroups: int) -> Iterator[tuple[Goes, ...]]:
    """The same, and with two groups that take tiles in turn, where a tile is of one of so many: more have no registers."""
    yield tuple(goes)
    if all(each.blocks for each in goes) and warpgroups == 1:
        yield tuple(replace(each, groups=2) for each in goes)


def by_parts(goes: Goes, columns: int) -> Iterator[Goes]:
    """The same with results that leave in so many parts as there may be of so many columns, each of whole rows of a swizzle."""
    yield goes
    yield from (replace(goes, parts=n) for n in PARTS[1:] if goes.stored and columns % n == 0)


def ordered(goes: Goes, rows: int, cluster: tuple[int, int] = (1, 1)) -> Iterator[Goes]:
    """The same in every order of tiles, of which there are so many rows; those that neighbours of a cluster have follow each
    other, along rows, along columns, or along none."""
    every = (n for n in GROUPS if n < 2 or (rows > n and rows % n == 0))
    along_rows, along_columns = cluster
    if along_rows > 1:
        every = (n for n in every if n % along_rows == 0)
    elif along_columns > 1:
        every = (n for n in every if n == 1)
    yield from (replace(goes, group=n) for n in every)


def paired(goes: Goes, rows: int, columns: int, many: int, count: int) -> Iterator[tuple[tuple[int, int], Goes]]:
    """The clusters of `count` blocks along rows, or along columns, that may share tiles, `many` products of so many rows and
    columns of them: the blocks of each have tiles beside each other, and as many; with an order of tiles."""
    if goes.blocks % count or rows * columns * many % count:
        return
    if columns % count == 0:
        yield (1, count), replace(goes, group=1)
    if rows % count == 0:
        yield (count, 1), replace(goes, group=0)


def written(nest: Nest, product: Product) -> Load | None:
    """What is written of each place behind its sum, one element of one array that is not summed up; None where it is not."""
    sums = {each.bind.targets[0].buffer for each in product.sums}
    binds = [stmt for stmt in ir.walk(nest.pars[-1].body) if isinstance(stmt, ir.Bind)]
    targets = [target for stmt in binds for target in stmt.targets if target.buffer not in nest.local]
    one = len(targets) == 1 and targets[0].buffer not in sums and targets[0].buffer.rank > 0
    return targets[0] if one and _is_plain(targets[0], nest) else None


def _is_plain(target: Load, nest: Nest) -> bool:
    """Whether its subscripts are loops of the nest, each once."""
    syms = [each.as_sym for each in target.index]
    known = {loop.sym for loop in nest.pars}
    return not target.data and None not in syms and len({*syms}) == len(syms) and {*syms} <= known
