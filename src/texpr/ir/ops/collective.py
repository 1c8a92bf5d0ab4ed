"""The operation of an instruction on registers of lanes; its definition is a record of the kernel (`texpr.ir.instr`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from texpr.affine.expr import Expr, Sym
from texpr.affine.facts import Known
from texpr.affine.ranges import Range
from texpr.ir import operation
from texpr.ir.instr import ADDRESS, DESCRIBED, STORED, Instr, stays_in_warps
from texpr.ir.instr.descriptor import SWIZZLES, Descriptor
from texpr.ir.instr.text import ACCESSES
from texpr.ir.operation import Awaits, Closes, Group, Joins, Operation
from texpr.ir.operation.form import Access, Found, Maybe, Name, Number, Operand, Part, Word, consecutive
from texpr.ir.value import Load, Value
from texpr.ir.value.parse import ValueParser, named, separated
from texpr.ir.value.text import Types, value_text
from texpr.isa.cuda import WARPGROUP, WGMMA
from texpr.isa.engine import CHUNK
from texpr.isa.instructions.tcgen05 import LANES as TENSOR_LANES
from texpr.isa.levels import WARP, Space
from texpr.support.record import Record, replace

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.effects import Effects
    from texpr.ir.operation.maps import TensorMap
    from texpr.ir.operation.printing import Printing

_ACCESS: dict[str, Access] = {
    name: {"write": Access.WRITE, STORED: Access.WRITE, "update": Access.UPDATE}.get(name, Access.READ) for name in ACCESSES
}


class Held(Record):
    """An operand of one lane: `count` elements of an array from `first` on, with their access, one of `ACCESSES`.

    By address: elements of shared memory that the lane says, for all lanes, read or stored. By a descriptor: where its matrix
    starts, the elements of a row of a core matrix, and `how` the rest of it lies.
    """

    first: Load
    count: int
    access: str
    how: Descriptor | None = None

    @property
    def elements(self) -> tuple[Load, ...]:
        """The elements, register by register."""
        return consecutive(self.first, self.count)


def _touched(held: Held) -> Iterator[Operand]:
    if held.access in (ADDRESS, STORED):
        yield Operand(held.first, _ACCESS[held.access], held.count)
    elif held.how is not None:  # of a matrix the first element stands for all
        yield Operand(held.first, Access.READ)
    else:
        yield from (Operand(each, _ACCESS[held.access]) for each in held.elements)


class Registers(Part):
    """`a[0] 8 read, b[0] 4 read, c[0] 4 update`."""

    def show(self, op: Operation, types: Types) -> str:
        """Each with its count and its access."""
        return ", ".join(
            f"{value_text(each.first, types)} {each.count} {each.access}{'' if each.how is None else f' {each.how}'}"
            for each in self._held(op)
        )

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the operands."""

        def one(_: Any) -> Held:
            first, count, access = by.element(), by.scan.integer(), by.scan.name("an access")
            how = _descriptor(by) if access == DESCRIBED else None
            return Held(first, count, access, how) if access in _ACCESS else by.scan.reject(f"`{access}` is no access")

        found[self.name] = tuple(separated(by.scan, one))

    def _held(self, op: Operation) -> tuple[Held, ...]:
        return self.of(op)

    def values(self, op: Operation) -> tuple[Value, ...]:
        """The first element of each."""
        return tuple(each.first for each in self._held(op))

    def operands(self, op: Operation) -> tuple[Operand, ...]:
        """All elements: each in registers as an access of its own, those at an address as one."""
        return tuple(each for held in self._held(op) for each in _touched(held))

    def changed(
        self, op: Operation, value: Callable[[Value], Value], index: Callable[[Expr], Expr]
    ) -> Iterator[tuple[str, object]]:
        """The field with its elements replaced."""
        made = [(held, value(held.first)) for held in self._held(op)]
        yield self.name, tuple(replace(held, first=new) for held, new in made if isinstance(new, Load))


def _descriptor(by: ValueParser) -> Descriptor:
    by.scan.expect("(")
    found = separated(by.scan, lambda _: by.scan.integer())
    by.scan.expect(")")
    return Descriptor(*found) if len(found) == 3 else by.scan.reject(f"a descriptor has 3 fields, not {len(found)}")


class Loops(Part):
    """`[i, j, k]`, perhaps empty: names of the program for the loops of the meaning."""

    def show(self, op: Operation, types: Types) -> str:
        """The names in brackets."""
        return f"[{', '.join(map(str, self.of(op)))}]"

    def read(self, by: ValueParser, found: Found) -> None:
        """Parses the names."""
        by.scan.expect("[")
        found[self.name] = () if by.scan.sees("]") else tuple(separated(by.scan, named))
        by.scan.expect("]")


