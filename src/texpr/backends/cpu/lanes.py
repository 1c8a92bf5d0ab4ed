"""A loop over lanes as operations on whole vectors, where every lane does the same arithmetic on neighbouring elements.

    for (int j = 0; j < 32; ++j) c[32 * i + j] += a[i] * b[j];

    for (int j = 0; j < 32; j += TX_LANES(float)) tx_row(c[32 * i + j]) += a[i] * tx_row(b[j]);

It means the same to the bit: each lane rounds as before. A compiler keeps in registers what is accessed as vectors from the
start, where unrolled loops index it; what it makes vectors of itself, later, stays in memory.

Where only the first lanes do something, the rest of a vector is neither read nor written, but in memory of the core's own,
which holds it: there it is written as it was.

    if (i < m && j < n) c[i * n + j] = b[j];

    int const left = tx_max(tx_min(n, 32), 0) - j;
    if (i < m && left > 0) tx_store_some(c[i * n + j], tx_some(b[j], left), left);
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr, maximum, minimum
from texpr.backends.c.index import index_text
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import Binds, Text, binary
from texpr.backends.c.types import C_NAMES
from texpr.backends.c.value import addend, element_text, value_text
from texpr.ir.kernel import For, If, Store
from texpr.ir.types import DType
from texpr.ir.updates import sum_and_product
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value, conjunction, conjuncts, walk
from texpr.support.record import Record

WIDEST = 64
"""Bytes of the widest vector of any machine: fewer lanes divide it."""

NARROW = ("f16", "bf16")
"""Types that are read as vectors of f32."""

_OPERATORS = {"add": ("+", Binds.ADD), "sub": ("-", Binds.ADD), "mul": ("*", Binds.MULTIPLY), "div": ("/", Binds.MULTIPLY)}


class Lanes(Record):
    """What lanes do. `first`: how many of them, from the first on; None for all. `test`: what is asked once for all lanes."""

    loop: For
    stores: tuple[Store, ...]
    test: Value | None = None
    first: Expr | None = None

    @property
    def dtype(self) -> DType:
        """What a lane computes with."""
        return self.stores[0].target.dtype

    @property
    def head(self) -> tuple[int, str]:
        """How many vectors there are at most, of 16 bytes; and how many lanes one has, as C text."""
        return self.loop.hi.constant * self.dtype.bytes // 16, f"TX_LANES({C_NAMES[self.dtype]})"


def lanes_of(loop: For) -> Lanes | None:
    """`loop` as vectors: where it has a constant number of lanes, and stores of arithmetic alone, of all lanes or the first."""
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


def rows(lanes: Lanes, scope: Scope, near: frozenset[Buffer]) -> Iterator[str]:
    """The statements for all lanes of a vector. `scope`: inside the loop; `near`: arrays of the core's own."""
    if lanes.first is None and lanes.test is None:
        yield from (_Row(lanes.loop, scope, near).store(stmt) for stmt in lanes.stores)
        return
    first = lanes.loop.hi if lanes.first is None else maximum(ZERO, minimum(lanes.first, lanes.loop.hi))
    left = scope.taken.take("left")
    yield f"int const {left} = {index_text(first - expr(lanes.loop.sym), scope)};"
    asked = "" if lanes.test is None else f"{value_text(lanes.test, scope).at(Binds.AND)} && "
    yield f"if ({asked}{left} > 0) {{"
    yield from (f"    {_Row(lanes.loop, scope, near, left).store(stmt)}" for stmt in lanes.stores)
    yield "}"


class _Row(Record):
    """Prints what a vector does. `left`: the variable that says how many of its lanes do something, "" where all do."""

    loop: For
    scope: Scope
    near: frozenset[Buffer]
    left: str = ""

    def store(self, stmt: Store) -> str:
        """One statement."""
        target = f"tx_row({element_text(stmt.target, self.scope)})"
        parts = sum_and_product(stmt.value) if stmt.fused else None
        added = addend(stmt.target, stmt.value)
        if parts is not None:
            before, a, b = map(self.vector, parts)
            value = f"tx_muladd_rows({a}, {b}, {before})"
        elif added is not None and not self.left:
            return f"{target} += {self.text(added)};"
        else:
            value = self.vector(stmt.value)
        if not self.left:
            return f"{target} = {value};"
        if self.is_held(stmt.target):
            return f"{target} = tx_choose({self.left}, {value}, {target});"
        return f"tx_store_some({element_text(stmt.target, self.scope)}, {value}, {self.left});"

    def vector(self, value: Value) -> str:
        """`value` for each lane, as a vector where it is the same for all of them, too."""
        same = all(_is_same(node, self.loop.sym) for node in walk(value) if isinstance(node, Load))
        return f"tx_same({value_text(value, self.scope)})" if same else str(self.text(value))

    def text(self, value: Value) -> Text:
        """`value` for each lane, or once for all of them."""
        match value:
            case Op("neg", (arg,)):
                return Text(f"-{self.text(arg).at(Binds.PRIMARY)}", Binds.UNARY)
            case Op(name, args) if name in _OPERATORS:
                return binary(*_OPERATORS[name], *map(self.text, args))
            case Load() if not _is_same(value, self.loop.sym):
                element = element_text(value, self.scope)
                whole = not self.left or self.is_held(value)
                return Text(f"tx_row({element})" if whole else f"tx_some({element}, {self.left})")
            case Cast(arg=Load() as narrow) if not _is_same(narrow, self.loop.sym):
                element = element_text(narrow, self.scope)
                whole = not self.left or self.is_held(narrow)
                return Text(f"tx_wide({element})" if whole else f"tx_wide_some({element}, {self.left})")
            case _:
                return value_text(value, self.scope)

    def is_held(self, load: Load) -> bool:
        """Whether the elements of all lanes are there, in an array of the core's own."""
        if load.buffer not in self.near:
            return False
        low, high = self.scope.bounds(load.index[-1] - expr(self.loop.sym))
        return (
            low is not None and low >= 0 and high is not None and high + self.loop.hi.constant <= load.buffer.shape[-1].constant
        )


def _first_lanes(condition: Value, loop: For) -> tuple[Value | None, Expr | None] | None:
    """What `condition` asks once for all lanes, and how many lanes fulfil the rest of it, which are the first ones."""
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
        case Cast(arg=Load() as narrow) if dtype.name == "f32" and narrow.dtype.name in NARROW:
            return _moves(narrow, sym) or _is_same(narrow, sym)
        case Literal() | Ref():
            return True
        case _:
            return False


def _is_same(load: Load, sym: Sym) -> bool:
    return not load.data and all(sym not in e.syms() for e in load.index)
