"""Loops over lanes that a CPU executes as vector operations: all lanes compute alike, on consecutive elements."""

from __future__ import annotations

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr, maximum, minimum
from texpr.ir.kernel import For, If, Store
from texpr.ir.value import Cast, Index, Literal, Load, Op, Ref, Value, conjunction, conjuncts, walk
from texpr.ir.value.types import DType
from texpr.support.record import Record

WIDEST = 64
"""Bytes of the widest vector of any machine; other numbers of lanes divide it."""

NARROW = ("f16", "bf16")
"""Types that are loaded as vectors of f32."""

OPERATORS = ("add", "sub", "mul", "div")
"""Types of vector arithmetic."""


class Lanes(Record):
    """A vectorised loop. `first`: only so many lanes are active, None for all. `test`: a condition that is uniform over
    lanes."""

    loop: For
    stores: tuple[Store, ...]
    test: Value | None = None
    first: Expr | None = None

    @property
    def dtype(self) -> DType:
        """The type that a lane computes with."""
        return self.stores[0].target.dtype

    @property
    def left(self) -> Expr:
        """The number of active lanes from the current value of the loop's index on."""
        first = self.loop.hi if self.first is None else maximum(ZERO, minimum(self.first, self.loop.hi))
        return first - expr(self.loop.sym)


def lanes_of(loop: For) -> Lanes | None:
    """`loop` as vectors, if its trip count is constant and its body only stores arithmetic, in all lanes or the first ones."""
    if loop.kind != "simd" or loop.reductions or loop.lo is not ZERO or loop.step is not ONE or not loop.hi.is_constant:
        return None
    body, test, first = loop.body, None, None
    if len(body) == 1 and isinstance(body[0], If) and not body[0].orelse:
        found = _first_lanes(body[0].condition, loop)
        if found is None:
            return None
        body, (test, first) = body[0].then, found
    stores = tuple(stmt for stmt in body if isinstance(stmt, Store))
    if not stores or len(stores) != len(body):
        return None
    dtype = stores[0].target.dtype
    if dtype.name not in ("f32", "f64") or loop.hi.constant <= 0 or loop.hi.constant * dtype.bytes % WIDEST:
        return None
    even = all(_moves(s.target, loop.sym) and _is_even(s.value, loop.sym, dtype) for s in stores)
    return Lanes(loop, stores, test, first) if even else None


def _first_lanes(condition: Value, loop: For) -> tuple[Value | None, Expr | None] | None:
    """`condition` split in a test that is uniform over lanes, and the number of first lanes that fulfil the rest."""
    once: list[Value] = []
    first: list[Expr] = []
    for part in conjuncts(condition):
        if not any(loop.sym in e.syms() for node in walk(part) for e in _indices(node)):
            once.append(part)
            continue
        match part:
            case Op("lt" | "le" as name, (Index(left), Index(right))):
                count = right - left + loop.sym + (1 if name == "le" else 0)
            case _:
                return None
        if loop.sym in count.syms():
            return None
        first.append(count)
    return conjunction(once), minimum(*first) if first else None


def _indices(value: Value) -> tuple[Expr, ...]:
    match value:
        case Index(index):
            return (index,)
        case Load():
            return value.index
        case _:
            return ()


def _moves(load: Load, sym: Sym) -> bool:
    """Whether neighbouring lanes access neighbouring elements."""
    if load.data or not load.index or load.buffer.strides is not None:
        return False
    *outer, last = load.index
    return all(sym not in e.syms() for e in outer) and last.substitute({sym: expr(sym) + ONE}) - last is ONE


def _is_even(value: Value, sym: Sym, dtype: DType) -> bool:
    """Whether every lane computes `value` alike, from neighbouring elements and uniform values."""
    if value.dtype != dtype:
        return False
    match value:
        case Op(name, args) if name in OPERATORS:
            return all(_is_even(arg, sym, dtype) for arg in args)
        case Load():
            return _moves(value, sym) or is_same(value, sym)
        case Cast(arg=Load() as narrow) if dtype.name == "f32" and narrow.dtype.name in NARROW:
            return _moves(narrow, sym) or is_same(narrow, sym)
        case Literal() | Ref():
            return True
        case _:
            return False


def is_same(load: Load, sym: Sym) -> bool:
    """Whether all lanes read the same element."""
    return not load.data and all(sym not in e.syms() for e in load.index)