def instruction_is_there(stmt: Stmt, at: Place) -> Iterator[str]:
    """The kernel has an instruction of that name, with as many loops and operands, that is done at once or goes on alike."""
    if not isinstance(stmt, Collective):
        return
    instr = at.kernel.instr_of.get(stmt.name)
    if instr is None:
        yield f"the kernel has no instruction {stmt.name}"
    elif instr.group != (stmt.GROUP and stmt.GROUP.value):
        yield f"{stmt.name} goes on by itself, or does not"
    elif len(instr.operands) != len(stmt.registers):
        yield f"{stmt.name} has {len(instr.operands)} operands, not {len(stmt.registers)}"
    elif (wanted := loop_count(instr, stmt.threads or at.kernel.threads)) != len(stmt.loops):
        yield f"the meaning of {stmt.name} has {wanted} loops, not {len(stmt.loops)}"


def registers_are_those_of_the_operands(stmt: Stmt, at: Place) -> Iterator[str]:
    """The registers match the operands in count, type and access; written ones overlap no registers of another operand."""
    if not isinstance(stmt, Collective):
        return
    instr = at.kernel.instr_of.get(stmt.name)
    pairs = zip(instr.operands, stmt.registers, strict=False) if instr is not None else ()
    for operand, held in pairs:
        first, wanted = held.first, operand.fragment.registers
        if (held.count, held.access, first.dtype) != (wanted, operand.access, operand.dtype):
            told = f"{held.count} of {first.dtype}, {held.access}"
            yield f"`{operand.name}` of {stmt.name} is {wanted} of {operand.dtype}, {operand.access}, and is given {told}"
        if (held.how is not None) != operand.is_described:
            yield f"`{operand.name}` of {stmt.name} has a descriptor where none is meant, or none"
        if operand.is_shared:
            if at.space(first.buffer) is not Space.SHARED:
                yield f"{first.buffer.name} is in no shared memory, and `{operand.name}` of {stmt.name} is an address there"
        elif operand.columns:
            if at.space(first.buffer) is not Space.TENSOR or first.buffer.rank != 1:
                yield f"{first.buffer.name} is in no tensor memory, and `{operand.name}` of {stmt.name} is there"
        elif at.space(first.buffer) is not Space.LANES or first.buffer.rank != 1:
            yield f"{first.buffer.name} is in no registers that other lanes may read"
        elif not is_in(held, at):
            told = "are not in it, or are other ones in each turn"
            yield f"{first.buffer.name}[{first.index[0]}] and {held.count - 1} more {told}"
    written = [held for held in stmt.registers if _ACCESS[held.access] is not Access.READ]
    if any(a is not b and _may_overlap(a, b) for a in written for b in stmt.registers):
        yield f"{stmt.name} writes what it is given twice"


def is_in(held: Held, at: Place) -> bool:
    """Whether all registers are of the array: their numbers are constants, of loops that are written out."""
    (index,), ranges = held.first.index, dict[Sym, Range]()
    for loop in at.loops:
        if loop.kind == "unroll" and not loop.factor and loop.lo.is_constant and loop.hi.is_constant:
            ranges[loop.sym] = loop.lo.constant, loop.hi.constant - 1
    known, last = Known(ranges), held.first.buffer.shape[0] - held.count
    return index.syms() <= ranges.keys() and known.nonnegative(index) and known.nonnegative(last - index)


def _may_overlap(a: Held, b: Held) -> bool:
    """Whether two operands may have a register in common, or are of one array in shared memory."""
    if a.first.buffer is not b.first.buffer:
        return False
    if a.access == STORED or b.how is not None:
        return True
    apart = b.first.index[0] - a.first.index[0]
    return not apart.is_constant or -b.count < apart.constant < a.count


def lanes_are_whole_groups(stmt: Stmt, at: Place) -> Iterator[str]:
    """A block is groups of as many lanes as do it together, and these are in one warp, or whole ones."""
    if isinstance(stmt, Collective) and (instr := at.kernel.instr_of.get(stmt.name)) is not None:
        count = stmt.threads or at.kernel.threads
        if count % instr.lanes or (stmt.threads and (count % at.kernel.warp or not 0 < count < at.kernel.threads)):
            yield f"{count} threads are no groups of {instr.lanes} lanes, or no whole warps of some"
        if at.kernel.warp % instr.lanes and (instr.group is None or instr.lanes % at.kernel.warp):
            yield f"{instr.lanes} lanes are not in one warp"
        if not stays_in_warps(instr, at.kernel.warp):
            yield f"lanes of {stmt.name} read registers of other warps"
        if any(operand.columns for operand in instr.operands) and (at.kernel.warp != WARP or count > TENSOR_LANES):
            yield f"{count} threads have no lane of tensor memory each"


