"""Index expressions as C text, in `int` where every step provably fits, else in `long long`.

Ranges are those of `texpr.affine.ranges`, so they hold whatever values the symbols take. Where not even 63 bits are provably
enough, `long long` is right all the same inside a kernel: the expression is an address in bounds, and the host has checked
that every array's size fits (`texpr.backends.c.checks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import assert_never

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Monomial, Sym, Xor, expr, term
from texpr.affine.ranges import Range
from texpr.backends.c.scope import IntType, Scope
from texpr.backends.c.text import Binds, Text, binary, call, cast
from texpr.ir.value import Buffer
from texpr.support.diagnostic import limitation
from texpr.support.record import Record, replace

_TYPES = tuple(IntType)


class Integer(Record):
    """An integer in C text: its type, which holds its range."""

    text: Text
    type: IntType
    ends: Range
    literal: bool = False

    def widened(self, type_: IntType) -> Integer:
        """The same value in a type at least as wide as `type_`."""
        if _TYPES.index(self.type) >= _TYPES.index(type_):
            return self
        if self.literal and type_ is IntType.LONG:
            return replace(self, text=Text(self.text.text + type_.suffix, self.text.binds), type=type_)
        return replace(self, text=cast(type_.ctype, self.text), type=type_)


def index_text(value: Expr, scope: Scope) -> Text:
    """`value` as C text."""
    return index(value, scope).text


def index(value: Expr, scope: Scope) -> Integer:
    """`value` in C; no step of it overflows."""
    terms = _in_order(value)
    if not terms:
        return _literal(0)
    total, sum_so_far = _first(terms[0], scope), term(*terms[0])
    for monomial, coefficient in terms[1:]:
        sum_so_far = sum_so_far + term(monomial, coefficient)
        product = _product(monomial, abs(coefficient), scope)
        total = _step("-" if coefficient < 0 else "+", Binds.ADD, total, product, scope.bounds(sum_so_far), scope)
    return total


def flat_index(buffer: Buffer, at: Sequence[Expr], scope: Scope) -> Integer:
    """The place of an element of `buffer`, counted in elements from its start; each index is in bounds."""
    if buffer.strides is not None:
        indices = [_in_bounds(index(e, scope), extent, scope) for e, extent in zip(at, buffer.shape, strict=True)]
        terms = [_times(i, stride, scope) for i, stride in zip(indices, buffer.strides, strict=True)]
        return reduce(lambda flat, other: _sum(flat, other, scope), terms, _literal(0))
    places = _joined(at, buffer.shape)
    indices = [_in_bounds(index(e, scope), extent, scope) for e, extent in places]
    steps = zip((extent for _, extent in places[1:]), indices[1:], strict=True)
    return reduce(lambda flat, step: _sum(_times(flat, step[0], scope), step[1], scope), steps, _start(indices))


def _joined(at: Sequence[Expr], shape: Sequence[Expr]) -> list[tuple[Expr, Expr]]:
    """Indices with their extents; what are quotient and remainder of one expression is that expression again.

    [x / 4, x % 4] of 8 × 4 elements is [x] of 32.
    """
    found: list[tuple[Expr, Expr]] = []
    for place, extent in zip(at, shape, strict=True):
        atom = place.as_atom
        if found and isinstance(atom, Mod) and extent.is_constant and atom.den is extent:
            outer, count = found[-1]
            rest = outer - atom.num // extent
            if len(rest.terms) < len(outer.terms):
                found[-1] = (rest * extent + atom.num, count * extent)
                continue
        found.append((place, extent))
    return found


def _start(indices: list[Integer]) -> Integer:
    return indices[0] if indices else _literal(0)


def _in_bounds(value: Integer, extent: Expr, scope: Scope) -> Integer:
    """`value`, with its range cut to 0 … extent − 1: where it is evaluated, it is an index."""
    lo, hi = value.ends
    top = scope.bounds(extent)[1]
    last = hi if top is None else top - 1 if hi is None else min(hi, top - 1)
    return replace(value, ends=(max(lo or 0, 0), None if last is None else max(last, 0)))


def _sum(a: Integer, b: Integer, scope: Scope) -> Integer:
    if _is(a, 0) or _is(b, 0):
        return b if _is(a, 0) else a
    ends = tuple(None if x is None or y is None else x + y for x, y in zip(a.ends, b.ends, strict=True))
    return _step("+", Binds.ADD, a, b, (ends[0], ends[1]), scope)


def _times(a: Integer, factor: Expr, scope: Scope) -> Integer:
    b = index(factor, scope)
    if _is(a, 0) or _is(b, 0):
        return _literal(0)
    if _is(a, 1) or _is(b, 1):
        return b if _is(a, 1) else a
    corners = [None if x is None or y is None else x * y for x in a.ends for y in b.ends]
    known = [corner for corner in corners if corner is not None]
    ends = (min(known), max(known)) if len(known) == len(corners) else (None, None)
    return _step("*", Binds.MULTIPLY, a, b, ends, scope)


def _is(value: Integer, number: int) -> bool:
    return value.literal and value.ends == (number, number)


def _in_order(value: Expr) -> list[tuple[Monomial, int]]:
    """Terms with positive coefficients first, so that few texts begin with a minus; the constant is a term of no atoms."""
    ordered = sorted(value.terms, key=lambda item: item[1] < 0)
    if value.constant == 0:
        return ordered
    leading = value.constant > 0 and bool(ordered) and ordered[0][1] < 0
    return [((), value.constant), *ordered] if leading else [*ordered, ((), value.constant)]


def _first(item: tuple[Monomial, int], scope: Scope) -> Integer:
    monomial, coefficient = item
    product = _product(monomial, abs(coefficient), scope)
    if coefficient > 0:
        return product
    ends = scope.bounds(term(monomial, coefficient))
    wide = product.widened(_fitting(ends, scope))
    return Integer(Text(f"-{wide.text.at(Binds.PRIMARY)}", Binds.UNARY), wide.type, ends)


def _product(monomial: Monomial, coefficient: int, scope: Scope) -> Integer:
    """coefficient · monomial, coefficient > 0."""
    parts = [_atom(atom, scope) for atom in monomial]
    if coefficient != 1 or not parts:
        parts.insert(0, _literal(coefficient))
        values = [expr(coefficient), *(term((atom,)) for atom in monomial)]
    else:
        values = [term((atom,)) for atom in monomial]
    total, product = parts[0], values[0]
    for part, value in zip(parts[1:], values[1:], strict=True):
        product = product * value
        total = _step("*", Binds.MULTIPLY, total, part, scope.bounds(product), scope)
    return total


def _literal(value: int) -> Integer:
    type_ = IntType.INT if IntType.INT.holds((value, value)) else IntType.LONG
    return Integer(Text(f"{value}{type_.suffix}"), type_, (value, value), literal=True)


def _step(operator: str, binds: Binds, a: Integer, b: Integer, ends: Range, scope: Scope) -> Integer:
    """`a operator b`, whose exact result lies in `ends`, in a type that holds it."""
    need = _fitting(ends, scope)
    if max(map(_TYPES.index, (a.type, b.type))) < _TYPES.index(need):
        a = a.widened(need)
    type_ = max(a.type, b.type, key=_TYPES.index)
    if operator == "+" and a.type is not IntType.INT and b.text.binds is Binds.ADD:
        return Integer(Text(f"{a.text} + {b.text}", Binds.ADD), type_, ends)  # no partial sum of an address is too large
    return Integer(binary(operator, binds, a.text, b.text), type_, ends)


def _fitting(ends: Range, scope: Scope) -> IntType:
    for type_ in _TYPES[: _TYPES.index(scope.widest) + 1]:
        if type_.holds(ends):
            return type_
    if scope.widest is IntType.WIDE:
        raise limitation("E0551", None, "a condition on sizes needs integers of more than 128 bits")
    return scope.widest


def _atom(atom: Atom, scope: Scope) -> Integer:
    match atom:
        case Sym():
            variable = scope.variables[atom]
            return Integer(variable.text, variable.type, scope.bounds(term((atom,))))
        case FloorDiv():
            return _division(atom, "/", "floordiv", scope)
        case Mod():
            return _division(atom, "%", "mod", scope)
        case Min():
            return _extremum("min", atom.args, atom, scope)
        case Max():
            return _extremum("max", atom.args, atom, scope)
        case Xor():
            return _swizzle(atom, scope)
        case _:
            assert_never(atom)


def _division(atom: FloorDiv | Mod, operator: str, function: str, scope: Scope) -> Integer:
    """C's own operator truncates and must not meet a zero: it is used where neither sign nor zero can make a difference."""
    num, den = index(atom.num, scope), index(atom.den, scope)
    ends = scope.bounds(term((atom,)))
    if scope.known.nonnegative(atom.num) and scope.known.positive(atom.den):
        return _step(operator, Binds.MULTIPLY, num, den, ends, scope)
    return _called(function, [num, den], ends, scope)


