"""What mapping decides: for each `par`, how its index is had from hardware coordinates and sequential steps.

The seed's σ at two levels. A `par` of the *grid* band gives `index = block · tile + point · radix + digit`, one of the *team*
that shares a grid iteration gives `index = step · radix + digit`, where `digit = thread / stride % radix`; points and steps
are sequential. A `par` without a map runs sequentially inside a thread. Where an extent is not divisible, the padding is
a hole and is guarded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from texpr.affine.expr import Expr, expr
from texpr.ir import program as ir


class Role(Enum):
    """What a mapped `par` is shared out over."""

    GRID = "grid"
    TEAM = "team"
    REDUCE = "reduce"  # a team loop whose iterations meet in accumulators


@dataclass(frozen=True, slots=True)
class LoopMap:
    """The map of one `par`.

    `tile`: iterations a block coordinate spans; `radix`, `stride`: its digit of the thread number. `lane`: its points go
    innermost, side by side in vector lanes. `dim`: the dimension of the grid that is asked for, if any.
    """

    loop: ir.Par
    role: Role
    tile: int = 1
    radix: int = 1
    stride: int = 1
    lane: bool = False
    dim: str = ""

    @property
    def points(self) -> int:
        """Sequential points of a tile that one thread runs."""
        return self.tile // self.radix

    def blocks(self) -> Expr:
        """How many block coordinates a GRID loop needs."""
        return (self.loop.extent + (self.tile - 1)) // self.tile

    def digit(self, thread: Expr) -> Expr:
        """This loop's digit of a thread number."""
        return expr(0) if self.radix == 1 else thread // self.stride % self.radix

    def thread(self) -> Expr:
        """What the loop's index adds to the number of the thread that runs it."""
        index = expr(self.loop.sym)
        return expr(0) if self.radix == 1 else index % self.radix * self.stride


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """One kernel's worth of program: a grid band and what each of its iterations does.

    `team` threads share an iteration of the grid band (1: each thread runs its own), `threads` make a block. `loops` maps
    every GRID, TEAM and REDUCE loop. `digits`: radix and stride of each digit of the thread number where a schedule named
    them; a band that leaves one out is run by the threads in which that digit is 0. `anew`: for statements that mapping made
    anew, those of the program.
    """

    grid: tuple[LoopMap, ...]
    body: tuple[ir.Stmt, ...]
    team: int
    threads: int
    loops: Mapping[ir.Par, LoopMap]
    digits: tuple[tuple[int, int], ...] = ()
    anew: Mapping[ir.Stmt, ir.Stmt] = field(default_factory=dict[ir.Stmt, ir.Stmt])
