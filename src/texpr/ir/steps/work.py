"""Kinds of work: what the threads of a step do with its statements.

run                 each thread executes them
points              each thread executes them for its own points: an iteration of the grid belongs to one thread
spread              the iterations of a loop are distributed over the threads, by digits of their numbers
partial, middle, total    a reduction: the sum of each thread, combined in a warp; of the warps of a block; the result
decide NAME         each thread evaluates a condition, for a branch that follows
issue               operations start an engine that does them
together            lanes execute an instruction together, each on its own registers
order               operations for order: barriers, waits, phases, fences, groups of copies
end                 the point at which the blocks of a cluster exit, for reads of their memory by others
"""

from __future__ import annotations

from typing import ClassVar

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir.program.updates import Accumulator
from texpr.support.record import Record


class Work(Record):
    """A kind of work."""

    NAME: ClassVar[str] = ""


class Run(Work):
    """Each thread executes the statements."""

    NAME = "run"


class Points(Work):
    """Each thread executes the statements for its own points."""

    NAME = "points"


class Spread(Work):
    """The iterations of the loop are distributed over the threads."""

    NAME = "spread"


class Half(Work):
    """A part of a reduction into `accumulators`. `replicated`: every thread has its own copy of the result."""

    accumulators: tuple[Accumulator, ...] = ()
    replicated: bool = False


class Partial(Half):
    """Each thread's partial sum, combined over the lanes of its warp, and stored for other warps or blocks."""

    NAME = "partial"


class Middle(Half):
    """The partial sums of a block's warps, combined and stored for the other blocks of its cluster."""

    NAME = "middle"


class Total(Half):
    """The stored partial sums, combined into the accumulators."""

    NAME = "total"


class Decide(Work):
    """The condition is stored in `symbol`. `alike`: it is the same in all blocks of a cluster."""

    NAME = "decide"

    symbol: Sym
    alike: bool = False


class Does(Work):
    """Work that consists of operations of a kernel."""

    does: tuple[k.Stmt, ...] = ()


class Issue(Does):
    """An engine executes the statements; the operations start it."""

    NAME = "issue"


class Together(Does):
    """Lanes execute an instruction together; the operation has their registers."""

    NAME = "together"


class Order(Does):
    """Operations for order."""

    NAME = "order"


class End(Work):
    """The end of a team of several blocks."""

    NAME = "end"
