"""What an operation tells of itself to who reads kernels, in the words that the verifier compares. It believes these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from texpr.affine.expr import Expr, Sym
from texpr.ir.value import Load, Ref, Value
from texpr.ir.value.types import DType

if TYPE_CHECKING:
    from texpr.ir.operation import Operation


class Effects(Protocol):
    """The running thread, at the operation."""

    @property
    def thread(self) -> Expr:
        """Its number in its block."""
        ...

    @property
    def warp(self) -> int:
        """Lanes of a warp of its kernel."""
        ...

    def declares(self, sym: Sym, dtype: DType, value: Value) -> None:
        """A new register, and what it holds at first."""
        ...

    def assigns(self, sym: Sym, value: Value) -> None:
        """A register gets another value."""
        ...

    def writes(self, target: Load, value: Value) -> None:
        """An element gets another value."""
        ...

    def combines(self, target: Load, op: str, value: Value, *, whole: bool) -> None:
        """An element becomes its combination with a value: at once, for all threads where `whole`, of a block where not."""
        ...

    def takes(self, sym: Sym, source: Load, thread: Expr | None = None) -> None:
        """A new register holds an element; with `thread`, as that one of the block keeps it."""
        ...

    def exchanges(self, sym: Sym, source: Ref, shift: Expr) -> None:
        """A new register holds what another lane holds; `shift` is what a loop over lanes says."""
        ...

    def at_once(self, count: int, *firsts: Load) -> None:
        """From each of `firsts` on, so many elements are moved by one access, which has to be aligned."""
        ...

    def copies(self, target: Load, source: Load, count: int, when: Value | None) -> None:
        """A copy that goes on by itself; where `when` is false, zeros are written."""
        ...

    def sends(self, copy: Operation) -> None:
        """A copy of a box or a run, by an engine."""
        ...

    def instructs(self, op: Operation) -> None:
        """What an instruction means, of registers of the lanes that do it together."""
        ...

    def meets(self) -> None:
        """All threads must come."""
        ...
