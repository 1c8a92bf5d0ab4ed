"""Index expressions as C text. `texpr.affine.typed` determines each operation and its width; here they are printed."""

from __future__ import annotations

from typing import assert_never

from texpr.affine.expr import Expr
from texpr.affine.typed import Typed, place, typed
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import Binds, Text, binary, call, cast
from texpr.ir.value import Load
from texpr.support.diagnostic import limitation
from texpr.support.limits import Width

_BINDS = {"+": Binds.ADD, "-": Binds.ADD, "*": Binds.MULTIPLY, "/": Binds.MULTIPLY, "%": Binds.MULTIPLY}
_BITS = {"&": Binds.BIT_AND, "^": Binds.BIT_XOR}


def index_text(value: Expr, scope: Scope) -> Text:
    """`value` as C text."""
    return integer_text(typed(value, scope.here), scope)


def flat_text(load: Load, scope: Scope, *, inside: bool = True) -> Text:
    """The offset of an element from the start of its buffer, in elements; `inside` as for `affine.typed.place`."""
    return integer_text(place(load.buffer.shape, load.buffer.strides, load.index, scope.here, inside=inside), scope)


def integer_text(node: Typed, scope: Scope) -> Text:
    """An expression tree as C text, node by node in its order."""
    args = [integer_text(arg, scope) for arg in node.args]
    if not node.fits and not scope.here.narrows:
        raise limitation("E0551", None, "a condition on sizes needs integers of more than 128 bits")
    match node.op:
        case "number":
            return _number(node.value.constant, node.width, scope)
        case "name":
            sym = node.value.as_sym
            assert sym is not None
            return scope.names[sym]
        case "cast":
            return cast(_ctype(node.width, scope), args[0])
        case "neg":
            return Text(f"-{args[0].at(Binds.PRIMARY)}", Binds.UNARY)
        case "/" | "floordiv" if node.value in scope.quotients:
            return scope.quotients[node.value]
        case "+" | "-" | "*" | "/" | "%":
            return binary(node.op, _BINDS[node.op], *args)
        case "&" | "^":  # the precedence of these operators is little known
            left, right = (Text(arg.at(Binds.UNARY)) for arg in args)
            return binary(node.op, _BITS[node.op], left, right)
        case "floordiv" | "mod" | "min" | "max":
            return call(f"{'tx' if scope.here.narrows else 'texpr'}_{node.op}", *args)
        case _:
            raise AssertionError(f"no operation of integers is {node.op}")


def _number(value: int, width: Width, scope: Scope) -> Text:
    if width is Width.INT:
        return Text(f"{value}")
    if Width.LONG.holds((value, value)):
        return Text(f"{value}LL")
    high, low = divmod(value, 1 << 62)
    return Text(f"(({_ctype(Width.WIDE, scope)}){high} * {1 << 62}LL + {low}LL)")


def _ctype(width: Width, scope: Scope) -> str:
    match width:
        case Width.INT:
            return "int"
        case Width.LONG:
            return "long long"
        case Width.WIDE:
            return "tx_int128" if scope.here.narrows else "texpr_wide"
        case _:
            assert_never(width)
