"""Expressions in their three readings: as a value, as an index, as a view.

As a value an expression is a draft until its type is known. As an index it is exact integer arithmetic, in which each load
becomes a symbol with a meaning (`data`). A name, a part of a view, a transposition are views.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.expr import Expr, Sym, expr, maximum, minimum, xor
from texpr.affine.measure import nodes
from texpr.frontend.elaboration import views
from texpr.frontend.elaboration.context import Context
from texpr.frontend.elaboration.drafts import Affine, Draft, Real, Typed, affine_of, height, natural
from texpr.frontend.elaboration.typing import (
    COMPARISONS,
    MAX_NODES,
    Operand,
    apply,
    choose,
    compare,
    condition_value,
    convert,
    settle,
    settle_natural,
    truth,
)
from texpr.frontend.elaboration.views import View
from texpr.frontend.tree import Binary, Call, Constant, Exp, Name, Number, Slice, Subscript, Tuple, Unary
from texpr.ir.value import Cast, Literal, Load, Value
from texpr.ir.value.operators import OPS
from texpr.ir.value.types import BOOL, DTYPES
from texpr.support.diagnostic import Edit, Proposal, error
from texpr.support.span import Span


class Data:
    """The loads of an index: symbols with their meaning, and the nesting depth of the deepest meaning."""

    __slots__ = ("entries", "height")

    def __init__(self) -> None:
        self.entries: tuple[tuple[Sym, Value], ...] = ()
        self.height = 0

    def read(self, ctx: Context, found: Operand) -> Sym:
        """The symbol for a loaded value; equal loads in an index share one symbol."""
        meaning = settle_natural(found)
        for symbol, known in self.entries:
            if known == meaning:
                return symbol
        symbol = Sym(ctx.making.namer.data(_base_name(meaning)))
        self.entries = (*self.entries, (symbol, meaning))
        self.height = max(self.height, 1 + height(found.draft))
        return symbol


VIEWS = ("transpose", "reshape", "pad")
"""Functions that give a view."""
INDEX = "index"
"""The function whose argument is an index expression: exact, and of the type of its context."""
SWIZZLE = "xor"
"""The function of index expressions that swizzles low bits: `xor(i, mask, bits)`."""
RESERVED = frozenset((*OPS, *DTYPES, *VIEWS, INDEX, SWIZZLE))
"""Names of functions that a file cannot define."""
UNKNOWN_INDEX = "an index is named by its loop, a size by the shape of a parameter; what a build fixes is a `const` parameter"
"""The help for an index expression with an invalid name."""
_INFIX = {"+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod"}
_MAX_TERMS = 512
_MAX_DEGREE = 32
_MAX_CONSTANT = 2**127
_MOST_BITS = 64


# As a value.


def value(ctx: Context, e: Exp) -> Draft | View:
    """`e` as a draft of a value, or as a view."""
    match e:
        case Name(name):
            return ctx.scope.resolve(name, e.span)
        case Number(number):
            return Real(number) if isinstance(number, float) else Affine(expr(number))
        case Constant(name):
            return Real(float(name)) if name in ("inf", "nan") else Typed(Literal(int(name == "true"), BOOL))
        case Subscript():
            return _subscript(ctx, e)
        case Unary() | Binary() | Call():
            with ctx.file.deeper(3, e.span):
                return _unary(ctx, e) if isinstance(e, Unary) else _binary(ctx, e) if isinstance(e, Binary) else _call(ctx, e)
        case Tuple():
            raise error("E0322", e.span, "a tuple stands only beside a tuple of targets or names, and after `return`")


def operand(ctx: Context, e: Exp) -> Operand:
    """`e` as a scalar."""
    found = value(ctx, e)
    if isinstance(found, View):
        if found.rank > 0:
            indices = ", ".join("ijklmn"[: found.rank]) if found.rank <= 6 else "…"
            shown = e.name if isinstance(e, Name) else "v"
            message = f"expected a number, found an array of rank {found.rank}"
            raise error("E0321", e.span, message, help=f"read an element, `{shown}[{indices}]`")
        found = Typed(views.read(found, (), (), e.span))
    return Operand(found, e.span)


def condition(ctx: Context, e: Exp) -> Value:
    """`e` as a condition."""
    return condition_value(operand(ctx, e))


def _unary(ctx: Context, e: Unary) -> Draft:
    arg = operand(ctx, e.arg)
    if e.op == "not":
        return apply("not", (arg,), e.span)
    if isinstance(arg.draft, Real):
        return Real(-arg.draft.value)
    exact = affine_of(arg.draft)
    return apply("neg", (arg,), e.span, None if exact is None else -exact)


def _binary(ctx: Context, e: Binary) -> Draft:
    left, right = operand(ctx, e.left), operand(ctx, e.right)
    if e.op in COMPARISONS:
        return compare(e.op, left, right, e.span)
    if e.op in ("and", "or"):
        return apply(e.op, (left, right), e.span)
    if e.op == "**":
        return _power(left, right, e.span)
    a, b = affine_of(left.draft), affine_of(right.draft)
    exact = None
    if a is not None and b is not None:
        typed = isinstance(left.draft, Typed) or isinstance(right.draft, Typed)
        if not (typed and e.op in "/%" and b is expr(0)):
            exact = arithmetic(e.op, a, b, e.span)
    found = apply(_INFIX[e.op], (left, right), e.span, exact)
    if e.op == "/" and isinstance(found, Affine) and a is not None and b is not None and a.is_constant and b.is_constant:
        return Affine(found.expr, found.floored or a.constant % b.constant != 0)
    return found


def arithmetic(op: str, a: Expr, b: Expr, span: Span) -> Expr:
    """`a op b` on index expressions, with a limit on their size."""
    written = nodes(a) * (len(b.terms) + 1) + nodes(b) * (len(a.terms) + 1) if op == "*" else nodes(a) + nodes(b)
    _bounded(written, span)
    match op:
        case "+":
            result = a + b
        case "-":
            result = a - b
        case "*":
            if (len(a.terms) + 1) * (len(b.terms) + 1) > 4 * _MAX_TERMS:
                raise error("E0317", span, "this index expression has too many terms")
            result = a * b
        case _:
            if b is expr(0):
                raise error("E0325", span, "division by zero" if op == "/" else "remainder by zero")
            result = a // b if op == "/" else a % b
    degree = max((len(monomial) for monomial, _ in result.terms), default=0)
    if len(result.terms) > _MAX_TERMS or degree > _MAX_DEGREE:
        raise error("E0317", span, "this index expression has too many terms")
    if abs(result.constant) > _MAX_CONSTANT:
        raise error("E0317", span, "this number does not fit 128 bits")
    return result


def _bounded(written: int, span: Span) -> None:
    """Refuses an index expression with too many parts."""
    if written > MAX_NODES:
        message = f"this index expression has more than {MAX_NODES} parts once `let`s are put in"
        raise error("E0317", span, message, help="keep a part in an array of integers, and read that")


def _power(left: Operand, right: Operand, span: Span) -> Draft:
    base, exponent = left.draft, right.draft
    if not (isinstance(base, Affine) and isinstance(exponent, Affine)):
        return apply("pow", (left, right), span)
    if not (base.expr.is_constant and exponent.expr.is_constant):
        help = "an exponent is known when `static for` counts it, or write `pow(f32(a), f32(b))`"
        raise error("E0316", span, "`**` on integers needs numbers that are known at build", help=help)
    number, power = base.expr.constant, exponent.expr.constant
    if power < 0:
        raise error(
            "E0316", right.span, f"the exponent of an integer is {power}, less than 0", help="write a decimal base, `2.0`"
        )
    if abs(number) > 1 and power * (abs(number).bit_length() - 1) >= 127:
        raise error("E0317", span, "this number does not fit 128 bits")
    return Affine(expr(number**power))


def _call(ctx: Context, e: Call) -> Draft | View:
    name = e.name.name
    if e.keys and name in RESERVED:
        raise error("E0208", e.keys[0][0].span, f"`{name}` has no named parameters")
    if name in DTYPES:
        _count_args(e, 1)
        return convert(operand(ctx, e.args[0]), DTYPES[name])
    if name in VIEWS:
        return _view_call(ctx, e)
    if name == INDEX:
        _count_args(e, 1)
        return Affine(plain_index(ctx, e.args[0], "an `index`"))
    if name == SWIZZLE:
        _count_args(e, 3)
        return Affine(_swizzled(e, *[plain_index(ctx, arg, "what is swizzled") for arg in e.args]))
    if name == "select":
        return _select(ctx, e)
    if name in OPS:
        return _operation(ctx, e)
    return ctx.file.scalar_call(ctx, e)


def _count_args(e: Call, count: int) -> None:
    if len(e.args) != count:
        s = "" if count == 1 else "s"
        raise error("E0310", e.span, f"`{e.name.name}` takes {count} argument{s}, not {len(e.args)}")


def _select(ctx: Context, e: Call) -> Draft:
    _count_args(e, 3)
    test = operand(ctx, e.args[0])
    known = truth(condition_value(test))
    if known is not None:
        return operand(ctx, e.args[1 if known else 2]).draft
    return choose(test, operand(ctx, e.args[1]), operand(ctx, e.args[2]), e.span)


def _operation(ctx: Context, e: Call) -> Draft:
    """An operation called by name. Only `min`, `max` and `abs` of index expressions are index expressions again."""
    name = e.name.name
    operands = [operand(ctx, a) for a in e.args]
    if name in ("min", "max"):
        if len(operands) < 2:
            raise error("E0310", e.span, f"`{name}` takes 2 arguments or more, not {len(operands)}")
        return _extremum(name, operands, e.span)
    _count_args(e, OPS[name].arity)
    exact = affine_of(operands[0].draft) if name == "abs" else None
    _bounded(0 if exact is None else 2 * nodes(exact), e.span)
    return apply(name, operands, e.span, None if exact is None else maximum(exact, -exact))


def _extremum(name: str, operands: Sequence[Operand], span: Span) -> Draft:
    fold = minimum if name == "min" else maximum
    total = operands[0]
    for other in operands[1:]:
        a, b = affine_of(total.draft), affine_of(other.draft)
        _bounded(sum(nodes(each) for each in (a, b) if each is not None), span)
        exact = fold(a, b) if a is not None and b is not None else None
        total = Operand(apply(name, (total, other), span, exact), span)
    return total.draft


# As an index.


def index(ctx: Context, e: Exp, data: Data) -> Expr:
    """`e` as an index expression; its loads are added to `data`."""
    match e:
        case Number(number) if isinstance(number, int):
            return expr(number)
        case Name(name):
            entity = ctx.scope.resolve(name, e.span, UNKNOWN_INDEX)
            exact = None if isinstance(entity, View) else affine_of(entity)
            return exact if exact is not None else _read_index(ctx, e, data)
        case Unary("-", arg):
            return -index(ctx, arg, data)
        case Binary(op, left, right) if op in _INFIX:
            with ctx.file.deeper(2, e.span):
                a = index(ctx, left, data)
                return arithmetic(op, a, index(ctx, right, data), e.span)
        case Call(name, args) if name.name in ("min", "max") and len(args) >= 2:
            with ctx.file.deeper(2, e.span):
                fold = minimum if name.name == "min" else maximum
                return fold(*[index(ctx, a, data) for a in args])
        case Call(name, args) if name.name == SWIZZLE and len(args) == 3:
            with ctx.file.deeper(2, e.span):
                return _swizzled(e, *[index(ctx, a, data) for a in args])
        case _:
            return _read_index(ctx, e, data)


def _swizzled(e: Call, value: Expr, mask: Expr, bits: Expr) -> Expr:
    if not (bits.is_constant and 0 <= bits.constant < _MOST_BITS):
        help = f"`{SWIZZLE}(i, mask, 3)` moves the low 3 bits of i by those of mask"
        raise error("E0316", e.args[2].span, f"how many bits are swizzled is a number below {_MOST_BITS}", help=help)
    _bounded(nodes(value) + nodes(mask), e.span)
    return xor(value, mask, bits.constant)


def _read_index(ctx: Context, e: Exp, data: Data) -> Expr:
    """An index that is not index arithmetic: a constant after all, or a load."""
    found = operand(ctx, e)
    exact = affine_of(found.draft)
    if exact is not None:
        return exact
    if not natural(found.draft).is_integer:
        message = f"an index is an integer, and this is {natural(found.draft)}"
        raise error("E0307", e.span, message, help=Proposal("convert it, `i64(…)`", Edit("i64(…)")))
    return expr(data.read(ctx, found))


def _base_name(meaning: Value) -> str:
    while isinstance(meaning, Cast):
        meaning = meaning.arg
    return meaning.buffer.name if isinstance(meaning, Load) else "at"


def plain_index(ctx: Context, e: Exp, where: str) -> Expr:
    """`e` as an index expression without loads; `where` says which construct requires that."""
    data = Data()
    found = index(ctx, e, data)
    if data.entries:
        raise error("E0307", e.span, f"{where} is made of sizes and numbers, and this reads data")
    return found


# As a view.


def view(ctx: Context, e: Exp) -> View:
    """`e` as a view; an element is a view of rank 0."""
    if isinstance(e, Subscript):
        base, items, data = subscript_parts(ctx, e)
        return views.slice_view(base, items, data.entries, e.span)
    found = value(ctx, e)
    if not isinstance(found, View):
        raise error("E0321", e.span, "expected an array, found a number", help="`new v: T[n]` makes an array")
    return found


def subscript_parts(ctx: Context, e: Subscript) -> tuple[View, list[Expr | views.Range], Data]:
    """The view that is indexed, the items of the index, and their loads."""
    base = value(ctx, e.base)
    if not isinstance(base, View):
        shown = f"`{e.base.name}`" if isinstance(e.base, Name) else "this"
        raise error("E0321", e.base.span, f"{shown} is a number and cannot be indexed")
    if len(e.items) != base.rank:
        shown = f"`{e.base.name}`" if isinstance(e.base, Name) else "this view"
        s = "" if base.rank == 1 else "es"
        help = "keep whole dimensions with `:`" if len(e.items) < base.rank else None
        raise error("E0301", e.span, f"{shown} takes {base.rank} index{s}, found {len(e.items)}", help=help)
    data = Data()
    items: list[Expr | views.Range] = []
    for item, extent in zip(e.items, base.shape, strict=True):
        items.append(_range(ctx, item, extent, data) if isinstance(item, Slice) else index(ctx, item, data))
    return base, items, data


def _range(ctx: Context, item: Slice, extent: Expr, data: Data) -> views.Range:
    lo = expr(0) if item.lo is None else index(ctx, item.lo, data)
    if item.length is not None:
        return views.Range(lo, index(ctx, item.length, data))
    hi = extent if item.hi is None else index(ctx, item.hi, data)
    return views.Range(lo, hi - lo)


def _subscript(ctx: Context, e: Subscript) -> Draft | View:
    with ctx.file.deeper(4, e.span):
        base, items, data = subscript_parts(ctx, e)
    exact = [item for item in items if isinstance(item, Expr)]
    if len(exact) < len(items):
        return views.slice_view(base, items, data.entries, e.span)
    found = views.read(base, exact, data.entries, e.span)
    return Typed(found, None, len(base.paddings) + data.height)


def _view_call(ctx: Context, e: Call) -> View:
    if not e.args:
        raise error("E0310", e.span, f"`{e.name.name}` takes an array first")
    base = view(ctx, e.args[0])
    match e.name.name:
        case "transpose":
            return views.transpose(base, _order(ctx, e, base.rank), e.span)
        case "reshape":
            shape = tuple(plain_index(ctx, a, "a shape") for a in _spread(e.args[1:]))
            if len(shape) > views.MAX_RANK:
                raise error("E0309", e.span, f"more than {views.MAX_RANK} dimensions")
            return views.reshape(base, shape, ctx.making.equal, e.span)
        case _:
            return _pad(ctx, e, base)


def _spread(args: Sequence[Exp]) -> Sequence[Exp]:
    """The parts of a single tuple argument, otherwise the arguments themselves."""
    return args[0].items if len(args) == 1 and isinstance(args[0], Tuple) else args


def _order(ctx: Context, e: Call, rank: int) -> list[int]:
    parts = _spread(e.args[1:])
    if not parts:
        return list(range(rank))[::-1]
    found = [plain_index(ctx, a, "an order of dimensions") for a in parts]
    order = [f.constant for f in found if f.is_constant]
    if sorted(order) != list(range(rank)):
        message = f"`transpose` takes each of the dimensions 0 to {rank - 1} once"
        raise error("E0309", e.span, message, help="leave the order out to turn all dimensions around")
    return order


def _pad(ctx: Context, e: Call, base: View) -> View:
    if len(e.args) != 4:
        help = "write `pad(x, before, after, value)`, where a width is a number for all dimensions, or `(1, 0)`: one for each"
        raise error("E0310", e.span, f"`pad` takes 4 arguments, not {len(e.args)}", help=help)
    sides: list[list[Expr]] = []
    for arg in e.args[1:3]:
        parts = arg.items if isinstance(arg, Tuple) else (arg,) * base.rank
        if len(parts) != base.rank:
            message = f"`pad` takes one width a dimension: {base.rank}, not {len(parts)}"
            raise error("E0309", arg.span, message, help="a single number is meant for every dimension")
        sides.append([plain_index(ctx, p, "a width of `pad`") for p in parts])
        for width, part in zip(sides[-1], parts, strict=True):
            if width.is_constant and width.constant < 0:
                raise error(
                    "E0309", part.span, f"a width of `pad` is {width.constant}, less than 0", help="take a slice instead"
                )
    fill = settle(operand(ctx, e.args[3]), base.dtype)
    return views.pad(base, sides[0], sides[1], fill, e.span)
