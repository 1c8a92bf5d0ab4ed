"""Typing rules: the type of a number in context, the types of operands and results, which update may be wider."""

from __future__ import annotations

import math
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

from texpr.affine.expr import Expr
from texpr.frontend.elaboration.drafts import Affine, Draft, Open, Real, Typed, affine_of, height, index_value, natural, size
from texpr.frontend.tree import Ident
from texpr.ir.program.rewrite import map_value
from texpr.ir.value import Cast, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.operators import OPS, OpInfo
from texpr.ir.value.types import BF16, BOOL, DTYPES, F8E4M3, F8E5M2, F8E8M0, F16, F32, F64, I64, TF32, U64, DType, Kind
from texpr.support.diagnostic import Edit, Proposal, error
from texpr.support.span import Span

MAX_HEIGHT = 200
"""The height of a value: operators along the longest path."""

MAX_NODES = 4096
"""The number of parts of an index expression, or of a value without a type, each counted as often as it is written."""

# Exponent and fraction bits, and the largest finite number. OCP 8-bit formats: Open Compute Project, OFP8 rev. 1.0.
_FLOATS: dict[DType, tuple[int, int, float]] = {
    F8E4M3: (4, 3, 448.0),
    F8E5M2: (5, 2, 57344.0),
    F8E8M0: (8, 0, 2.0**127),
    F16: (5, 10, 65504.0),
    BF16: (8, 7, 3.3895313892515355e38),
    TF32: (8, 10, 3.4011621342146535e38),
    F32: (8, 23, 3.4028234663852886e38),
    F64: (11, 52, 1.7976931348623157e308),
}
_OTHER_NAMES = {
    "float": "f32", "double": "f64", "half": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "float16": "f16",
    "int": "i32", "long": "i64", "short": "i16", "char": "i8", "uint": "u32", "int32": "i32", "int64": "i64", "size_t": "u64",
    "f8": "f8e4m3", "fp8": "f8e4m3", "fp16": "f16", "fp32": "f32", "i1": "bool",
}  # fmt: skip
COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


class Operand(NamedTuple):
    """A draft and its span."""

    draft: Draft
    span: Span


def lookup_type(name: Ident) -> DType:
    """The scalar type called `name`."""
    found = DTYPES.get(name.name)
    if found is not None:
        return found
    close = _OTHER_NAMES.get(name.name) or next(iter(get_close_matches(name.name, DTYPES, 1)), None)
    help = Proposal(f"did you mean `{close}`?", Edit(close)) if close else f"types are {', '.join(DTYPES)}"
    raise error("E0207", name.span, f"there is no type `{name.name}`", help=help)


def holds(wide: DType, narrow: DType) -> bool:
    """Whether `wide` holds every number of `narrow`, both floating or both integer."""
    if wide == narrow:
        return True
    if wide.is_float and narrow.is_float:
        return _FLOATS[wide][0] >= _FLOATS[narrow][0] and _FLOATS[wide][1] >= _FLOATS[narrow][1]
    if wide.is_integer and narrow.is_integer:
        return wide.bits > narrow.bits and (narrow.kind is Kind.UINT or wide.kind is Kind.INT)
    return False


def literal(value: int | float, dtype: DType, span: Span) -> Literal:
    """A number in context `dtype`, which must hold it (a float rounds it)."""
    if dtype.is_float:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(value) if isinstance(value, float) else True:
            if abs(number) > _FLOATS[dtype][2]:
                raise error("E0306", span, f"{value} is larger than {dtype} can hold")
        elif math.isinf(number) and dtype == F8E4M3:
            raise error("E0306", span, "f8e4m3 has no infinity", help="its largest number is 448.0")
        if dtype == F8E8M0 and not (number > 0 and math.frexp(number)[0] == 0.5):
            raise error("E0306", span, f"{value} is no power of two, and f8e8m0 holds no others", help="write `1.0`")
        return Literal(number, dtype)
    if dtype == BOOL:
        word = "false" if value == 0 else "true"
        help = Proposal("write `true` or `false`", Edit(word))
        raise error("E0303", span, f"expected bool, found the number {value}", help=help)
    if isinstance(value, float):
        raise error("E0306", span, f"{value} is not an integer, and {dtype} is met here")
    low, high = (0, 2**dtype.bits - 1) if dtype.kind is Kind.UINT else (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1)
    if not low <= value <= high:
        raise error("E0306", span, f"{value} does not fit {dtype}", help=f"{dtype} holds {low} to {high}")
    return Literal(value, dtype)


