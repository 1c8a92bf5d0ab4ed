"""No link of a page leads nowhere: files exist, and places in them are headings, or marked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for folder in (ROOT / "docs", ROOT / "examples") for path in folder.rglob("*.md")) + sorted(
    ROOT.glob("*.md")
)

_CODE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@cache
def places(page: Path) -> frozenset[str]:
    """The places of a page that a link may name, as GitHub and the site name them."""
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in _HEADING.findall(text))
    slugs = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain)
    return frozenset((*slugs, *re.findall(r'<a id="([\w-]+)">', text)))


def broken(page: Path, text: str) -> Iterator[str]:
    """The links in `text`, as a page there, that lead nowhere."""
    for link in _LINK.findall(_SPAN.sub("", _CODE.sub("", text))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, place = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (place and target.suffix == ".md" and place not in places(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(broken(page, page.read_text(encoding="utf-8"))) == []


def test_a_broken_link_is_found() -> None:
    page = ROOT / "docs" / "command.md"
    text = "[a](nothing.md) [b](verifier.md#nothing) [c](verifier.md#what-is-believed) [d](#nothing) [e](#measuring)\n"
    assert list(broken(page, text)) == ["nothing.md", "verifier.md#nothing", "#nothing"]
