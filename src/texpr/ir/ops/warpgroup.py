"""What the tensor core of a warpgroup does by itself (`wgmma`): its start, its groups, and registers that it has meanwhile.

    fence_warpgroup d[0] 32 read                        what lanes did to these registers comes before
    start instr wgmma [i, j, k] As[0, 0] 8 descriptor (128, 16, 1024), …, d[0] 32 update
    commit_warpgroup
    wait_warpgroup 0 holds d[0] 32 read                 and lanes have them again

PTX ISA, "Asynchronous warpgroup level matrix instructions": "Async proxy", "wgmma.fence", "wgmma.commit_group",
"wgmma.wait_group".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from texpr.ir.operation import Awaits, Closes, Fences, Group, Operation
from texpr.ir.operation.covered import Covered
from texpr.ir.operation.form import Covers, Maybe, Number, Word
from texpr.ir.ops.collective import ByWarpgroup, Held, Registers, is_in, lanes_mask
from texpr.ir.value import Load
from texpr.isa.cuda import WARPGROUP
from texpr.isa.levels import Space

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.effects import Effects
    from texpr.ir.operation.maps import TensorMap
    from texpr.ir.operation.printing import Printing

REGISTERS = "registers"
"""What a fence of a warpgroup is about, as `Fences` has it."""


def held_is_in_registers(stmt: Stmt, at: Place) -> Iterator[str]:
    """What is fenced or waited for are registers of lanes, by constant numbers."""
    for held in stmt.registers if isinstance(stmt, FenceWarpgroup | WaitWarpgroup) else ():
        first = held.first
        if at.space(first.buffer) is not Space.LANES or first.buffer.rank != 1 or held.how is not None:
            yield f"{first.buffer.name} is in no registers"
        elif not is_in(held, at):
            yield f"{first.buffer.name}[{first.index[0]}] and {held.count - 1} more are not in it"


def warpgroups_are_whole(stmt: Stmt, at: Place) -> Iterator[str]:
    """A block that has some has whole ones."""
    if isinstance(stmt, FenceWarpgroup | CommitWarpgroup | WaitWarpgroup):
        in_role = any(getattr(each, "role", None) for each in at.around)
        if at.kernel.threads % WARPGROUP and not in_role:  # in a role, `all_come_who_must` asks for whole ones
            yield f"{at.kernel.threads} threads are no warpgroups"


def groups_that_are_left(stmt: Stmt, at: Place) -> Iterator[str]:
    """A number of groups is not negative, and an immediate."""
    if isinstance(stmt, WaitWarpgroup) and not 0 <= stmt.pending <= MOST_PENDING:
        yield f"{stmt.pending} groups cannot be left"


MOST_PENDING = 7
"""The most groups that a wait leaves (PTX ISA, "wgmma.wait_group")."""


class _Orders(ByWarpgroup):
    """What all lanes of a warpgroup do for the sake of what it started."""

    __slots__ = ()

    def does(self, effects: Effects) -> None:
        """Lanes come together."""
        effects.meets()


class FenceWarpgroup(_Orders, Operation, eq=False):
    """What a lane did to these registers comes before what is started after it."""

    FORM = (Word("fence_warpgroup"), Registers("registers"))
    RULES = (held_is_in_registers, warpgroups_are_whole)

    registers: tuple[Held, ...]

    def completion(self, maps: Mapping[str, TensorMap]) -> Fences:
        """It is one."""
        return Fences(REGISTERS, _elements(self.registers))

    def cuda(self, to: Printing) -> Iterator[str]:
        """Calls: the registers hold what the text says, then the fence."""
        yield from _named("give", self.registers, to)
        yield f"tx_fence_warpgroup({lanes_mask(to.kernel.threads, to.kernel.warp)});"


class CommitWarpgroup(_Orders, Operation, eq=False):
    """What the lane started since its last commit becomes one group."""

    FORM = (Word("commit_warpgroup"),)
    RULES = (warpgroups_are_whole,)

    def completion(self, maps: Mapping[str, TensorMap]) -> Closes:
        """It makes the group."""
        return Closes(Group.WGMMA)

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call."""
        yield "tx_commit_warpgroup();"


class WaitWarpgroup(_Orders, Operation, eq=False):
    """Waits until at most `pending` of the lane's groups, the latest ones, are unfinished. `covers` lists why.

    What the finished ones read may be written again, and `registers` are the lane's again.
    """

    FORM = (
        Word("wait_warpgroup"),
        Number("pending"),
        Maybe("registers", (), "holds", (Registers("registers"),)),
        Covers("covers"),
    )
    RULES = (groups_that_are_left, held_is_in_registers, warpgroups_are_whole)

    pending: int
    registers: tuple[Held, ...] = ()
    covers: tuple[Covered, ...] = ()

    @property
    def waits_for(self) -> tuple[Covered, ...]:
        """Why it is there."""
        return self.covers

    def completion(self, maps: Mapping[str, TensorMap]) -> Awaits:
        """It waits for groups."""
        return Awaits(Group.WGMMA, self.pending, registers=_elements(self.registers))

    def cuda(self, to: Printing) -> Iterator[str]:
        """Calls, and why: the wait, then the registers hold what they were given."""
        yield from to.reasons(self.covers)
        yield f"tx_wait_warpgroup<{self.pending}>();"
        yield from _named("take", self.registers, to)


def _elements(registers: tuple[Held, ...]) -> tuple[Load, ...]:
    return tuple(each for held in registers for each in held.elements)


def _named(what: str, registers: tuple[Held, ...], to: Printing) -> Iterator[str]:
    """`tx_give_registers<32>(d, 0);`: the compiler of the text leaves them where they are."""
    yield from (f"tx_{what}_registers<{held.count}>({to.place(held.first)});" for held in registers)
