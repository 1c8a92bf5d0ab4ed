"""Index expressions as a machine computes them: each step in the order in which it is written, with its width and its range.

An `Expr` is an integer without a width. Its `Typed` tree says how it is computed: the order of additions, casts to 64 or 128
bits, divisions that call a floor function because an operand may be negative. Printers only print the tree; the verifier
proves of each node that its exact value fits its width.

    tree   = number | name | -tree | tree (+ - * / % ^ &) tree | cast(tree) | floordiv, mod, min, max of two trees
    width  = int, long long, or 128 bits: the narrowest that holds the node's range, and no narrower than its operands

Ranges are those of `texpr.affine.ranges` and `Known`. Where these exceed 64 bits, three more sources are used: a bound on
sizes that a launcher checks (`Knowledge.products`), that the subscripts of an accessed element are in bounds, and 128-bit
arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache, reduce
from operator import mul
from typing import assert_never

from texpr.affine.expr import ONE, Atom, Expr, FloorDiv, Max, Min, Mod, Monomial, Sym, Xor, expr, maximum, minimum, term
from texpr.affine.facts import Fact, Known
from texpr.affine.magnitude import Top, clamped, magnitude, upper
from texpr.affine.ranges import Range
from texpr.support.limits import LARGEST_INT, MOST_BYTES, WIDTHS, Width
from texpr.support.record import Record, field, replace

_CHECKED: Range = (0, MOST_BYTES)
"""The range of each extent and stride, which a launcher checks, and of an element's offset in an array."""

_SHORT = 8
"""The longest sum, in terms, for which facts are combined."""

FREE: Range = (None, None)
"""The range of an unknown value."""


class Knowledge(Record, dict=True):
    """What is known at a program point: ranges, facts, and the widths of variables.

    `products`: products of sizes and their upper bounds, which launchers check; used only where ranges give no bound. `tops`:
    upper bounds of the magnitude of sizes and loop indices, as polynomials of sizes. `promises`: by array, the inclusive
    lower and exclusive upper bound of its elements. `narrows`: whether a result of 128 bits is cast back to a narrower type
    that holds it, as in kernels; the host keeps it.
    """

    ranges: Mapping[Sym, Range] = field(default_factory=dict[Sym, Range])
    facts: tuple[Fact, ...] = ()
    widths: Mapping[Sym, Width] = field(default_factory=dict[Sym, Width])
    products: tuple[tuple[Expr, int], ...] = ()
    tops: Mapping[Sym, Top] = field(default_factory=dict[Sym, Top])
    narrows: bool = True
    promises: Mapping[str, tuple[Expr, Expr]] = field(default_factory=dict[str, tuple[Expr, Expr]])

    @cached_property
    def known(self) -> Known:
        """Ranges and facts together."""
        return _known(tuple(self.ranges.items()), self.facts)

    @cached_property
    def _enough(self) -> int:
        """The least upper bound of a checked product: a smaller one says no more than ranges do."""
        return min([Width.LONG.most, *(most for _, most in self.products if most <= LARGEST_INT)])

    def bounds(self, value: Expr) -> Range:
        """The range of an index expression at this point."""
        lo, hi = self.known.bounds(value)
        enough = self._enough
        if lo is not None and hi is not None and -enough <= lo and hi <= enough:
            return lo, hi
        if hi is None or hi > enough:
            hi = self._most(value, hi)
        if lo is None or lo < -enough:
            most = self._most(-value, None if lo is None else -lo)
            lo = None if most is None else -most
        return lo, hi

    def _most(self, value: Expr, hi: int | None) -> int | None:
        """The least upper bound of `value` by a checked product or by its polynomial bound; otherwise `hi`."""
        plain = self.upper(value)
        found = [
            most
            for product, most in self.products
            if (plain is not None and _is_below(clamped(plain, most), product)) or self._stays_below(value, product)
        ]
        number = [] if plain is None or not plain.is_constant else [plain.constant]
        return min([*found, *number, *([] if hi is None else [hi])], default=None)

    def _stays_below(self, value: Expr, product: Expr) -> bool:
        """Whether `value` stays below `product`, by all facts, for short sums only: proofs about long sums rarely succeed and
        are slow."""
        rest = product - value
        return len(rest.terms) <= _SHORT and self.known.nonnegative(rest)

    def upper_product(self, factors: Iterable[Expr]) -> Expr | None:
        """The upper bound of a product of `factors`, as `upper`."""
        total: Expr | None = ONE
        for factor in factors:
            top = self.upper(factor)
            total = None if total is None or top is None else total * top
        return total

    def upper(self, value: Expr) -> Expr | None:
        """A polynomial of sizes that is at least `value`; None where there is none."""
        return upper(value, self.tops, self.known)

    def also(
        self,
        ranges: Mapping[Sym, Range] | None = None,
        facts: Iterable[Fact] = (),
        widths: Mapping[Sym, Width] | None = None,
        tops: Mapping[Sym, Top] | None = None,
    ) -> Knowledge:
        """This with further ranges, facts, widths and bounds."""
        return replace(
            self,
            ranges={**self.ranges, **(ranges or {})},
            facts=(*self.facts, *facts),
            widths={**self.widths, **(widths or {})},
            tops={**self.tops, **(tops or {})},
        )

    def integer(
        self, sym: Sym, ends: Range, facts: Iterable[Fact] = (), past: Range | None = None, top: Expr | None = None
    ) -> Knowledge:
        """With `sym`, a variable in the range `ends`, wide enough for `ends` and `past`, the values that it takes where
        nothing reads it (after a loop's last step). `top`: an upper bound of its magnitude."""
        fits = Width.INT.holds(ends) and (past is None or Width.INT.holds(past))
        above = None if top is None else _least(magnitude(top, self.tops, self.known), ends)
        return self.also({sym: ends}, facts, {sym: Width.INT if fits else Width.LONG}, {} if above is None else {sym: above})


