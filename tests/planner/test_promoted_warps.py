"""Sums of 8-bit floats by parts, by instructions of warps: taken, proved, emulated, and what is planted in them refused."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.machine_code import built, code_of, spills_nothing
from tests.planner.test_promoted import CASES, arguments
from tests.planted import changed, open_of, plain
from tests.proofs import undecided

from texpr.driver import Compiled, lower, parse
from texpr.interp import run
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.turns.terms import terms
from texpr.support.diagnostic import CompilerBug

AUTOMATIC = [name for name in CASES if name != "by hand"]
MOST = 128


@cache
def compiled(name: str, target: str = "sm_89") -> Compiled:
    return lower(parse(CASES[name].text)["f"], target, schedule="auto")


@pytest.mark.parametrize("name", AUTOMATIC)
def test_taken_and_proved(name: str) -> None:
    """By both targets without `wgmma` that have it; no part has more than 128 terms."""
    for target in ("sm_89", "sm_120a"):
        made = compiled(name, target)
        found = terms(made.plan)
        assert found and all(each.startswith("mma_m16n8k32_f32_f8") and count <= MOST for each, count in found.items())
        assert [*undecided(made.function, made.plan)] == []


@pytest.mark.parametrize("name", AUTOMATIC)
def test_emulated(name: str) -> None:
    made = compiled(name)
    for at in CASES[name].sizes:
        sizes = dict(zip("MNK", at, strict=True))
        given = arguments(name, sizes)
        wanted = run(parse(CASES[name].text)["f"], given, sizes)
        for seed in (None, 1):
            ran = run_plan(made.function, made.plan, given, sizes, seed=seed)
            assert not ran.reports, (sizes, ran.reports[0])
            np.testing.assert_array_equal(ran.arrays["C"], wanted["C"], str(sizes))


@pytest.mark.parametrize("name", ["one sum", "parts with scales"])
def test_machine_code(name: str) -> None:
    made = compiled(name)
    code = code_of(binary := built(made.source, "sm_89"))
    assert "QMMA.16832.F32.E4M3.E4M3" in code and "LDSM.16.M88" in code and spills_nothing(binary)


BUGS = {
    "parts that begin where the last ended": ("part_C[", " = 0:f32", " = part_C[0]"),
    "parts that begin with one": ("part_C[", " = 0:f32", " = 1:f32"),
    "not added": ("C_acc[", " + part_C[", " - part_C["),
    "sums that begin with one": ("C_acc[", " = 0.0:f32", " = 1.0:f32"),
}
"""How the line begins, and what becomes what in it."""


def planted(name: str) -> str:
    return changed(plain(compiled("one sum").plan), *BUGS[name])


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    assert open_of(compiled("one sum"), parse_plan(planted(name)))


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_the_emulator_shows_it(name: str) -> None:
    made, sizes = compiled("one sum"), {"M": 67, "N": 13, "K": 400}
    given = arguments("one sum", sizes)
    wanted = run(parse(CASES["one sum"].text)["f"], given, sizes)["C"]
    try:
        ran = run_plan(made.function, parse_plan(planted(name)), given, sizes, seed=1)
    except CompilerBug:
        return
    assert ran.reports or not np.array_equal(ran.arrays["C"], wanted)
