"""`docs/accepted.md` says what targets accept today."""

from __future__ import annotations

import importlib.util
from pathlib import Path

FILE = Path(__file__).parents[2] / "bench" / "accepted.py"


def test_the_page_is_what_is_accepted() -> None:
    """`python bench/accepted.py` writes it anew; that a program is refused that was not before is no renewal."""
    spec = importlib.util.spec_from_file_location("accepted", FILE)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    page = made.page()
    assert page == made.PAGE.read_text(encoding="utf-8")
    assert "| E0" not in page
