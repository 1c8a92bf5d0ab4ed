"""A directive that is wrong: what it made of a right program is not shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

import texpr
from texpr.schedule.directives import resize
from texpr.support.diagnostic import CompilerBug

TEXT = """
fn double(x: i32[n]): i32[n] {
    new y: i32[n]
    par n |i| { y[i] = 2 * x[i] }
    return y
}
schedule double { resize(i, 1, -1) -> p }
"""


@pytest.mark.planted
def test_what_a_schedule_leaves_out_is_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    function = texpr.parse(TEXT).functions[0]
    monkeypatch.setattr(resize, "_require_whole", lambda *_: None)
    with pytest.raises(CompilerBug, match="each instance is done"):
        texpr.compile(function, "cpu")
    with pytest.raises(CompilerBug, match="each instance is done"):
        texpr.build(function, "sm_90a", tmp_path / "out")
    assert not (tmp_path / "out").exists()
