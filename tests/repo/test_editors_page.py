"""The page on editors has the words that the server explains, and what it says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from texpr.editor import words
from texpr.frontend.tokens import KEYWORDS

PAGE = Path(__file__).parents[2] / "docs" / "editors.md"
BEGIN = "## The words\n"


def page(text: str) -> str:
    """The page, with its tables of words as they are now."""
    before, found, _ = text.partition(BEGIN)
    assert found
    return before + BEGIN + "".join(tables())


def tables() -> Iterator[str]:
    for title, known in (
        ("Keywords, which cannot be names:", words.KEYWORDS),
        ("Words that mean something in their place, and are names elsewhere:", words.CONTEXTUAL),
        ("Pragmas:", words.PRAGMAS),
    ):
        yield f"\n{title}\n\n| word | what it means |\n|---|---|\n"
        yield from rows(known)


def rows(known: Mapping[str, str]) -> Iterator[str]:
    for word, text in known.items():
        shown = text.replace("|", "\\|")
        yield f"| `{word}` | {shown} |\n"


def test_page(golden: Callable[[Path, str], None]) -> None:
    golden(PAGE, page(PAGE.read_text(encoding="utf-8")))


def test_every_keyword_is_explained() -> None:
    assert words.KEYWORDS.keys() == KEYWORDS
    assert not words.CONTEXTUAL.keys() & KEYWORDS


def test_every_directive_is_explained() -> None:
    for name, (form, text) in words.directives().items():
        assert form.startswith(f"{name}(")
        assert text.startswith(f"`{name}(")
