"""The parser: recursive descent over items and statements, precedence climbing over expressions.

It recovers after each wrong statement or item, so one run reports several errors.
"""

from __future__ import annotations

from texpr.frontend.parser.cursor import Cursor
from texpr.frontend.parser.items import parse_items
from texpr.frontend.tokens import tokenize
from texpr.frontend.tree import Tree
from texpr.support.diagnostic import TexprError
from texpr.support.span import Source

__all__ = ["parse_text"]


def parse_text(text: str, name: str = "<text>") -> Tree:
    """The surface tree of a `.te` text. Raises `TexprError` with every syntax error; `name` is the file name in them."""
    cursor = Cursor(tokenize(Source(name, text)))
    items = parse_items(cursor)
    if cursor.diagnostics:
        raise TexprError(cursor.diagnostics)
    return Tree(items)
