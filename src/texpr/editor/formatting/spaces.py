"""The spaces before each token, where it stands on a line with the one before it."""

from __future__ import annotations

from texpr.editor.formatting.marks import Marks
from texpr.frontend.tokens import Tokens

_CONTEXTUAL = ("in", "identity")
"""Words that an expression follows, which may start with a parenthesis."""


def spaces(tokens: Tokens, marks: Marks) -> list[int]:
    """The number of spaces before each token."""
    return [0, *(_before(tokens, marks, at) for at in range(1, len(tokens.kinds)))]


def _before(tokens: Tokens, marks: Marks, at: int) -> int:
    last, this = tokens.kinds[at - 1], tokens.kinds[at]
    if at in marks.raw:
        return int(at - 1 not in marks.raw or tokens.ends[at - 1] < tokens.starts[at])
    if at in marks.starts and last != "{":
        return 1 if at in marks.parts else 2
    if this in (",", ";", ")", "]", "[", ".", "..") or last in ("(", "[", "#", ".", ".."):
        return 0
    if at - 1 in marks.signs:
        return int(this == "-")  # two in a row start a comment
    if at - 1 in marks.lengths or at - 1 in marks.keys or at in marks.keys:
        return 0
    match this:
        case "(":
            return int(not _is_callee(tokens, marks, at - 1))
        case ":":
            return int(at in marks.slices)
        case "=":
            return int(at - 1 not in marks.updates)
        case "|":
            return int(at in marks.bars)
        case "}":
            return int(last != "{")
        case _:
            return int(at - 1 not in marks.bars)


def _is_callee(tokens: Tokens, marks: Marks, at: int) -> bool:
    """Whether a parenthesis after token `at` is of its arguments."""
    return tokens.kinds[at] == "name" and (at in marks.names or tokens.texts[at] not in _CONTEXTUAL)
