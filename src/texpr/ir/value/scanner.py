"""Tokens of the text of an intermediate form, and the small steps that its parser takes."""

from __future__ import annotations

import re
from typing import ClassVar, NoReturn

from texpr.support.diagnostic import error
from texpr.support.record import Record
from texpr.support.span import Source, Span

_TOKEN = re.compile(
    r"""
      (?P<space>  (?: \s+ | --[^\n]* )+ )
    | (?P<name>   [^\W\d][\w']* )
    | (?P<number> \d+ (?: \.\d+ )? (?: [eE][+-]?\d+ )? )
    | (?P<string> "(?: [^"\\\n] | \\. )*" )
    | (?P<mark>   \.\. | [=!<>]= | [][(){}<>=+*/%,:;.^-] )
    """,
    re.VERBOSE,
)

_DIGITS = 1000
"""The most digits of a number."""


def is_name(text: str) -> bool:
    """Whether `text` is one name, as a token is."""
    match = _TOKEN.fullmatch(text)
    return match is not None and match.lastgroup == "name"


class Token(Record):
    """A word of the text. `kind`: name, number, string, mark or end."""

    kind: str
    text: str
    start: int
    end: int


class Scanner:
    """Reads tokens one after the other. What does not fit is an error E0581 at its place."""

    pattern: ClassVar[re.Pattern[str]] = _TOKEN

    def __init__(self, text: str, name: str):
        self._source = Source(name, text)
        self._tokens = list(self._tokenize(text))
        self._at = 0

    def _tokenize(self, text: str) -> list[Token]:
        found: list[Token] = []
        at = 0
        while at < len(text):
            match = self.pattern.match(text, at)
            if match is None:
                self._fail(f"no token starts with `{text[at]}`", at, at + 1)
            if match.lastgroup != "space":
                found.append(Token(str(match.lastgroup), match.group(), at, match.end()))
            at = match.end()
        return [*found, Token("end", "", at, at)]

    def _fail(self, message: str, start: int, end: int) -> NoReturn:
        raise error("E0581", Span(self._source, start, end), message)

    def fail(self, message: str) -> NoReturn:
        """An error at the next token."""
        ended = self.next.kind == "end"
        self._fail("the text ends too early" if ended else message, self.next.start, self.next.end)

    def reject(self, message: str) -> NoReturn:
        """An error at the token that was read last."""
        last = self._tokens[self._at - 1]
        self._fail(message, last.start, last.end)

    @property
    def next(self) -> Token:
        """The token that comes next."""
        return self._tokens[self._at]

    @property
    def second(self) -> Token:
        """The token after the next."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def sees(self, *texts: str) -> bool:
        """Whether the next token is one of these words or marks."""
        return self.next.text in texts and self.next.kind in ("name", "mark")

    def take(self) -> Token:
        """The next token, consumed."""
        token = self.next
        if token.kind == "end":
            self.fail("")
        self._at += 1
        return token

    def accept(self, text: str) -> bool:
        """Consumes the next token if it is this word or mark."""
        if not self.sees(text):
            return False
        self._at += 1
        return True

    def expect(self, text: str) -> None:
        """Consumes this word or mark."""
        if not self.accept(text):
            self.fail(f"expected `{text}`, found `{self.next.text}`")

    def name(self, what: str = "a name") -> str:
        """A name."""
        if self.next.kind != "name":
            self.fail(f"expected {what}, found `{self.next.text}`")
        return self.take().text

    def integer(self) -> int:
        """An integer, perhaps negative."""
        sign = -1 if self.accept("-") else 1
        if not self.next.text.isdecimal():
            self.fail(f"expected an integer, found `{self.next.text}`")
        if len(self.next.text) > _DIGITS:
            self.fail("expected a number of fewer digits")
        return sign * int(self.take().text)

    def span(self, start: int) -> Span:
        """From offset `start` to the end of what was read last."""
        return Span(self._source, start, self._tokens[self._at - 1].end)

    def place(self, line: int | None, start: int) -> Span:
        """The place that a line of the text's origin is, which nobody knows here: as `span`."""
        return self.span(start)

    def text_after(self, count: int) -> str:
        """The text of the token `count` places after the next."""
        return self._tokens[min(self._at + count, len(self._tokens) - 1)].text

    @property
    def position(self) -> int:
        """A place to come back to."""
        return self._at

    @position.setter
    def position(self, value: int) -> None:
        self._at = value

    def skip_block(self) -> None:
        """Passes over everything up to the brace that closes a block whose opening brace is read."""
        depth = 1
        while depth:
            text = self.take().text
            depth += (text == "{") - (text == "}")
