"""Kernels with products of a warpgroup, altered at random: what is proved nevertheless gives the right numbers."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.instr.test_sound import altered
from tests.instr.warpgroup.test_warpgroup import compiled
from tests.instr.warpgroup.texts import CASES
from tests.lowering.emulated import run_plan

from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.verify import verify
from texpr.ir.proof import Verdict
from texpr.proof.plan import question
from texpr.proof.search import certified
from texpr.support.diagnostic import CompilerBug, TexprError

TRIED = 15


@pytest.mark.planted
@pytest.mark.parametrize("name", ["one tile", "ring", "written", "scaled", "groups", "b by columns", "units by threads"])
def test_what_is_proved_is_right(name: str) -> None:
    made, random, proved = compiled(name), Random(name), 0
    text, (arguments, wanted) = plan_text(made.plan), CASES[name].arguments((1, 1, 4 if name == "ring" else 2))
    for _ in range(TRIED):
        other = altered(text, random)
        try:
            plan = None if other is None else parse_plan(other)
            if plan is not None:
                verify(plan)
        except (TexprError, CompilerBug):
            continue
        if plan is None:
            continue
        proof = certified(question(made.function, plan), plan).proof
        if any(True for verdict in (Verdict.REFUSED, Verdict.UNDECIDED) for _ in proof.of(verdict)):
            continue
        proved += 1
        for seed in (None, 1):
            found = run_plan(made.function, plan, arguments, seed=seed)
            assert not found.reports, other
            np.testing.assert_array_equal(found.arrays["C"], wanted, other)
    assert proved < TRIED
