"""Sums of f16 that a schedule has a tensor core make in f16, in parts of 128 terms, which lanes add up in f32.

Without a schedule such a sum is made in f32 (`tests/planner/test_narrow_sums.py`). Who names an instruction that sums up in f16
gives it parts by `partial`, and keeps what they add up to wider by `widen`, as is done of 8-bit floats.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.machine_code import built, code_of, spills_nothing
from tests.planted import changed, is_proved, plain
from tests.proofs import undecided
from tests.schedule.test_mma import product

from texpr.driver import Compiled, lower, parse
from texpr.interp import run
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.turns.terms import terms
from texpr.isa.registry import INSTRUCTIONS
from texpr.support.diagnostic import CompilerBug

TEXT = product("f16", "f16")
PARTS = """\
schedule f for cuda {
    split(k, 128) -> (ko, ki)
    partial(ko, at=ko) -> part
    split(i, 32) -> (bi, ii)
    split(j, 32) -> (bj, jj)
    reorder(bi, bj, ko, ii, jj)
    distribute(jj)
    distribute(ii)
    stage(C, at=bj, in=registers) -> sums
    widen(sums, f32)
    stage(A, at=ko, in=shared) -> As
    stage(B, at=ko, in=shared) -> Bs
    mma(ii, jj, ki, mma_m16n8k16_f16_f16)
}
"""
NAME = "mma_m16n8k16_f16_f16"


@cache
def compiled() -> Compiled:
    function = parse(TEXT + PARTS)["f"]
    return lower(function, "sm_80", schedule=function.schedules[0])


def test_parts_have_128_terms_and_are_proved() -> None:
    made = compiled()
    assert terms(made.plan) == {NAME: 128} and not [*undecided(made.function, made.plan)]
    code = code_of(binary := built(made.source, "sm_80"))
    assert "HMMA.16816.F16" in code and "HMMA.16816.F32" not in code and spills_nothing(binary)


@pytest.mark.parametrize("sizes", [(33, 17, 300), (1, 1, 1), (3, 5, 0), (32, 32, 128)])
def test_emulated(sizes: tuple[int, int, int]) -> None:
    """Small integers: parts below 2048 are exact in f16, and the whole is rounded once."""
    made, rng, (rows, columns, deep) = compiled(), np.random.default_rng(7), sizes
    given = {"A": rng.integers(-2, 3, (rows, deep)), "B": rng.integers(-2, 3, (deep, columns))}
    given = {name: each.astype(np.float16) for name, each in given.items()}
    ran = run_plan(made.function, made.plan, given, seed=1)
    assert not ran.reports, ran.reports[0]
    np.testing.assert_array_equal(ran.arrays["C"], run(parse(TEXT)["f"], given)["C"])


def test_sums_of_parts_lose_nothing_that_f16_would_lose() -> None:
    """2304 terms of 1: in f16 one after the other they are 2048."""
    made, deep = compiled(), 2304
    given = {"A": np.ones((1, deep), np.float16), "B": np.ones((deep, 8), np.float16)}
    assert (run_plan(made.function, made.plan, given).arrays["C"] == deep).all()


def test_the_bound_is_of_a_part() -> None:
    """What 128 terms lose, rounded to 10 bits in each step of the unit; of 4096 in one sum it would be 30 times as much."""
    rounding = INSTRUCTIONS[NAME].rounding
    assert rounding is not None and (rounding.kept, rounding.nearest) == (10, True)
    part, whole = rounding.relative(128), rounding.relative(4096)
    assert 128 / 8 * 2**-11 < part < 128 / 8 * 2**-11 * 1.02 and whole > 30 * part


BUGS = {
    "parts that begin where the last ended": ("part[", " = 0:f16", " = part[0]"),
    "parts that begin with one": ("part[", " = 0:f16", " = 1:f16"),
    "subtracted": ("sums[0, 2 * r_10", " + (part[", " - (part["),
    "other parts": ("sums[0, 2 * r_10", "(part[2 * r_10 + r_11 +", "(part[2 * r_11 + r_10 +"),
    "sums that begin with one": ("sums[0, 16 * r", " = 0.0:f32", " = 1.0:f32"),
}  # fmt: skip
"""How the line begins, and what becomes what in it."""


def planted(name: str) -> k.Plan:
    return parse_plan(changed(plain(compiled().plan), *BUGS[name]))


SOUGHT = ("parts that begin with one", "subtracted", "sums that begin with one")
"""Those whose counterexample is looked for, for seconds."""


@pytest.mark.planted
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name in SOUGHT else name for name in BUGS])
def test_none_is_proved_and_each_is_shown(name: str) -> None:
    assert not is_proved(compiled(), lambda: planted(name))
    rng = np.random.default_rng(9)
    given = {"A": rng.integers(-2, 3, (33, 300)), "B": rng.integers(-2, 3, (300, 17))}
    given = {key: each.astype(np.float16) for key, each in given.items()}
    try:
        ran = run_plan(compiled().function, planted(name), given, seed=1)
    except (CompilerBug, RuntimeError, AssertionError):
        return
    assert ran.reports or not np.array_equal(ran.arrays["C"], run(parse(TEXT)["f"], given)["C"])
