"""Views: a buffer under an index map; the program form has none.

A view maps its own index `(0, 1, …)` (the symbols FORMALS) to an index of its buffer; outside of paddings it gives their
fill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from texpr.affine.expr import ONE, ZERO, Atom, Expr, FloorDiv, Max, Min, Mod, Sym, Xor, children, expr, maximum, minimum, xor
from texpr.affine.measure import nodes, replaced
from texpr.frontend.elaboration.typing import MAX_NODES, truth
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Value
from texpr.ir.value.types import BOOL, I64, DType
from texpr.support.diagnostic import TexprError, error
from texpr.support.record import Record, replace
from texpr.support.span import Span

Data = tuple[tuple[Sym, Value], ...]

MAX_RANK = 64
FORMALS = tuple(Sym(f"'{k}") for k in range(MAX_RANK))
_FORMAL_EXPRS = tuple(map(expr, FORMALS))


class Bound(Record):
    """A bound of a padding: 0 ≤ expr (if `below`) and expr < extent (if `above`)."""

    expr: Expr
    extent: Expr
    below: bool
    above: bool


class Padding(Record):
    """Outside of any of its bounds the view reads `fill`."""

    bounds: tuple[Bound, ...]
    fill: Value


class View(Record):
    """`buffer` with the shape `shape`; `paddings` from the outermost in; `data` defines the symbols of the maps that are
    loads.

    `origin`: the view that this is a `reshape` of, if it is one.
    """

    buffer: Buffer
    shape: tuple[Expr, ...]
    index: tuple[Expr, ...]
    data: Data = ()
    paddings: tuple[Padding, ...] = ()
    origin: View | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def dtype(self) -> DType:
        """Type of an element."""
        return self.buffer.dtype

    @property
    def whole(self) -> bool:
        """Whether this is the buffer itself."""
        return self.shape == self.buffer.shape and self.index == _FORMAL_EXPRS[: self.rank] and not self.paddings


def whole(buffer: Buffer) -> View:
    """The view that is the buffer itself."""
    return View(buffer, buffer.shape, _FORMAL_EXPRS[: buffer.rank])


def element(view: View, index: Sequence[Expr], data: Data, span: Span) -> Load:
    """The element of the buffer at `index` of the view, paddings aside; with the symbols of `data` that it uses."""
    place = tuple(index) if view.whole else _put(view.index, dict(zip(FORMALS, index, strict=False)), span)
    every = view.data + data
    if not every:
        return Load(view.buffer, place, (), span)
    used = frozenset[Sym]().union(*(e.syms() for e in place))
    return Load(view.buffer, place, tuple(d for d in every if d[0] in used), span)


def read(view: View, index: Sequence[Expr], data: Data, span: Span) -> Value:
    """The value of the view at `index`: the element, or the fill of the padding that `index` lies in."""
    value: Value = element(view, index, data, span)
    mapping = dict(zip(FORMALS, index, strict=False))
    for padding in reversed(view.paddings):
        tests: list[Value] = []
        for bound in padding.bounds:
            (at,) = _put((bound.expr,), mapping, span)
            if bound.below:
                tests.append(_test("ge", at, ZERO, view.data + data, span))
            if bound.above:
                tests.append(_test("lt", at, bound.extent, view.data + data, span))
        if any(truth(test) is False for test in tests):
            value = padding.fill
            continue
        tests = [test for test in tests if truth(test) is None]
        if tests:
            condition = tests[0]
            for test in tests[1:]:
                condition = Op("and", (condition, test), BOOL, span)
            value = Op("select", (condition, value, padding.fill), view.dtype, span)
    return value


def _test(op: str, left: Expr, right: Expr, data: Data, span: Span) -> Value:
    meaning = dict(data)
    if not any(s in meaning for s in left.syms() | right.syms()):
        return Op(op, (Index(left, I64, span), Index(right, I64, span)), BOOL, span)
    return Op(op, (as_value(left, meaning, span), as_value(right, meaning, span)), BOOL, span)


def as_value(e: Expr, meaning: dict[Sym, Value], span: Span) -> Value:
    """An index expression as an i64 value, with symbols for loads replaced by these."""
    if not any(s in meaning for s in e.syms()):
        return Literal(e.constant, I64) if e.is_constant else Index(e, I64, span)
    symbol = e.as_sym
    if symbol is not None:
        value = meaning[symbol]
        return value if value.dtype == I64 else Cast(value, I64)
    pure, total = expr(e.constant), None
    for monomial, coefficient in e.terms:
        term = expr(coefficient)
        product: Value | None = None
        for atom in monomial:
            if any(s in meaning for s in _atom_expr(atom).syms()):
                factor = _atom_value(atom, meaning, span)
                product = factor if product is None else Op("mul", (product, factor), I64, span)
            else:
                term = term * _atom_expr(atom)
        if product is None:
            pure = pure + term
            continue
        if term is not ONE:
            product = Op("mul", (as_value(term, {}, span), product), I64, span)
        total = product if total is None else Op("add", (total, product), I64, span)
    assert total is not None
    return total if pure is ZERO else Op("add", (total, as_value(pure, {}, span)), I64, span)


def _atom_expr(atom: Atom) -> Expr:
    match atom:
        case Sym():
            return expr(atom)
        case FloorDiv(num, den):
            return num // den
        case Mod(num, den):
            return num % den
        case Min(args):
            return minimum(*args)
        case Max(args):
            return maximum(*args)
        case Xor(value, mask, bits):
            return xor(value, mask, bits)


def _atom_value(atom: Atom, meaning: dict[Sym, Value], span: Span) -> Value:
    if isinstance(atom, Sym):
        return as_value(expr(atom), meaning, span)
    name = {FloorDiv: "div", Mod: "mod", Min: "min", Max: "max", Xor: "bitxor"}[type(atom)]
    parts = (atom.value, atom.mask % (1 << atom.bits)) if isinstance(atom, Xor) else children(atom)
    first, *rest = (as_value(c, meaning, span) for c in parts)
    for other in rest:
        first = Op(name, (first, other), I64, span)
    return first


class Range(Record):
    """The part `lo : +length` of a dimension."""

    lo: Expr
    length: Expr


def slice_view(view: View, items: Sequence[Expr | Range], data: Data, span: Span) -> View:
    """The part of a view at `items`, one a dimension: an index removes its dimension, a range keeps it."""
    shape: list[Expr] = []
    mapping: dict[Sym, Expr] = {}
    for formal, item in zip(FORMALS, items, strict=False):
        if isinstance(item, Range):
            mapping[formal] = item.lo + FORMALS[len(shape)]
            shape.append(item.length)
        else:
            mapping[formal] = item
    return _remap(view, tuple(shape), mapping, data, span)


def transpose(view: View, order: Sequence[int], span: Span) -> View:
    """The view whose dimension k is dimension `order[k]` of `view`."""
    mapping = {FORMALS[old]: expr(FORMALS[new]) for new, old in enumerate(order)}
    return _remap(view, tuple(view.shape[old] for old in order), mapping, (), span)


def _remap(view: View, shape: tuple[Expr, ...], mapping: dict[Sym, Expr], data: Data, span: Span) -> View:
    paddings = [[replace(b, expr=_put((b.expr,), mapping, span)[0]) for b in p.bounds] for p in view.paddings]
    around = tuple(replace(p, bounds=tuple(bounds)) for p, bounds in zip(view.paddings, paddings, strict=True))
    return View(view.buffer, shape, _put(view.index, mapping, span), view.data + data, around)


def _put(index: Sequence[Expr], mapping: dict[Sym, Expr], span: Span) -> tuple[Expr, ...]:
    """`index` with symbols replaced, unless it becomes too large."""
    parts = {sym: nodes(value) for sym, value in mapping.items()}
    if any(replaced(e, parts) > MAX_NODES for e in index):
        message = f"this view's index has more than {MAX_NODES} parts"
        raise error("E0317", span, message, help="copy a view on the way to an array, and go on from that")
    return tuple(e.substitute(mapping) for e in index)


def pad(view: View, lo: Sequence[Expr], hi: Sequence[Expr], fill: Value, span: Span) -> View:
    """The view with `lo` more elements before and `hi` after each dimension, which read `fill`."""
    mapping = {FORMALS[k]: FORMALS[k] - before for k, before in enumerate(lo)}
    inner = _remap(view, tuple(s + b + a for s, b, a in zip(view.shape, lo, hi, strict=True)), mapping, (), span)
    bounds = tuple(
        Bound(FORMALS[k] - before, view.shape[k], before is not ZERO, after is not ZERO)
        for k, (before, after) in enumerate(zip(lo, hi, strict=True))
        if before is not ZERO or after is not ZERO
    )
    return replace(inner, paddings=(Padding(bounds, fill), *inner.paddings))


def reshape(view: View, shape: tuple[Expr, ...], equal: Callable[[Expr, Expr], bool], span: Span) -> View:
    """The elements in row-major order, with the shape `shape`. `equal` compares two counts.

    Dimensions are grouped from the left into minimal groups of equal counts; in a group of one dimension on each side the
    index stays, in the others it is flattened by the new extents and delinearised by the old. A reshape of a reshape is one
    reshape.
    """
    view = view.origin or view
    if shape == view.shape:
        return view
    if not equal(_product(view.shape), _product(shape)):
        raise _count_differs(_product(view.shape), _product(shape), span)
    # Dimensions of extent 1 have the index 0 and are skipped.
    old = [k for k, extent in enumerate(view.shape) if extent is not ONE]
    new = [k for k, extent in enumerate(shape) if extent is not ONE]
    mapping = {FORMALS[k]: ZERO for k in range(view.rank)}
    for ours, theirs in _groups([view.shape[k] for k in old], [shape[k] for k in new], equal):
        before, after = [old[k] for k in ours], [new[k] for k in theirs]
        if len(before) == 1 and len(after) == 1:
            mapping[FORMALS[before[0]]] = expr(FORMALS[after[0]])
            continue
        flat = ZERO
        for k in after:
            flat = flat * shape[k] + FORMALS[k]
        for place, k in enumerate(before):
            part = flat // _product(view.shape[j] for j in before[place + 1 :])
            mapping[FORMALS[k]] = part % view.shape[k] if place > 0 else part
    return replace(_remap(view, shape, mapping, (), span), origin=view)


def _groups(old: list[Expr], new: list[Expr], equal: Callable[[Expr, Expr], bool]) -> list[tuple[range, range]]:
    """Minimal groups of dimensions with equal counts of elements."""
    found: list[tuple[range, range]] = []
    i = j = 0
    for a in range(1, len(old) + 1):
        ends = (b for b in range(j + 1, len(new) + 1) if equal(_product(old[:a]), _product(new[:b])))
        b = next(ends, None) if a < len(old) else len(new)
        if b is not None:
            found.append((range(i, a), range(j, b)))
            i, j = a, b
    return found


def _count_differs(before: Expr, after: Expr, span: Span) -> TexprError:
    message = f"`reshape` keeps the number of elements: {before} before, {after} after"
    help = None if (before - after).is_constant else "if they agree, say so, as in `where K % 8 == 0`"
    return error("E0308", span, message, help=help)


def _product(extents: Iterable[Expr]) -> Expr:
    total = ONE
    for extent in extents:
        total = total * extent
    return total
