"""Single elements of memory: stores and atomic updates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from texpr.ir.instr.registers import packing
from texpr.ir.operation import Operation
from texpr.ir.operation.form import At, Calculated, Flag, Joined, Maybe, Name, Several, Word, consecutive, updates, writes
from texpr.ir.ops.registers import Assign
from texpr.ir.ops.rules import (
    address_is_aligned,
    elements_are_consecutive,
    part_of_another_block_is_only_read,
    written_memory_may_be_written,
    written_value_has_the_type,
)
from texpr.ir.program.updates import sum_and_product
from texpr.ir.value import Load, Ref, Value
from texpr.ir.value.types import BOOL, DType
from texpr.isa.instructions.atomic import ORDERS, SCOPES, VECTORS, ptx
from texpr.isa.levels import Level, Space
from texpr.support.span import NOWHERE, Span

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.effects import Effects
    from texpr.ir.operation.printing import Printing

ATOMIC_OPS = {"add": "number", "min": "number", "max": "number", "and": "integer", "or": "integer"}
"""The operations of atomics, and the types that they take (`and`, `or` take bool as well)."""

_CHANGES = {"min": "tx_min(a, b)", "max": "tx_max(a, b)", "and": "a & b", "or": "a | b"}


def fused_is_a_sum_of_a_product(stmt: Stmt, at: Place) -> Iterator[str]:
    """A fused store has the form x ± a · b."""
    if isinstance(stmt, Store) and stmt.fused and sum_and_product(stmt.value) is None:
        yield "nothing is there to be fused"


def atomic_operation_fits(stmt: Stmt, at: Place) -> Iterator[str]:
    """add, min and max take numbers; and, or take integers and bools."""
    if isinstance(stmt, Atomic):
        dtype, wanted = stmt.target.dtype, ATOMIC_OPS.get(stmt.op)
        if wanted is None:
            yield f"no atomic is called {stmt.op}"
        elif not _takes(wanted, dtype):
            yield f"no atomic {stmt.op} of {dtype}"


def _takes(wanted: str, dtype: DType) -> bool:
    return dtype.is_integer or (dtype.is_float if wanted == "number" else dtype == BOOL)


def atomic_scope_fits(stmt: Stmt, at: Place) -> Iterator[str]:
    """The scope of an atomic is a grid, a cluster or a block, and its memory is shared among threads."""
    if isinstance(stmt, Atomic):
        if stmt.scope not in SCOPES:
            yield f"no atomic acts at {stmt.scope.value}"
        if stmt.order not in ORDERS:
            yield f"no atomic is {stmt.order}"
        if at.space(stmt.target.buffer) in (Space.LOCAL, Space.LANES):
            yield f"{stmt.target.buffer.name} is one thread's own"


def vector_of_atomics_fits(stmt: Stmt, at: Place) -> Iterator[str]:
    """Elements of global memory that a `red` takes at once, for all threads of a grid or a cluster."""
    if isinstance(stmt, AtomicVector):
        target, count = stmt.target, len(stmt.added)
        if count not in VECTORS.get((stmt.op, target.dtype.name), ()):
            yield f"no atomic {stmt.op} of {count} of {target.dtype} at once"
        if stmt.scope not in SCOPES or stmt.scope is Level.BLOCK or stmt.order not in ORDERS:
            yield f"no such atomic acts at {stmt.scope.value}, {stmt.order}"
        if at.space(target.buffer) not in (None, Space.GLOBAL):
            yield f"{target.buffer.name} is not in global memory"


class Store(Operation, eq=False):
    """`target = value`, in memory.

    `fused`: `value` has the form x ± a · b, and the machine may compute it with one rounding (fused multiply-add).
    """

    FORM = (Flag("fused"), writes("target"), Word("="), Calculated("value"))
    RULES = (
        written_memory_may_be_written,
        part_of_another_block_is_only_read,
        written_value_has_the_type,
        fused_is_a_sum_of_a_product,
    )
    IN_LANES = True

    target: Load
    value: Value
    fused: bool = False

    def does(self, effects: Effects) -> None:
        """Stores the value."""
        effects.writes(self.target, self.value)


def assign(target: Load | Ref, value: Value, span: Span = NOWHERE, *, fused: bool = False) -> Store | Assign:
    """A store to memory, or an assignment to a register."""
    if isinstance(target, Ref):
        return Assign(target.sym, value, span=span, fused=fused)
    return Store(target, value, span=span, fused=fused)


class Atomic(Operation, eq=False):
    """`target = op(target, value)` as one atomic operation at `scope`; `op` is add, min, max, and, or.

    `order`: one of `ORDERS`: behind a release whoever acquires sees what the thread did before.
    """

    FORM = (
        Word("atomic"),
        updates("target"),
        Joined("op"),
        Calculated("value"),
        Maybe("scope", Level.GRID, "at", (At("scope"),)),
        Maybe("order", "relaxed", "order", (Name("order"),)),
    )
    RULES = (
        written_memory_may_be_written,
        part_of_another_block_is_only_read,
        written_value_has_the_type,
        atomic_operation_fits,
        atomic_scope_fits,
    )
    IN_LANES = True

    target: Load
    op: str
    value: Value
    scope: Level = Level.GRID
    order: str = "relaxed"

    def cuda(self, to: Printing) -> Iterator[str]:
        """A relaxed atomic by CUDA's function, any other, and those of a cluster, as PTX has it."""
        target, value = to.element(self.target), to.value(self.value)
        if self.order == "relaxed" and self.scope is not Level.CLUSTER:
            suffix = "_block" if self.scope is Level.BLOCK else ""
            yield f"atomic{self.op.capitalize()}{suffix}(&{target}, {value});"
            return
        words = f"{self.order}.{SCOPES[self.scope]}.{ptx(self.op, self.target.dtype.name)}"
        constraint = packing(self.target.dtype, 1).constraint
        yield f'TX_RED("red.{words}", "{constraint}", atomic{self.op.capitalize()}, &{target}, {value});'

    def cpu(self, to: Printing) -> Iterator[str]:
        """A compare-and-swap loop on whole words; its scope is the whole machine."""
        change = _CHANGES.get(self.op) or ("a + b" if to.adds(self.target.dtype) else "tx_add(a, b)")
        target, value = to.element(self.target), to.value(self.value)
        yield f"tx_atomic(&{target}, [b = {value}](auto a) {{ return decltype(a)({change}); }});"

    def does(self, effects: Effects) -> None:
        """Combines atomically: for the threads of the grid at its widest scope, else for those of a block."""
        effects.combines(self.target, self.op, self.value, whole=self.scope is Level.GRID)


