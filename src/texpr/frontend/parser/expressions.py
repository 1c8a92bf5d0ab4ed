"""Expressions, by precedence climbing.

or < and < not < comparison (not chained) < + - < * / % < unary - < ** (to the right) < call, index
"""

from __future__ import annotations

from texpr.frontend.parser.cursor import Cursor
from texpr.frontend.tree import Binary, Call, Constant, Exp, Ident, Name, Number, Slice, Subscript, Tuple, Unary
from texpr.support.diagnostic import Edit, Proposal

MAX_HEIGHT = 100
"""The height of one expression: operators along the longest path."""
MAX_DIGITS = 40

COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))

PLUS = 8
"""The precedence of `+` for its left operand: above all comparisons and word operators."""

# The precedence of each operator for its left and right operand.
_BINDING = {
    "or": (1, 2),
    "and": (3, 4),
    **dict.fromkeys(COMPARISONS, (6, 7)),
    "+": (PLUS, 9),
    "-": (PLUS, 9),
    "*": (10, 11),
    "/": (10, 11),
    "%": (10, 11),
    # The right operand of a power may start with a minus, which `prefix` accepts at any precedence.
    "**": (13, 12),
}
_NOT = 5
_MINUS = 12


def expression(cursor: Cursor, least: int = 0) -> Exp:
    """An expression whose operators have at least the precedence `least`."""
    start = cursor.at
    left = _prefix(cursor, least)
    while True:
        op = cursor.kind
        binding = _BINDING.get(op)
        # `flag and= e` is an update of `flag`.
        if binding is None or binding[0] < least or (cursor.peek() == "=" and op in ("and", "or")):
            return left
        height = cursor.height
        cursor.advance()
        if op == "**":
            # It is right-associative, so a chain of it recurs.
            with cursor.nested():
                right = expression(cursor, binding[1])
        else:
            right = expression(cursor, binding[1])
        _grow(cursor, height)
        left = Binary(op, left, right, cursor.since(start))
        if op in COMPARISONS and cursor.kind in COMPARISONS:
            help = f"write `a {op} b and b {cursor.kind} c`"
            cursor.refuse("E0106", cursor.span, "comparisons cannot be chained", help=help)


def _grow(cursor: Cursor, height: int) -> None:
    cursor.height = max(cursor.height, height) + 1
    if cursor.height > MAX_HEIGHT:
        help = "name parts of it with `let`, or write a loop"
        cursor.refuse("E0105", cursor.span, f"an expression of more than {MAX_HEIGHT} levels", help=help)


def _prefix(cursor: Cursor, least: int) -> Exp:
    start = cursor.at
    match cursor.kind:
        case "-":
            cursor.advance()
            with cursor.nested():
                arg = expression(cursor, _MINUS)
            _grow(cursor, 0)
            return Unary("-", arg, cursor.since(start))
        case "not":
            if least > _NOT:
                cursor.refuse("E0102", cursor.span, "`not` needs parentheses here")
            cursor.advance()
            with cursor.nested():
                arg = expression(cursor, _NOT)
            _grow(cursor, 0)
            return Unary("not", arg, cursor.since(start))
        case _:
            return _postfix(cursor)


def _postfix(cursor: Cursor) -> Exp:
    start = cursor.at
    node = _primary(cursor)
    while cursor.kind == "[":
        opened = cursor.advance()
        with cursor.nested():
            items = cursor.separated("]", opened, "the index", _index_item)
        _grow(cursor, 0)
        node = Subscript(node, items, cursor.since(start))
    return node


def _member(cursor: Cursor) -> Exp:
    """One of several expressions: the height is the maximum."""
    height = cursor.height
    node = expression(cursor)
    cursor.height = max(cursor.height, height)
    return node


def _index_item(cursor: Cursor) -> Exp | Slice:
    start = cursor.at
    lo = hi = length = None
    if cursor.kind != ":":
        lo = _member(cursor)
        if cursor.kind != ":":
            return lo
    cursor.advance()
    if cursor.accept("+"):
        length = _member(cursor)
    elif not cursor.sees(",", "]"):
        hi = _member(cursor)
    return Slice(lo, hi, length, cursor.since(start))


def _primary(cursor: Cursor) -> Exp:
    cursor.height = 0
    span = cursor.span
    match cursor.kind:
        case "name":
            if cursor.peek() == "(" and not cursor.starts_line(1):
                return call(cursor)
            return Name(cursor.tokens.texts[cursor.advance()], span)
        case "int" | "float":
            return number(cursor)
        case "inf" | "nan" | "true" | "false":
            return Constant(cursor.tokens.texts[cursor.advance()], span)
        case "(":
            return _parenthesised(cursor)
        case "." if cursor.peek() == "int":
            help = Proposal(f"write `0.{cursor.peek_text()}`", Edit("0…"))
            cursor.refuse("E0104", span, "a number starts with a digit", help=help)
        case _:
            cursor.expected("an expression")


def _parenthesised(cursor: Cursor) -> Exp:
    start = cursor.advance()
    with cursor.nested():
        first = expression(cursor)
        if cursor.kind != ",":
            cursor.close(")", start, "the parenthesis")
            return first
        cursor.advance()
        rest = cursor.separated(")", start, "the tuple", _member)
    if not rest:
        cursor.refuse("E0102", cursor.since(start), "a tuple has two parts or more", help="remove the comma")
    return Tuple((first, *rest), cursor.since(start))


def call(cursor: Cursor) -> Call:
    """`name(args, key=value)`, the name being the current token."""
    start = cursor.at
    if cursor.text == "asm":
        cursor.expected("a value", help="`asm(…)` is a statement, and gives none")
    name = cursor.ident("the name of a function")
    opened = cursor.expect("(", "after the name of a function")
    with cursor.nested():
        parts = cursor.separated(")", opened, "the arguments", _argument)
    args = tuple(value for key, value in parts if key is None)
    keys = tuple((key, value) for key, value in parts if key is not None)
    late = next((value for (key, value), (before, _) in zip(parts[1:], parts, strict=False) if before and not key), None)
    if late is not None:
        cursor.refuse("E0102", late.span, "an argument without a name stands before those with one")
    _grow(cursor, 0)
    return Call(name, args, keys, cursor.since(start))


def _argument(cursor: Cursor) -> tuple[Ident | None, Exp]:
    key = None
    if cursor.kind == "name" and cursor.peek() == "=":
        key = cursor.ident("the name of a parameter")
        cursor.advance()
    return key, _member(cursor)


def number(cursor: Cursor) -> Number:
    """An integer or a decimal number, the current token."""
    span, text = cursor.span, cursor.text
    if cursor.kind == "int":
        if len(text) > MAX_DIGITS or (value := int(text, 0 if text[:2] in ("0x", "0X") else 10)) >= 2**64:
            cursor.refuse("E0104", span, "the number does not fit 64 bits")
    else:
        value = float(text)
        if value == float("inf"):
            help = Proposal("write `inf` for infinity", Edit("inf"))
            cursor.refuse("E0104", span, "the number is larger than f64 can hold", help=help)
    cursor.advance()
    if cursor.kind == "." and not cursor.starts_line():
        help = Proposal(f"write `{text}.0`", Edit(f"{text}.0"))
        cursor.refuse("E0104", span.to(cursor.span), "a digit stands on each side of a decimal point", help=help)
    return Number(value, span)
