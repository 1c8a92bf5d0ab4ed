"""A text that is being written: its tree and names, or those of the last state that could be parsed."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.editor.names import Names, Symbol, names_of
from texpr.editor.positions import Moved, Positions
from texpr.frontend import parse_text
from texpr.frontend.tokens import Tokens, tokenize
from texpr.frontend.tree import Tree
from texpr.support.diagnostic import TexprError
from texpr.support.record import Record
from texpr.support.span import Source

Place = tuple[int, int]


class Parsed(Record, eq=False):
    """A text without errors of syntax."""

    text: str
    tree: Tree
    names: Names


class Document:
    """A text by its address, in one of its versions. Nothing is read from a disk."""

    def __init__(self, uri: str, version: int | None, text: str, before: Document | None = None, encoding: str = "utf-16"):
        self.uri, self.version, self.text = uri, version, text
        self.positions = Positions(text, encoding)
        self._parsed: Parsed | None = None if before is None else before.parsed
        self._tried = False
        self._moved: Moved | None = None
        self._tokens: Tokens | None = None

    @property
    def tokens(self) -> Tokens:
        """The tokens of the text."""
        if self._tokens is None:
            self._tokens = tokenize(Source(self.uri, self.text))
        return self._tokens

    @property
    def parsed(self) -> Parsed | None:
        """The text as parsed; where it has errors of syntax, the last one that had none; None if there was none."""
        if not self._tried:
            self._tried = True
            try:
                tree = parse_text(self.text, self.uri)
                self._parsed = Parsed(self.text, tree, names_of(tree))
            except TexprError:
                pass
            if self._parsed is not None and self._parsed.text != self.text:
                self._moved = Moved(self._parsed.text, self.text)
        return self._parsed

    @property
    def is_current(self) -> bool:
        """Whether the text itself could be parsed."""
        return self.parsed is not None and self._moved is None

    def here(self, place: Place) -> Place | None:
        """Where a place of the parsed text is in this one; None where it was changed."""
        if self.parsed is None or self._moved is None:
            return place
        start, end = (self._moved.forth(offset) for offset in place)
        return None if start is None or end is None or end < start else (start, end)

    def back(self, offset: int) -> int | None:
        """Where an offset of this text is in the parsed one."""
        return offset if self.parsed is None or self._moved is None else self._moved.back(offset)

    def symbol(self, offset: int) -> tuple[Symbol, Place] | None:
        """The symbol at an offset, and its place here."""
        old = self.back(offset)
        found = None if self.parsed is None or old is None else self.parsed.names.at(old)
        place = None if found is None else self.here(found[1])
        return None if found is None or place is None or self.text[slice(*place)] != found[0].name else (found[0], place)

    def places(self, symbol: Symbol) -> Iterator[Place]:
        """Where a symbol stands here, its declaration first."""
        return (place for old in symbol.places if (place := self.here(old)) is not None)

    def visible(self, offset: int) -> Iterator[Symbol]:
        """The symbols that may be used at an offset, each name once."""
        old = self.back(offset)
        if self.parsed is not None:
            old = offset if old is None else old
            yield from {symbol.name: symbol for symbol in self.parsed.names.visible(old)}.values()

    def token_at(self, offset: int) -> int | None:
        """The token at or right before an offset; None in white space and comments."""
        tokens = self.tokens
        low, high = 0, len(tokens.starts) - 1
        while low < high:
            middle = (low + high) // 2
            if tokens.ends[middle] < offset:
                low = middle + 1
            else:
                high = middle
        fits = [at for at in (low + 1, low) if at < len(tokens.kinds) - 1 and tokens.starts[at] <= offset <= tokens.ends[at]]
        words = [at for at in fits if self.text[tokens.starts[at]].isidentifier()]
        return (words or fits or [None])[0]
