"""What could be written at a place: words, directives, and the names in scope."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from texpr.editor import words
from texpr.editor.answers.hover import declaration
from texpr.editor.document import Document, Place
from texpr.editor.names import Symbol
from texpr.frontend.parser.words import CLAUSES, ITEMS, STATEMENTS
from texpr.support.record import Record

_VALUES = ("and", "or", "not", "true", "false", "inf", "nan")
_AFTER = {"->", "=", ":", ",", "(", "[", "|"}


class Choice(Record):
    """A word that could stand at a place: its kind, what it is in one line, and its documentation in Markdown."""

    word: str
    kind: str
    detail: str = ""
    text: str = ""


class Choices(Record):
    """The place of the word that is being written, and what could be there."""

    place: Place
    found: tuple[Choice, ...]


def completion(document: Document, offset: int) -> Choices:
    """What could stand at an offset, whatever has been written of it."""
    start = offset
    while start > 0 and (document.text[start - 1].isalnum() or document.text[start - 1] in "_'"):
        start -= 1
    if _in_comment_or_string(document, start):
        return Choices((start, offset), ())
    where = _Where(document, start)
    once = {choice.word: choice for choice in _choices(document, offset, where)}
    return Choices((start, offset), tuple(once.values()))


def _in_comment_or_string(document: Document, offset: int) -> bool:
    tokens = document.tokens
    line = document.text.rfind("\n", 0, offset) + 1
    last = line
    for at, start in enumerate(tokens.starts):
        if tokens.ends[at] <= line:
            continue
        if start >= offset:
            break
        if tokens.kinds[at] == "string" and offset < tokens.ends[at]:
            return True
        last = tokens.ends[at]
    return "--" in document.text[last:offset]


class _Where:
    """The brackets around an offset, and what stands before it. `item`: the keyword of the item around it."""

    def __init__(self, document: Document, offset: int):
        tokens = document.tokens
        self.item = ""
        self.last = ""
        self.before = ""
        stack: list[str] = []
        for at, kind in enumerate(tokens.kinds):
            if tokens.starts[at] >= offset or kind == "end":
                break
            if not any(bracket == "{" for bracket in stack) and kind in ITEMS:
                self.item = kind
                stack.clear()
            if kind in ("(", "[", "{"):
                stack.append(kind)
            elif kind in (")", "]", "}") and stack:
                stack.pop()
                if kind == "}" and not stack:
                    self.item = ""
            self.before, self.last = self.last, tokens.texts[at]
        self.braces = stack.count("{")
        self.bracket = stack[-1] if stack else ""


def _choices(document: Document, offset: int, where: _Where) -> Iterator[Choice]:
    if where.last == "#":
        yield from _words(words.PRAGMAS, "pragma")
    elif not where.item:
        yield from _words({word: words.KEYWORDS[word] for word in ITEMS}, "keyword")
    elif where.item == "schedule":
        yield from _in_schedule(document, offset, where)
    elif where.last == ":" and where.bracket != "[":
        yield from (Choice(name, "type") for name in words.TYPES)
    else:
        yield from _in_function(document, offset, where)


def _in_schedule(document: Document, offset: int, where: _Where) -> Iterator[Choice]:
    if not where.braces:
        targets = (Choice(name, "target") for name in words.TARGETS)
        yield from targets if where.last == "for" else _words({"for": words.CONTEXTUAL["for"]}, "keyword")
        if where.last == "schedule" and document.parsed is not None:
            symbols = document.parsed.names.symbols
            yield from (_symbol(document, symbol) for symbol in symbols if symbol.kind == "function")
    elif where.bracket == "{" and where.last != "->":
        yield from (Choice(name, "directive", form, text) for name, (form, text) in words.directives().items())
    elif where.last != "->" and document.parsed is not None:
        owner = _scheduled(document, offset)
        yield from (_symbol(document, each) for each in document.visible(offset) if each.kind == "result")
        inside = (
            each for each in document.parsed.names.symbols if each.owner == owner and each.kind not in ("value", "result")
        )
        yield from (_symbol(document, symbol) for symbol in inside)


def _scheduled(document: Document, offset: int) -> str:
    """The function of the schedule around an offset."""
    tokens = document.tokens
    found = ""
    for at, kind in enumerate(tokens.kinds):
        if tokens.starts[at] >= offset:
            break
        if kind == "schedule":
            found = tokens.texts[at + 1]
    return found


def _in_function(document: Document, offset: int, where: _Where) -> Iterator[Choice]:
    if not where.braces:
        yield from _words({word: words.KEYWORDS[word] for word in (*CLAUSES, "inout", "const")}, "keyword")
    elif where.bracket == "{" and where.last not in _AFTER:
        yield from _words({word: words.KEYWORDS[word] for word in (*STATEMENTS, "else")}, "keyword")
    local = {word: words.CONTEXTUAL[word] for word in ("reduce", "scan", "in", "stride", "align", "injective", "monotone")}
    yield from _words(local, "keyword")
    if where.item == "instr" and where.braces == 1:
        parts = ("fragment", "asm", "effect", "rounding", "meaning")
        yield from _words({word: words.CONTEXTUAL[word] for word in parts}, "keyword")
    yield from _words({word: words.KEYWORDS[word] for word in _VALUES}, "keyword")
    yield from _words(words.FUNCTIONS, "function")
    yield from (Choice(name, "type") for name in words.TYPES)
    yield from (_symbol(document, symbol) for symbol in document.visible(offset))


def _words(known: Mapping[str, str], kind: str) -> Iterator[Choice]:
    return (Choice(word, kind, "", text) for word, text in known.items())


def _symbol(document: Document, symbol: Symbol) -> Choice:
    return Choice(symbol.name, symbol.kind, declaration(document, symbol).partition("\n")[0])
