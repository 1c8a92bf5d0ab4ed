"""C expressions with the precedence of their outermost operators, and escaping of users' text."""

from __future__ import annotations

from enum import IntEnum
from pathlib import PurePath

from texpr.support.record import Record
from texpr.support.span import NOWHERE, Span


class Binds(IntEnum):
    """The precedence of an expression's outermost operator in C."""

    SELECT = 1
    OR = 2
    AND = 3
    BIT_OR = 4
    BIT_XOR = 5
    BIT_AND = 6
    EQUAL = 7
    COMPARE = 8
    SHIFT = 9
    ADD = 10
    MULTIPLY = 11
    UNARY = 12
    PRIMARY = 13


class Text(Record):
    """A C expression with its outermost operator's precedence."""

    text: str
    binds: Binds = Binds.PRIMARY

    def at(self, least: Binds) -> str:
        """The text as an operand of at least the precedence `least`: in parentheses if necessary."""
        return self.text if self.binds >= least else f"({self.text})"

    def __str__(self) -> str:
        return self.text


def call(function: str, *args: Text) -> Text:
    """`function(args)`."""
    return Text(f"{function}({', '.join(map(str, args))})")


def cast(ctype: str, value: Text) -> Text:
    """`(ctype)value`."""
    return Text(f"({ctype}){value.at(Binds.UNARY)}", Binds.UNARY)


def binary(operator: str, binds: Binds, left: Text, right: Text) -> Text:
    """`left operator right`, left-associative."""
    return Text(f"{left.at(binds)} {operator} {right.at(Binds(binds + 1))}", binds)


def comment(text: str) -> str:
    """`text` as the content of a `//` comment: printable ASCII on one line.

    A backslash at the end of a line continues the comment, and `??/` is a backslash to a C compiler with trigraphs.
    """
    plain = "".join(char if " " <= char <= "~" and char != "\\" else "." for char in text)
    return plain.replace("??/", "??.").strip()


def string(text: str) -> str:
    """`text` as a C string literal. Every byte but letters, digits and plain signs is written as three octal digits."""
    plain = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ._-+/:,()<>=@")
    data = text.encode("utf-8", "surrogatepass")
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in data) + '"'


def line_of(span: Span) -> int | None:
    """The line of the `.te` on which `span` starts; None for a program built in Python."""
    return None if span.source is NOWHERE.source else span.line


def file_of(span: Span) -> str:
    """The name of the `.te`, without folders: emitted text must not depend on where it was built."""
    return PurePath(span.source.name).name


def place_of(span: Span) -> str:
    """File, line and column of `span`."""
    line, column = span.source.position(span.start)
    return f"{file_of(span)}:{line}:{column}"
