"""Parser of layouts, coordinates and expressions of sizes.

A number may have the prefix that CuTe prints for compile-time constants: `_8` is 8, and no name.

layout = tree ":" tree
tree   = "(" [tree {"," tree} [","]] ")" | sum
sum    = term {("+" | "-") term}          term = unary {("*" | "/" | "%") unary}          unary = ["-"] atom {"@" number}
atom   = number | "_"number | name | "_" | ("min" | "max" | "xor") "(" sum {"," sum} ")" | "(" sum ")"
"""

from __future__ import annotations

import re
from typing import TypeAlias

from texpr.affine.expr import Expr, expr, maximum, minimum, sym, xor
from texpr.layout.basis import Basis, IntoStrideTree
from texpr.layout.error import LayoutError
from texpr.layout.inttuple import IntoIntTree, tidy
from texpr.layout.layout import Layout
from texpr.layout.slices import ALL, All, Slice
from texpr.layout.swizzle import ComposedLayout, Swizzle

_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_][\w.']*|[-+*/%@(),:])")
_COMPOSED = re.compile(r"\s*Sw<(\d+),(\d+),(-?\d+)> o (.*?) o (.*)", re.DOTALL)

_Tree: TypeAlias = "Expr | Basis | All | tuple[_Tree, ...]"


def parse_layout(text: str) -> Layout:
    """`((2,4),8):((1@0,4@1),2@1)` as a layout; without strides it is compact. Raises LayoutError."""
    reader = _Reader(text)
    shape = _sizes(reader.sum(), text)
    stride = _strides(reader.sum(), text) if reader.takes(":") else None
    reader.end()
    return Layout(shape, stride)


def parse_composed(text: str) -> ComposedLayout:
    """`Sw<3,4,3> o 0 o (8,64):(64,1)` as a composed layout. Raises LayoutError."""
    found = _COMPOSED.fullmatch(text)
    if found is None:
        raise _wrong(text, "`Sw<bits,base,shift> o offset o layout` is expected")
    bits, base, shift, offset, layout = found.groups()
    reader = _Reader(offset)
    value = reader.sum()
    reader.end()
    if not isinstance(value, Expr):
        raise _wrong(text, "the offset is no number")
    return ComposedLayout(Swizzle(int(bits), int(base), int(shift)), tidy(value), parse_layout(layout))


def parse_slice(text: str) -> Slice:
    """`((_,1),2)` as a coordinate with open parts. Raises LayoutError."""
    reader = _Reader(text)
    found = _slice(reader.sum(), text)
    reader.end()
    return found


def _wrong(text: str, why: str) -> LayoutError:
    return LayoutError("text", f"`{text}`: {why}")


def _sizes(tree: _Tree, text: str) -> IntoIntTree:
    if isinstance(tree, tuple):
        return tuple(_sizes(part, text) for part in tree)
    if isinstance(tree, Expr):
        return tree
    raise _wrong(text, f"`{tree}` is no size")


def _strides(tree: _Tree, text: str) -> IntoStrideTree:
    if isinstance(tree, tuple):
        return tuple(_strides(part, text) for part in tree)
    if isinstance(tree, All):
        raise _wrong(text, "`_` is no stride")
    return tree


def _slice(tree: _Tree, text: str) -> Slice:
    if isinstance(tree, tuple):
        return tuple(_slice(part, text) for part in tree)
    if isinstance(tree, Basis):
        raise _wrong(text, f"`{tree}` is no coordinate")
    return tree


class _Reader:
    """Tokens and a recursive-descent parser, one method for each rule of the grammar above."""

    __slots__ = ("_at", "_text", "_tokens")

    def __init__(self, text: str):
        self._text, self._at = text, 0
        self._tokens: list[str] = []
        place = 0
        rest = text.rstrip()
        while place < len(rest):
            found = _TOKEN.match(rest, place)
            if found is None:
                raise _wrong(text, f"`{rest[place:].strip()[0]}` is not expected")
            self._tokens.append(found[1])
            place = found.end()

    @property
    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def takes(self, token: str) -> bool:
        """Consumes `token` if it is next; whether it was."""
        taken = self._next == token
        self._at += taken
        return taken

    def end(self) -> None:
        """Raises LayoutError where text is left."""
        if self._next:
            raise _wrong(self._text, f"`{self._next}` is not expected")

    def _need(self, token: str) -> None:
        if not self.takes(token):
            raise _wrong(self._text, f"`{token}` is expected" + (f" before `{self._next}`" if self._next else " at the end"))

    def _number(self, tree: _Tree) -> Expr:
        if isinstance(tree, Expr):
            return tree
        raise _wrong(self._text, "only numbers and sizes can be calculated with")

    def sum(self) -> _Tree:
        """A tree, or a sum."""
        found = self._term()
        while self._next in ("+", "-"):
            sign = 1 if self.takes("+") else -1
            self._at += sign < 0
            found = self._number(found) + self._number(self._term()) * sign
        return found

    def _term(self) -> _Tree:
        found = self._unary()
        while self._next in ("*", "/", "%"):
            operator = self._next
            self._at += 1
            left, right = self._number(found), self._number(self._unary())
            if operator != "*" and right.is_constant and right.constant == 0:
                raise _wrong(self._text, "division by zero")
            found = left * right if operator == "*" else left // right if operator == "/" else left % right
        return found

    def _unary(self) -> _Tree:
        if self.takes("-"):
            inner = self._unary()
            return Basis(tidy(-expr(inner.coefficient)), inner.path) if isinstance(inner, Basis) else -self._number(inner)
        found = self._atom()
        path: list[int] = []
        while self.takes("@"):
            if not self._next.isdigit():
                raise _wrong(self._text, "an entry is a number")
            path.append(int(self._next))
            self._at += 1
        return Basis(tidy(self._number(found)), tuple(reversed(path))) if path else found

    def _atom(self) -> _Tree:
        token = self._next
        self._at += 1
        if token.isdigit():
            return expr(int(token))
        if token == "_":
            return ALL
        if token[:1] == "_" and token[1:].isdecimal():
            return expr(int(token[1:]))
        if token == "(":
            return self._group()
        if token in ("min", "max", "xor") and self._next == "(":
            return self._call(token)
        if token and (token[0].isalpha() or token[0] == "_"):
            return sym(token)
        raise _wrong(self._text, f"`{token}` is not expected" if token else "it ends too early")

    def _group(self) -> _Tree:
        """A tuple, or a parenthesised expression: one entry without a comma after it."""
        parts: list[_Tree] = []
        while not self.takes(")"):
            parts.append(self.sum())
            if self.takes(")"):
                return parts[0] if len(parts) == 1 else tuple(parts)
            self._need(",")
        return tuple(parts)

    def _call(self, name: str) -> Expr:
        self._need("(")
        parts = [self._number(self.sum())]
        while self.takes(","):
            parts.append(self._number(self.sum()))
        self._need(")")
        if name != "xor":
            return minimum(*parts) if name == "min" else maximum(*parts)
        if len(parts) != 3 or not parts[2].is_constant or parts[2].constant < 0:
            raise _wrong(self._text, "xor takes a value, a mask and a number of bits")
        return xor(parts[0], parts[1], parts[2].constant)
