"""The pages on theory: their examples run, they state every theorem by its name in the code, and the tests they name exist."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from texpr.domain import DomainGraph
from texpr.domain.transforms.swizzle import Shift, Xor

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "theory").glob("*.md"))


def theorems() -> set[str]:
    """Every name that an implication of a transform, or a verdict on two schedules, may have."""
    graph = DomainGraph.of(("x", 4), ("y", 8)).resize("x", 1, 1).merge("x_r", "y").split("x_r_y", 5)
    graph = graph.swizzle("x_r_y_o", "x_r_y_i", Shift(), ("a", "b")).swizzle("a", "b", Xor(0), ("c", "d"))
    said = {each.theorem for transform in graph.transforms for each in transform.implications()}
    rules = (ROOT / "src" / "texpr" / "domain" / "equivalence" / "by_rule.py").read_text(encoding="utf-8")
    return said | set(re.findall(r'return "([A-Z][^"]+)"', rules))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page: Path) -> None:
    done = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert done.failed == 0


def test_every_theorem_of_the_code_is_stated() -> None:
    stated = {
        re.sub(r"\s+", " ", name).rstrip(".")
        for page in PAGES
        for name in re.findall(r"\*\*([^*]+)\*\*", page.read_text("utf-8"))
    }
    names = theorems()
    assert len(names) >= 18
    assert names <= stated


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_named_tests_and_pages_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`(tests/[\w/]+\.py)`", text):
        assert (ROOT / name).is_file(), name
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert (page.parent / link).exists(), link
