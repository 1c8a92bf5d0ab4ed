"""The printer of operations at a program point (`texpr.ir.operation.printing`)."""

from __future__ import annotations

from collections.abc import Iterable

from texpr.affine.expr import Expr, Sym
from texpr.backends.c.index import index_text
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import Binds, Text, comment, line_of
from texpr.backends.c.types import C_NAMES, OPERATOR_TYPES
from texpr.backends.c.value import element_text, fused_text, place_text, value_text
from texpr.ir.instr.registers import columns_of
from texpr.ir.kernel import Kernel, collectives
from texpr.ir.operation.covered import Covered
from texpr.ir.value import Buffer, Load, Value
from texpr.ir.value.types import F8E8M0, DType
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import Mutable


class Here(Mutable):
    """The printer at one statement; declarations are added to `scope`. `assigned`: variables that are reassigned.

    `parted`: the number of the named barrier for the kernel's threads, if a block has more threads than the kernel.
    """

    machine: str
    kernel: Kernel
    scope: Scope
    assigned: frozenset[Sym]
    parted: int | None = None

    def type(self, dtype: DType) -> str:
        """The C type of `dtype`."""
        return C_NAMES[dtype]

    def at_once(self, buffer: Buffer) -> int:
        """The columns of tensor memory that are copied at once to an array of scales; 0 for another one."""
        if buffer.dtype != F8E8M0:
            return 0
        written = (h for op, _ in collectives(self.kernel) for h in op.registers if h.first.buffer is buffer)
        counts = (columns_of(buffer.dtype, h.count) for h in written if h.access == "write")
        return next(counts, columns_of(buffer.dtype, buffer.shape[0].constant))

    def adds(self, dtype: DType) -> bool:
        """Whether the C operator `+` has the language's semantics for a type."""
        return dtype in OPERATOR_TYPES

    def value(self, value: Value, *, fused: bool = False) -> str:
        """A value as a C expression."""
        return str(fused_text(value, self.scope) if fused else value_text(value, self.scope))

    def element(self, load: Load) -> str:
        """An element of memory as a C lvalue."""
        return str(element_text(load, self.scope))

    def place(self, load: Load, *, inside: bool = True) -> str:
        """A buffer and an element's offset in it, as two arguments."""
        return f"{self.scope.named[load.buffer]}, {place_text(load, self.scope, inside=inside)}"

    def index(self, value: Expr) -> str:
        """An index expression in C."""
        return str(index_text(value, self.scope))

    def bits(self, bits: int, by: Expr) -> str:
        """`bits` shifted left by `by`, as an unsigned number."""
        if by.is_constant:
            return f"{bits << by.constant:#x}u"
        return f"{bits:#x}u << {index_text(by, self.scope).at(Binds.SHIFT)}"

    def variable(self, sym: Sym) -> str:
        """The name of a register variable."""
        return self.scope.named[sym]

    def new(self, sym: Sym) -> str:
        """A fresh name for a register variable declared here."""
        self.scope, name = self.scope.name(sym)
        return name

    def new_vector(self, syms: tuple[Sym, ...], source: Load) -> tuple[str, bool]:
        """A fresh name for a vector whose elements are these variables, and whether one of them is reassigned later."""
        first = syms[0]
        scope, name = self.scope.name(first, first.base.rstrip("_0123456789") or first.name)
        for lane, sym in enumerate(syms):
            text = f"{name}[{lane}]"
            scope = scope.also_named(sym, text)
            if source.dtype.is_integer and sym not in self.assigned:
                scope = scope.data(sym, Text(text), source.dtype, source.buffer)
        self.scope = scope
        return name, not self.assigned.isdisjoint(syms)

    def map(self, name: str) -> str:
        """The kernel argument for the map `name`. Raises CompilerBug if there is none."""
        found = next((map for map in self.kernel.maps if map.name == name), None)
        if found is None:
            raise CompilerBug(f"kernel {self.kernel.name} has no map {name}")
        return self.scope.named[found]

    def reasons(self, covers: Iterable[Covered]) -> list[str]:
        """The dependences that a wait covers, as comment lines."""
        return [f"// {comment(_covered(c))}" for c in covers]


def _covered(dependence: Covered) -> str:
    carried = f", carried by {dependence.carried.base}" if dependence.carried is not None else ""
    ends = [line_of(dependence.source), line_of(dependence.sink)]
    lines = "" if None in ends else f": line {ends[0]} -> line {ends[1]}"
    if dependence.kind == "END":
        lines = "" if ends[0] is None else f": line {ends[0]} -> the block's end"
    return f"{dependence.kind} {dependence.buffer}{lines}{carried}"
