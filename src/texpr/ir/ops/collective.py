"""An instruction that lanes do together, on registers of each: what it is is a record of the kernel (`texpr.ir.instr`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from texpr.affine.expr import Expr, Sym
from texpr.affine.facts import Known
from texpr.affine.ranges import Range
from texpr.ir import operation
from texpr.ir.instr import ADDRESS, Instr
from texpr.ir.instr.text import ACCESSES
from texpr.ir.operation import Operation
from texpr.ir.operation.form import Access, Found, Maybe, Name, Number, Operand, Part, Word, consecutive
from texpr.ir.value import Load, Value
from texpr.ir.value.parse import ValueParser, named, separated
from texpr.ir.value.text import Types, value_text
from texpr.isa.levels import Space
from texpr.support.record import Record

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.effects import Effects
    from texpr.ir.operation.printing import Printing

_ACCESS: dict[str, Access] = dict(zip(ACCESSES, (Access.READ, Access.WRITE, Access.UPDATE, Access.READ), strict=True))


class Held(Record):
    """Registers of a lane: `count` elements of an array from `first` on, and what is done with them: one of `ACCESSES`.

    By address: elements of shared memory that the lane says, for all lanes.
    """

    first: Load
    count: int
    access: str

    @property
    def elements(self) -> tuple[Load, ...]:
        """Register by register."""
        return consecutive(self.first, self.count)


def _touched(held: Held) -> Iterator[Operand]:
    if held.access == ADDRESS:
        yield Operand(held.first, Access.READ, held.count)
    else:
        yield from (Operand(each, _ACCESS[held.access]) for each in held.elements)


class Registers(Part):
    """`a[0] 8 read, b[0] 4 read, c[0] 4 update`."""

    def show(self, op: Operation, types: Types) -> str:
        """Each with its count and its access."""
        return ", ".join(f"{value_text(each.first, types)} {each.count} {each.access}" for each in self._held(op))

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes them."""

        def one(_: Any) -> Held:
            first, count, access = by.element(), by.scan.integer(), by.scan.name("an access")
            return Held(first, count, access) if access in _ACCESS else by.scan.reject(f"`{access}` is no access")

        found[self.name] = tuple(separated(by.scan, one))

    def _held(self, op: Operation) -> tuple[Held, ...]:
        return self.of(op)

    def values(self, op: Operation) -> tuple[Value, ...]:
        """The first of each."""
        return tuple(each.first for each in self._held(op))

    def operands(self, op: Operation) -> tuple[Operand, ...]:
        """All of them, each one by itself where they are in registers; what is addressed at once."""
        return tuple(each for held in self._held(op) for each in _touched(held))

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """Others."""
        made = [(held, value(held.first)) for held in self._held(op)]
        yield self.name, tuple(Held(new, held.count, held.access) for held, new in made if isinstance(new, Load))


class Loops(Part):
    """`[i, j, k]`, perhaps empty: names for the loops of the meaning, as the program has them."""

    def show(self, op: Operation, types: Types) -> str:
        """In brackets."""
        return f"[{', '.join(map(str, self.of(op)))}]"

    def read(self, by: ValueParser, found: Found) -> None:
        """Takes them."""
        by.scan.expect("[")
        found[self.name] = () if by.scan.sees("]") else tuple(separated(by.scan, named))
        by.scan.expect("]")


def instruction_is_there(stmt: Stmt, at: Place) -> Iterator[str]:
    """The kernel has an instruction of that name, with as many loops and operands."""
    if not isinstance(stmt, Collective):
        return
    instr = at.kernel.instr_of.get(stmt.name)
    if instr is None:
        yield f"the kernel has no instruction {stmt.name}"
    elif len(instr.operands) != len(stmt.registers):
        yield f"{stmt.name} has {len(instr.operands)} operands, not {len(stmt.registers)}"
    elif (wanted := loop_count(instr, stmt.threads or at.kernel.threads)) != len(stmt.loops):
        yield f"the meaning of {stmt.name} has {wanted} loops, not {len(stmt.loops)}"


