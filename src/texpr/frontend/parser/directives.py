"""Pragmas and the directives of schedules, uninterpreted: `name(args, key=value) -> names`."""

from __future__ import annotations

from typing import NoReturn

from texpr.frontend.parser.cursor import Cursor
from texpr.frontend.parser.expressions import PLUS, expression, number
from texpr.frontend.tokens import KEYWORDS
from texpr.frontend.tree import (
    Argument,
    Binary,
    Call,
    Directive,
    DirectiveValue,
    Exp,
    Group,
    Ident,
    Name,
    Number,
    Slice,
    Text,
    Unary,
    Word,
    parts,
)

ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
"""The escapes of a string."""

_ARITHMETIC = ("+", "-", "*", "/", "%")


def pragmas(cursor: Cursor) -> tuple[Directive, ...]:
    """`#name(args) …`, as many as there are."""
    found: list[Directive] = []
    while cursor.kind == "#":
        start = cursor.advance()
        name = cursor.ident("the name of a pragma")
        args = arguments(cursor) if cursor.sees("(") else ()
        found.append(Directive(name, args, (), cursor.since(start)))
    return tuple(found)


def directive(cursor: Cursor) -> Directive:
    """`name(args) -> results`; results are one name or several in parentheses."""
    start = cursor.at
    name = cursor.ident("the name of a directive")
    if cursor.kind != "(":
        cursor.expected(f"`(` after the directive `{name.name}`")
    args = arguments(cursor)
    results: tuple[Ident, ...] = ()
    if cursor.accept("->"):
        if cursor.kind == "(":
            opened = cursor.advance()
            results = cursor.separated(")", opened, "the names", _result)
        else:
            results = (_result(cursor),)
    return Directive(name, args, results, cursor.since(start))


def _result(cursor: Cursor) -> Ident:
    return cursor.ident("a name for the result")


def arguments(cursor: Cursor) -> tuple[Argument, ...]:
    """`(value, key=value, …)`."""
    opened = cursor.expect("(", "before the arguments")
    with cursor.nested():
        return cursor.separated(")", opened, "the arguments", _argument)


def _argument(cursor: Cursor) -> Argument:
    start = cursor.at
    key = None
    if _is_word(cursor) and cursor.peek() in ("=", ":"):
        key = cursor.tokens.texts[cursor.advance()]
        cursor.advance()
    return Argument(key, _value(cursor), cursor.since(start))


def _is_word(cursor: Cursor) -> bool:
    return cursor.kind == "name" or cursor.kind in KEYWORDS


def _value(cursor: Cursor) -> DirectiveValue:
    start = cursor.at
    if cursor.kind == "string":
        return Text(string(cursor), cursor.since(start))
    if _is_arithmetic(cursor):
        return _arithmetic(cursor)
    if cursor.kind == "(":
        return Group(arguments(cursor), cursor.since(start))
    if cursor.kind in ("int", "float", "-") and (cursor.kind == "-" or not _continues(cursor)):
        sign = -1 if cursor.accept("-") else 1
        if sign < 0 and cursor.accept("inf"):
            return Number(float("-inf"), cursor.since(start))
        if cursor.kind not in ("int", "float"):
            cursor.expected("a number or a size")
        return Number(sign * number(cursor).value, cursor.since(start))
    words: list[str] = []
    while _is_word(cursor) or cursor.kind in ("int", "measure"):
        words.append(_dotted(cursor) if _is_word(cursor) else cursor.tokens.texts[cursor.advance()])
    if not words:
        cursor.expected("a name, a number, a string or a group in parentheses")
    return Word(" ".join(words), cursor.since(start))


def _is_arithmetic(cursor: Cursor) -> bool:
    """Whether an expression starts here, as opposed to a word, a number or a group."""
    match cursor.kind:
        case "-":
            follows = cursor.peek()
            return follows in ("name", "-", "(") or (follows == "int" and cursor.peek(2) in _ARITHMETIC)
        case "name" if cursor.peek() == "(":
            return not cursor.starts_line(1)
        case "name" | "int":
            return cursor.peek() in _ARITHMETIC
        case "(":
            return cursor.peek(_length(cursor)) in _ARITHMETIC
        case _:
            return False


def _length(cursor: Cursor) -> int:
    """The number of tokens of the parenthesis that opens here."""
    depth, ahead = 0, 0
    while (kind := cursor.peek(ahead)) != "end":
        depth += (kind == "(") - (kind == ")")
        ahead += 1
        if depth == 0:
            break
    return ahead


def _arithmetic(cursor: Cursor) -> Unary | Binary | Call:
    found = expression(cursor, PLUS)
    stack: list[Exp] = [found]
    while stack:
        e = stack.pop()
        match e:
            case Name() | Number(int()):
                continue
            case Unary("-") | Binary("+" | "-" | "*" | "/" | "%") | Call(keys=()):
                stack += (part for part in parts(e) if not isinstance(part, Slice))
            case _:
                _refuse(cursor, e)
    if not isinstance(found, Unary | Binary | Call):
        _refuse(cursor, found)
    return found


def _refuse(cursor: Cursor, e: Exp) -> NoReturn:
    message = "an argument of a directive is made of sizes, whole numbers, `+ - * / %`, `min` and `max`"
    cursor.refuse("E0102", e.span, message)


def _continues(cursor: Cursor) -> bool:
    return cursor.peek() in ("name", "int", "measure") or cursor.peek() in KEYWORDS


def _dotted(cursor: Cursor) -> str:
    parts = [cursor.tokens.texts[cursor.advance()]]
    while cursor.kind == ".":
        cursor.advance()
        if not _is_word(cursor):
            cursor.expected("a name after `.`")
        parts.append(cursor.tokens.texts[cursor.advance()])
    return ".".join(parts)


def string(cursor: Cursor) -> str:
    """A string, or adjacent strings, which are joined."""
    if cursor.kind != "string":
        cursor.expected("a string")
    parts: list[str] = []
    while cursor.kind == "string":
        parts.append(_unescape(cursor))
        cursor.advance()
    return "".join(parts)


def _unescape(cursor: Cursor) -> str:
    text, span = cursor.text, cursor.span
    if len(text) < 2 or not text.endswith('"') or _ends_escaped(text):
        cursor.refuse("E0108", span, "the string does not end on its line", help='close it with `"`; `\\n` is a line end')
    out: list[str] = []
    at = 1
    while at < len(text) - 1:
        char = text[at]
        if char == "\\":
            at += 1
            if text[at] not in ESCAPES:
                cursor.refuse("E0108", span, f"`\\{text[at]}` means nothing in a string", help='write \\\\, \\", \\n or \\t')
            char = ESCAPES[text[at]]
        out.append(char)
        at += 1
    return "".join(out)


def _ends_escaped(text: str) -> bool:
    body = text[1:-1]
    return (len(body) - len(body.rstrip("\\"))) % 2 == 1
