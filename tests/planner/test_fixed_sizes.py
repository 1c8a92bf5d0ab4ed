"""That a build fixes sizes makes no plan worse: by the bounds of the model, at the sizes that are fixed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from bench.common.problems import LIST, Problem, problems

from texpr.affine.expr import Sym
from texpr.cli.program import read_program
from texpr.driver import Compiled, lower
from texpr.ir.program.selection import AUTO
from texpr.isa.registry import DEVICES
from texpr.model.bound import bound
from texpr.model.plan.work import launches

TARGET = "sm_90a"
NEAR = 1.02
SLOW = ("loops", "convolutions", "triangles", "fused")
SLOWEST = ("product-f8", "product-of-long")
RUNNING = ("cumsum-rows", "cumsum-exclusive", "cumsum-reverse", "cumprod", "cummax")
KNOWN: Mapping[str, float] = {
    "softmax-middle": 1.24, "mean-pool-tokens": 1.04, "batchnorm-nhwc": 1.04, "window-scores": 1.25,
    **dict.fromkeys(RUNNING, 1.2), "cumsum-long-rows": 1.28,
}  # fmt: skip
"""Plans that are worse at fixed sizes, and by how much at most: a sum down columns is split over blocks where sizes say that
there are few of them, and the launch more takes longer than that saves. Of 49 × 49 scores the tile for these sizes is worse
than that for all; why is not known. Of running values neither plan is worse: of tiles at the end of open rows, which are not
whole, the bound counts no reads."""

LISTED = problems(LIST.read_text(encoding="utf-8"))


def bounds(problem: Problem) -> tuple[float, float]:
    """Microseconds of a plan for all sizes, and of one for these."""
    program, sizes = read_program(problem.file, dict(problem.sizes))
    function = program[problem.function]
    return _us(lower(function, TARGET, {}, schedule=AUTO), sizes), _us(lower(function, TARGET, sizes, schedule=AUTO), sizes)


def _us(compiled: Compiled, sizes: Mapping[str, int]) -> float:
    values = {Sym(name): size for name, size in sizes.items()}
    found = launches(compiled.plan, values, compiled.target)
    return sum(bound(each.work, each.shape, compiled.target, DEVICES[TARGET]).us * each.times for each in found)


def is_slow(problem: Problem) -> bool:
    return problem.kind in SLOW or problem.name in SLOWEST


def check(problem: Problem) -> None:
    open_sizes, fixed = bounds(problem)
    most = KNOWN.get(problem.name, NEAR)
    assert fixed <= most * open_sizes
    if problem.name in KNOWN:
        assert fixed > NEAR * open_sizes, "it is no longer worse: take it off the list"


@pytest.mark.parametrize("problem", [each for each in LISTED if not is_slow(each)], ids=lambda each: each.name)
def test_a_plan_for_fixed_sizes_is_no_worse(problem: Problem) -> None:
    check(problem)


@pytest.mark.long
@pytest.mark.parametrize("problem", [each for each in LISTED if is_slow(each)], ids=lambda each: each.name)
def test_a_tiled_plan_for_fixed_sizes_is_no_worse(problem: Problem) -> None:
    check(problem)
