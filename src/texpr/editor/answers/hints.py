"""Hints at declarations: where what is declared lives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from texpr.editor.document import Document
from texpr.editor.names import Symbol
from texpr.support.record import Record

Placed: TypeAlias = Mapping[str, Sequence[tuple[str, str, str]]]
"""Of each function its buffers: their names, where they are, and why."""

DECLARED = ("local", "registers")
"""The kinds of symbols that are placed."""


class Hint(Record):
    """What is shown behind an offset, and why it is so."""

    at: int
    label: str
    reason: str


def hints(document: Document, placed: Placed) -> Iterator[Hint]:
    """A hint for each buffer that a text declares and the compiler places."""
    symbols = () if document.parsed is None else document.parsed.names.symbols
    for symbol in symbols:
        found = list(placements(symbol, placed)) if symbol.kind in DECLARED else []
        here = document.here(symbol.head) if found else None
        if here is not None:
            spaces = dict.fromkeys(space for space, _ in found)
            yield Hint(here[1], f"in {', '.join(spaces)}", "\n\n".join(dict.fromkeys(reason for _, reason in found)))


def placements(symbol: Symbol, placed: Placed) -> Iterator[tuple[str, str]]:
    """Where a symbol is, and why: several, where several functions have a copy of it, or kernels place it each."""
    return ((space, reason) for name, space, reason in placed.get(symbol.owner, ()) if name.partition("'")[0] == symbol.name)
