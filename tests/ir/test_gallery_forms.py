"""The forms of the gallery's programs: well formed, and the same after print and parse."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from texpr import driver
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.verify import verify as verify_plan
from texpr.ir.program import Function
from texpr.ir.program.verify import verify_function
from texpr.ir.value.structure import same

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.te"))


def checked(stage: object) -> None:
    match stage:
        case Function():
            verify_function(stage)
        case k.Plan():
            verify_plan(stage)
        case _:
            pass


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_forms_of_the_gallery(path: Path, target: str) -> None:
    for function in driver.load(path).functions:
        compiled = driver.lower(function, target, after=lambda name, stage: checked(stage))
        verify_plan(compiled.plan, compiled.target)
        again = parse_plan(plan_text(compiled.plan))
        assert same(again, compiled.plan)
        verify_plan(again, compiled.target)
        kinds = Counter(type(stmt).__name__ for kernel in k.kernels(again.steps) for stmt in k.walk(kernel.body))
        assert kinds["Store"] + kinds["Atomic"] > 0
