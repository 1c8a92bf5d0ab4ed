"""A loop over lanes as operations on whole vectors, where every lane does the same arithmetic on neighbouring elements.

    for (int j = 0; j < 32; ++j) c[32 * i + j] += a[i] * b[j];

    for (int j = 0; j < 32; j += TX_LANES(float)) tx_row(c[32 * i + j]) += a[i] * tx_row(b[j]);

It means the same to the bit: each lane rounds as before. A compiler keeps in registers what is accessed as vectors from the
start, where unrolled loops index it; what it makes vectors of itself, later, stays in memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import ONE, ZERO, Sym, expr
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import Binds, Text, binary
from texpr.backends.c.types import C_NAMES
from texpr.backends.c.value import addend, element_text, value_text
from texpr.ir.kernel import For, Store
from texpr.ir.types import DType
from texpr.ir.updates import sum_and_product
from texpr.ir.value import Literal, Load, Op, Ref, Value, walk

WIDEST = 64
"""Bytes of the widest vector of any machine: fewer lanes divide it."""

_OPERATORS = {"add": ("+", Binds.ADD), "sub": ("-", Binds.ADD), "mul": ("*", Binds.MULTIPLY), "div": ("/", Binds.MULTIPLY)}


def is_rows(loop: For) -> bool:
    """Whether all lanes of `loop` can be vectors: a constant number of them, and stores of arithmetic alone."""
    if loop.kind != "simd" or loop.reductions or loop.lo is not ZERO or loop.step is not ONE or not loop.hi.is_constant:
        return False
    stores = [stmt for stmt in loop.body if isinstance(stmt, Store)]
    if not stores or len(stores) != len(loop.body):
        return False
    dtype = stores[0].target.dtype
    if dtype.name not in ("f32", "f64") or loop.hi.constant <= 0 or loop.hi.constant * dtype.bytes % WIDEST:
        return False
    return all(_moves(s.target, loop.sym) and _is_even(s.value, loop.sym, dtype) for s in stores)


def rows(loop: For, scope: Scope) -> Iterator[str]:
    """The statements of the loop's body, for all lanes of a vector. `scope`: inside the loop."""
    for stmt in loop.body:
        if isinstance(stmt, Store):
            target = f"tx_row({element_text(stmt.target, scope)})"
            parts = sum_and_product(stmt.value) if stmt.fused else None
            added = addend(stmt.target, stmt.value)
            if parts is not None:
                before, a, b = (_row(part, loop.sym, scope) for part in parts)
                yield f"{target} = tx_muladd_rows({a}, {b}, {before});"
            elif added is not None:
                yield f"{target} += {_text(added, loop.sym, scope)};"
            elif _is_uniform(stmt.value, loop.sym):
                yield f"{target} = tx_same({value_text(stmt.value, scope)});"
            else:
                yield f"{target} = {_text(stmt.value, loop.sym, scope)};"


def head(loop: For) -> tuple[int, str]:
    """How many vectors there are at most, of 16 bytes; and how many lanes one has, as C text."""
    dtype = next(stmt.target.dtype for stmt in loop.body if isinstance(stmt, Store))
    return loop.hi.constant * dtype.bytes // 16, f"TX_LANES({C_NAMES[dtype]})"


def _moves(load: Load, sym: Sym) -> bool:
    """Whether each lane's element lies beside the one before."""
    if load.data or not load.index or load.buffer.strides is not None:
        return False
    *outer, last = load.index
    return all(sym not in e.syms() for e in outer) and last.substitute({sym: expr(sym) + ONE}) - last is ONE


def _is_even(value: Value, sym: Sym, dtype: DType) -> bool:
    """Whether every lane computes `value` alike, from neighbours and from what is the same for all."""
    if value.dtype != dtype:
        return False
    match value:
        case Op(name, args) if name in _OPERATORS:
            return all(_is_even(arg, sym, dtype) for arg in args)
        case Load():
            return _moves(value, sym) or _is_same(value, sym)
        case Literal() | Ref():
            return True
        case _:
            return False


def _is_uniform(value: Value, sym: Sym) -> bool:
    return all(_is_same(node, sym) for node in walk(value) if isinstance(node, Load))


def _is_same(load: Load, sym: Sym) -> bool:
    return not load.data and all(sym not in e.syms() for e in load.index)


def _row(value: Value, sym: Sym, scope: Scope) -> str:
    """`value` for each lane of a vector, where one value serves all of them too."""
    return f"tx_same({value_text(value, scope)})" if _is_uniform(value, sym) else str(_text(value, sym, scope))


def _text(value: Value, sym: Sym, scope: Scope) -> Text:
    match value:
        case Op("neg", (arg,)):
            return Text(f"-{_text(arg, sym, scope).at(Binds.PRIMARY)}", Binds.UNARY)
        case Op(name, args) if name in _OPERATORS:
            return binary(*_OPERATORS[name], *(_text(arg, sym, scope) for arg in args))
        case Load() if not _is_same(value, sym):
            return Text(f"tx_row({element_text(value, scope)})")
        case _:
            return value_text(value, scope)
