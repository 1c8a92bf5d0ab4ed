"""Typed values as C text: the C expression has exactly the C type of the value's dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from texpr.affine.expr import Sym
from texpr.affine.typed import typed
from texpr.backends.c.index import flat_text, index_text, integer_text
from texpr.backends.c.literal import literal_text
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import Binds, Text, binary, call, cast
from texpr.backends.c.types import C_NAMES, NARROW_INTEGERS, OPERATOR_TYPES, SMALL_FLOATS
from texpr.ir.kernel.knowledge import source_of
from texpr.ir.program.updates import sum_and_product
from texpr.ir.value import Cast, Index, Literal, Load, Op, Ref, Value, walk
from texpr.ir.value.types import BOOL, DType
from texpr.support.diagnostic import CompilerBug
from texpr.support.limits import Width
from texpr.support.record import replace

_ARITHMETIC = {"add": ("+", Binds.ADD), "sub": ("-", Binds.ADD), "mul": ("*", Binds.MULTIPLY), "div": ("/", Binds.MULTIPLY)}
_COMPARISONS = {
    "lt": ("<", Binds.COMPARE), "le": ("<=", Binds.COMPARE), "gt": (">", Binds.COMPARE), "ge": (">=", Binds.COMPARE),
    "eq": ("==", Binds.EQUAL), "ne": ("!=", Binds.EQUAL),
}  # fmt: skip
_BITS = {"bitand": "&", "bitor": "|", "bitxor": "^"}
_LOGIC = {"and": ("&&", Binds.AND, "tx_and"), "or": ("||", Binds.OR, "tx_or")}


def value_text(value: Value, scope: Scope) -> Text:
    """`value` as C text."""
    match value:
        case Literal():
            return literal_text(value.value, value.dtype)
        case Load():
            return element_text(value, scope)
        case Index():
            return _index(value, scope)
        case Ref():
            return Text(scope.named[value.sym])
        case Op():
            return _operation(value, scope)
        case Cast():
            return _cast(value, scope)
        case _:
            assert_never(value)


def fused_text(value: Value, scope: Scope) -> Text:
    """A sum and product that may be computed with one rounding. Raises CompilerBug for another value."""
    parts = sum_and_product(value)
    if parts is None:
        raise CompilerBug("what is fused is no sum of a product")
    before, a, b = (value_text(part, scope) for part in parts)
    return call("tx_muladd", a, b, before)


def element_text(load: Load, scope: Scope) -> Text:
    """`buffer[index]`, or the name of a scalar."""
    name = scope.named[load.buffer]
    if load.buffer in scope.scalars:
        return Text(name)
    rank = load.index[0] if load.buffer in scope.parts else None
    if rank is not None and rank.as_sym is not scope.parts[load.buffer]:
        name = f"tx_cluster_shared({name}, {index_text(rank, scope)})"
    return Text(f"{name}[{place_text(load, scope)}]")


def place_text(load: Load, scope: Scope, *, inside: bool = True) -> Text:
    """The offset of an element in its buffer; `inside`: it is in bounds wherever the offset is computed."""
    for sym, meaning in load.data:
        scope = scope.data(sym, value_text(meaning, scope), meaning.dtype, source_of(meaning))
    if load.buffer in scope.parts:  # the offset in one block
        return flat_text(Load(replace(load.buffer, shape=load.buffer.shape[1:]), load.index[1:]), scope)
    return flat_text(load, scope, inside=inside)


def addend(name: Sym | Load, value: Value) -> Value | None:
    """The y of `x = x + y`, if C's `x += y` is equivalent; else None."""
    if not (isinstance(value, Op) and value.name == "add" and value.dtype in OPERATOR_TYPES):
        return None
    match name, value.args[0]:
        case Sym(), Ref(sym) if sym == name:
            return value.args[1]
        case Load(), Load() as read if same_element(name, read):
            return value.args[1]
        case _:
            return None


def same_element(a: Load, b: Load) -> bool:
    """Whether two loads read one element: the same buffer at the same index expressions, without data-dependent symbols."""
    return a.buffer is b.buffer and a.index == b.index and not a.data and not b.data


