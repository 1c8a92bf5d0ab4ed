"""The tutorial and the how-to pages: every program is run, and every command says what the page shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.repo.tour import ROOT

PAGES = sorted(path for folder in ("tutorial", "howto") for path in (ROOT / "docs" / folder).glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_a_page_says_what_happens(page: Path, tour: Callable[[Path], None]) -> None:
    tour(page)


def test_the_tutorial_has_six_steps() -> None:
    names = [page.stem for page in PAGES if page.parent.name == "tutorial"]
    assert names == ["1-saxpy", "2-sum", "3-softmax", "4-transpose", "5-matmul", "6-attention", "README"]
