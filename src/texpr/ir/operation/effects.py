"""The effects of operations, as they report them to the proof's reader. The proof trusts these reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from texpr.affine.expr import Expr, Sym
from texpr.ir.value import Load, Ref, Value
from texpr.ir.value.types import DType

if TYPE_CHECKING:
    from texpr.ir.operation import Operation


class Effects(Protocol):
    """Collects the effects of an operation in one thread."""

    @property
    def thread(self) -> Expr:
        """The number of the thread in its block."""
        ...

    @property
    def warp(self) -> int:
        """The number of lanes in a warp of the kernel."""
        ...

    def declares(self, sym: Sym, dtype: DType, value: Value) -> None:
        """Declares a register with its initial value."""
        ...

    def assigns(self, sym: Sym, value: Value) -> None:
        """Assigns a value to a register."""
        ...

    def writes(self, target: Load, value: Value) -> None:
        """Stores a value to an element."""
        ...

    def combines(self, target: Load, op: str, value: Value, *, whole: bool) -> None:
        """Combines an element with a value atomically: for all threads if `whole`, else for those of a block."""
        ...

    def takes(self, sym: Sym, source: Load, thread: Expr | None = None) -> None:
        """Declares a register with the value of an element, as `thread` of the block has it, if given."""
        ...

    def exchanges(self, sym: Sym, source: Ref, shift: Expr) -> None:
        """Declares a register with the value of another lane's; `shift`: the index of the loop over butterfly steps."""
        ...

    def at_once(self, count: int, *firsts: Load) -> None:
        """One aligned access moves `count` elements from each of `firsts` on."""
        ...

    def copies(self, target: Load, source: Load, count: int, when: Value | None) -> None:
        """Starts an asynchronous copy; where `when` is false, zeros are written."""
        ...

    def sends(self, copy: Operation) -> None:
        """Starts a copy of a box or a run by an engine."""
        ...

    def instructs(self, op: Operation) -> None:
        """Executes an instruction on the registers of the lanes that do it together."""
        ...

    def meets(self) -> None:
        """All threads of its group must execute it."""
        ...
