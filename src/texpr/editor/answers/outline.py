"""The parts of a text: its items with what they declare, and what can be folded."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.editor.document import Document, Place
from texpr.frontend.tree import Combine, Fn, Instr, Item, Schedule
from texpr.support.record import Record


class Part(Record):
    """A part of the text, with its name, its kind, and the parts in it."""

    name: str
    kind: str
    detail: str
    whole: Place
    named: Place
    parts: tuple[Part, ...] = ()


class Fold(Record):
    """Lines that can be folded: the offsets of their first and last character."""

    start: int
    end: int
    is_comment: bool


def outline(document: Document) -> Iterator[Part]:
    """The items of a text and, of each, what it declares."""
    parsed = document.parsed
    for item in () if parsed is None else parsed.tree.items:
        whole = document.here((item.span.start, item.span.end))
        name = item.function if isinstance(item, Schedule) else item.name
        named = document.here((name.span.start, name.span.end))
        if whole is not None and named is not None:
            yield Part(_name(item), _kind(item), _detail(item), whole, named, tuple(_within(document, item)))


def _name(item: Item) -> str:
    if isinstance(item, Schedule):
        return f"{item.function.name} “{item.name}”" if item.name is not None else item.function.name
    return item.name.name


def _kind(item: Item) -> str:
    match item:
        case Fn():
            return "function"
        case Combine():
            return "combiner"
        case Instr():
            return "instruction"
        case Schedule():
            return "schedule"


def _detail(item: Item) -> str:
    if isinstance(item, Schedule):
        return "schedule" + (f" for {item.target.name}" if item.target is not None else "")
    return _kind(item) if not isinstance(item, Fn) else ", ".join(result.span.text for result in item.results)


def _within(document: Document, item: Item) -> Iterator[Part]:
    """What is declared in an item, loops aside."""
    parsed = document.parsed
    symbols = () if parsed is None else parsed.names.symbols
    for symbol in symbols:
        start, end = symbol.declared
        inside = item.span.start <= start and end <= item.span.end
        if inside and symbol.kind in ("parameter", "const", "local", "registers", "value", "label", "result"):
            whole, named = document.here(symbol.head), document.here(symbol.declared)
            if whole is not None and named is not None:
                yield Part(symbol.name, symbol.kind, symbol.kind, whole, named)


def folds(document: Document) -> Iterator[Fold]:
    """Blocks and brackets of several lines, and comments of several lines."""
    tokens, text = document.tokens, document.text
    stack: list[int] = []
    last = 0
    for at, kind in enumerate(tokens.kinds):
        yield from _comments(text, last, len(text) if kind == "end" else tokens.starts[at])
        last = tokens.ends[at]
        if kind in ("(", "[", "{"):
            stack.append(tokens.ends[at])
        elif kind in (")", "]", "}") and stack:
            start = stack.pop()
            if "\n" in text[start : tokens.starts[at]]:
                yield Fold(start, tokens.starts[at], False)


def _comments(text: str, start: int, end: int) -> Iterator[Fold]:
    """The runs of lines that are comments alone, between two tokens."""
    if text.count("--", start, end) < 2:
        return
    at = start
    run: tuple[int, int] | None = None
    for number, line in enumerate(text[start:end].split("\n")):
        alone = line.lstrip().startswith("--") and (number > 0 or start == 0)
        if alone:
            run = (at if run is None else run[0], at + len(line.rstrip()))
        if run is not None and (not alone or at + len(line) >= end):
            if "\n" in text[slice(*run)]:
                yield Fold(*run, True)
            run = None
        at += len(line) + 1
