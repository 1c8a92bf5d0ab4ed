"""No integer overflow for sizes below 2³¹: index arithmetic in 64 bits, and each index used as a value in its type.

Trip counts are checked in lowering: a launcher refuses sizes for which they are too large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache, reduce
from operator import mul

from texpr.affine.expr import ZERO, Expr, Sym, expr, term
from texpr.affine.facts import Known
from texpr.affine.ranges import Interval, interval
from texpr.checks.offers import promised, where
from texpr.checks.subject import Subject, statement, text, written
from texpr.ir.program import InRange, Let, Par, Seq, walk
from texpr.ir.value import Index, Load
from texpr.ir.value import walk as walk_value
from texpr.ir.value.types import DType, Kind
from texpr.presburger.formula import Ge, conj, disj
from texpr.presburger.isl.raw import Undecided
from texpr.relation.facts import known
from texpr.relation.model import Access, Instance
from texpr.support.diagnostic import Diagnostic, Note, Offer
from texpr.support.limits import LARGEST_INT, MOST_INDEX, Width
from texpr.support.record import Record

_HALF = MOST_INDEX
"""If both parts of a sum stay within this, no order of additions overflows 64 bits."""


def integers(subject: Subject) -> Iterator[Diagnostic]:
    """One finding for each index value that may overflow its type, and each index computation that may overflow 64 bits."""
    ranges = _ranges(subject)
    for access in subject.model.accesses:
        yield from _subscripts(subject, access, ranges)
    for instance in subject.model.instances:
        seen: set[tuple[Expr, DType]] = set()
        for value in subject.values_of(instance):
            for node in walk_value(value):
                if isinstance(node, Index) and (node.expr, node.dtype) not in seen:
                    seen.add((node.expr, node.dtype))
                    yield from _value(subject, instance, node, ranges)


def _ranges(subject: Subject) -> Mapping[Sym, Interval]:
    """Ranges of sizes, then of loop indices by the bounds of their extents, clipped to 62 bits: launchers refuse longer
    loops."""
    function = subject.function
    ranges: dict[Sym, Interval] = {size: (0, LARGEST_INT) for size in function.sizes}
    ranges.update({const: (-LARGEST_INT - 1, LARGEST_INT) for const, _ in function.consts})
    ranges.update(_promised(subject, ranges))
    for stmt in walk(function.body):
        if isinstance(stmt, Par | Seq):
            _, most = interval(stmt.extent, ranges)
            ranges[stmt.sym] = (0, max(0, min(most, _HALF) - 1))
    for access in subject.model.accesses:
        for hidden in access.hidden:
            lo, hi = hidden.bounds.lo, hidden.bounds.hi
            if lo is not None and hi is not None:
                ranges[hidden.sym] = (interval(lo, ranges)[0], interval(hi, ranges)[1])
    return ranges


def _promised(subject: Subject, ranges: Mapping[Sym, Interval]) -> dict[Sym, Interval]:
    """Constant bounds on single sizes, as `where n <= 4096` gives them."""
    found: dict[Sym, Interval] = {}
    for fact in subject.given:
        for value, sign in ((fact - fact.constant, 1), (fact.constant - fact, -1)):
            sym = value.as_sym
            if sym is not None and sym in ranges:
                lo, hi = found.get(sym, ranges[sym])
                found[sym] = (max(lo, -fact.constant), hi) if sign == 1 else (lo, min(hi, fact.constant))
    return found


def _subscripts(subject: Subject, access: Access, ranges: Mapping[Sym, Interval]) -> Iterator[Diagnostic]:
    """A subscript in bounds is at most the number of elements; so only subtracted terms may overflow."""
    for index in access.load.index:
        negative = interval(_part(index, positive=False), ranges)
        positive = interval(_part(index, positive=True), ranges)
        if (negative[0] < -_HALF or positive[0] < -_HALF) and not _Place(subject, access.facts).computed(index):
            message = f"computing the index `{text(index, access)}` may exceed 64 bits"
            offers = tuple(_bounds_on(subject, index))
            yield Diagnostic("E0506", statement(access.instance), message, offers=offers)
            return


def _fits_sum(value: Expr, ranges: Mapping[Sym, Interval]) -> bool:
    if value.as_sym is not None:
        return True  # nothing is computed
    parts = [interval(_part(value, positive=positive), ranges) for positive in (True, False)]
    return all(lo >= -_HALF and hi <= _HALF for lo, hi in parts)


class _Place(Record, eq=False, dict=True):
    """What is known at the place of an index, beyond ranges: conditions around it and promises on products."""

    subject: Subject
    facts: tuple[Expr, ...]

    @cached_property
    def known(self) -> Known:
        function = self.subject.function
        limits = [LARGEST_INT - expr(size) for size in function.sizes]
        dense = (b for b in (*function.params, *function.results) if b.strides is None)
        # The launcher checks their size in bytes. A product of more sizes may overflow before a factor 0.
        counts = [Width.LONG.most // b.dtype.bytes - reduce(mul, b.shape, expr(1)) for b in dense if b.rank <= 3]
        return known((*self.facts, *limits, *counts))

    def within(self, value: Expr, low: int, high: int) -> bool:
        """Whether `value` is proved to lie in `low` to `high`, and its sum not to overflow 64 bits."""
        above, below = _part(value, positive=True), _part(value, positive=False)
        return (
            self._nonnegative(value - low)
            and self._nonnegative(high - value)
            and (len(value.terms) + (value.constant != 0) == 1 or all(map(self._nonnegative, (_HALF - above, below + _HALF))))
        )

    def computed(self, value: Expr) -> bool:
        """Whether the subtracted terms of a value are proved to stay within 62 bits."""
        return value.as_sym is not None or all(
            self._nonnegative(_part(value, positive=positive) + _HALF) for positive in (True, False)
        )

    def _nonnegative(self, value: Expr) -> bool:
        return self.known.nonnegative(value)


@lru_cache(maxsize=4096)
def _part(value: Expr, *, positive: bool) -> Expr:
    """The terms of a sum with positive, or with negative, coefficients."""
    total = expr(value.constant if (value.constant > 0) == positive else 0)
    for monomial, coefficient in value.terms:
        if (coefficient > 0) == positive:
            total = total + term(monomial, coefficient)
    return total


def _value(subject: Subject, instance: Instance, node: Index, ranges: Mapping[Sym, Interval]) -> Iterator[Diagnostic]:
    """An index used as a value fits its type. Floats accept any integer, rounded."""
    if not node.dtype.is_integer:
        return
    low, high = _limits(node.dtype)
    least, most = interval(node.expr, ranges)
    if low <= least and most <= high and _fits_sum(node.expr, ranges):
        return
    if _Place(subject, instance.facts).within(node.expr, low, high):
        return
    note = Note(f"sizes are below 2**31, and {node.dtype} holds {low} to {high}")
    span = written(node.span) or statement(instance)
    shown = text(node.expr)
    try:
        outside = disj((Ge(low - 1 - node.expr), Ge(node.expr - high - 1)))
        small = [Ge(LARGEST_INT - expr(size)) for size in subject.function.sizes]
        dims, around = subject.around(instance, node.expr)
        closed, affine = subject.close(conj((around, outside, *small)))
        witness = subject.point(dims, closed) if affine else None
        if not affine or (witness is None and not _fits_sum(node.expr, ranges)):
            raise Undecided("a value that is not affine")
    except Undecided:
        message = f"cannot prove that `{shown}` fits {node.dtype}"
        wider = None if node.dtype.bits == 64 else "use a wider type"
        offers = tuple(_bounds_on(subject, node.expr, high))
        yield Diagnostic("E0506", span, message, (note,), wider, offers=offers)
        return
    if witness is not None:
        where = subject.at(witness, instance, instance.hidden)
        message = f"`{shown}` does not fit {node.dtype}: it is {node.expr.evaluate(witness)}{where}"
        wider = None if node.dtype.bits == 64 else "use a wider type"
        offers = (*_bounds_on(subject, node.expr, high), *(_of_data(subject, node.expr) if wider is None else ()))
        yield Diagnostic("E0407", span, message, (note,), wider, offers=offers)


def _of_data(subject: Subject, value: Expr) -> Iterator[Offer]:
    """Promises of the data that `let`s in a value name, where no type holds these."""
    for stmt in walk(subject.function.body):
        if isinstance(stmt, Let) and isinstance(stmt.value, Load) and stmt.sym in value.syms():
            table = stmt.value.buffer
            said = f"if the data promise it, say `assume {table.name} in 0..{LARGEST_INT}`"
            yield from promised(subject.function, InRange(table, ZERO, expr(LARGEST_INT)), said)


def _limits(dtype: DType) -> tuple[int, int]:
    if dtype.kind is Kind.UINT:
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


def _bounds_on(subject: Subject, value: Expr, most: int = LARGEST_INT) -> Iterator[Offer]:
    """Promises with which a value may fit: a bound on itself; or on each size in it, in the extents of loops and in data."""
    help = "use a wider type, or add" if most <= LARGEST_INT else "add"
    most = min(most, LARGEST_INT)
    yield from where(subject.function, (value, "<=", most), help=help)
    reached, rest = set[Sym](), [value]
    extents = {stmt.sym: stmt.extent for stmt in walk(subject.function.body) if isinstance(stmt, Par | Seq)}
    while rest:
        new = {sym for sym in rest.pop().syms() if sym not in reached}
        reached |= new
        rest += [extents[sym] for sym in new if sym in extents]
    sizes = [size for size in subject.function.sizes if size in reached]
    for bound in (most, most + 1, 2**30, 65536, 4096, 1024):
        if bound <= most + 1:
            yield from where(subject.function, *((expr(size), "<=", bound) for size in sizes), help=help)
