"""Registers of one thread: declaration and assignment of variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from texpr.affine.expr import Expr, Sym
from texpr.ir.operation import Bound, Operation
from texpr.ir.operation.form import Calculated, Flag, Symbol, Typed, Word
from texpr.ir.program.updates import sum_and_product
from texpr.ir.value import Index, Literal, Value
from texpr.ir.value.types import I32, DType
from texpr.support.record import replace
from texpr.support.span import NOWHERE, Span

if TYPE_CHECKING:
    from texpr.ir.kernel import Stmt
    from texpr.ir.kernel.place import Place
    from texpr.ir.operation.effects import Effects


def first_value_has_the_type(stmt: Stmt, at: Place) -> Iterator[str]:
    """The initial value of a variable has its type."""
    if isinstance(stmt, Declare) and stmt.value.dtype != stmt.dtype:
        yield f"{stmt.sym} is {stmt.dtype}, its value {stmt.value.dtype}"


def assigned_variable_is_declared(stmt: Stmt, at: Place) -> Iterator[str]:
    """An assigned variable is declared, and the value has its type."""
    if isinstance(stmt, Assign):
        dtype = at.scope.variables.get(stmt.sym)
        if dtype is None:
            yield f"variable {stmt.sym} is not declared here"
        elif stmt.value.dtype != dtype:
            yield f"{stmt.sym} is {dtype}, its value {stmt.value.dtype}"


def lanes_assign_their_own(stmt: Stmt, at: Place) -> Iterator[str]:
    """In a simd loop, a variable declared outside is assigned only by a reduction of that loop."""
    simd = at.simd if isinstance(stmt, Assign) else None
    if isinstance(stmt, Assign) and simd is not None:
        joined = any(stmt.sym is sym for sym, _ in simd.reductions)
        if not joined and stmt.sym not in at.declared(simd):
            yield f"all lanes of {simd.sym} assign {stmt.sym}"


def product_is_there_to_be_fused(stmt: Stmt, at: Place) -> Iterator[str]:
    """A fused assignment has the form x ± a · b."""
    if isinstance(stmt, Assign) and stmt.fused and sum_and_product(stmt.value) is None:
        yield "nothing is there to be fused"


def let(sym: Sym, value: Value | Expr, span: Span = NOWHERE) -> Declare:
    """Declares a variable of the type of its `value`; an index expression is an i32."""
    first = Index(value, I32) if isinstance(value, Expr) else value
    return Declare(sym, first.dtype, first, span=span)


class Declare(Operation, eq=False):
    """Declares a register variable with its initial value. It is constant unless an `Assign` or `Exchange` names it."""

    FORM = (Word("let"), Typed("sym", "dtype"), Word("="), Calculated("value"))
    RULES = (first_value_has_the_type,)
    DECLARES = True
    IN_LANES = True

    sym: Sym
    dtype: DType
    value: Value

    @property
    def bound(self) -> tuple[Bound, ...]:
        """The declared variable with its value."""
        return (Bound(self.sym, self.dtype, self.value),)

    def does(self, effects: Effects) -> None:
        """Declares the variable."""
        effects.declares(self.sym, self.dtype, self.value)


class Assign(Operation, eq=False):
    """Assigns a value to a declared variable. `fused` as in `Store`."""

    FORM = (Flag("fused"), Symbol("sym"), Word("="), Calculated("value"))
    RULES = (assigned_variable_is_declared, lanes_assign_their_own, product_is_there_to_be_fused)
    IN_LANES = True

    sym: Sym
    value: Value
    fused: bool = False

    @property
    def assigns(self) -> tuple[Bound, ...]:
        """The variable with the value."""
        return (Bound(self.sym, self.value.dtype, self.value),)

    def does(self, effects: Effects) -> None:
        """Assigns the value."""
        effects.assigns(self.sym, self.value)


def postponed(made: Declare) -> tuple[Declare, Assign]:
    """A declaration of 0, and the assignment of the value that it has in `made`."""
    zero = Literal(0.0 if made.dtype.is_float else 0, made.dtype)
    return replace(made, value=zero), Assign(made.sym, made.value, span=made.span)
