"""What tests keep between runs is bounded."""

from __future__ import annotations

import os
from pathlib import Path

from tests.conftest import bound


def test_the_oldest_go_first(tmp_path: Path) -> None:
    for at in range(4):
        path = tmp_path / f"folder{at % 2}" / f"{at}.so"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 10)
        os.utime(path, (at, at))
    bound(tmp_path, 25)
    assert sorted(path.name for path in tmp_path.rglob("*.so")) == ["2.so", "3.so"]
    bound(tmp_path / "nowhere", 25)
