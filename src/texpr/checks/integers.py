"""Integers stay in range for sizes below 2³¹: index arithmetic in 64 bits, and each index used as a value in its type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from texpr.affine.expr import Expr, Sym, expr, term
from texpr.affine.ranges import Interval, interval
from texpr.checks.subject import Subject, statement, text, written
from texpr.ir.program import Par, Seq, walk
from texpr.ir.types import DType, Kind
from texpr.ir.value import Index
from texpr.ir.value import walk as walk_value
from texpr.presburger.formula import Ge, conj, disj
from texpr.presburger.raw import Undecided
from texpr.relation.model import Access, Instance
from texpr.support.diagnostic import Diagnostic, Note

SIZE_LIMIT = 2**31
"""Sizes are below this; the launcher checks it."""

_HALF = 2**62
"""Where both parts of a sum stay within this, no order of adding them up overflows 64 bits."""


def integers(subject: Subject) -> Iterator[Diagnostic]:
    """One finding for each index value that may leave its type, and each index computation that may leave 64 bits."""
    ranges = _ranges(subject)
    yield from _loops(subject, ranges)
    for access in subject.model.accesses:
        yield from _subscripts(access, ranges)
    for instance in subject.model.instances:
        seen: set[tuple[Expr, DType]] = set()
        for value in subject.values_of(instance):
            for node in walk_value(value):
                if isinstance(node, Index) and (node.expr, node.dtype) not in seen:
                    seen.add((node.expr, node.dtype))
                    yield from _value(subject, instance, node, ranges)


def _ranges(subject: Subject) -> Mapping[Sym, Interval]:
    """Sizes, then loop indices from what bounds their extents; products beyond 62 bits are cut there (reported apart)."""
    function = subject.function
    ranges: dict[Sym, Interval] = {size: (0, SIZE_LIMIT - 1) for size in function.sizes}
    ranges.update({const: (-SIZE_LIMIT, SIZE_LIMIT - 1) for const, _ in function.consts})
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


def _loops(subject: Subject, ranges: Mapping[Sym, Interval]) -> Iterator[Diagnostic]:
    extents = {e for buffer in (*subject.function.params, *subject.function.results) for e in buffer.shape}
    for stmt in walk(subject.function.body):
        if isinstance(stmt, Par | Seq) and stmt.extent not in extents and not _fits_sum(stmt.extent, ranges):
            message = f"the extent `{text(stmt.extent)}` may exceed 64 bits"
            yield Diagnostic("E0506", written(stmt.span), message, help=_bound_sizes(stmt.extent))


def _subscripts(access: Access, ranges: Mapping[Sym, Interval]) -> Iterator[Diagnostic]:
    """A subscript in bounds is at most the number of elements; so only what is subtracted on the way may overflow."""
    for index in access.load.index:
        negative = interval(_part(index, positive=False), ranges)
        positive = interval(_part(index, positive=True), ranges)
        if negative[0] < -_HALF or positive[0] < -_HALF:
            message = f"computing the index `{text(index, access)}` may exceed 64 bits"
            yield Diagnostic("E0506", statement(access.instance), message, help=_bound_sizes(index))
            return


def _fits_sum(value: Expr, ranges: Mapping[Sym, Interval]) -> bool:
    parts = [interval(_part(value, positive=positive), ranges) for positive in (True, False)]
    return all(lo >= -_HALF and hi <= _HALF for lo, hi in parts)


@lru_cache(maxsize=4096)
def _part(value: Expr, *, positive: bool) -> Expr:
    """The terms of a sum with positive, or with negative, coefficients."""
    total = expr(value.constant if (value.constant > 0) == positive else 0)
    for monomial, coefficient in value.terms:
        if (coefficient > 0) == positive:
            total = total + term(monomial, coefficient)
    return total


def _value(subject: Subject, instance: Instance, node: Index, ranges: Mapping[Sym, Interval]) -> Iterator[Diagnostic]:
    """An index used as a value fits its type. Floats take any integer, rounded."""
    if not node.dtype.is_integer:
        return
    low, high = _limits(node.dtype)
    least, most = interval(node.expr, ranges)
    if low <= least and most <= high and _fits_sum(node.expr, ranges):
        return
    note = Note(f"sizes are below 2**31, and {node.dtype} holds {low} to {high}")
    span = written(node.span) or statement(instance)
    shown = text(node.expr)
    try:
        outside = disj((Ge(low - 1 - node.expr), Ge(node.expr - high - 1)))
        small = [Ge(SIZE_LIMIT - 1 - expr(size)) for size in subject.function.sizes]
        closed, affine = subject.close(conj((instance.context, outside, *small)))
        witness = subject.point((*instance.syms, *(h.sym for h in instance.hidden)), closed) if affine else None
        if not affine or (witness is None and not _fits_sum(node.expr, ranges)):
            raise Undecided("a value that is not affine")
    except Undecided:
        message = f"cannot prove that `{shown}` fits {node.dtype}"
        yield Diagnostic("E0506", span, message, (note,), _bound_sizes(node.expr))
        return
    if witness is not None:
        where = subject.at(witness, instance, instance.hidden)
        message = f"`{shown}` does not fit {node.dtype}: it is {node.expr.evaluate(witness)}{where}"
        yield Diagnostic("E0407", span, message, (note,), "use a wider type, or bound the sizes with `where`")


def _limits(dtype: DType) -> tuple[int, int]:
    if dtype.kind is Kind.UINT:
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


def _bound_sizes(value: Expr) -> str:
    return f'bound the sizes with `where`, for example "where {text(value)} < 2147483648"'
