"""What a multiprocessor waits for between tiles, of which a bound says nothing, and what the order of tiles does to memory.

A block that has a multiprocessor to itself starts when the one before has ended: its barriers are made, and its first operands
come, while nothing multiplies. Blocks that go through tiles (`persistent`), with warps of their own that copy, have the next
tile's operands by then. Results that lanes store keep the multiprocessor, too; the copy engine stores them beside the next
tile. How long each takes is measured by others (`isa.speed.Between`). Lanes still bring results to the memory from which the
engine stores them, as fast as that takes them at best. Where groups of warps take tiles in turn (`alternate`), one has the next
tile's products meanwhile, and only the last results are waited for.
"""

from __future__ import annotations

from math import ceil

from texpr.isa.speed import Device
from texpr.support.record import Record

KIB = float(1 << 10)


class Goes(Record):
    """How blocks go through tiles. `blocks`: that share all tiles, 0 where each has one; `group`: rows of tiles that are
    counted together, column by column, 1 for line by line, 0 for column by column; `stored`: whether the engine stores
    results, in so many `parts`, one after the other, of one piece of shared memory. `groups`: that take the tiles of a block in
    turn, 1 where all of its warps have each."""

    blocks: int = 0
    group: int = 1
    stored: bool = False
    parts: int = 1
    groups: int = 1


def between(goes: Goes, tiles: float, results: float, device: Device) -> float | None:
    """Microseconds of waiting of a multiprocessor with so many tiles, of so many bytes of results each; None where nobody has
    measured it. Of a block for each tile it is what such blocks wait at least, stores among it."""
    begin, store = device.between.begin.value, device.between.store.value
    if begin is None or store is None:
        return None
    if not goes.blocks:
        return begin * tiles
    last = min(1.0, tiles)
    each = tiles if goes.groups == 1 else last
    if not goes.stored:
        return begin + store * results / KIB * each
    filled = results / ((device.bandwidth.shared.value or 1.0) * (device.clock.value or 1.0))
    return begin + store * results / KIB * last + filled * each


class Strips(Record):
    """What tiles read: `down` strips of `row` bytes, and `across` of `column` bytes, of each of `many` products beside each
    other, of which `rows` have other rows and `columns` have other columns."""

    down: int
    across: int
    row: float
    column: float
    many: int = 1
    rows: int = 1
    columns: int = 1


def brought(strips: Strips, goes: Goes, blocks: int, device: Device) -> float:
    """Bytes from memory: of an operand that takes no more than half of the second-level cache each strip once, and of another
    one for each round of `blocks` tiles that reads it."""
    whole = strips.down * strips.row * strips.rows, strips.across * strips.column * strips.columns
    cache = device.cache.value
    if cache is None or max(whole) <= cache / 2:
        return sum(whole)
    rows = columns = 0.0
    for first in range(0, strips.down * strips.across, blocks):
        count = min(blocks, strips.down * strips.across - first)
        down, across = _spanned(goes.group, first, count, strips.down, strips.across)
        rows, columns = rows + down * strips.row, columns + across * strips.column
    asked = zip(whole, (rows * strips.many, columns * strips.many), strict=True)
    return sum(once if once <= cache / 2 else max(once, each) for once, each in asked)


def _spanned(group: int, first: int, count: int, down: int, across: int) -> tuple[int, int]:
    """Rows and columns of tiles that so many tiles from a number on have."""
    height = down if group == 0 else min(group, down)
    of_group = height * across
    start, end = first % of_group, first % of_group + count
    if end <= of_group:  # columns of one group
        return min(height, count), ceil(end / height) - start // height
    groups = ceil(end / of_group)
    over = end - (groups - 1) * of_group  # tiles of the last group
    rows = min(height, of_group - start) + (groups - 2) * height + min(height, over)
    columns = across - start // height + ceil(over / height) if groups == 2 else across
    return min(down, rows), min(across, columns)