def _least(above: Top | None, ends: Range) -> Top | None:
    """An upper bound of a magnitude: the range's, where that is at most half of a polynomial's constant term."""
    lo, hi = ends
    if above is None or lo is None or hi is None:
        return above
    most = max(-lo, hi, 0)
    return (expr(most), 1) if 2 * most * above[1] <= above[0].constant else above


@lru_cache(maxsize=1 << 8)
def _known(ranges: tuple[tuple[Sym, Range], ...], facts: tuple[Fact, ...]) -> Known:
    """Memoised: the printer and the verifier ask for the same ranges and facts."""
    return Known(dict(ranges), facts)


class Typed(Record):
    """One node: its exact `value`, the operation and its operands `args`, the width it is computed in, the range it lies in.

    `op`: "number", "name", "neg", "cast", an operator of C, or a function: "floordiv", "mod", "min", "max".
    """

    value: Expr
    op: str
    args: tuple[Typed, ...]
    width: Width
    ends: Range

    @property
    def fits(self) -> bool:
        """Whether the range fits the width."""
        return self.width.holds(self.ends)

    def nodes(self) -> Iterable[Typed]:
        """Every node, operands first."""
        for arg in self.args:
            yield from arg.nodes()
        yield self

    def is_number(self, number: int) -> bool:
        """Whether it is the constant `number`."""
        return self.op == "number" and self.value.constant == number

    def narrowed_to(self, width: Width) -> Typed:
        """The same value in at most the given width, which holds it."""
        return self if self.width.value <= width.value else Typed(self.value, "cast", (self,), width, self.ends)

    def widened(self, width: Width) -> Typed:
        """The same value in at least the given width."""
        if self.width.value >= width.value:
            return self
        if self.op == "number" and width is Width.LONG:
            return replace(self, width=width)
        return Typed(self.value, "cast", (self,), width, self.ends)


