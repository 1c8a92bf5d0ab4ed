"""Lines of tokens, each with its indentation."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.editor.formatting.gaps import Gap
from texpr.editor.formatting.marks import CLOSERS, OPENERS, Marks
from texpr.editor.formatting.rows import Row, columns
from texpr.frontend.tokens import Tokens
from texpr.support.record import Mutable, Record, replace

WIDTH = 132
"""The columns of a line of code; comments at its end do not count."""
INDENT = 4
CLAUSES = ("where", "assume")
"""Words of promises after a function's results."""


class Line(Record):
    """Tokens `start:end` on a line of `width` columns, and the rows that show it: comments, the line, or a blank before them.

    `inside`: it starts within parentheses or an index. `clause`: it goes on with a `where` or `assume`.
    """

    start: int
    end: int
    width: int
    inside: bool
    clause: bool
    rows: tuple[Row, ...]


class _Open(Mutable):
    """An open bracket: its token, the column of what is in it, and that of what closes it."""

    at: int
    content: int
    base: int


def lay_out(tokens: Tokens, marks: Marks, between: list[Gap], width: list[int], lines: list[bool]) -> Iterator[Line]:
    """The lines of a text in which token k follows `width[k]` spaces, or starts a line where `lines[k]`."""
    state = _State(tokens, marks, between, width, lines)
    count = len(tokens.kinds) - 1
    start = 0
    while start < count:
        end = start + 1
        while end < count and not lines[end]:
            end += 1
        yield state.line(start, end)
        start = end
    yield Line(count, count, 0, False, False, state.comments(count, 0))


class _State:
    """The open brackets, and the column of a clause, at the start of a line."""

    def __init__(self, tokens: Tokens, marks: Marks, between: list[Gap], width: list[int], lines: list[bool]):
        self.tokens, self.marks, self.between, self.width, self.lines = tokens, marks, between, width, lines
        self.stack: list[_Open] = []
        self.clause: int | None = None

    def line(self, start: int, end: int) -> Line:
        """The line of tokens `start:end`, and the state after it."""
        inside = bool(self.stack) and self.tokens.kinds[self.stack[-1].at] != "{"
        clause = self.clause is not None
        indent = self._indent(start, end)
        rows = list(self.comments(start, self._beside(start, indent)))
        code = self._tokens(start, end, indent)
        after = self.between[end].comments[:1]
        trailing = after[0] if after and after[0].trailing else None
        said = (None, 0, 0) if trailing is None else (trailing.text, trailing.column, trailing.space)
        rows.append(Row(code, indent, *said, self._blank(start, bool(rows))))
        if start in self.marks.items and start and not any(row.blank for row in rows):
            rows[0] = replace(rows[0], blank=True)
        return Line(start, end, columns(code), inside, clause, tuple(rows))

    def comments(self, at: int, indent: int) -> tuple[Row, ...]:
        """The rows of the comments before token `at` that stand alone."""
        opened = at == 0 or self._opens(at - 1)
        alone = [comment for comment in self.between[at].comments if not comment.trailing]
        return tuple(
            Row("", indent, comment.text, comment.column, 0, comment.blank and not (opened and number == 0))
            for number, comment in enumerate(alone)
        )

    def _opens(self, at: int) -> bool:
        return at in self.marks.closing

    def _blank(self, at: int, commented: bool) -> bool:
        """Whether a blank line comes before the row of token `at`."""
        if not self.between[at].blank or self.tokens.kinds[at] in CLOSERS:
            return False
        return commented or (at > 0 and not self._opens(at - 1) and at in self.marks.starts)

    def _indent(self, start: int, end: int) -> int:
        """The column of a line."""
        kinds = self.tokens.kinds
        kind = kinds[start]
        if kind in CLOSERS and start not in self.marks.raw:
            count = 1
            while start + count < end and kinds[start + count] in CLOSERS:
                count += 1
            return self.stack[-count].base
        top = self.stack[-1] if self.stack else None
        base = top.content if top is not None else 0
        if top is not None and kinds[top.at] != "{":
            return base if kinds[start - 1] == "," or start - 1 == top.at else base + INDENT
        if start in self.marks.starts or kind in ("{", "else"):
            return base
        if self.clause is not None and kind not in (*CLAUSES, "#"):
            return self.clause
        return base + INDENT

    def _beside(self, start: int, indent: int) -> int:
        """The column of comments before the line of token `start`."""
        match self.tokens.kinds[start]:
            case "{":
                return indent + INDENT
            case kind if kind in CLOSERS and self.stack and start not in self.marks.raw:
                return self.stack[-1].content
            case _:
                return indent

    def _tokens(self, start: int, end: int, indent: int) -> str:
        """The code of a line; opens and closes its brackets."""
        kinds, texts = self.tokens.kinds, self.tokens.texts
        pieces = [" " * indent]
        column = indent
        for at in range(start, end):
            piece = " " * (self.width[at] if at > start else 0) + texts[at]
            pieces.append(piece)
            column = columns(piece) + (column if "\n" not in piece else 0)
            if at in self.marks.raw:
                continue
            kind = kinds[at]
            if kind in OPENERS:
                self._open(at, indent, column)
            elif kind in CLOSERS:
                self.stack.pop()
            elif kind in CLAUSES:
                self.clause = column + 1
            if kind in ("{", "#"):
                self.clause = None
        return "".join(pieces)

    def _open(self, at: int, indent: int, column: int) -> None:
        if self.tokens.kinds[at] != "{":
            self.stack.append(_Open(at, indent + INDENT if self.lines[at + 1] else column, indent))
            return
        around = self.stack[-1] if self.stack else None
        if around is None:
            base = 0
        elif self.lines[around.at + 1]:
            base = around.content
        else:
            base = around.base  # one statement that shares its lines with the block around it
        self.stack.append(_Open(at, base + INDENT, base))
