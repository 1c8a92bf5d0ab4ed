"""Symbols, and an index of them by place."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from texpr.support.record import Mutable, field


class Symbol(Mutable, eq=False):
    """A name with one meaning.

    `kind`: what it names, in words. `places`: where it stands, as ranges of the text; the first declares it. `head`: the range
    of its declaration. `visible`: where the name may be used. `owner`: the item that it belongs to. `doubt`: where a word may
    mean it, or is made of it, so that it cannot be renamed.
    """

    name: str
    kind: str
    places: list[tuple[int, int]]
    head: tuple[int, int]
    visible: tuple[int, int]
    owner: str = ""
    doubt: tuple[int, int] | None = None

    @property
    def declared(self) -> tuple[int, int]:
        """Where it is declared."""
        return self.places[0]


class Names(Mutable, eq=False):
    """The symbols of a file."""

    symbols: list[Symbol] = field(default_factory=lambda: list[Symbol]())
    _starts: list[int] = field(default_factory=lambda: list[int]())
    _at: list[tuple[int, int, Symbol]] = field(default_factory=lambda: list[tuple[int, int, Symbol]]())

    def index(self) -> None:
        """Makes the index; called when every place is known."""
        for symbol in self.symbols:
            symbol.places = [symbol.places[0], *sorted(set(symbol.places) - {symbol.places[0]})]
        self._at = sorted(
            ((start, end, symbol) for symbol in self.symbols for start, end in symbol.places), key=lambda each: each[:2]
        )
        self._starts = [start for start, _, _ in self._at]

    def at(self, offset: int) -> tuple[Symbol, tuple[int, int]] | None:
        """The symbol at or right before `offset`, and its place there."""
        number = bisect_right(self._starts, offset) - 1
        if number < 0:
            return None
        start, end, symbol = self._at[number]
        return (symbol, (start, end)) if offset <= end else None

    def visible(self, offset: int) -> Iterator[Symbol]:
        """The symbols that may be used at `offset`."""
        return (symbol for symbol in self.symbols if symbol.visible[0] <= offset <= symbol.visible[1])