def typed(value: Expr, here: Knowledge, within: Range = FREE, most: Width = Width.WIDE) -> Typed:
    """How `value` is computed at a program point. `within`: a range it lies in whenever it is computed, known from elsewhere.

    `most`: the greatest width of its terms and sums. A node that may exceed it does not fit, and needs a checked bound on
    sizes.
    """
    terms = in_order(value)
    if not terms:
        return number(0)
    total, so_far = None, expr(0)
    for monomial, coefficient in terms:
        each = term(monomial, coefficient)
        so_far = so_far + each
        size = abs(coefficient)
        alone = _within(each, value, here, within)
        ends = alone if coefficient > 0 else (_minus(alone[1]), _minus(alone[0]))
        product = _product(monomial, size, here, ends, most)
        if total is None:
            total = product if coefficient > 0 else _negated(product, each, here)
        else:
            ends = _within(so_far, value, here, within)
            total = _step("-" if coefficient < 0 else "+", total, product, so_far, ends, most)
    assert total is not None
    return _narrowed(total, here)


def place(
    shape: Sequence[Expr], strides: Sequence[Expr] | None, at: Sequence[Expr], here: Knowledge, *, inside: bool = True
) -> Typed:
    """The offset of an array element, in elements from the array's start.

    With `inside` each subscript is in bounds wherever the offset is computed. So then is every partial sum: below the number
    of elements, or at most the last element's offset, which a launcher has checked. Without it, as for copies under a
    condition, ranges decide. The arithmetic is 64-bit in either case, and checked bounds on sizes are required where ranges
    do not suffice.
    """

    def part(index: Expr, extent: Expr) -> Typed:
        return _in_bounds(index, extent, here) if inside else typed(index, here, most=Width.LONG)

    if strides is not None:
        total, ends = number(0), _CHECKED if inside else FREE
        for index, extent, stride in zip(at, shape, strides, strict=True):
            each = times(part(index, extent), typed(stride, here, _CHECKED, Width.LONG), here, ends)
            total = plus(total, each, here, ends)
        return total
    total, count = number(0), ONE
    for index, extent in joined(at, shape):
        count = count * extent
        top = here.bounds(count)[1]
        ends = (0, MOST_BYTES if top is None or top > MOST_BYTES else max(top - 1, 0)) if inside else FREE
        total = times(total, typed(extent, here, _CHECKED, Width.LONG), here, ends)
        total = plus(total, part(index, extent), here, ends)
    return total


def count(extents: Sequence[Expr], here: Knowledge) -> Typed:
    """The product of extents, the number of iterations, where none is 0 or less: 64-bit."""
    factors = tuple(typed(extent, here) for extent in extents)
    hi = reduce(_times, (max(factor.ends[1], 0) if factor.ends[1] is not None else None for factor in factors))
    if not Width.LONG.holds((0, hi)):
        top = here.upper_product(extents)
        bounded = () if top is None else (m for product, m in here.products if _is_below(clamped(top, m), product))
        hi = min(bounded, default=hi)
    return Typed(reduce(mul, extents), "product", factors, Width.LONG, (0, hi))


def joined(at: Sequence[Expr], shape: Sequence[Expr]) -> list[tuple[Expr, Expr]]:
    """Subscripts and extents, with a quotient and remainder of one expression in adjacent dimensions replaced by that
    expression.

    [x / 4, x % 4] of 8 × 4 elements is [x] of 32.
    """
    found: list[tuple[Expr, Expr]] = []
    for index, extent in zip(at, shape, strict=True):
        atom = index.as_atom
        if found and isinstance(atom, Mod) and extent.is_constant and atom.den is extent:
            outer, count = found[-1]
            rest = outer - atom.num // extent
            if len(rest.terms) < len(outer.terms):
                found[-1] = (rest * extent + atom.num, count * extent)
                continue
        found.append((index, extent))
    return found


def in_order(value: Expr) -> list[tuple[Monomial, int]]:
    """The terms with positive ones first, so that few texts begin with a minus; the constant is a term without atoms."""
    ordered = sorted(value.terms, key=lambda item: item[1] < 0)
    if value.constant == 0:
        return ordered
    leading = value.constant > 0 and bool(ordered) and ordered[0][1] < 0
    return [((), value.constant), *ordered] if leading else [*ordered, ((), value.constant)]


def number(value: int) -> Typed:
    """A constant in the narrowest width that holds it."""
    return Typed(expr(value), "number", (), _narrowest((value, value)), (value, value))


