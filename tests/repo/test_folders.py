"""Folders of the package: small enough to be read whole, and each says what comes in and what goes out."""

from __future__ import annotations

import ast
from pathlib import Path

import texpr

MOST = 15
PACKAGE = Path(texpr.__file__).parent
RECORDS = ("schedule/directives", "ir/ops", "domain/transforms", "isa/targets", "planner/strategies", "mapping/reductions/ways")
"""Folders of one record a file, which may grow."""


def folders() -> list[Path]:
    return sorted({path.parent for path in PACKAGE.rglob("*.py")})


def test_no_folder_is_too_large() -> None:
    modules = {path: [each for each in path.glob("*.py") if each.name != "__init__.py"] for path in folders()}
    named = {str(path.relative_to(PACKAGE)): len(found) for path, found in modules.items()}
    assert {name: count for name, count in named.items() if count > MOST and name not in RECORDS} == {}


def test_each_says_what_it_is() -> None:
    texts = {path: (path / "__init__.py").read_text(encoding="utf-8") for path in folders()}
    assert [path for path, text in texts.items() if not ast.get_docstring(ast.parse(text))] == []
