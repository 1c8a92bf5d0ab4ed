"""A place in the text of a kernel, as operations ask for names and texts there (`texpr.ir.operation.printing`)."""

from __future__ import annotations

from collections.abc import Iterable

from texpr.affine.expr import Expr, Sym
from texpr.backends.c.index import index_text
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import Binds, Text, comment, line_of
from texpr.backends.c.types import C_NAMES, OPERATOR_TYPES
from texpr.backends.c.value import element_text, fused_text, place_text, value_text
from texpr.ir.kernel import Kernel
from texpr.ir.operation.covered import Covered
from texpr.ir.value import Load, Value
from texpr.ir.value.types import DType
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import Mutable


class Here(Mutable):
    """One statement's place: what it declares is in `scope` afterwards. `assigned`: variables that change later.

    `parted`: where a block has more threads than the kernel, the number of the barrier at which its own meet.
    """

    machine: str
    kernel: Kernel
    scope: Scope
    assigned: frozenset[Sym]
    parted: int | None = None

    def type(self, dtype: DType) -> str:
        """A type in C."""
        return C_NAMES[dtype]

    def adds(self, dtype: DType) -> bool:
        """Whether `+` of C adds values of a type as the language does."""
        return dtype in OPERATOR_TYPES

    def value(self, value: Value, *, fused: bool = False) -> str:
        """A value in C."""
        return str(fused_text(value, self.scope) if fused else value_text(value, self.scope))

    def element(self, load: Load) -> str:
        """An element of memory."""
        return str(element_text(load, self.scope))

    def place(self, load: Load, *, inside: bool = True) -> str:
        """A buffer and the offset of an element in it."""
        return f"{self.scope.named[load.buffer]}, {place_text(load, self.scope, inside=inside)}"

    def index(self, value: Expr) -> str:
        """An index expression."""
        return str(index_text(value, self.scope))

    def bits(self, bits: int, by: Expr) -> str:
        """Bits shifted left, as an unsigned number."""
        if by.is_constant:
            return f"{bits << by.constant:#x}u"
        return f"{bits:#x}u << {index_text(by, self.scope).at(Binds.SHIFT)}"

    def variable(self, sym: Sym) -> str:
        """The name of a register variable."""
        return self.scope.named[sym]

    def new(self, sym: Sym) -> str:
        """The name of a register variable that is declared here."""
        self.scope, name = self.scope.name(sym)
        return name

    def new_vector(self, syms: tuple[Sym, ...], source: Load) -> tuple[str, bool]:
        """The name of a vector that is declared here, whose elements are these variables; whether one is assigned later."""
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
        """The argument that is the map called so. Raises CompilerBug where there is none."""
        found = next((map for map in self.kernel.maps if map.name == name), None)
        if found is None:
            raise CompilerBug(f"kernel {self.kernel.name} has no map {name}")
        return self.scope.named[found]

    def reasons(self, covers: Iterable[Covered]) -> list[str]:
        """What a wait is for, as comments."""
        return [f"// {comment(_covered(c))}" for c in covers]


def _covered(dependence: Covered) -> str:
    carried = f", carried by {dependence.carried.base}" if dependence.carried is not None else ""
    ends = [line_of(dependence.source), line_of(dependence.sink)]
    lines = "" if None in ends else f": line {ends[0]} -> line {ends[1]}"
    if dependence.kind == "END":
        lines = "" if ends[0] is None else f": line {ends[0]} -> the block's end"
    return f"{dependence.kind} {dependence.buffer}{lines}{carried}"
