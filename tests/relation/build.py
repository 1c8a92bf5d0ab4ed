"""Programs written in Python, tersely, for the tests of this room and of its neighbours."""

from __future__ import annotations

from texpr.affine.expr import Expr, IntoExpr, Sym, expr
from texpr.ir.program import Assume, Bind, Compare, Function, If, Par, Seq, Stmt, Update
from texpr.ir.value import Buffer, Index, Literal, Load, Op, Value
from texpr.ir.value.types import BOOL, F32, I32, I64, DType

ZERO = Literal(0.0, F32)


def array(name: str, *shape: IntoExpr, role: str = "input", dtype: DType = F32) -> Buffer:
    """A buffer."""
    return Buffer(name, dtype, tuple(map(expr, shape)), role)


def at(buffer: Buffer, *index: IntoExpr) -> Load:
    """An element."""
    return Load(buffer, tuple(map(expr, index)))


def put(target: Load, *values: Value, update: Update | None = None) -> Bind:
    """A bind that reads `values`."""
    value: Value = ZERO if target.dtype is F32 else Literal(0, target.dtype)
    for operand in values:
        value = operand if value in (ZERO, Literal(0, I32)) else Op("add", (value, operand), target.dtype)
    return Bind((target,), (value,), update)


def par(extent: IntoExpr, sym: Sym, *body: Stmt, reduce: tuple[Buffer, ...] = ()) -> Par:
    """A parallel loop."""
    return Par(sym, expr(extent), body, reduce)


def seq(extent: IntoExpr, sym: Sym, *body: Stmt, reduce: tuple[Buffer, ...] = ()) -> Seq:
    """A sequential loop."""
    return Seq(sym, expr(extent), body, reduce)


def when(op: str, left: IntoExpr, right: IntoExpr, *then: Stmt, orelse: tuple[Stmt, ...] = ()) -> If:
    """An `if` with an affine condition."""
    return If(Op(op, (Index(expr(left), I64), Index(expr(right), I64)), BOOL), then, orelse)


def function(
    *body: Stmt,
    params: tuple[Buffer, ...] = (),
    results: tuple[Buffer, ...] = (),
    sizes: tuple[Sym, ...] = (),
    where: tuple[Compare, ...] = (),
    assumes: tuple[Assume, ...] = (),
) -> Function:
    """A function called f."""
    return Function("f", params, results, sizes, body, where=where, assumes=assumes)


def syms(names: str) -> tuple[Sym, ...]:
    """Symbols, names separated by blanks."""
    return tuple(map(Sym, names.split()))


def e(sym: Sym) -> Expr:
    """A symbol as an expression."""
    return expr(sym)