def plus(a: Typed, b: Typed, here: Knowledge, within: Range) -> Typed:
    """a + b, which lies in `within`. Beyond 32 bits the terms of b are added one by one, left to right as C parses a + b₀ +
    b₁."""
    if a.is_number(0) or b.is_number(0):
        return b if a.is_number(0) else a
    if a.width is Width.INT or b.op not in ("+", "-"):
        return _joint("+", a, b, a.value + b.value, _sum(a.ends, b.ends), here, within)
    left, right = b.args
    rest = here.bounds(right.value)
    if b.op == "+":
        rest = (_minus(rest[1]), _minus(rest[0]))
    first = plus(a, left, here, _sum(within, rest))
    return _joint(b.op, first, right, a.value + b.value, _sum(a.ends, b.ends), here, within)


def times(a: Typed, b: Typed, here: Knowledge, within: Range) -> Typed:
    """a · b, which lies in `within`."""
    if a.is_number(0) or b.is_number(0):
        return number(0)
    if a.is_number(1) or b.is_number(1):
        return b if a.is_number(1) else a
    return _joint("*", a, b, a.value * b.value, _multiplied(a.ends, b.ends), here, within)


def _joint(operator: str, a: Typed, b: Typed, value: Expr, ends: Range, here: Knowledge, within: Range) -> Typed:
    """An operation of at most 64 bits; its range is the intersection of both ranges and, beyond 64 bits, of what is known of
    its value."""
    ends = _meet(ends, within)
    if not Width.LONG.holds(ends):
        ends = _meet(ends, here.bounds(value))
    return _step(operator, a, b, value, ends, Width.LONG)


def _in_bounds(index: Expr, extent: Expr, here: Knowledge) -> Typed:
    """A subscript of an accessed element, its range clipped to 0 … extent − 1."""
    top = here.bounds(extent)[1]
    most = MOST_BYTES if top is None or top > MOST_BYTES else max(top - 1, 0)
    found = typed(index, here, (0, most), Width.LONG)
    lo, hi = found.ends
    found = replace(found, ends=(max(lo or 0, 0), most if hi is None else max(min(hi, most), 0)))
    return found.narrowed_to(Width.LONG)


def _product(monomial: Monomial, coefficient: int, here: Knowledge, whole: Range, most: Width) -> Typed:
    """coefficient · monomial for a coefficient > 0; `whole` is its range, `most` the upper bound of its partial products."""
    parts = [_atom(atom, here) for atom in monomial]
    if coefficient != 1 or not parts:
        parts.insert(0, number(coefficient))
    total = parts[0]
    for at, part in enumerate(parts[1:], 1):
        value = total.value * part.value
        total = _step("*", total, part, value, whole if at == len(parts) - 1 else here.bounds(value), most)
    return total


def _negated(product: Typed, value: Expr, here: Knowledge) -> Typed:
    ends = here.bounds(value)
    wide = product.widened(_narrowest(ends))
    return Typed(value, "neg", (wide,), wide.width, ends)


def _within(part: Expr, whole: Expr, here: Knowledge, ends_of_whole: Range) -> Range:
    """The range of a part of a sum: as known here or, beyond 64 bits, as follows from the ranges of the whole and of the
    rest."""
    ends = here.bounds(part)
    if ends_of_whole == FREE or Width.LONG.holds(ends):
        return ends
    low, high = here.bounds(whole - part)
    return _meet(ends, _sum(ends_of_whole, (_minus(high), _minus(low))))


def _step(operator: str, a: Typed, b: Typed, value: Expr, ends: Range, most: Width = Width.WIDE) -> Typed:
    """`a operator b`, whose exact result lies in `ends`, in the narrowest width that holds it, at most `most`."""
    need = min(_narrowest(ends), most, key=lambda width: width.value)
    if max(a.width.value, b.width.value) < need.value:
        a = a.widened(need)
    return Typed(value, operator, (a, b), _wider(a, b), ends)


def _narrowest(ends: Range) -> Width:
    return next((width for width in WIDTHS if width.holds(ends)), Width.WIDE)


