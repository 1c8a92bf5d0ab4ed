"""The format of a `.te` text: spaces, indentation, blank lines and long lines, with every token and comment as it was.

Whether a block stands on one line or on several, and where else a line ends, is the writer's choice. What is made is compared
with what was given, so that no fault of this room can change a program.
"""

from __future__ import annotations

from texpr.editor.formatting.breaks import settle
from texpr.editor.formatting.gaps import Gap, gaps
from texpr.editor.formatting.layout import WIDTH, lay_out
from texpr.editor.formatting.marks import mark
from texpr.editor.formatting.rows import joined
from texpr.editor.formatting.spaces import spaces
from texpr.frontend import parse_text, read
from texpr.frontend.tokens import Tokens, tokenize
from texpr.frontend.tree import Tree
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.span import Source

__all__ = ["WIDTH", "format_text"]


def format_text(text: str, name: str = "<text>") -> str:
    """`text` in the house format, with the line ends of its first line, and without a byte order mark.

    Raises TexprError with every syntax error; CompilerBug where the result is not the same program with the same comments.
    """
    end = "\r\n" if text[text.find("\n") - 1 : text.find("\n") + 1] == "\r\n" else "\n"
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    tree = _parsed(plain, name)
    tokens = tokenize(Source(name, plain))
    made = _formatted(tokens, tree)
    _compare(tokens, tree, made, name)
    return made.replace("\n", end)


def _parsed(text: str, name: str) -> Tree:
    try:
        return parse_text(text, name)
    except TexprError:
        read(text, name, {})  # raises the same errors, with the helps that were tried
        raise


def _formatted(tokens: Tokens, tree: Tree) -> str:
    marks = mark(tokens, tree)
    between = gaps(tokens)
    width = spaces(tokens, marks)
    lines = settle(tokens, marks, between, width)
    return joined(row for line in lay_out(tokens, marks, between, width, lines) for row in line.rows)


def _compare(tokens: Tokens, tree: Tree, made: str, name: str) -> None:
    """Raises CompilerBug where the text that was made has other tokens, comments or another tree."""
    again = tokenize(Source(name, made))
    if again.texts != tokens.texts:
        raise CompilerBug("the formatted text has other tokens")
    if _comments(gaps(again)) != _comments(gaps(tokens)):
        raise CompilerBug("the formatted text has other comments")
    try:
        same = parse_text(made, name) == tree
    except TexprError:
        same = False
    if not same:
        raise CompilerBug("the formatted text is another program")


def _comments(between: list[Gap]) -> list[list[str]]:
    """The comments before each token."""
    return [[comment.text for comment in gap.comments] for gap in between]