class AtomicVector(Operation, eq=False):
    """The same of consecutive elements of global memory, `target` the first of them, by one access: each is one step.

    The address is a multiple of their size. On targets before sm_90 they are as many accesses.
    """

    FORM = (
        Word("atomics"),
        updates("target", "added"),
        Joined("op"),
        Several("added"),
        Maybe("scope", Level.GRID, "at", (At("scope"),)),
        Maybe("order", "relaxed", "order", (Name("order"),)),
    )
    RULES = (
        written_memory_may_be_written,
        written_value_has_the_type,
        elements_are_consecutive,
        address_is_aligned,
        vector_of_atomics_fits,
    )
    IN_LANES = True

    target: Load
    op: str
    added: tuple[Value, ...]
    scope: Level = Level.GRID
    order: str = "relaxed"

    def cuda(self, to: Printing) -> Iterator[str]:
        """`tx_red_add_relaxed_gpu(&y[i], a, b, c, d);`"""
        values = ", ".join(map(to.value, self.added))
        yield f"tx_red_{self.op}_{self.order}_{SCOPES[self.scope]}(&{to.element(self.target)}, {values});"

    def does(self, effects: Effects) -> None:
        """Combines each element atomically, by one aligned access."""
        effects.at_once(len(self.added), self.target)
        for element, value in zip(consecutive(self.target, len(self.added)), self.added, strict=True):
            effects.combines(element, self.op, value, whole=self.scope is Level.GRID)