def _wider(a: Typed, b: Typed) -> Width:
    return max(a.width, b.width, key=lambda width: width.value)


def _atom(atom: Atom, here: Knowledge) -> Typed:
    value = term((atom,))
    match atom:
        case Sym():
            return Typed(value, "name", (), here.widths.get(atom, Width.LONG), here.bounds(value))
        case FloorDiv():
            return _narrowed(_division(atom, "/", "floordiv", value, here), here)
        case Mod():
            return _narrowed(_division(atom, "%", "mod", value, here), here)
        case Min() | Max():
            name, join = ("min", minimum) if isinstance(atom, Min) else ("max", maximum)
            total, *rest = (typed(arg, here) for arg in atom.args)
            for other in rest:
                total = _called(name, total, other, join(total.value, other.value), here)
            return _narrowed(total, here)
        case Xor():
            return _narrowed(_swizzle(atom, value, here), here)
        case _:
            assert_never(atom)


def _division(atom: FloorDiv | Mod, operator: str, function: str, value: Expr, here: Knowledge) -> Typed:
    """A division or remainder. C's operator truncates and must not divide by zero: it is used only where no sign or zero
    makes a difference."""
    num, den = typed(atom.num, here), typed(atom.den, here)
    if here.known.nonnegative(atom.num) and here.known.positive(atom.den):
        return _step(operator, num, den, value, here.bounds(value))
    return _called(function, num, den, value, here)


def _swizzle(atom: Xor, value: Expr, here: Knowledge) -> Typed:
    """A swizzle by C's operator, which is right for negative values in two's complement; bits above the mask are masked off."""
    whole, mask, low = typed(atom.value, here), typed(atom.mask, here), (1 << atom.bits) - 1
    least, most = here.bounds(atom.mask)
    if least is None or most is None or least < 0 or most > low:
        mask = _step("&", mask, number(low), atom.mask % (low + 1), (0, low))
    return _step("^", whole, mask, value, here.bounds(value))


def _called(function: str, a: Typed, b: Typed, value: Expr, here: Knowledge) -> Typed:
    """A call: overloaded by width on a device, so both arguments have one width; always 128-bit on the host.

    A quotient by −1 may exceed the greatest dividend by one: the width allows for that.
    """
    ends = here.bounds(value)
    width = Width.WIDE if not here.narrows else max(a.width, b.width, _narrowest(ends), key=lambda each: each.value)
    args = (a, b) if not here.narrows else (a.widened(width), b.widened(width))
    return Typed(value, function, args, width, ends)


def _narrowed(found: Typed, here: Knowledge) -> Typed:
    """In a kernel a 128-bit result is cast to the narrower width that holds it: addresses and variables are never 128-bit."""
    if here.narrows and found.width is Width.WIDE and Width.LONG.holds(found.ends):
        return Typed(found.value, "cast", (found,), _narrowest(found.ends), found.ends)
    return found


def _is_below(value: Expr, product: Expr) -> bool:
    """Whether `product` − `value`, polynomials of sizes ≥ 0, has no negative coefficient."""
    rest = product - value
    plain = all(isinstance(atom, Sym) for monomial, _ in rest.terms for atom in monomial)
    return plain and rest.constant >= 0 and all(coefficient >= 0 for _, coefficient in rest.terms)


def _minus(end: int | None) -> int | None:
    return None if end is None else -end


def _times(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b


def _sum(a: Range, b: Range) -> Range:
    lo, hi = ((None if x is None or y is None else x + y) for x, y in zip(a, b, strict=True))
    return lo, hi


def _multiplied(a: Range, b: Range) -> Range:
    corners = [None if x is None or y is None else x * y for x in a for y in b]
    known = [corner for corner in corners if corner is not None]
    return (min(known), max(known)) if len(known) == len(corners) else FREE


def _meet(a: Range, b: Range) -> Range:
    """The intersection of both; where `a` fits 64 bits, `a`."""
    if Width.LONG.holds(a):
        return a
    lows, highs = [x for x in (a[0], b[0]) if x is not None], [x for x in (a[1], b[1]) if x is not None]
    return max(lows, default=None), min(highs, default=None)
