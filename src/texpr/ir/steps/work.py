"""Kinds of work: what the threads of a step do with the statements of it.

run                 each runs them as they stand
points              each runs them for points of its own: an iteration of the grid is one thread's
spread              the iterations of a loop are dealt out to them, by digits of their numbers
partial, middle, total    a reduction: each thread's share, joined in a warp; that of warps in a block; the element itself
decide NAME         each evaluates a condition, by which all of them branch behind it
issue               an engine is told to do them, by operations
together            lanes do an instruction together, each on registers of its own
order               operations for the sake of order: barriers, waits, phases, fences, groups of copies
end                 nothing, where blocks of a cluster end, and with each what others read of it
"""

from __future__ import annotations

from typing import ClassVar

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir.program.updates import Accumulator
from texpr.support.record import Record


class Work(Record):
    """One kind."""

    NAME: ClassVar[str] = ""


class Run(Work):
    """Each thread runs the statements as they stand."""

    NAME = "run"


class Points(Work):
    """Each thread runs the statements for points of its own."""

    NAME = "points"


class Spread(Work):
    """The iterations of the loop are dealt out."""

    NAME = "spread"


class Half(Work):
    """A part of a reduction into `accumulators`. `replicated`: every thread has its own copy of the result."""

    accumulators: tuple[Accumulator, ...] = ()
    replicated: bool = False


class Partial(Half):
    """Each thread's share, joined over the lanes of its warp, and left for other warps or blocks."""

    NAME = "partial"


class Middle(Half):
    """What the warps of a block left, joined and left for the other blocks of its cluster."""

    NAME = "middle"


class Total(Half):
    """What was left, joined into the elements that are reduced into."""

    NAME = "total"


class Decide(Work):
    """The condition goes to `symbol`. `alike`: it is the same in all blocks of a cluster."""

    NAME = "decide"

    symbol: Sym
    alike: bool = False


class Does(Work):
    """Work that is operations of a kernel."""

    does: tuple[k.Stmt, ...] = ()


class Issue(Does):
    """An engine does the statements; the operations tell it to."""

    NAME = "issue"


class Together(Does):
    """Lanes do an instruction together; the operation has their registers."""

    NAME = "together"


class Order(Does):
    """Operations for the sake of order."""

    NAME = "order"


class End(Work):
    """Nothing."""

    NAME = "end"