def settle(operand: Operand, dtype: DType) -> Value:
    """The operand as a value of `dtype`, which must be its type or one that it can take."""
    draft, span = operand
    match draft:
        case Typed(value):
            if value.dtype != dtype:
                raise error("E0303", span, f"expected {dtype}, found {value.dtype}", help=_conversion(value.dtype, dtype))
            return value
        case Real(number):
            return literal(number, dtype, span)
        case Affine(expr, floored):
            if floored and dtype.is_float:
                help = "write a decimal point, as in `1.0 / 2.0`"
                raise error("E0306", span, f"this integer division floors to {expr}, and {dtype} is met here", help=help)
            if dtype.is_integer:
                return index_of(expr, dtype, span)
            if expr.is_constant:
                return literal(expr.constant, dtype, span)
            if dtype == BOOL:
                help = Proposal("compare it, as in `i != 0`", Edit("(…) != 0"))
                raise error("E0303", span, "expected bool, found an integer", help=help)
            return Cast(index_value(expr), dtype)
        case Open(op, args):
            _check_takes(OPS[op], dtype, span)
            kept = (settle(Operand(args[0], span), BOOL),) if op == "select" else ()
            return Op(op, (*kept, *(settle(Operand(a, span), dtype) for a in args[len(kept) :])), dtype, draft.span)


def _conversion(found: DType, wanted: DType) -> Proposal:
    if found == BOOL and wanted != BOOL:
        return Proposal(f"write `select(c, 1, 0)`, or `{wanted}(c)`", Edit(f"{wanted}(…)"))
    if wanted != BOOL:
        return Proposal(f"convert it, `{wanted}(…)`", Edit(f"{wanted}(…)"))
    return Proposal("compare it, as in `x != 0`", Edit("(…) != 0"))


def settle_natural(operand: Operand) -> Value:
    """The operand as a value of its own type, or of the default type of a number."""
    return settle(operand, natural(operand.draft))


def meet(operands: Sequence[Operand]) -> DType | None:
    """The common type of the typed operands; None where none is typed."""
    found: Operand | None = None
    for operand in operands:
        if isinstance(operand.draft, Typed):
            dtype = operand.draft.dtype
            if found is not None and natural(found.draft) != dtype:
                raise _mismatch(natural(found.draft), dtype, operand.span)
            found = found or operand
    return natural(found.draft) if found is not None else None


def _mismatch(left: DType, right: DType, span: Span) -> Exception:
    wide = _wider(left, right)
    text = "compare the number first" if BOOL in (left, right) else f"convert one of them, `{wide}(…)`"
    help = Proposal(text, Edit(f"{wide}(…)")) if wide == left and BOOL not in (left, right) else text
    return error("E0302", span, f"operands of one type are needed: {left} meets {right}", help=help)


def _wider(left: DType, right: DType) -> DType:
    if holds(left, right) or (left.is_float and right.is_integer):
        return left
    if F8E8M0 in (left, right) and left.is_float and right.is_float and not holds(right, left):
        return F32
    return right if holds(right, left) or right.is_float else F32 if left.is_float else I64


def _check_takes(info: OpInfo, dtype: DType, span: Span) -> None:
    scale = dtype == F8E8M0 and info.gives != "bool"
    fine = {
        "any": True,
        "number": dtype != BOOL and not scale,
        "integer": dtype.is_integer,
        "float": dtype.is_float and not scale,
        "bool": dtype == BOOL,
    }[info.takes]
    if fine:
        return
    help = None
    if dtype == F8E8M0:
        raise error("E0304", span, f"`{info.name}` is not for scales: f8e8m0", help="convert it, `f32(…)`")
    if info.takes == "float" and dtype.is_integer:
        help = f"convert it first, `{info.name}(f32(…))`"
    elif info.takes == "bool":
        help = "compare the number first, as in `x != 0`" + (f", or use `bit{info.name}`" if info.name in ("and", "or") else "")
    wanted = {"number": "numbers", "integer": "integers", "float": "floating-point numbers", "bool": "bools", "any": "values"}
    raise error("E0304", span, f"`{info.name}` takes {wanted[info.takes]}, not {dtype}", help=help)


