"""What loops and branches do, turn by turn: an oracle for what printers make of them."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import Expr, Sym
from texpr.ir import kernel as k
from texpr.ir.value import Index, Literal, Op, Ref, Value
from texpr.ir.value.types import BOOL, I32, I64

N, T = Sym("n"), Sym("t")


def compared(name: str, one: Expr, other: Expr) -> Op:
    """A comparison of indices."""
    return Op(name, (Index(one, I64), Index(other, I64)), BOOL)


def did(text: str, turn: Expr) -> k.Stmt:
    """A statement that leaves a trace."""
    return k.Declare(Sym(text), I32, Index(turn, I32))


def trace(body: tuple[k.Stmt, ...], at: dict[Sym, int]) -> Iterator[tuple[str, int]]:
    """What statements do, one by one."""
    known: dict[Sym, bool] = {}

    def holds(value: Value) -> bool:
        match value:
            case Ref(sym):
                return known[sym]
            case Literal(constant):
                return bool(constant)
            case Op(name, (Index(one), Index(other))):
                a, b = one.evaluate(at), other.evaluate(at)
                return a < b if name == "lt" else a >= b
            case _:
                raise AssertionError(value)

    for stmt in body:
        match stmt:
            case k.For(sym, lo, hi, inner):
                for turn in range(lo.evaluate(at), hi.evaluate(at)):
                    yield from trace(inner, {**at, sym: turn})
            case k.If():
                yield from trace(stmt.then if holds(stmt.condition) else stmt.orelse, at)
            case k.Declare(sym=sym, dtype=dtype, value=value):
                if dtype is BOOL:
                    known[sym] = holds(value)
                else:
                    assert isinstance(value, Index)
                    yield sym.name, value.expr.evaluate(at)
            case _:
                raise AssertionError(stmt)
