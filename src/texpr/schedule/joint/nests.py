"""Nests that are marked `#mma`: what one is, and which loops around are of teams of lanes, or of their tiles."""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.program.marked import level_of
from texpr.ir.value import Buffer
from texpr.schedule.joint.match import Match
from texpr.support.record import Record
from texpr.support.span import Span

LEVELS = ("warp", "block.y", "block.z")
"""Levels whose iterations are teams, the fastest first: a team is the lanes of an instruction, a warp or a warpgroup."""


class Nest(Record):
    """A marked nest: what it is, and the statements around, from what makes the tile on. `span`: the directive."""

    match: Match
    top: ir.Loop
    around: tuple[ir.Stmt, ...]
    span: Span

    @property
    def loops(self) -> tuple[ir.Loop, ...]:
        """The loops around."""
        return tuple(stmt for stmt in self.around if isinstance(stmt, ir.Par | ir.Seq))

    @property
    def tile(self) -> Buffer:
        """What it sums up in."""
        return self.match.bind.targets[0].buffer

    @property
    def teams(self) -> tuple[ir.Loop, ...]:
        """The loops around whose iterations are teams, the fastest first."""
        found = [loop for loop in self.loops if level_of(loop) in LEVELS]
        return tuple(sorted(found, key=lambda loop: LEVELS.index(str(level_of(loop)))))

    @property
    def tiles(self) -> tuple[ir.Loop, ...]:
        """The loops around that go through the tiles of a team, the innermost first."""
        moved = {sym for e in self.match.bind.targets[0].index for sym in e.syms()}
        return tuple(loop for loop in reversed(self.loops) if loop.sym in moved and level_of(loop) not in LEVELS)

    def turns_from(self, stmt: ir.Stmt) -> tuple[ir.Loop, ...]:
        """The loops from a statement on, in order and of known extents, with nothing else in them: lanes compute operands of
        all their turns at once, if the instruction goes on meanwhile."""
        if not self.match.computed or self.match.instr.group is None or not isinstance(stmt, ir.Seq):
            return ()
        loops = self.loops[self.loops.index(stmt) :]
        alone = all(len(loop.body) == 1 for loop in loops)
        turns = tuple(loop for loop in loops if loop not in self.tiles)
        known = all(loop.extent.is_constant and level_of(loop) is None for loop in turns)
        return turns if alone and known and all(isinstance(loop, ir.Seq) for loop in turns) else ()


def nest_of(top: ir.Loop) -> tuple[tuple[ir.Loop, ...], ir.Bind | None]:
    """The perfectly nested loops from `top` on, and the one statement inside, if it is one that gives a value."""
    found: list[ir.Loop] = [top]
    while len(found[-1].body) == 1:
        (inner,) = found[-1].body
        if not isinstance(inner, ir.Par | ir.Seq):
            return tuple(found), inner if isinstance(inner, ir.Bind) else None
        found.append(inner)
    return tuple(found), None
