"""What stands at a place: a name with its declaration, or a word with its documentation."""

from __future__ import annotations

from collections.abc import Callable

from texpr.editor import words
from texpr.editor.document import Document, Place
from texpr.editor.names import Symbol
from texpr.frontend.tree import Fn, Schedule
from texpr.support.record import Record

_MOST = 300
"""Characters of a declaration that are shown."""
_FURTHER = {
    "const": "; a build fixes it",
    "size": "; it follows from the arrays given, and is at least 0",
    "registers": "; each lane has its own",
}


class Hover(Record):
    """A place, the code that declares what is there, and a text in Markdown."""

    place: Place
    code: str
    text: str

    @property
    def markdown(self) -> str:
        """Both, as Markdown."""
        code = f"```te\n{self.code}\n```\n" if self.code else ""
        return code + self.text


def hover(document: Document, offset: int) -> Hover | None:
    """What stands at an offset, if anything is known of it."""
    at = document.token_at(offset)
    if at is None:
        return None
    place = (document.tokens.starts[at], document.tokens.ends[at])
    found = document.symbol(offset)
    if found is not None:
        return Hover(found[1], declaration(document, found[0]), _of_symbol(document, found[0]))
    word = document.tokens.texts[at]
    last = document.tokens.kinds[at - 1] if at else ""
    if in_schedule(document, place[0]) and word in (known := words.directives()):
        form, text = known[word]
        return Hover(place, form, text)
    for of in (words.PRAGMAS,) if last == "#" else (words.KEYWORDS, words.CONTEXTUAL, words.FUNCTIONS):
        if word in of:
            return Hover(place, "", of[word])
    if word in words.TYPES:
        return Hover(place, "", f"`{word}`: a type of elements; `{word}(x)` converts.")
    return None


def in_schedule(document: Document, offset: int) -> bool:
    """Whether an offset is between the braces of a schedule."""
    return innermost(document, offset, lambda kind: kind == "schedule") is not None


def innermost(document: Document, offset: int, wanted: Callable[[str], bool]) -> int | None:
    """The last token before an offset of a wanted kind that starts an item, if the offset is in its braces."""
    tokens = document.tokens
    found: int | None = None
    depth = 0
    for at, kind in enumerate(tokens.kinds):
        if tokens.starts[at] >= offset:
            break
        if depth == 0 and kind in ("fn", "combine", "instr", "schedule"):
            found = at
        depth = max(depth + (kind == "{") - (kind == "}"), 0)
    return found if found is not None and depth and wanted(tokens.kinds[found]) else None


def declaration(document: Document, symbol: Symbol) -> str:
    """The declaration of a symbol as written, without what it contains."""
    parsed = document.parsed
    assert parsed is not None
    text = parsed.text[slice(*symbol.head)]
    match symbol.kind:
        case "function" | "combiner" | "instruction":
            text = text.partition("{")[0]
        case "index" | "label":
            text = text.partition("{")[0]
        case "size":
            text = f"{symbol.name}  -- of {text}"
        case _:
            pass
    text = text.strip()
    return text if len(text) <= _MOST else text[:_MOST] + " …"


def _of_symbol(document: Document, symbol: Symbol) -> str:
    owner = f" of `{symbol.owner}`" if symbol.owner else ""
    count = len(symbol.places) - 1
    lines = [f"{symbol.kind}{owner}, used {count} time{'s' * (count != 1)}{_FURTHER.get(symbol.kind, '')}"]
    parsed = document.parsed
    items = () if parsed is None else parsed.tree.items
    for item in items:
        if symbol.kind == "function" and isinstance(item, Fn) and item.name.span.start == symbol.declared[0]:
            said = comment_before(parsed.text if parsed else "", item.span.start)
            lines += [said] if said else []
        if symbol.kind == "function" and isinstance(item, Schedule) and item.function.name == symbol.name:
            name = f' "{item.name}"' if item.name is not None else ""
            lines.append(f"schedule{name}{f' for {item.target.name}' if item.target is not None else ''}")
        if isinstance(item, Schedule):
            placed = (each.span for each in item.directives if each.name.name in ("place", "stage", "inline"))
            starts = [start for start, _ in symbol.places[1:]]
            lines += (f"`{span.text}`" for span in placed if any(span.start <= start < span.end for start in starts))
    return "\n\n".join(lines)


def comment_before(text: str, offset: int) -> str:
    """The comment right above an offset, without its marks."""
    lines: list[str] = []
    for line in reversed(text[:offset].split("\n")[:-1]):
        if not line.startswith("--"):
            break
        lines.append(line.lstrip("-").strip())
    return " ".join(reversed(lines))
