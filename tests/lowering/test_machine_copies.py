"""The oracle of plans on kernels written by hand with vectors and asynchronous copies, right ones and with planted bugs."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from tests.backends.transfers import FLIP, STAGES, Case, moved, stages
from tests.lowering import machine
from tests.lowering.mutants import mutants

from texpr.frontend import parse
from texpr.ir import kernel as k
from texpr.ir.value.types import F32
from texpr.support.record import replace

HEADS = {
    FLIP: "fn flip(x: f32[m, 64]): f32[64, m] { new z: f32[64, m] par 64 |i| { par m |j| { z[i, j] = x[j, i] } } return z }",
    STAGES: "fn stages(x: f32[c, 256]): f32[256] { new z: f32[256] par 256 |i| { z[i] = 0.0 } return z }",
}
COPYING = moved(F32, 4, True)
HEADS[COPYING.text] = "fn f(x: f32[4 * n]): f32[4 * n] { new z: f32[4 * n] par 4 * n |i| { z[i] = x[i] } return z }"


def execute(case: Case, plan: k.Plan, order: int) -> bool:
    """Whether the result is NumPy's."""
    function = replace(parse(HEADS[case.text], "f.te").functions[0], params=plan.params, sizes=plan.sizes)
    args = case.args()
    found = machine.run(function, plan, {"x": args[0]}, {plan.sizes[0].name: args[2]}, order)
    return np.array_equal(found["z"], case.expected(args))


FLIPPED = Case(FLIP, 1, 64, lambda: [np.arange(1024, dtype=np.float32).reshape(16, 64), None, 16], lambda args: args[0].T)
CASES = {"flip": FLIPPED, "stages": stages(3), "copying": COPYING}


@pytest.mark.parametrize("name", CASES)
def test_right(name: str) -> None:
    assert all(execute(CASES[name], CASES[name].plan, order) for order in range(3))


def test_planted_bugs_are_found() -> None:
    """Each dropped barrier, wait and commit, and each wait for too few groups: a fault or another result."""
    tried: list[str] = []
    for case in (stages(3), COPYING):
        plan = case.plan
        for mutant in mutants(next(k.kernels(plan.steps))):
            if mutant.kind in ("barrier", "wait", "commit"):
                tried.append(mutant.kind)
                with suppress(machine.Fault):
                    assert not execute(case, replace(plan, steps=(k.Launch(mutant.kernel),)), 1), mutant.what
    assert [tried.count(kind) for kind in ("barrier", "wait", "commit")] == [3, 6, 3]
