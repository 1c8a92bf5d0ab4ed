"""The scanner of intermediate forms: tokens, and the operations that parsers use."""

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
"""The greatest number of digits in a number."""


def is_name(text: str) -> bool:
    """Whether `text` is a single name token."""
    match = _TOKEN.fullmatch(text)
    return match is not None and match.lastgroup == "name"


class Token(Record):
    """A token of the text. `kind`: name, number, string, mark or end."""

    kind: str
    text: str
    start: int
    end: int


class Scanner:
    """Yields tokens in order. An unexpected one raises E0581 at its position."""

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
        """Raises E0581 at the next token."""
        ended = self.next.kind == "end"
        self._fail("the text ends too early" if ended else message, self.next.start, self.next.end)

    def reject(self, message: str) -> NoReturn:
        """Raises E0581 at the last consumed token."""
        last = self._tokens[self._at - 1]
        self._fail(message, last.start, last.end)

    @property
    def next(self) -> Token:
        """The next token."""
        return self._tokens[self._at]

    @property
    def second(self) -> Token:
        """The token after the next."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def sees(self, *texts: str) -> bool:
        """Whether the next token is one of these words or marks."""
        return self.next.text in texts and self.next.kind in ("name", "mark")

    def take(self) -> Token:
        """Consumes the next token and returns it."""
        token = self.next
        if token.kind == "end":
            self.fail("")
        self._at += 1
        return token

    def accept(self, text: str) -> bool:
        """Consumes the next token if it is this word or mark; whether it was."""
        if not self.sees(text):
            return False
        self._at += 1
        return True

    def expect(self, text: str) -> None:
        """Consumes this word or mark. Raises E0581 if another token follows."""
        if not self.accept(text):
            self.fail(f"expected `{text}`, found `{self.next.text}`")

    def name(self, what: str = "a name") -> str:
        """Consumes a name."""
        if self.next.kind != "name":
            self.fail(f"expected {what}, found `{self.next.text}`")
        return self.take().text

    def integer(self) -> int:
        """Consumes an integer, perhaps negative."""
        sign = -1 if self.accept("-") else 1
        if not self.next.text.isdecimal():
            self.fail(f"expected an integer, found `{self.next.text}`")
        if len(self.next.text) > _DIGITS:
            self.fail("expected a number of fewer digits")
        return sign * int(self.take().text)

    def span(self, start: int) -> Span:
        """The span from offset `start` to the end of the last consumed token."""
        return Span(self._source, start, self._tokens[self._at - 1].end)

    def place(self, line: int | None, start: int) -> Span:
        """The span of a line in the source file, which is unknown here: that of the text, as by `span`."""
        return self.span(start)

    def text_after(self, count: int) -> str:
        """The text of the token `count` places after the next."""
        return self._tokens[min(self._at + count, len(self._tokens) - 1)].text

    @property
    def position(self) -> int:
        """The position of the scanner, for backtracking."""
        return self._at

    @position.setter
    def position(self, value: int) -> None:
        self._at = value

    def skip_block(self) -> None:
        """Skips to the brace that closes a block, after its opening brace."""
        depth = 1
        while depth:
            text = self.take().text
            depth += (text == "{") - (text == "}")
