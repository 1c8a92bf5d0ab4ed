"""What mapping decides: for each `par`, how its index is had from hardware coordinates and sequential steps.

The seed's σ at two levels. A `par` of the *grid* band gives `index = block · tile + point · radix + share`, one of the *team*
that shares a grid iteration gives `index = step · radix + share`. A loop's share is `Σ weight · (thread / stride % radix)` over
its digits of the thread number, and its radix their product; points and steps are sequential. A `par` without a map runs
sequentially inside a thread. Where an extent is not divisible, the padding is a hole and is guarded.
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
    """What a mapped `par` is shared out over."""

    GRID = "grid"
    TEAM = "team"
    REDUCE = "reduce"  # a team loop whose iterations meet in accumulators


class LoopMap(Record):
    """The map of one `par`.

    `tile`: iterations a block coordinate spans; `digits`: of the thread number, the weight of each the product of the radices
    before it. `lane`: its points go innermost, side by side in vector lanes. `dim`: the dimension of the grid that is asked
    for, if any. `cluster`: how many of its blocks run together.
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
        """Sequential points of a tile that one thread runs."""
        return self.tile // self.radix

    def blocks(self) -> Expr:
        """How many block coordinates a GRID loop needs."""
        return (self.loop.extent + (self.tile - 1)) // self.tile

    def share(self, thread: Expr, threads: int = 0) -> Expr:
        """What a thread's number adds to this loop's index; `threads`: that the number is less than, where that is known."""
        return share(self.digits, thread, threads)

    def thread(self) -> Expr:
        """What the loop's index adds to the number of the thread that runs it."""
        index = expr(self.loop.sym)
        return sum((index // d.weight % d.radix * d.stride for d in self.digits), start=ZERO)


def one_digit(radix: int, stride: int = 1) -> tuple[Digit, ...]:
    """The digits of a loop that has one, or none where the radix is 1."""
    return (Digit(radix, stride),) if radix > 1 else ()


class Solved(Record):
    """What the solver of σ found for one band of loops."""

    loops: tuple[ir.Par, ...]
    band: Band
    solution: Solution


class TeamBand(Record, eq=False, dict=True):
    """A band that a team shares out, and its maps by shape alone."""

    loops: tuple[ir.Par, ...]
    shape: tuple[LoopMap, ...]

    @property
    def body(self) -> tuple[ir.Stmt, ...]:
        """What its iterations run."""
        return self.loops[-1].body

    @property
    def threads(self) -> int:
        """Of its team."""
        return prod(d.radix for m in self.shape for d in m.digits)

    @cached_property
    def touched(self) -> frozenset[Buffer]:
        """Every buffer that its iterations touch."""
        return frozenset(load.buffer for s in ir.walk(self.body) for load in loads(s))


class Nest(Record, eq=False):
    """One kernel's worth of program: a grid band and what each of its iterations does.

    `team` threads share an iteration of the grid band (1: each thread runs its own), `threads` make a block; where the team is
    more, it is that of all blocks of a cluster, and numbers theirs one after the other. `loops` maps every GRID, TEAM and
    REDUCE loop. `digits`: radix and stride of each digit of the thread number where a schedule named them; a band that leaves
    one out is run by the threads in which that digit is 0. `origin`: of statements that mapping made, those of the program.
    `solved`: what the solver said of bands that it was asked for; `row_padding`: elements by which rows of arrays are longer.
    `request`: how the machine answers what the lanes of a warp ask at once.

    `bands`: what a team shares out, by shape until `mapping.dealt.deal` has been there; `alone`: they are all that a block has.
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
        """Lanes of a warp."""
        return self.request.lanes

    @property
    def blocks(self) -> int:
        """How many blocks of a cluster share an iteration of the grid band."""
        return max(1, self.team // self.threads)
