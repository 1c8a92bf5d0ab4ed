"""How far an operation of kernels reaches: files that name it. The page on architecture says the same numbers."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import texpr
from texpr.ir.ops import OPERATIONS

SOURCES = Path(texpr.__file__).parent
LISTS = ("ir/kernel/__init__.py",)
"""Files that name operations to pass their names on, and know nothing of any."""

MOST = 4
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


@cache
def texts() -> dict[str, str]:
    """The files of the product."""
    return {path.relative_to(SOURCES).as_posix(): path.read_text(encoding="utf-8") for path in sorted(SOURCES.rglob("*.py"))}


def naming(name: str) -> list[str]:
    """The files of the product that name an operation, its twin for the emulator not counted."""
    imported = rf"^from texpr\.ir\.[^\n]* import [^\n]*\b{name}\b|^    {name},$"
    said = re.compile(rf"\bk\.{name}\b|{imported}|^class {name}\(", re.MULTILINE)
    return [path for path, text in texts().items() if path not in LISTS and name in text and said.search(text)]


@cache
def counts() -> dict[str, int]:
    return {kind.__name__: len(naming(kind.__name__)) for kind in OPERATIONS}


def test_an_operation_is_named_by_few_files() -> None:
    many = {name: naming(name) for name, count in counts().items() if count > MOST}
    assert not many, many


def test_the_page_says_how_many() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name: int(count) for name, count in rows} == counts()
