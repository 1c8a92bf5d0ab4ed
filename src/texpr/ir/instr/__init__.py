"""Definitions of instructions: one record, for built-in instructions and for those of a user's text.

    instr mma(a: f16[16, 16], b: f16[16, 8], inout c: f32[16, 8])        operands, each with its fragment
        asm "sm_80" "mma.sync… {c}, {a}, {b}, {c};"                      templates by target
        means { seq 16 |i| { seq 8 |j| { seq 16 |k| { c[i, j] += a[i, k] * b[k, j] } } } }

Nothing is known of an instruction by its name. An operand is in registers of lanes, as its fragment says, in columns of tensor
memory, likewise, or in shared memory: each lane says where a row is, or one descriptor says where all of it is. An instruction
whose effect is that it joins a group (`GROUPS`) goes on while its lanes do; it reads what is described through the async proxy,
and registers that lanes lend to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import prod
from typing import TypeAlias

from texpr.affine.expr import Sym
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.ir.instr.fragment import Fragment
from texpr.ir.value import Buffer, Cast, Load, Op, Value, walk
from texpr.ir.value.structure import same
from texpr.ir.value.types import F8E8M0, DType
from texpr.isa.instruction import templated
from texpr.isa.instructions.tcgen05 import PAIR, PAIRED
from texpr.isa.rounding import Rounding
from texpr.isa.target import Target
from texpr.support.record import Record

ADDRESS = "address"
"""The access of an address operand in shared memory that is read; `SHARED` begins its fragment in the text."""

STORED = "stored"
"""The access of an address operand in shared memory that gets values; its fragment begins likewise."""

SHARED = "shared"

DESCRIBED = "descriptor"
"""How an operand is used that lies in shared memory as a descriptor says (`texpr.ir.instr.descriptor`)."""

COLUMNS = "tensor"
"""What the fragment of an operand in tensor memory begins with in the text: it is of lanes and columns of that."""

GROUPS = {"joins wgmma group": "wgmma", "joins tcgen05 commit": "tcgen05", PAIRED: "tcgen05"}
"""Effects of instructions that go on by themselves: which groups they are counted in, as `ir.operation.Group` calls them."""

ALONE = frozenset({"tcgen05"})
"""Groups of what one thread starts for all lanes, and that a barrier in shared memory says to be done."""


class Operand(Record, eq=False):
    """An operand: `memory` represents it in the meaning.

    `access`: "read", "write" or "update", of registers; "address" or, where these are written, "stored": each lane gives the
    address in shared memory of consecutive elements, those that the fragment has for it; or "descriptor": the fragment is of a
    core matrix. `columns`: it is in tensor memory, where a lane has columns for registers. `halved`: the dimension along which
    each block of a pair has one half of it in its shared memory, for both.
    """

    memory: Buffer
    access: str
    fragment: Fragment
    columns: bool = False
    halved: int | None = None

    @property
    def name(self) -> str:
        """Its name in templates."""
        return self.memory.name

    @property
    def is_address(self) -> bool:
        """Whether it is an address operand, in shared memory."""
        return self.access in (ADDRESS, STORED)

    @property
    def is_described(self) -> bool:
        """Whether it is in shared memory, and a descriptor says where."""
        return self.access == DESCRIBED

    @property
    def is_written(self) -> bool:
        """Whether it gets values, in registers or at addresses."""
        return self.access in ("write", "update", STORED)

    @property
    def is_shared(self) -> bool:
        """Whether it is in shared memory."""
        return self.is_address or self.is_described

    @property
    def part(self) -> tuple[int, ...]:
        """The extents of what one block has of it."""
        return tuple(e.constant // (PAIR if at == self.halved else 1) for at, e in enumerate(self.memory.shape))

    @property
    def dtype(self) -> DType:
        """The type of its elements."""
        return self.memory.dtype


class Turn(Record, eq=False):
    """A loop of the meaning. `free`: operands whose updates in it may be executed in any order; `ieee`: each is rounded as IEEE
    754 says."""

    sym: Sym
    extent: int
    body: tuple[Step, ...]
    free: tuple[str, ...] = ()
    ieee: bool = False


class Give(Record, eq=False):
    """The assignment of a value to an element of an operand, or an update."""

    target: Load
    value: Value
    update: str | None = None


Step: TypeAlias = Turn | Give


class Instr(Record, eq=False):
    """An instruction. `asm`: templates, each with the first target that has it. `effect`: further effects, in words.
    `rounding`: what is known of how sums are rounded that are not `ieee`."""

    name: str
    operands: tuple[Operand, ...]
    asm: tuple[tuple[str, str], ...]
    meaning: tuple[Step, ...]
    effect: str = ""
    rounding: Rounding | None = None

    @property
    def lanes(self) -> int:
        """How many lanes do it together."""
        return next((operand.fragment.lanes for operand in self.operands if not operand.is_described), 1)

    @property
    def group(self) -> str | None:
        """The groups that it is counted in, where it goes on while its lanes do."""
        return GROUPS.get(self.effect)

    @property
    def is_alone(self) -> bool:
        """Whether one thread starts it for all lanes."""
        return self.group in ALONE

    @property
    def is_pair(self) -> bool:
        """Whether a thread of the first block of a pair starts it for the lanes of both."""
        return self.effect == PAIRED

    @property
    def loops(self) -> tuple[Turn, ...]:
        """The loops of its meaning, in textual order."""
        return tuple(_loops(self.meaning))

    @property
    def gives(self) -> tuple[Give, ...]:
        """The assignments of its meaning, in textual order."""
        return tuple(gives(self.meaning))

    @property
    def sums(self) -> int:
        """How many terms it adds to an element of a floating-point sum that is not rounded as IEEE 754 says; 0 if to none."""
        return max((_terms(step, ()) for step in self.meaning), default=0)

    @property
    def copied(self) -> int:
        """The greatest number of copies of one element of an operand in registers. Of lanes that say one address the first one
        does; of what is read in tensor memory all copies are alike."""
        held = (each for each in self.operands if not (each.is_address or (each.columns and not each.is_written)))
        return max((operand.fragment.copied for operand in held), default=1)

    @property
    def is_copy(self) -> bool:
        """Whether all that it does is to copy elements."""
        return all(give.update is None and isinstance(give.value, Load) for give in self.gives)

    @property
    def by_memory(self) -> Mapping[Buffer, Operand]:
        """The operands by the buffers that represent them in the meaning."""
        return {operand.memory: operand for operand in self.operands}

    @property
    def products(self) -> tuple[DType, int] | None:
        """The type of the factors and the number of products, if all that it computes is a sum of products."""
        factors = {load.dtype for give in self.gives for load in loads_of(give)} - {F8E8M0}  # scales of others
        sums = all(give.update == "add" and _is_product(give.value) for give in self.gives)
        return (
            (factors.pop(), prod(turn.extent for turn in self.loops)) if sums and len(factors) == len(self.gives) == 1 else None
        )

    def template(self, target: Target) -> str | None:
        """The template for `target`, or `None` if it lacks the instruction."""
        return templated(self.asm, target)

    def alike(self, other: Instr) -> bool:
        """Whether both have equal definitions."""
        return self is other or same(self, other)

    def __str__(self) -> str:
        return self.name


def _is_product(value: Value) -> bool:
    return isinstance(value, Op) and value.name == "mul" and all(_is_element(each) or _is_product(each) for each in value.args)


def _is_element(value: Value) -> bool:
    return isinstance(value, Load) or (isinstance(value, Cast) and isinstance(value.arg, Load))


def _terms(step: Step, around: tuple[Turn, ...]) -> int:
    if isinstance(step, Turn):
        return max((_terms(each, (*around, step)) for each in step.body), default=0)
    if step.update is None or not step.target.dtype.is_float or step.update in ("max", "min"):
        return 0
    used = {sym for e in step.target.index for sym in e.syms()}
    summed = [turn for turn in around if turn.sym not in used]
    return 0 if all(turn.ieee for turn in summed) else prod(turn.extent for turn in summed)


def _loops(steps: tuple[Step, ...]) -> Iterator[Turn]:
    for step in steps:
        if isinstance(step, Turn):
            yield step
            yield from _loops(step.body)


def gives(steps: tuple[Step, ...]) -> Iterator[Give]:
    """The assignments in a part of a meaning, in textual order."""
    for step in steps:
        if isinstance(step, Turn):
            yield from gives(step.body)
        else:
            yield step


@lru_cache(maxsize=1 << 8)
def stays_in_warps(instr: Instr, warp: int) -> bool:
    """Whether lanes compute from registers of their own warp alone: lanes of another one are not at the same place. Those for
    which one thread starts it compute nothing."""
    if instr.is_alone:
        return True
    ranges = {turn.sym: (0, turn.extent - 1) for turn in instr.loops}
    simple = Simplifier(Known(ranges))
    for give in instr.gives if instr.lanes > warp else ():
        mine = [instr.by_memory[each.buffer].fragment.lane(each.index) for each in (give.target, *_held(instr, give))]
        if any(simple(each // warp) is not simple(mine[0] // warp) for each in mine):
            return False
    return True


def _held(instr: Instr, give: Give) -> Iterator[Load]:
    """The elements that an assignment reads in registers."""
    return (each for each in loads_of(give) if not instr.by_memory[each.buffer].is_shared)


@lru_cache(maxsize=1 << 8)
def loads_of(give: Give) -> tuple[Load, ...]:
    """The elements that a value is computed from."""
    return tuple(node for node in walk(give.value) if isinstance(node, Load))