def _index(value: Index, scope: Scope) -> Text:
    number = typed(value.expr, scope.here)
    text = integer_text(number, scope)
    match value.dtype.name:
        case "i32" if number.width is Width.INT:
            return text
        case _:
            return _converted(text, value.dtype)


def _converted(text: Text, dtype: DType) -> Text:
    """An `int` or `long long` as the type `dtype`, which it fits."""
    return call(f"tx_to<{C_NAMES[dtype]}>", text) if dtype in SMALL_FLOATS else cast(C_NAMES[dtype], text)


def _operation(op: Op, scope: Scope) -> Text:
    args = [value_text(arg, scope) for arg in op.args]
    dtype = op.args[-1].dtype
    match op.name:
        case "select":
            condition, yes, no = args
            return Text(f"{condition.at(Binds.OR)} ? {yes.at(Binds.OR)} : {no.at(Binds.SELECT)}", Binds.SELECT)
        case "lt" | "le" | "gt" | "ge" | "eq" | "ne":
            return _comparison(op, args, scope)
        case "and" | "or":
            return _logic(op, args)
        case "not":
            return Text(f"!{args[0].at(Binds.UNARY)}", Binds.UNARY)
        case "add" | "sub" | "mul" if dtype in OPERATOR_TYPES:
            return binary(*_ARITHMETIC[op.name], *args)
        case "div" if dtype.is_float:
            return binary(*_ARITHMETIC["div"], *args)
        case "div":
            return call("tx_floordiv", *args)
        case "neg" if dtype.is_float:
            return Text(f"-{args[0].at(Binds.PRIMARY)}", Binds.UNARY)
        case "bitand" | "bitor" | "bitxor":
            return _bits(op.name, dtype, args)
        case _:
            return call(f"tx_{op.name}", *args)


def _comparison(op: Op, args: Sequence[Text], scope: Scope) -> Text:
    """Two index expressions are compared as exact integers."""
    left, right = op.args
    if isinstance(left, Index) and isinstance(right, Index):
        args = [index_text(left.expr, scope), index_text(right.expr, scope)]
    operator, binds = _COMPARISONS[op.name]
    return Text(f"{args[0].at(Binds.SHIFT)} {operator} {args[1].at(Binds.SHIFT)}", binds)


def _logic(op: Op, args: Sequence[Text]) -> Text:
    """`&&` and `||` may skip the right operand, which is equivalent if that reads no memory."""
    operator, binds, function = _LOGIC[op.name]
    if any(isinstance(part, Load) for part in walk(op.args[1])):
        return call(function, *args)
    left, right = op.args
    texts = (_side(text, value, op.name, binds) for text, value in zip(args, (left, right), strict=True))
    return Text(f" {operator} ".join(texts), binds)


def _side(text: Text, value: Value, name: str, binds: Binds) -> str:
    """A chain of one operator needs no parentheses; a mixture of `&&` and `||` has them for clarity."""
    chained = isinstance(value, Op) and value.name == name
    return text.at(binds if chained else Binds(Binds.AND + 1))


def _bits(name: str, dtype: DType, args: Sequence[Text]) -> Text:
    left, right = (arg.at(Binds.UNARY) for arg in args)
    text = Text(f"{left} {_BITS[name]} {right}", Binds.BIT_OR)
    return cast(C_NAMES[dtype], text) if dtype in NARROW_INTEGERS else text


def _cast(value: Cast, scope: Scope) -> Text:
    text, source, target = value_text(value.arg, scope), value.arg.dtype, value.dtype
    if source == target:
        return text
    if target == BOOL:
        zero = literal_text(0, source)
        return Text(f"{text.at(Binds.SHIFT)} != {zero}", Binds.EQUAL)
    if source in SMALL_FLOATS or target in SMALL_FLOATS or (source.is_float and target.is_integer):
        return call(f"tx_to<{C_NAMES[target]}>", text)
    return cast(C_NAMES[target], text)