def _swizzle(atom: Xor, scope: Scope) -> Integer:
    """C's own operator, which in two's complement is right for negative values too; only needless bits must not meet it."""
    value, mask, low = index(atom.value, scope), index(atom.mask, scope), (1 << atom.bits) - 1
    least, most = scope.bounds(atom.mask)
    if least is None or most is None or least < 0 or most > low:
        mask = _bits("&", Binds.BIT_AND, mask, _literal(low), (0, low), scope)
    return _bits("^", Binds.BIT_XOR, value, mask, scope.bounds(term((atom,))), scope)


def _bits(operator: str, binds: Binds, a: Integer, b: Integer, ends: Range, scope: Scope) -> Integer:
    """`a operator b`, each operand in parentheses unless it is a single thing: few know how these operators bind."""
    a, b = (replace(each, text=Text(each.text.at(Binds.UNARY))) for each in (a, b))
    return _step(operator, binds, a, b, ends, scope)


def _extremum(function: str, args: Sequence[Expr], atom: Atom, scope: Scope) -> Integer:
    first, *rest = (index(arg, scope) for arg in args)
    ends = scope.bounds(term((atom,)))
    return reduce(lambda a, b: _called(function, [a, b], ends, scope), rest, first)


def _called(function: str, args: Sequence[Integer], ends: Range, scope: Scope) -> Integer:
    """A call: on a device of functions overloaded for `int` and `long long`, whose arguments must be of one type."""
    if scope.widest is IntType.WIDE:
        return Integer(call(f"texpr_{function}", *(arg.text for arg in args)), IntType.WIDE, ends)
    widest = max((arg.type for arg in args), key=_TYPES.index)
    return Integer(call(f"tx_{function}", *(arg.widened(widest).text for arg in args)), widest, ends)
