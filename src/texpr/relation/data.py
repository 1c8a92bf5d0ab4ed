"""Data-dependent integers: ranges of values that are read from memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from texpr.affine.expr import ZERO, Expr, IntoExpr, Sym, expr, maximum, minimum
from texpr.ir.program import Assume, Injective, InRange, Let, Monotone
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.types import DTYPES, DType, Kind, widens
from texpr.presburger.formula import Eq, Formula, Ge, conj, differ, disj, equal, syms
from texpr.presburger.linear import is_affine
from texpr.support.record import Record


class Bounds(Record):
    """Lower and upper bound of a value, both inclusive; None where unbounded."""

    lo: Expr | None = None
    hi: Expr | None = None


class Hidden(Record, eq=False):
    """A symbol whose value is data: of a load (`let` None), read by each instance, or of a `let`, which keeps it.

    `bounds` is its range; `source` the load, if it is one of an input (so that equal indices give equal values); `injective`
    if different indices give different values; `monotone` if larger indices give values not smaller. `widened`: not data, but
    a subscript that is not affine; `defined`: a widened one that the accompanying formulas determine.
    """

    sym: Sym
    bounds: Bounds
    let: Let | None = None
    depth: int = 0  # number of loops around the let
    source: Load | None = None
    injective: bool = False
    widened: bool = False
    defined: bool = False
    monotone: bool = False

    @property
    def free(self) -> bool:
        """Whether an end of the data's range is unknown, apart from the limits of a wide type."""
        return self.bounds.lo in _WIDE or self.bounds.hi in _WIDE


