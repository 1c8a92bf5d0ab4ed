"""The table of features beside other tools: what it says was tried is there, and each cell of others has its source."""

from __future__ import annotations

import re

import pytest
from tests.frontend.corpus import ROOT
from tests.users import journey

TEXT = (ROOT / "docs" / "compared.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TEXT.splitlines() if line.startswith("|")]
FEATURES = [row for row in ROWS if row[0] not in ("feature", "---")]


def test_every_row_was_tried_or_says_no() -> None:
    assert len(FEATURES) > 30 and all(len(row) == 4 for row in ROWS)
    assert [row[0] for row in FEATURES if not row[2] and "**no**" not in row[1]] == []


def missing(text: str) -> list[str]:
    """The tests and steps that a text names and that there are not."""
    tests = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", text)
    found = [f"{path}::{name}" for path, name in tests if not (ROOT / path).exists()]
    found += [name for path, name in tests if name and f"def {name}(" not in (ROOT / path).read_text(encoding="utf-8")]
    steps = {step.__name__.rstrip("_") for step in journey.STEPS}
    named = [step for listed in re.findall(r"journey: ([`\w, ]+)", text) for step in re.findall(r"`(\w+)`", listed)]
    return found + [step for step in named if step not in steps]


def test_what_is_named_is_there() -> None:
    assert TEXT.count("journey: ") > 10
    assert missing(TEXT) == []


@pytest.mark.parametrize(
    "wrong", ["`tests/repo/nothing.py`", "`tests/repo/test_links.py::test_nothing`", "journey: `cpp`, `fly`"]
)
def test_what_is_not_there_is_found(wrong: str) -> None:
    assert missing(wrong)


def test_what_is_said_of_others_has_a_source() -> None:
    """A link in its cell, or the page of a row before."""
    sources: set[str] = set()
    for _, _, _, others in ROWS:
        tools = {name for name in TOOLS if re.search(rf"\b{name}\b", others)}
        linked = {name for name in tools if re.search(rf"\[{name}\]\(|{name}[^.]*\]\(http", others)}
        sources |= linked
        assert tools <= sources, others


TOOLS = (
    "Halide",
    "CuTe DSL",
    "Triton",
    "TileLang",
    "Compiler Explorer",
    "triton-viz",
    "rust-analyzer",
    "Optuna",
    "Hugging Face kernels",
)


def test_every_anchor_is_there() -> None:
    assert all(name in TEXT for name in TOOLS)
