"""Vector loads and stores: consecutive elements of a row by one access."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from texpr.affine.expr import Sym
from texpr.ir.operation import Bound, Operation
from texpr.ir.operation.form import Flag, Several, Symbols, Word, consecutive, reads, writes
from texpr.ir.ops.rules import (
    address_is_aligned,
    elements_are_consecutive,
    part_of_another_block_is_only_read,
    runs,
    written_memory_may_be_written,
    written_value_has_the_type,
    wrong_widths,
)
from texpr.ir.program.updates import sum_and_product
from texpr.ir.value import Load, Value
from texpr.isa.levels import Space

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.effects import Effects
    from texpr.ir.operation.printing import Printing

VECTOR_BYTES = (2, 4, 8, 16)
"""Widths of a vector access in bytes (PTX ISA, "ld", "st": up to 128 bits; two bytes are one register)."""


def width_is_one_access(stmt: Stmt, at: Place) -> Iterator[str]:
    """The width is one that the machine supports."""
    if isinstance(stmt, LoadVector | StoreVector):
        yield from wrong_widths(stmt, VECTOR_BYTES)


def vectors_are_of_memory(stmt: Stmt, at: Place) -> Iterator[str]:
    """The buffer is in global or shared memory, not in a thread's own registers."""
    if isinstance(stmt, LoadVector | StoreVector):
        for first, _ in runs(stmt):
            if at.space(first.buffer) in (Space.LOCAL, Space.LANES):
                yield f"{first.buffer.name} is one thread's own"


def fused_are_sums_of_products(stmt: Stmt, at: Place) -> Iterator[str]:
    """A fused store has the form x ± a · b in each lane."""
    if isinstance(stmt, StoreVector) and stmt.fused and None in map(sum_and_product, stmt.stored):
        yield "a lane has nothing to be fused"


class LoadVector(Operation, eq=False):
    """Declares variables for consecutive elements of a row, `source` the first of them, loaded by one access.

    The width in bytes is 2, 4, 8 or 16, and the address is a multiple of it.
    """

    FORM = (Word("vector"), Symbols("targets"), Word("="), reads("source", "targets"))
    RULES = (
        width_is_one_access,
        elements_are_consecutive,
        address_is_aligned,
        vectors_are_of_memory,
        part_of_another_block_is_only_read,
    )
    IN_LANES = True

    targets: tuple[Sym, ...]
    source: Load

    @property
    def bound(self) -> tuple[Bound, ...]:
        """A variable for each element."""
        elements = consecutive(self.source, len(self.targets))
        return tuple(Bound(sym, self.source.dtype, each) for sym, each in zip(self.targets, elements, strict=True))

    def c(self, to: Printing) -> Iterator[str]:
        """`tx_vec<float, 4> const a = tx_load<4>(x, i);`; the variables are `a[0]`, `a[1]`, …"""
        count = len(self.targets)
        value = f"tx_load<{count}>({to.place(self.source)})"
        name, changes = to.new_vector(self.targets, self.source)
        yield f"tx_vec<{to.type(self.source.dtype)}, {count}>{'' if changes else ' const'} {name} = {value};"

    def does(self, effects: Effects) -> None:
        """Loads the elements by one aligned access."""
        effects.at_once(len(self.targets), self.source)
        for sym, source in zip(self.targets, consecutive(self.source, len(self.targets)), strict=True):
            effects.takes(sym, source)


class StoreVector(Operation, eq=False):
    """Stores consecutive elements of a row, `target` the first of them, by one access. Widths as in `LoadVector`.

    `fused`: as in `Store`, in each lane.
    """

    FORM = (Word("vector"), Flag("fused"), writes("target", "stored"), Word("="), Several("stored"))
    RULES = (
        written_memory_may_be_written,
        part_of_another_block_is_only_read,
        width_is_one_access,
        elements_are_consecutive,
        address_is_aligned,
        vectors_are_of_memory,
        written_value_has_the_type,
        fused_are_sums_of_products,
    )
    IN_LANES = True

    target: Load
    stored: tuple[Value, ...]
    fused: bool = False

    def c(self, to: Printing) -> Iterator[str]:
        """`tx_store(y, i, a, b, c, d);`"""
        lanes = (to.value(value, fused=self.fused) for value in self.stored)
        yield f"tx_store({to.place(self.target)}, {', '.join(lanes)});"

    def does(self, effects: Effects) -> None:
        """Stores the elements by one aligned access."""
        effects.at_once(len(self.stored), self.target)
        for target, value in zip(consecutive(self.target, len(self.stored)), self.stored, strict=True):
            effects.writes(target, value)
