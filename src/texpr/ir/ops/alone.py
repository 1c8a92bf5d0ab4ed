"""The operation of an instruction that a core of a CPU does by itself: its registers are rows of memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from texpr.ir.operation.form import Access, Name, Operand, Word
from texpr.ir.ops.collective import Collective, Held, Loops, Registers, function_name, instruction_is_there
from texpr.isa.levels import Space

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation import Operation
    from texpr.ir.operation.effects import Effects
    from texpr.ir.operation.printing import Printing


class Rows(Registers):
    """`A[i, k] 2 read, Bs[q, j, 0] 32 read, acc[i, j] 16 update`: the first elements of what follows in memory."""

    def operands(self, op: Operation) -> tuple[Operand, ...]:
        """The first element of each stands for all."""
        held: tuple[Held, ...] = self.of(op)
        return tuple(
            Operand(each.first, access)
            for each in held
            for access in ((Access.READ, Access.WRITE) if each.access == "update" else (_ONE[each.access],))
        )


_ONE = {"read": Access.READ, "write": Access.WRITE}


def one_lane_does_it(stmt: Stmt, at: Place) -> Iterator[str]:
    """The instruction is of one lane, in a kernel of one thread."""
    if isinstance(stmt, Alone) and (instr := at.kernel.instr_of.get(stmt.name)) is not None:
        if instr.lanes != 1 or any(operand.is_shared or operand.columns for operand in instr.operands):
            yield f"{stmt.name} is not done by one lane, on its own registers"
        if at.kernel.threads != 1 or stmt.threads:
            yield f"{stmt.name} is done by a core of a CPU, and the kernel has threads"


def rows_are_those_of_the_operands(stmt: Stmt, at: Place) -> Iterator[str]:
    """Rows match the operands in count, type and access; what is written is in no array of another operand."""
    instr = at.kernel.instr_of.get(stmt.name) if isinstance(stmt, Alone) else None
    if not isinstance(stmt, Alone) or instr is None:
        return
    for operand, held in zip(instr.operands, stmt.registers, strict=False):
        first, wanted = held.first, operand.fragment.registers
        if (held.count, held.access, first.dtype) != (wanted, operand.access, operand.dtype):
            told = f"{held.count} of {first.dtype}, {held.access}"
            yield f"`{operand.name}` of {stmt.name} is {wanted} of {operand.dtype}, {operand.access}, and is given {told}"
        if held.how is not None or first.data or not first.index:
            yield f"`{operand.name}` of {stmt.name} is no row of memory"
        if at.space(first.buffer) not in (None, Space.GLOBAL, Space.LOCAL):
            yield f"{first.buffer.name} is in no memory of a core"
    for one in stmt.registers:
        if one.access != "read" and any(one is not each and one.first.buffer is each.first.buffer for each in stmt.registers):
            yield f"{stmt.name} writes {one.first.buffer.name}, and reads it as another operand"


class Alone(Collective, eq=False):
    """A core executes the instruction `name` of the kernel by itself, on rows of memory, by operand."""

    FORM = (Word("alone"), Word("instr"), Name("name"), Loops("loops"), Rows("registers"))
    FILLS = True
    RULES = (one_lane_does_it, instruction_is_there, rows_are_those_of_the_operands)

    @property
    def together(self) -> str:
        """Nobody else does it."""
        return ""

    @property
    def meets(self) -> None:
        """Nobody."""
        return None

    def cpu(self, to: Printing) -> Iterator[str]:
        """A call of what is printed once for the instruction."""
        given = ", ".join(f"&{to.element(held.first)}" for held in self.registers)
        yield f"{function_name(self.name)}({given});"

    def cuda(self, to: Printing) -> Iterator[str]:
        """No GPU has it."""
        yield from self.c(to)

    def does(self, effects: Effects) -> None:
        """The meaning takes effect."""
        effects.instructs(self)
