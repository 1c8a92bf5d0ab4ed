"""The parser's position in the tokens, and its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from texpr.frontend.tokens import FOREIGN, KEYWORDS, Tokens
from texpr.frontend.tree import Ident
from texpr.support.diagnostic import Diagnostic, Edit, Note, Proposal, diagnostic
from texpr.support.span import Span

MAX_NESTING = 48
"""Blocks and brackets inside one another; keeps every later recursion far from Python's limit."""
MAX_ERRORS = 50

_WORDS = {"&&": "and", "||": "or", "!": "not"}
"""Suggestions for some operators of C."""

T = TypeVar("T")


class Refused(Exception):
    """A syntax error at the current token, already reported; caught where the parser recovers."""


class Cursor:
    """The current token (`kind`, `text`) and the diagnostics so far. `height` is that of the last expression parsed."""

    def __init__(self, tokens: Tokens):
        self.tokens = tokens
        self.diagnostics: list[Diagnostic] = []
        self.depth = 0
        self.height = 0
        self.at = 0
        self.kind = tokens.kinds[0]
        self._level = _Level(self)

    @property
    def text(self) -> str:
        """The text of the current token."""
        return self.tokens.texts[self.at]

    @property
    def span(self) -> Span:
        """The span of the current token."""
        return self.tokens.span(self.at)

    def peek(self, ahead: int = 1) -> str:
        """The kind of the token `ahead` of the current one."""
        at = self.at + ahead
        return self.tokens.kinds[at] if at < len(self.tokens.kinds) else "end"

    def peek_text(self, ahead: int = 1) -> str:
        """The text of the token `ahead` of the current one."""
        at = self.at + ahead
        return self.tokens.texts[at] if at < len(self.tokens.texts) else ""

    def starts_line(self, ahead: int = 0) -> bool:
        """Whether the token `ahead` of the current one is the first on its line."""
        return self.tokens.starts_line(self.at + ahead)

    def since(self, start: int) -> Span:
        """The span from token `start` to the last one consumed."""
        tokens = self.tokens
        return Span(tokens.source, tokens.starts[start], tokens.ends[max(self.at - 1, start)])

    def advance(self) -> int:
        """Consumes the current token and gives its number; the end is never passed."""
        at = self.at
        if self.kind != "end":
            self.at = at + 1
            self.kind = self.tokens.kinds[at + 1]
        return at

    def sees(self, *kinds: str) -> bool:
        """Whether the current token is of one of `kinds`."""
        return self.kind in kinds

    def word(self, text: str) -> bool:
        """Whether the current token is the contextual word `text`."""
        return self.kind == "name" and self.text == text

    def accept(self, kind: str) -> bool:
        """Consumes the current token if it is of `kind`."""
        if self.kind != kind:
            return False
        self.advance()
        return True

    def expect(self, kind: str, why: str, help: str | Proposal | None = None) -> int:
        """Consumes a token of `kind`, or refuses: expected `kind` `why`."""
        if self.kind == kind:
            return self.advance()
        self.expected(f"`{kind}` {why}".rstrip(), help=help)

    def expect_word(self, text: str, why: str) -> int:
        """Consumes the contextual word `text`, or refuses."""
        if self.word(text):
            return self.advance()
        self.expected(f"`{text}` {why}")

    def close(self, kind: str, start: int, what: str) -> None:
        """Consumes the bracket that closes token `start`, or refuses and shows the opening one."""
        if self.accept(kind):
            return
        if self.kind == "bad":
            self.expected(f"`{kind}`")
        opened = Note(f"`{self.tokens.texts[start]}` opened here", self.tokens.span(start))
        self.refuse("E0103", self.span, f"expected `{kind}` to close {what}, found {self.found()}", opened)

    def ident(self, what: str) -> Ident:
        """Consumes a name, or refuses: expected `what`."""
        if self.kind == "name":
            span = self.span
            return Ident(self.tokens.texts[self.advance()], span)
        if self.kind in KEYWORDS:
            message = f"`{self.text}` is a keyword and cannot be {what}"
            self.refuse("E0107", self.span, message, help="choose another name")
        self.expected(what)

    def found(self) -> str:
        """The current token in words."""
        return describe(self.kind, self.text)

    def expected(self, what: str, help: str | Proposal | None = None) -> NoReturn:
        """Refuses the current token: something else was expected."""
        if self.kind == "bad":
            self.refuse_bad()
        if self.kind == "measure":
            self.refuse("E0104", self.span, f"`{self.text}` is not a number", help="separate a number from a name by a space")
        self.refuse("E0102", self.span, f"expected {what}, found {self.found()}", help=help)

    def refuse_bad(self) -> NoReturn:
        """Refuses a character or operator that the language does not have."""
        text = self.text
        if text.startswith(("//", "/*")):
            span = Span(self.tokens.source, self.span.start, self.span.start + 2)
            message = f"`{text[:2]}` does not start a comment"
            help = Proposal("comments start with `--`; integer `/` already floors", Edit("--"))
            self.refuse("E0111", span, message, help=help)
        if text in FOREIGN:
            word = _WORDS.get(text)
            help = FOREIGN[text] if word is None else Proposal(FOREIGN[text], Edit(f" {word} "))
            self.refuse("E0110", self.span, f"there is no operator `{text}`", help=help)
        shown = text if text.isprintable() else f"U+{ord(text[0]):04X}"
        self.refuse("E0101", self.span, f"unexpected character `{shown}`")

    def report(self, code: str, span: Span, message: str, *notes: Note, help: str | Proposal | None = None) -> None:
        """Records a diagnostic and goes on."""
        self.diagnostics.append(diagnostic(code, span, message, notes, help))

    def refuse(self, code: str, span: Span, message: str, *notes: Note, help: str | Proposal | None = None) -> NoReturn:
        """Records a diagnostic and gives up the current construct."""
        self.report(code, span, message, *notes, help=help)
        raise Refused

    def nested(self) -> _Level:
        """Context manager: one level of nesting deeper; too many are refused."""
        if self.depth >= MAX_NESTING:
            self.too_deep()
        return self._level

    def too_deep(self) -> NoReturn:
        """Refuses nesting that is too deep."""
        help = "name parts of it with `let`, or move them into a `fn`"
        self.refuse("E0105", self.span, f"nested more than {MAX_NESTING} levels deep", help=help)

    def separated(self, closer: str, start: int, what: str, one: Callable[[Cursor], T]) -> tuple[T, ...]:
        """`one, one, …` up to `closer`, which is consumed; a trailing comma is allowed. `start` is the opening bracket."""
        found: list[T] = []
        while self.kind != closer:
            found.append(one(self))
            if not self.accept(","):
                break
        self.close(closer, start, what)
        return tuple(found)


class _Level:
    """A level of nesting; a single instance serves all, as the cursor has the count."""

    __slots__ = ("cursor",)

    def __init__(self, cursor: Cursor):
        self.cursor = cursor

    def __enter__(self) -> None:
        self.cursor.depth += 1

    def __exit__(self, *raised: object) -> None:
        self.cursor.depth -= 1


def describe(kind: str, text: str) -> str:
    """A token in words."""
    if kind == "end":
        return "the end of the file"
    if kind in KEYWORDS:
        return f"the keyword `{text}`"
    if kind in ("int", "float"):
        return f"the number `{text}`"
    if kind == "string":
        return "a string"
    if kind == "label":
        return f"the label `{text}`"
    return f"`{text}`"
