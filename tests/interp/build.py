"""Programs for the tests, built by hand: short names for the nodes."""

from __future__ import annotations

from texpr.affine.expr import Expr, Sym, expr, sym
from texpr.ir.program import Bind, Combiner, Function, If, Let, New, Par, Seq, Stmt
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.operators import OPS
from texpr.ir.value.types import BOOL, DType

Into = Expr | Sym | int | str


def e(value: Into) -> Expr:
    """A symbol's name, a number or an expression."""
    return sym(value) if isinstance(value, str) else expr(value)


def buffer(name: str, dtype: DType, *shape: Into, role: str = "input") -> Buffer:
    return Buffer(name, dtype, tuple(map(e, shape)), role)


def at(memory: Buffer, *index: Into, data: tuple[tuple[Sym, Value], ...] = ()) -> Load:
    return Load(memory, tuple(map(e, index)), data)


def lit(value: float, dtype: DType) -> Literal:
    return Literal(value, dtype)


def op(name: str, *args: Value) -> Op:
    same = args[-1].dtype
    return Op(name, args, BOOL if OPS[name].gives == "bool" else same)


def cast(value: Value, dtype: DType) -> Cast:
    return Cast(value, dtype)


def index(value: Into, dtype: DType) -> Index:
    return Index(e(value), dtype)


def ref(name: str, dtype: DType) -> Ref:
    return Ref(Sym(name), dtype)


def par(name: str, extent: Into, *body: Stmt, reduce: tuple[Buffer, ...] = ()) -> Par:
    return Par(Sym(name), e(extent), body, reduce)


def seq(name: str, extent: Into, *body: Stmt, reduce: tuple[Buffer, ...] = ()) -> Seq:
    return Seq(Sym(name), e(extent), body, reduce)


def put(target: Load, value: Value, update: str | Combiner | None = None) -> Bind:
    return Bind((target,), (value,), update)


def let(name: str, value: Value) -> Let:
    return Let(Sym(name), value)


def when(condition: Value, *then: Stmt, orelse: tuple[Stmt, ...] = ()) -> If:
    return If(condition, then, orelse)


def function(params: tuple[Buffer, ...], results: tuple[Buffer, ...], *body: Stmt, sizes: str = "", **more: object) -> Function:
    """A function `f` that starts with a `new` for every result which is no parameter."""
    news = tuple(New(r) for r in results if r.role == "result")
    return Function("f", params, results, tuple(map(Sym, sizes.split())), (*news, *body), **more)  # pyright: ignore
