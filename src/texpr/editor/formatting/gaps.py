"""What stands between two tokens: line ends, blank lines and comments."""

from __future__ import annotations

from texpr.frontend.tokens import Tokens
from texpr.support.record import Record


class Comment(Record):
    """A comment from its `--` on, without white space at its end.

    `trailing`: a token stands before it on its line, and `space` characters between. `blank`: a blank line stands before it.
    `column`: where it was, from 0.
    """

    text: str
    trailing: bool
    blank: bool
    column: int
    space: int


class Gap(Record):
    """What stands before a token: comments in order; whether a line ends there, and whether a blank line is the last."""

    comments: tuple[Comment, ...]
    ends_line: bool
    blank: bool

    @property
    def forced(self) -> bool:
        """Whether the token can only start a line."""
        return bool(self.comments)


_NOTHING = Gap((), False, False)
_LINE = Gap((), True, False)
_BLANK = Gap((), True, True)


def gaps(tokens: Tokens) -> list[Gap]:
    """The gap before each token, the `end` included."""
    text = tokens.source.text
    found: list[Gap] = []
    last = 1 if text.startswith("\ufeff") else 0
    for at, start in enumerate(tokens.starts):
        # The end token stands right after the last one; what follows that belongs to its gap.
        until = len(text) if tokens.kinds[at] == "end" else start
        found.append(_gap(text, last, until, first=at == 0))
        last = tokens.ends[at]
    return found


def _gap(text: str, start: int, end: int, first: bool) -> Gap:
    between = text[start:end]
    if "--" not in between:
        lines = between.count("\n")
        return _NOTHING if lines == 0 else _LINE if lines == 1 else _BLANK
    comments: list[Comment] = []
    at, empty = start, 0
    pieces = between.split("\n")
    for number, piece in enumerate(pieces):
        said = piece.find("--")
        if said >= 0:
            column = at + said - (text.rfind("\n", 0, at + said) + 1)
            trailing = number == 0 and not first
            comments.append(Comment(piece[said:].rstrip(), trailing, empty > 0 and bool(number), column, said))
            empty = 0
        elif 0 < number < len(pieces) - 1:
            empty += 1
        at += len(piece) + 1
    return Gap(tuple(comments), True, empty > 0)
