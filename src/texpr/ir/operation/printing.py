"""The printer's interface for operations: names and C texts at a program point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from texpr.affine.expr import Expr, Sym
from texpr.ir.operation.covered import Covered
from texpr.ir.value import Buffer, Load, Value
from texpr.ir.value.types import DType

if TYPE_CHECKING:
    from texpr.ir.kernel import Kernel


class Printing(Protocol):
    """The printer of a kernel, at an operation."""

    @property
    def machine(self) -> str:
        """The name of the machine, for messages."""
        ...

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        ...

    def adds(self, dtype: DType) -> bool:
        """Whether the C operator `+` has the language's semantics for a type."""
        ...

    @property
    def parted(self) -> int | None:
        """The number of the named barrier for the kernel's threads, if a block has more threads than the kernel; else None."""
        ...

    def type(self, dtype: DType) -> str:
        """The C type of `dtype`."""
        ...

    def at_once(self, buffer: Buffer) -> int:
        """The columns of tensor memory that are copied at once to an array of scales; 0 for another one."""
        ...

    def value(self, value: Value, *, fused: bool = False) -> str:
        """A value as a C expression; `fused`: a sum and product that may be computed with one rounding."""
        ...

    def element(self, load: Load) -> str:
        """An element of memory as a C lvalue."""
        ...

    def place(self, load: Load, *, inside: bool = True) -> str:
        """A buffer and an element's offset in it, as two arguments; without `inside` the offset may be out of bounds."""
        ...

    def index(self, value: Expr) -> str:
        """An index expression in C."""
        ...

    def bits(self, bits: int, by: Expr) -> str:
        """`bits` shifted left by `by`, as an unsigned number."""
        ...

    def variable(self, sym: Sym) -> str:
        """The name of a register variable."""
        ...

    def new(self, sym: Sym) -> str:
        """A fresh name for a register variable declared here."""
        ...

    def new_vector(self, syms: tuple[Sym, ...], source: Load) -> tuple[str, bool]:
        """A fresh name for a vector whose elements are these variables, and whether one of them is assigned later."""
        ...

    def map(self, name: str) -> str:
        """The kernel argument for the tensor map `name`."""
        ...

    def reasons(self, covers: tuple[Covered, ...]) -> list[str]:
        """The dependences that a wait covers, as comment lines."""
        ...
