"""What printers write of integers is what the survey of a plan's arithmetic says: no tree more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from texpr.affine.expr import term
from texpr.affine.typed import Typed
from texpr.backends.c import index, value
from texpr.backends.cpu import entry
from texpr.driver import lower, parse
from texpr.ir.kernel.arithmetic import computed

EXAMPLES = sorted(path for path in Path("examples").rglob("*.te") if path.parent.name != "hopper")  # that needs its schedule


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Typed, bool]]:
    """Every tree that is written down from now on, and whether it is a kernel's."""
    found: list[tuple[Typed, bool]] = []

    def noticed(function: Callable[..., Typed], here: int) -> Callable[..., Typed]:
        def call(*args: object, **how: object) -> Typed:
            tree = function(*args, **how)
            found.append((tree, args[here].narrows))  # type: ignore[attr-defined]
            return tree

        return call

    for module in (index, value, entry):
        monkeypatch.setattr(module, "typed", noticed(module.typed, 1))  # type: ignore[attr-defined]
    monkeypatch.setattr(index, "place", noticed(index.place, 3))  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_printers_write_what_the_survey_says(path: Path, target: str, printed: list[tuple[Typed, bool]]) -> None:
    for function in parse(path.read_text(encoding="utf-8")).functions:
        printed.clear()
        plan = lower(function, target).plan
        surveyed = list(computed(plan))
        trees = {each.tree for each in surveyed if each.here.narrows}
        numbers = {each.tree.value for each in surveyed} | {
            term((atom,)) for bound in plan.bounds for m, _ in bound.left.terms for atom in m
        }
        assert printed
        assert not [str(tree.value) for tree, inside in printed if inside and tree not in trees]
        others = [tree.value for tree, inside in printed if not inside and tree.value not in numbers]
        assert not [str(value) for value in others if not value.is_constant]