class Ranges:
    """Bounds of values under a function's assumptions."""

    def __init__(self, assumes: Sequence[Assume]):
        self._ranges = {a.buffer: a for a in assumes if isinstance(a, InRange)}
        self._injective = {a.buffer for a in assumes if isinstance(a, Injective)}
        self._monotone = {a.buffer for a in assumes if isinstance(a, Monotone)}
        self.lets: dict[Sym, Bounds] = {}

    def hidden(self, sym: Sym, value: Value, let: Let | None = None, depth: int = 0) -> Hidden:
        """The hidden symbol for `value`."""
        load = _source(value)
        known = load is not None and load.buffer.role == "input"
        source = load if known else None
        injective, monotone = (source is not None and source.buffer in each for each in (self._injective, self._monotone))
        found = Hidden(sym, self.bounds(value), let, depth, source, injective=injective, monotone=monotone)
        if let is not None:
            self.lets[sym] = found.bounds
        return found

    def assumed(self, buffer: Buffer) -> bool:
        """Whether an `assume` gives a range of the elements of `buffer`."""
        return buffer in self._ranges

    def bounds(self, value: Value) -> Bounds:
        """The bounds of an integer value, at most the range of its type; no bounds for other types."""
        if not value.dtype.is_integer:
            return Bounds()
        found, widest = self._bounds(value), least_and_greatest(value.dtype)
        return Bounds(widest.lo if found.lo is None else found.lo, widest.hi if found.hi is None else found.hi)

    def _bounds(self, value: Value) -> Bounds:
        match value:
            case Literal():
                return _point(int(value.value))
            case Index():
                return _point(value.expr)
            case Ref():
                return _point(expr(value.sym)) if value.sym in self.lets else Bounds()
            case Load():
                return self._load(value)
            case Cast():
                inner = self.bounds(value.arg)
                return inner if value.arg.dtype.is_integer and _keeps(value, inner) else Bounds()
            case Op():
                return self._op(value)

    def _load(self, load: Load) -> Bounds:
        found = self._ranges.get(load.buffer)
        return Bounds() if found is None else Bounds(found.lo, found.hi - 1)

    def _op(self, op: Op) -> Bounds:
        parts = [self.bounds(a) for a in op.args]
        match op.name:
            case "max":
                return Bounds(_either(maximum, parts[0].lo, parts[1].lo), _both(maximum, parts[0].hi, parts[1].hi))
            case "min":
                return Bounds(_both(minimum, parts[0].lo, parts[1].lo), _either(minimum, parts[0].hi, parts[1].hi))
            case "select":
                return Bounds(_both(minimum, parts[1].lo, parts[2].lo), _both(maximum, parts[1].hi, parts[2].hi))
            case "mod" if isinstance(op.args[1], Literal) and op.args[1].value > 0:
                return Bounds(expr(0), expr(int(op.args[1].value) - 1))
            case "div" if isinstance(op.args[1], Literal) and op.args[1].value > 0:
                lo, hi = (None if end is None else end // int(op.args[1].value) for end in (parts[0].lo, parts[0].hi))
                return Bounds(lo, hi)
            case _:
                return Bounds()


def bounds_formula(hidden: Hidden) -> Formula:
    """The range of a hidden symbol as a formula."""
    lo, hi = hidden.bounds.lo, hidden.bounds.hi
    parts = ([Ge(expr(hidden.sym) - lo)] if lo is not None else []) + ([Ge(hi - hidden.sym)] if hi is not None else [])
    return conj(parts)


def needed(hidden: Sequence[Hidden], used: frozenset[Sym]) -> tuple[Hidden, ...]:
    """Those of `hidden` that occur in `used`, or in the bounds of one that does."""
    kept: list[Hidden] = []
    for each in reversed(hidden):
        if each.sym in used:
            kept.append(each)
            used |= syms(bounds_formula(each))
    return tuple(reversed(kept))


def told(hidden: Sequence[Hidden]) -> Iterator[Formula]:
    """What is known of the data read at one instance: the range of each, and `alike` for each pair."""
    yield from map(bounds_formula, hidden)
    sources = [(each, each.source) for each in hidden if each.source is not None]
    for at, (a, one) in enumerate(sources):
        for b, other in sources[at + 1 :]:
            if one.buffer is other.buffer and all(map(is_affine, (*one.index, *other.index))):
                yield alike(a, one.index, expr(a.sym), other.index, expr(b.sym))


def alike(a: Hidden, one: Sequence[Expr], x: Expr, other: Sequence[Expr], y: Expr) -> Formula:
    """What is known of two elements of one input, `x` at the index `one`, `y` at `other`.

    Equal indices give equal elements; different indices of an injective input different ones, larger indices of a monotone
    input no smaller ones.
    """
    same, apart = Eq(x - y), differ(one, other)
    parts = [disj((conj((equal(one, other), same)), conj((apart, differ([x], [y]))) if a.injective else apart))]
    if a.monotone:
        (first,), (second,) = one, other
        parts += [disj((Ge(first - second - 1), Ge(y - x))), disj((Ge(second - first - 1), Ge(x - y)))]
    return conj(parts)


def _source(value: Value) -> Load | None:
    """The load that a value consists of, widening conversions aside."""
    while isinstance(value, Cast) and value.arg.dtype.is_integer and widens(value.arg.dtype, value.dtype):
        value = value.arg
    return value if isinstance(value, Load) else None


def _keeps(cast: Cast, inner: Bounds) -> bool:
    """Whether a conversion between integer types preserves the value: the type holds all values, or this one by its range."""
    room, ends = least_and_greatest(cast.dtype), (inner.lo, inner.hi)
    assert room.lo is not None and room.hi is not None
    fits = all(e is not None and e.is_constant and room.lo.constant <= e.constant <= room.hi.constant for e in ends)
    return fits or widens(cast.arg.dtype, cast.dtype)


def _point(value: IntoExpr) -> Bounds:
    return Bounds(expr(value), expr(value))


def least_and_greatest(dtype: DType) -> Bounds:
    """The range of an integer type."""
    if dtype.kind is Kind.UINT:
        return Bounds(expr(0), expr(2**dtype.bits - 1))
    return Bounds(expr(-(2 ** (dtype.bits - 1))), expr(2 ** (dtype.bits - 1) - 1))


_WIDE = frozenset(
    end
    for dtype in DTYPES.values()
    if dtype.is_integer and dtype.bits >= 32
    for end in (least_and_greatest(dtype).lo, least_and_greatest(dtype).hi)
    if end is not ZERO
)


def _both(join: Callable[..., Expr], a: Expr | None, b: Expr | None) -> Expr | None:
    return None if a is None or b is None else join(a, b)


def _either(join: Callable[..., Expr], a: Expr | None, b: Expr | None) -> Expr | None:
    return b if a is None else a if b is None else join(a, b)