def registers_are_those_of_the_operands(stmt: Stmt, at: Place) -> Iterator[str]:
    """As many, of that type, of an array that lanes read, each another one, used as the instruction uses it."""
    if not isinstance(stmt, Collective):
        return
    instr = at.kernel.instr_of.get(stmt.name)
    pairs = zip(instr.operands, stmt.registers, strict=False) if instr is not None else ()
    for operand, held in pairs:
        first, wanted = held.first, operand.fragment.registers
        if (held.count, held.access, first.dtype) != (wanted, operand.access, operand.dtype):
            told = f"{held.count} of {first.dtype}, {held.access}"
            yield f"`{operand.name}` of {stmt.name} is {wanted} of {operand.dtype}, {operand.access}, and is given {told}"
        if operand.is_address:
            if at.space(first.buffer) is not Space.SHARED:
                yield f"{first.buffer.name} is in no shared memory, and `{operand.name}` of {stmt.name} is an address there"
        elif at.space(first.buffer) is not Space.LANES or first.buffer.rank != 1:
            yield f"{first.buffer.name} is in no registers that other lanes may read"
        elif not _is_in(held, at):
            told = "are not in it, or are other ones in each turn"
            yield f"{first.buffer.name}[{first.index[0]}] and {held.count - 1} more {told}"
    written = [held for held in stmt.registers if held.access not in ("read", ADDRESS)]
    other = [held for held in stmt.registers if held.access != ADDRESS]
    if any(a is not b and _may_overlap(a, b) for a in written for b in other):
        yield f"{stmt.name} writes registers that it is given twice"


def _is_in(held: Held, at: Place) -> bool:
    """Whether all registers are of the array: their numbers are constants, of loops that are written out."""
    (index,), ranges = held.first.index, dict[Sym, Range]()
    for loop in at.loops:
        if loop.kind == "unroll" and not loop.factor and loop.lo.is_constant and loop.hi.is_constant:
            ranges[loop.sym] = loop.lo.constant, loop.hi.constant - 1
    known, last = Known(ranges), held.first.buffer.shape[0] - held.count
    return index.syms() <= ranges.keys() and known.nonnegative(index) and known.nonnegative(last - index)


def _may_overlap(a: Held, b: Held) -> bool:
    """Whether two operands perhaps have a register in common."""
    if a.first.buffer is not b.first.buffer:
        return False
    apart = b.first.index[0] - a.first.index[0]
    return not apart.is_constant or -b.count < apart.constant < a.count


def lanes_are_whole_groups(stmt: Stmt, at: Place) -> Iterator[str]:
    """A block is groups of as many lanes as do it together, and these are in one warp."""
    if isinstance(stmt, Collective) and (instr := at.kernel.instr_of.get(stmt.name)) is not None:
        count = stmt.threads or at.kernel.threads
        if count % instr.lanes or (stmt.threads and (count % at.kernel.warp or not 0 < count < at.kernel.threads)):
            yield f"{count} threads are no groups of {instr.lanes} lanes, or no whole warps of some"
        if at.kernel.warp % instr.lanes:
            yield f"{instr.lanes} lanes are not in one warp"


class Collective(Operation, eq=False):
    """Lanes do the instruction `name` of the kernel on their `registers`, an operand after the other; all lanes of a warp come.

    `threads`: how many of a block do it, the first ones; 0 for all. `loops`: what the loops of its meaning are called in the
    program. That is a hint for who proves, and says nothing. `fused`: of a part of it, whether that is a sum whose products
    need not be rounded, as an instruction rounds as it will.
    """

    FORM = (
        Word("instr"),
        Name("name"),
        Loops("loops"),
        Maybe("threads", 0, "first", (Number("threads"),)),
        Registers("registers"),
    )
    RULES = (lanes_are_whole_groups, instruction_is_there, registers_are_those_of_the_operands)

    name: str
    loops: tuple[Sym, ...]
    registers: tuple[Held, ...]
    threads: int = 0
    fused: bool = False

    @property
    def by(self) -> str:
        """Its name."""
        return self.name

    @property
    def meets(self) -> int:
        """All lanes of a warp."""
        return operation.WARP

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of what is printed once for the instruction."""
        given = ", ".join(to.place(held.first) for held in self.registers)
        yield f"{function_name(self.name)}({lanes_mask(to.kernel.threads, to.kernel.warp)}, {given});"

    def does(self, effects: Effects) -> None:
        """Lanes come together, and do what it means."""
        effects.meets()
        for held in self.registers:
            if held.access == ADDRESS:
                effects.at_once(held.count, held.first)
        effects.instructs(self)


def loop_count(instr: Instr, threads: int) -> int:
    """How many loops the program has for a use: over groups of lanes and copies, where there are several; the meaning's."""
    return (threads > instr.lanes) + (instr.copied > 1) + len(instr.loops)


def function_name(name: str) -> str:
    """What the function that is printed for an instruction is called."""
    return f"tx_instr_{name}"


def lanes_mask(threads: int, warp: int) -> str:
    """The lanes of a warp that there are, as a mask in C: the last warp of a block may have fewer than others."""
    alike = threads < warp or threads % warp == 0
    return f"{(1 << min(threads, warp)) - 1:#x}u" if alike else f"tx_lanes({threads})"
