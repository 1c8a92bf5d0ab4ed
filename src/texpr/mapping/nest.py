"""The result of mapping: for each `par`, its index from hardware coordinates and sequential steps.

The σ of the sources at two levels. A `par` of the *grid* band has `index = block · tile + point · radix + share`, one of the
*team* that runs a grid iteration `index = step · radix + share`. A loop's share is `Σ weight · (thread / stride % radix)`
over its digits of the thread number, and its radix their product; points and steps are sequential. A `par` without a map runs
sequentially in a thread. Where an extent is not divisible, the padding is a hole and is guarded.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cached_property
from math import prod

from texpr.affine.expr import ZERO, Expr, expr
from texpr.ir import program as ir
from texpr.ir.program.uses import loads
from texpr.ir.steps.digits import Digit, radix, share
from texpr.ir.value import Buffer
from texpr.isa.memories import Coalescing
from texpr.mapping.cost.streams import Band
from texpr.mapping.solve import Solution
from texpr.support.record import Record, field


class Role(Enum):
    """What a mapped `par` is distributed over."""

    GRID = "grid"
    TEAM = "team"
    REDUCE = "reduce"  # a team loop that reduces into accumulators


class LoopMap(Record):
    """The map of one `par`.

    `tile`: iterations of a block coordinate; `digits`: of the thread number, the weight of each the product of the radices
    before it. `lane`: its points are innermost, as vector lanes. `dim`: the requested dimension of the grid, if any.
    `cluster`: the number of its blocks in a cluster.
    """

    loop: ir.Par
    role: Role
    tile: int = 1
    digits: tuple[Digit, ...] = ()
    lane: bool = False
    dim: str = ""
    cluster: int = 1

    @property
    def radix(self) -> int:
        """How many iterations threads run side by side."""
        return radix(self.digits)

    @property
    def points(self) -> int:
        """The sequential points of a tile for one thread."""
        return self.tile // self.radix

    def blocks(self) -> Expr:
        """The number of block coordinates of a GRID loop."""
        return (self.loop.extent + (self.tile - 1)) // self.tile

    def share(self, thread: Expr, threads: int = 0) -> Expr:
        """The contribution of a thread's number to this loop's index; `threads`: an exclusive upper bound of the number,
        where known."""
        return share(self.digits, thread, threads)

    def thread(self) -> Expr:
        """The contribution of the loop's index to the number of the thread that runs it."""
        index = expr(self.loop.sym)
        return sum((index // d.weight % d.radix * d.stride for d in self.digits), start=ZERO)


def one_digit(radix: int, stride: int = 1) -> tuple[Digit, ...]:
    """One digit, or none where the radix is 1."""
    return (Digit(radix, stride),) if radix > 1 else ()


class Solved(Record):
    """The result of the solver of σ for one band of loops."""

    loops: tuple[ir.Par, ...]
    band: Band
    solution: Solution


class TeamBand(Record, eq=False, dict=True):
    """A band that a team runs, and its maps by shape."""

    loops: tuple[ir.Par, ...]
    shape: tuple[LoopMap, ...]

    @property
    def body(self) -> tuple[ir.Stmt, ...]:
        """Its body."""
        return self.loops[-1].body

    @property
    def threads(self) -> int:
        """The threads of its team."""
        return prod(d.radix for m in self.shape for d in m.digits)

    @cached_property
    def touched(self) -> frozenset[Buffer]:
        """Every buffer that its iterations access."""
        return frozenset(load.buffer for s in ir.walk(self.body) for load in loads(s))


class Nest(Record, eq=False):
    """The program of one kernel: a grid band and the body of its iterations.

    `team` threads run an iteration of the grid band (1: each thread runs its own), `threads` make a block; a larger team
    comprises all blocks of a cluster, numbered consecutively. `loops` maps every GRID, TEAM and REDUCE loop. `digits`: radix
    and stride of each digit of the thread number where a schedule names them; a band without one of them is run by the
    threads in which that digit is 0. `origin`: for rebuilt statements the original ones. `solved`: the solver's results for
    bands; `row_padding`: elements of padding of the rows of arrays. `request`: the machine's model of a request of a warp.

    `bands`: those that a team runs, mapped by shape until `mapping.dealt.deal`; `alone`: they are the whole body of a block.
    """

    grid: tuple[LoopMap, ...]
    body: tuple[ir.Stmt, ...]
    team: int
    threads: int
    loops: Mapping[ir.Par, LoopMap]
    digits: tuple[tuple[int, int], ...] = ()
    origin: Mapping[ir.Stmt, ir.Stmt] = field(default_factory=dict[ir.Stmt, ir.Stmt])
    solved: tuple[Solved, ...] = ()
    row_padding: Mapping[Buffer, int] = field(default_factory=dict[Buffer, int])
    request: Coalescing = Coalescing()
    bands: tuple[TeamBand, ...] = ()
    alone: bool = False

    @property
    def warp(self) -> int:
        """The lanes of a warp."""
        return self.request.lanes

    @property
    def blocks(self) -> int:
        """The number of blocks of a cluster that run one iteration of the grid band."""
        return max(1, self.team // self.threads)
