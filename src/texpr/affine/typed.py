"""Index expressions as a machine computes them: each step in the order in which it is written, with its width and its range.

An `Expr` is a number without a size. Its `Typed` tree says how that number is computed: which sum is taken first, what is
cast to 64 or 128 bits before, which division floors by a call because an operand may be negative. Printers print the tree and
decide nothing; the verifier proves of each node that its exact value fits its width.

    tree   = number | name | -tree | tree (+ - * / % ^ &) tree | cast(tree) | floordiv, mod, min, max of two trees
    width  = int, long long, or 128 bits: the narrowest that holds the node's range, and no narrower than its operands

Ranges are those of `texpr.affine.ranges` and `Known`. Where these exceed 64 bits, three more things are looked at: a bound on
sizes that a launcher checks (`Knowledge.products`), that an index of an element which is accessed is in bounds, and 128 bits.
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
"""The range of each extent and stride, of which a launcher has made sure, and of a place in an array."""

_SHORT = 8
"""Terms of a sum that facts are added up for."""

FREE: Range = (None, None)
"""The range of what nothing is known of."""


class Knowledge(Record, dict=True):
    """What is known at a place of the code: ranges, facts, and how wide the variables are.

    `products`: expressions of sizes that are at most a number, as launchers check it; asked only where ranges say nothing.
    `tops`: of sizes and loops, polynomials of sizes that bound their magnitude.
    `promises`: of arrays, by name, what no element is less than, and what each is less than.
    `narrows`: whether a result of 128 bits is cast back to what holds it, as in kernels; the host keeps it.
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
        """Below this no bound on sizes says more than ranges do."""
        return min([Width.LONG.most, *(most for _, most in self.products if most <= LARGEST_INT)])

    def bounds(self, value: Expr) -> Range:
        """The range of an index expression here."""
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
        """The least number that a checked product proves `value` to stay below, or what bounds it is made of; or `hi`."""
        plain = self.upper(value)
        found = [
            most
            for product, most in self.products
            if (plain is not None and _is_below(clamped(plain, most), product)) or self._stays_below(value, product)
        ]
        number = [] if plain is None or not plain.is_constant else [plain.constant]
        return min([*found, *number, *([] if hi is None else [hi])], default=None)

    def _stays_below(self, value: Expr, product: Expr) -> bool:
        """The same by all that is known, for what is short: proofs of long sums seldom end well, and late."""
        rest = product - value
        return len(rest.terms) <= _SHORT and self.known.nonnegative(rest)

    def upper_product(self, factors: Iterable[Expr]) -> Expr | None:
        """The same of a product."""
        total: Expr | None = ONE
        for factor in factors:
            top = self.upper(factor)
            total = None if total is None or top is None else total * top
        return total

    def upper(self, value: Expr) -> Expr | None:
        """A polynomial of sizes that `value` never exceeds, None where there is none."""
        return upper(value, self.tops, self.known)

    def also(
        self,
        ranges: Mapping[Sym, Range] | None = None,
        facts: Iterable[Fact] = (),
        widths: Mapping[Sym, Width] | None = None,
        tops: Mapping[Sym, Top] | None = None,
    ) -> Knowledge:
        """This and more."""
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
        """With `sym`, a variable in the range `ends`, as wide as that and `past` need: the values that the variable has where
        nothing reads it (a loop's last step). `top`: an expression that bounds its magnitude."""
        fits = Width.INT.holds(ends) and (past is None or Width.INT.holds(past))
        above = None if top is None else magnitude(top, self.tops, self.known)
        return self.also({sym: ends}, facts, {sym: Width.INT if fits else Width.LONG}, {} if above is None else {sym: above})


@lru_cache(maxsize=1 << 8)
def _known(ranges: tuple[tuple[Sym, Range], ...], facts: tuple[Fact, ...]) -> Known:
    """Who prints a place and who bounds it know the same, and ask the same."""
    return Known(dict(ranges), facts)


class Typed(Record):
    """One node: the exact `value`, the operation that makes it of `args`, the width it is computed in, the range it lies in.

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
        """Whether it is this constant."""
        return self.op == "number" and self.value.constant == number

    def narrowed_to(self, width: Width) -> Typed:
        """The same value, which `width` holds, in no more than that."""
        return self if self.width.value <= width.value else Typed(self.value, "cast", (self,), width, self.ends)

    def widened(self, width: Width) -> Typed:
        """The same value at least as wide as `width`."""
        if self.width.value >= width.value:
            return self
        if self.op == "number" and width is Width.LONG:
            return replace(self, width=width)
        return Typed(self.value, "cast", (self,), width, self.ends)


def typed(value: Expr, here: Knowledge, within: Range = FREE, most: Width = Width.WIDE) -> Typed:
    """How `value` is computed at a place. `within`: where it lies whenever it is computed, which is not known otherwise.

    `most`: the greatest width of its terms and sums. What may exceed that does not fit, and asks for a bound on sizes.
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
    """The place of an element of an array, counted in elements from its start.

    With `inside` each index is in bounds wherever it is computed. So then is every partial sum: below the number of elements,
    or the last element's place, which a launcher has checked. Without, as of copies that a condition leaves out, ranges decide.
    Either way 64 bits are what is computed in, and sizes are bounded where these may not do.
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
    """How many iterations there are together, none of the extents being 0 or less: what a compiler counts, of 64 bits."""
    factors = tuple(typed(extent, here) for extent in extents)
    hi = reduce(_times, (max(factor.ends[1], 0) if factor.ends[1] is not None else None for factor in factors))
    if not Width.LONG.holds((0, hi)):
        top = here.upper_product(extents)
        bounded = () if top is None else (m for product, m in here.products if _is_below(clamped(top, m), product))
        hi = min(bounded, default=hi)
    return Typed(reduce(mul, extents), "product", factors, Width.LONG, (0, hi))


def joined(at: Sequence[Expr], shape: Sequence[Expr]) -> list[tuple[Expr, Expr]]:
    """Indices with their extents; what are quotient and remainder of one expression is that expression again.

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
    """Terms with positive coefficients first, so that few texts begin with a minus; the constant is a term of no atoms."""
    ordered = sorted(value.terms, key=lambda item: item[1] < 0)
    if value.constant == 0:
        return ordered
    leading = value.constant > 0 and bool(ordered) and ordered[0][1] < 0
    return [((), value.constant), *ordered] if leading else [*ordered, ((), value.constant)]