class Collective(Operation, eq=False):
    """Lanes execute the instruction `name` of the kernel on their `registers`, by operand; all lanes of a warp reach it.

    `threads`: the number of threads of a block that execute it, the first ones, or of a role the group that the running one is
    in, from a multiple of that number on; 0 for all. `loops`: names of the program for the loops of its meaning: an untrusted
    hint for proofs. `fused`: for a part of the meaning, whether it is a sum whose products may be fused, since the rounding of
    instructions is their own.
    """

    FORM = (
        Word("instr"),
        Name("name"),
        Loops("loops"),
        Maybe("threads", 0, "first", (Number("threads"),)),
        Registers("registers"),
    )
    RULES = (lanes_are_whole_groups, instruction_is_there, registers_are_those_of_the_operands)
    GROUP: ClassVar[Group | None] = None
    """The groups that it is counted in, where it goes on while its lanes do."""

    name: str
    loops: tuple[Sym, ...]
    registers: tuple[Held, ...]
    threads: int = 0
    fused: bool = False

    @property
    def by(self) -> str:
        """The name of the instruction."""
        return self.name

    @property
    def together(self) -> str:
        """Its name."""
        return self.name

    @property
    def meets(self) -> int | None:
        """All lanes of a warp."""
        return operation.WARP

    def cuda(self, to: Printing) -> Iterator[str]:
        """A call of what is printed once for the instruction."""
        given = ", ".join(
            f"{to.place(held.first)}{'' if held.how is None else f', tx_matrix<{str(held.how)[1:-1]}>()'}"
            for held in self.registers
        )
        yield f"{function_name(self.name)}({lanes_mask(to.kernel.threads, to.kernel.warp)}, {given});"

    def does(self, effects: Effects) -> None:
        """The lanes synchronise, and the meaning takes effect."""
        effects.meets()
        for held in self.registers:
            if held.access in (ADDRESS, STORED):
                effects.at_once(held.count, held.first)
        effects.instructs(self)


MOST_FIELD = (1 << 18) - CHUNK
"""The greatest number of bytes in a field of a descriptor: 14 bits of chunks (PTX ISA, "Matrix descriptor")."""


def descriptors_have_their_fields(stmt: Stmt, at: Place) -> Iterator[str]:
    """A swizzle that there is, and distances in chunks; the array begins where its period does."""
    for held in stmt.registers if isinstance(stmt, CollectiveAsync) else ():
        how = held.how
        if how is None:
            continue
        if how.swizzle not in SWIZZLES:
            yield f"no swizzle has {how.swizzle} bytes"
        if any(not 0 <= each <= MOST_FIELD or each % CHUNK for each in (how.leading, how.stride)):
            yield f"{how} has no distances that a descriptor can have"
        array = at.array(held.first.buffer)
        if array is not None and array.align % how.period:
            yield f"{held.first.buffer.name} begins at a multiple of {array.align} bytes, and {how.period} are meant"


def group_is_closed_and_waited_for(stmt: Stmt, at: Place) -> Iterator[str]:
    """A kernel that starts some makes groups, and waits for them somewhere; whether in time, is proved."""
    if isinstance(stmt, CollectiveAsync):
        every = [each.completion(at.kernel.map_of) for each in at.operations]
        if not any(isinstance(each, Closes) and each.group is stmt.GROUP for each in every):
            yield "the kernel closes no groups of what it starts"
        if not any(isinstance(each, Awaits) and each.group is stmt.GROUP for each in every):
            yield "the kernel waits for no groups of what it starts"


class ByWarpgroup:
    """An operation that all lanes of a warpgroup execute together, for its tensor core."""

    __slots__ = ()

    @property
    def meets(self) -> int | None:
        """All lanes of a warpgroup."""
        return WARPGROUP

    @property
    def needs(self) -> tuple[str, ...]:
        """A tensor core that reads shared memory."""
        return (WGMMA,)


class CollectiveAsync(ByWarpgroup, Collective, eq=False):
    """Lanes of a warpgroup start the instruction `name`, and it goes on by itself, in groups, in the order of its starts.

    Until the lanes have waited for its group, its registers are not theirs, and nobody writes what it reads. What is described
    it reads through the async proxy.
    """

    FORM = (
        Word("start"),
        Word("instr"),
        Name("name"),
        Loops("loops"),
        Maybe("threads", 0, "first", (Number("threads"),)),
        Registers("registers"),
    )
    RULES = (*Collective.RULES, descriptors_have_their_fields, group_is_closed_and_waited_for)
    GROUP = Group.WGMMA

    @property
    def tiles(self) -> tuple[Load, ...]:
        """What it reads of shared memory."""
        return tuple(held.first for held in self.registers if held.how is not None)

    @property
    def costs(self) -> tuple[tuple[Load, str, int], ...]:
        """Lanes touch nothing themselves."""
        return ()

    def completion(self, maps: Mapping[str, TensorMap]) -> Joins:
        """It goes on by itself."""
        return Joins(Group.WGMMA)


def loop_count(instr: Instr, threads: int) -> int:
    """The number of the program's loops for a use: over groups of lanes and copies, if there are several, and the meaning's."""
    return (threads > instr.lanes) + (instr.copied > 1) + len(instr.loops)


def function_name(name: str) -> str:
    """The name of the function that is printed for the instruction."""
    return f"tx_instr_{name}"


def lanes_mask(threads: int, warp: int) -> str:
    """The mask of a warp's existing lanes in C: the last warp of a block may have fewer than others."""
    alike = threads < warp or threads % warp == 0
    return f"{(1 << min(threads, warp)) - 1:#x}u" if alike else f"tx_lanes({threads})"
