"""A page that is a tour, compared with what happens in a folder of its own; or renewed, with `--update-golden`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.repo.tour import toured, untimed


@pytest.fixture
def tour(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    golden: Callable[[Path, str], None],
    request: pytest.FixtureRequest,
) -> Callable[[Path], None]:
    """`tour(page)`: the commands of a page say what it shows, but for times."""

    def compare(page: Path) -> None:
        monkeypatch.chdir(tmp_path)
        text, renewed = page.read_text(encoding="utf-8"), toured(page, capfd)
        if untimed(renewed) != untimed(text) or request.config.getoption("--update-golden"):
            golden(page, renewed)

    return compare