def number(value: int) -> Typed:
    """A constant, in the narrowest width that holds it."""
    return Typed(expr(value), "number", (), _narrowest((value, value)), (value, value))


def plus(a: Typed, b: Typed, here: Knowledge, within: Range) -> Typed:
    """a + b, which lies in `within`. Beyond 32 bits the terms of b are added one by one, as C reads a + b₀ + b₁."""
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
    """A step of at most 64 bits, whose result lies in both ranges, and where these are more in what is known of its value."""
    ends = _meet(ends, within)
    if not Width.LONG.holds(ends):
        ends = _meet(ends, here.bounds(value))
    return _step(operator, a, b, value, ends, Width.LONG)


def _in_bounds(index: Expr, extent: Expr, here: Knowledge) -> Typed:
    """An index of an element that is accessed, its range cut to 0 … extent − 1."""
    top = here.bounds(extent)[1]
    most = MOST_BYTES if top is None or top > MOST_BYTES else max(top - 1, 0)
    found = typed(index, here, (0, most), Width.LONG)
    lo, hi = found.ends
    found = replace(found, ends=(max(lo or 0, 0), most if hi is None else max(min(hi, most), 0)))
    return found.narrowed_to(Width.LONG)


def _product(monomial: Monomial, coefficient: int, here: Knowledge, whole: Range, most: Width) -> Typed:
    """coefficient · monomial for a coefficient > 0; `whole` is its range, `most` what products of some factors may grow to."""
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
    """The range of a part of a sum: as known here or, where that exceeds 64 bits, what the whole and the rest leave of it."""
    ends = here.bounds(part)
    if ends_of_whole == FREE or Width.LONG.holds(ends):
        return ends
    low, high = here.bounds(whole - part)
    return _meet(ends, _sum(ends_of_whole, (_minus(high), _minus(low))))


def _step(operator: str, a: Typed, b: Typed, value: Expr, ends: Range, most: Width = Width.WIDE) -> Typed:
    """`a operator b`, whose exact result lies in `ends`, in a width that holds it, or in `most`."""
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
    """C's own operator truncates and must not meet a zero: it is used where neither sign nor zero can make a difference."""
    num, den = typed(atom.num, here), typed(atom.den, here)
    if here.known.nonnegative(atom.num) and here.known.positive(atom.den):
        return _step(operator, num, den, value, here.bounds(value))
    return _called(function, num, den, value, here)


def _swizzle(atom: Xor, value: Expr, here: Knowledge) -> Typed:
    """C's own operator, which in two's complement is right for negative values too; only needless bits must not meet it."""
    whole, mask, low = typed(atom.value, here), typed(atom.mask, here), (1 << atom.bits) - 1
    least, most = here.bounds(atom.mask)
    if least is None or most is None or least < 0 or most > low:
        mask = _step("&", mask, number(low), atom.mask % (low + 1), (0, low))
    return _step("^", whole, mask, value, here.bounds(value))


def _called(function: str, a: Typed, b: Typed, value: Expr, here: Knowledge) -> Typed:
    """A call: on a device of functions overloaded by width, whose arguments must be of one; on the host always of 128 bits.

    A quotient by −1 may be one more than what is divided can be: it is as wide as that needs.
    """
    ends = here.bounds(value)
    width = Width.WIDE if not here.narrows else max(a.width, b.width, _narrowest(ends), key=lambda each: each.value)
    args = (a, b) if not here.narrows else (a.widened(width), b.widened(width))
    return Typed(value, function, args, width, ends)


def _narrowed(found: Typed, here: Knowledge) -> Typed:
    """In a kernel 128 bits end where fewer hold the result: addresses and variables have none."""
    if here.narrows and found.width is Width.WIDE and Width.LONG.holds(found.ends):
        return Typed(found.value, "cast", (found,), _narrowest(found.ends), found.ends)
    return found


def _is_below(value: Expr, product: Expr) -> bool:
    """Whether the difference of two polynomials of sizes, which are not negative, has no negative coefficient."""
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
    """What lies in both; where `a` fits 64 bits, `a`."""
    if Width.LONG.holds(a):
        return a
    lows, highs = [x for x in (a[0], b[0]) if x is not None], [x for x in (a[1], b[1]) if x is not None]
    return max(lows, default=None), min(highs, default=None)
