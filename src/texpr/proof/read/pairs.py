"""Pairs of blocks: what a thread of the first one does for both, and tiles of which each has one half for both.

An event of a pair is told in coordinates of the block whose rows of tensor memory it is about; the block that executes it is
the first one of its pair (`Site.sender`). A halved tile is read as if each block had all of it: a copy for both blocks writes
one half in both, at the same time, and nothing else writes there, so that at any time both blocks would have the same as the
one that has the half. What copies bring may count at the barrier of another block than that of the tile: of the one that copies
a half, or of the first block of a pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.operation import Brings
from texpr.ir.value import Buffer, Load
from texpr.isa.instructions.tcgen05 import PAIR
from texpr.presburger.formula import Eq, Formula, between, rename
from texpr.proof.read.boxes import Copy, Sender
from texpr.proof.read.events import Launch, Site, over
from texpr.proof.read.order import ranks
from texpr.support.record import Record, field, replace


class Half(Record):
    """A tile of which each block of a pair has a half along dimension `dim`: `whole`, as if each had all of it."""

    whole: Buffer
    dim: int
    rows: int

    def of(self, load: Load, part: Expr) -> Load:
        """An element of one block's half, as one of the whole tile."""
        index = (*load.index[: self.dim], load.index[self.dim] + part * self.rows, *load.index[self.dim + 1 :])
        return replace(load, buffer=self.whole, index=index)

    def holds(self, load: Load) -> Formula:
        """The condition that an element is in a half."""
        return between(ZERO, load.index[self.dim], expr(self.rows))


Halves: TypeAlias = Mapping[Buffer, Half]


def half_of(array: k.Array) -> Half | None:
    """What there is of an array in both blocks of a pair, if it is halved."""
    if array.halved is None or array.halved >= array.buffer.rank or not array.buffer.shape[array.halved].is_constant:
        return None
    rows, shape = array.buffer.shape[array.halved].constant, list(array.buffer.shape)
    shape[array.halved] = expr(rows * PAIR)
    return Half(replace(array.buffer, shape=tuple(shape)), array.halved, rows)


def sent(site: Site, by: Sender) -> Site:
    """A site of the sender of a box, in coordinates of the receiver."""
    domain = tuple(rename(fact, by.values) for fact in site.domain)
    bounds = {loop: (lo.substitute(by.values), hi.substitute(by.values)) for loop, (lo, hi) in site.bounds.items()}
    own = tuple(expr(sym).substitute(by.values) for sym in site.launch.blocks)
    return over(replace(site, domain=(*domain, *by.domain), bounds=bounds, sender=own), by.loops)


def led(site: Site) -> Site:
    """A site of the first block of a pair, in coordinates of either block. Raises ValueError where blocks are in no pairs."""
    if site.tests:
        raise ValueError("a test of data decides whether a pair of blocks does it")
    return sent(site, Sender({sym: first for sym, first in _firsts(site.launch).items()}))


def beside(launch: Launch, number: int) -> dict[Sym, Expr]:
    """The coordinates in which a block of a pair, first or second, differs from the other one of its pair."""
    return {sym: first + number for sym, first in _firsts(launch).items()}


def _firsts(launch: Launch) -> dict[Sym, Expr]:
    found = dict(ranks(launch))
    if list(found.values()) != [PAIR]:
        raise ValueError("blocks that are no pair do it together")
    ends = {axis.sym: axis.extent for axis in launch.kernel.axes}
    return {s: ZERO if ends[s] is expr(n) else expr(s) // n * n for s, n in found.items()}


class Counted(Record):
    """How bytes of a copy count at a barrier: the site of the signal, in coordinates of the barrier's block, and those of these
    that differ from an event's, by the event's. Those of both blocks of a pair may count in the first one."""

    site: Site
    afar: Mapping[Sym, Expr] = field(default_factory=dict[Sym, Expr])


def counted(what: Brings, site: Site, by: Sender, name: str) -> Counted:
    """How a copy at a `site` counts that `by` sends to a half, or to its own block. Raises ValueError."""
    if not what.led:
        return Counted(site, by.values)
    ((sym, first),) = _firsts(site.launch).items()
    if site.tests or any(e.syms() & {*site.launch.blocks} for e in what.at.index):
        raise ValueError("at which barrier of a pair a copy counts, or whether, depends on more than turns")
    number = k.For(Sym(f"{name}.of"), ZERO, expr(PAIR), (), ONE, "simd")
    here = Sender({sym: first + number.sym}, (number,), (Eq(expr(sym) % PAIR),))
    sender = part_of(by) if by.loops else expr(sym) % PAIR
    return Counted(sent(site, here), {sym: first, number.sym: sender})


def near_of(copy: Copy) -> Buffer:
    """The array in shared memory that a copy may fill."""
    return copy.tiles[0].buffer


def part_of(by: Sender) -> Expr:
    """The half that the sender of a box for both blocks of a pair has: its rank. Raises ValueError for other boxes."""
    if len(by.loops) != 1 or by.domain or by.needs is not None or by.loops[0].hi is not expr(PAIR):
        raise ValueError("a copy into a half that is not for both blocks of a pair")
    return expr(by.loops[0].sym)