def apply(name: str, operands: Sequence[Operand], span: Span, exact: Expr | None = None) -> Draft:
    """The operation `name` on operands; `exact` is the result as an index expression, if the caller has one."""
    info = OPS[name]
    rise = 1 + max(height(o.draft) for o in operands)
    if rise > MAX_HEIGHT:
        help = "name parts of it with `let`"
        raise error("E0317", span, f"a value of more than {MAX_HEIGHT} levels after `let`s and calls are put in", help=help)
    if exact is not None and all(isinstance(o.draft, Affine) for o in operands):
        return Affine(exact, any(isinstance(o.draft, Affine) and o.draft.floored for o in operands))
    if info.gives == "bool":
        return _test(info, operands, span, rise)
    dtype = meet(operands)
    if dtype is None:
        return _open(name, operands, rise, span)
    _check_takes(info, dtype, span)
    value = Op(name, tuple(settle(o, dtype) for o in operands), dtype, span)
    return Typed(value, exact if dtype.is_integer else None, rise)


def _open(name: str, operands: Sequence[Operand], rise: int, span: Span) -> Open:
    """An operation whose operands have no type yet; each use of it is a copy."""
    whole = 1 + sum(size(o.draft) for o in operands)
    if whole > MAX_NODES:
        message = f"a value of more than {MAX_NODES} parts once `let`s are put in"
        raise error("E0317", span, message, help="give a part its type, as in `i64(…)`, so that it is computed once")
    return Open(name, tuple(o.draft for o in operands), rise, whole, span)


def _test(info: OpInfo, operands: Sequence[Operand], span: Span, rise: int) -> Typed:
    """A comparison or a predicate, of type bool."""
    if info.takes == "bool":
        for operand in operands:
            _check_takes(info, natural(operand.draft), operand.span)
    dtype = meet(operands) or max((natural(o.draft) for o in operands), key=lambda t: t.is_float)
    if info.takes == "float" and dtype == I64 and meet(operands) is None:
        dtype = F64
    _check_takes(info, dtype, span)
    return Typed(Op(info.name, tuple(settle(o, dtype) for o in operands), BOOL, span), None, rise)


def compare(op: str, left: Operand, right: Operand, span: Span) -> Draft:
    """`left op right`; affine where both sides are index expressions."""
    a, b = affine_of(left.draft), affine_of(right.draft)
    if a is not None and b is not None:
        pairs = (left.draft, a, right.draft, b), (right.draft, b, left.draft, a)
        wide = any(
            unsigned(one, natural(of), other) and (isinstance(to, Affine) or natural(to) == U64) for of, one, to, other in pairs
        )
        plain: tuple[Value, ...] = Index(a, I64, left.span), Index(b, I64, right.span)
        sides = (index_of(a, U64, left.span), index_of(b, U64, right.span)) if wide else plain
        return Typed(Op(COMPARISONS[op], sides, BOOL, span), None, 1)
    return apply(COMPARISONS[op], (left, right), span)


def unsigned(named: Expr, dtype: DType, other: Expr) -> bool:
    """Whether index expressions are compared as u64: `named` is a u64 by name, which i64 may not hold, and the other one adds
    up what is never negative."""
    adds = other.constant >= 0 and all(by > 0 for _, by in other.terms)
    return dtype == U64 and named.as_sym is not None and adds


def index_of(value: Expr, dtype: DType, span: Span) -> Value:
    """An index expression as a value of an integer type."""
    return literal(value.constant, dtype, span) if value.is_constant else Index(value, dtype, span)


