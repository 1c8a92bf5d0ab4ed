"""What an operation asks of who prints kernels in C: names and texts at its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from texpr.affine.expr import Expr, Sym
from texpr.ir.operation.covered import Covered
from texpr.ir.value import Load, Value
from texpr.ir.value.types import DType

if TYPE_CHECKING:
    from texpr.ir.kernel import Kernel


class Printing(Protocol):
    """A place in the text of a kernel."""

    @property
    def machine(self) -> str:
        """What it is printed for, for messages."""
        ...

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        ...

    def adds(self, dtype: DType) -> bool:
        """Whether `+` of C adds values of a type as the language does."""
        ...

    @property
    def parted(self) -> int | None:
        """Where a block has more threads than the kernel: the number of the barrier at which its own meet."""
        ...

    def type(self, dtype: DType) -> str:
        """A type in C."""
        ...

    def value(self, value: Value, *, fused: bool = False) -> str:
        """A value in C; `fused`: a sum whose product need not be rounded before it is added."""
        ...

    def element(self, load: Load) -> str:
        """An element of memory, to be read or written."""
        ...

    def place(self, load: Load, *, inside: bool = True) -> str:
        """A buffer and the offset of an element in it, as two arguments; it may be outside, where not `inside`."""
        ...

    def index(self, value: Expr) -> str:
        """An index expression."""
        ...

    def bits(self, bits: int, by: Expr) -> str:
        """Bits shifted left, as an unsigned number."""
        ...

    def variable(self, sym: Sym) -> str:
        """The name of a register variable."""
        ...

    def new(self, sym: Sym) -> str:
        """The name of a register variable that is declared here."""
        ...

    def new_vector(self, syms: tuple[Sym, ...], source: Load) -> tuple[str, bool]:
        """The name of a vector that is declared here, whose elements are these variables; whether one is assigned later."""
        ...

    def map(self, name: str) -> str:
        """The argument that is the map called so."""
        ...

    def reasons(self, covers: tuple[Covered, ...]) -> list[str]:
        """What a wait is for, as comments."""
        ...