def choose(condition: Operand, then: Operand, orelse: Operand, span: Span) -> Draft:
    """`select(condition, then, orelse)`."""
    test = condition_value(condition)
    rise = 1 + max(height(o.draft) for o in (condition, then, orelse))
    if rise > MAX_HEIGHT:
        raise error("E0317", span, f"a value of more than {MAX_HEIGHT} levels", help="name parts of it with `let`")
    dtype = meet((then, orelse))
    if dtype is None:
        return _open("select", (condition, then, orelse), rise, span)
    return Typed(Op("select", (test, settle(then, dtype), settle(orelse, dtype)), dtype, span), None, rise)


def condition_value(operand: Operand) -> Value:
    """The operand as a condition."""
    if isinstance(operand.draft, Typed) and operand.draft.dtype == BOOL:
        return operand.draft.value
    found = natural(operand.draft)
    help = Proposal("compare it, as in `x != 0`", Edit("(…) != 0"))
    raise error("E0305", operand.span, f"a condition is a bool, and this is {found}", help=help)


def convert(operand: Operand, dtype: DType) -> Draft:
    """The conversion `dtype(operand)`."""
    draft, span = operand
    match draft:
        case Affine(expr):
            if expr.is_constant and dtype != BOOL:
                return Typed(literal(expr.constant, dtype, span), expr if dtype.is_integer else None)
            if dtype.is_integer:
                return Typed(Index(expr, dtype, span), expr)
            return Typed(Cast(index_value(expr), dtype), None, 1)
        case Real() | Open() if dtype.is_float:
            return Typed(settle(operand, dtype), None, height(draft))
        case Real() | Open():
            return Typed(Cast(settle_natural(operand), dtype), None, 1 + height(draft))
        case Typed(value):
            if value.dtype != dtype or _is_rounded(value):
                return Typed(Cast(value, dtype), None, 1 + draft.height)
            return draft


def _is_rounded(value: Value) -> bool:
    """Whether it was computed in a type narrower than f32: an update does not widen what the text converts to that."""
    return isinstance(value, Op) and value.dtype.is_float and value.dtype.bits < F32.bits


def widen(operand: Operand, dtype: DType, what: str) -> Value:
    """The operand of an update of a `dtype` target: where its own type is narrower, its leaves are converted first."""
    draft, span = operand
    if dtype == F8E8M0:
        raise error("E0304", span, f"{what} is of scales, f8e8m0, which are stored and nothing else", help="sum up in f32")
    if not isinstance(draft, Typed) or draft.dtype == dtype:
        return settle(operand, dtype)
    if not holds(dtype, draft.dtype):
        message = f"{what} is {dtype}, which does not hold every {draft.dtype}"
        raise error("E0303", span, message, help=Proposal(f"convert it, `{dtype}(…)`", Edit(f"{dtype}(…)")))
    return _widened(draft.value, dtype, span)


def _widened(value: Value, dtype: DType, span: Span) -> Value:
    match value:
        case Literal():
            return literal(value.value, dtype, span)
        case Index():
            return Index(value.expr, dtype, value.span)
        case Cast() if value.arg.dtype == value.dtype:
            return Cast(value.arg, dtype)
        case Load() | Ref() | Cast():
            return Cast(value, dtype)
        case Op("select", (condition, then, orelse)):
            return Op("select", (condition, _widened(then, dtype, span), _widened(orelse, dtype, span)), dtype, value.span)
        case Op():
            return Op(value.name, tuple(_widened(a, dtype, span) for a in value.args), dtype, value.span)


def without_idle(value: Value) -> Value:
    """The same without conversions to the type that something has."""

    def leaf(node: Value) -> Value | None:
        return without_idle(node.arg) if isinstance(node, Cast) and node.arg.dtype == node.dtype else None

    return map_value(value, leaf)


def truth(value: Value) -> bool | None:
    """The value of a condition made of constants; None where it is not known."""
    match value:
        case Literal():
            return value.value != 0
        case Op("and" | "or" as name, (left, right)):
            first, second = truth(left), truth(right)
            stop = name == "or"
            if stop in (first, second):
                return stop
            return None if first is None or second is None else not stop
        case Op("not", (arg,)):
            known = truth(arg)
            return None if known is None else not known
        case Op(name, (Index(left), Index(right))) if left.is_constant and right.is_constant:
            a, b = left.constant, right.constant
            results = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
            return results.get(name)
        case _:
            return None
