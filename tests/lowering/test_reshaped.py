"""Arrays that are named plainly and through a reshape of theirs: the same memory, so that what meets is seen, and no more.

Each program is proved, and run natively and in the emulator against the interpreter; those that are wrong are refused.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.lowering.emulated import results, run_plan
from tests.lowering.native import call, library

from texpr import driver
from texpr.checks import check
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir.program import Function
from texpr.ir.program.selection import AUTO
from texpr.ir.proof import Verdict
from texpr.proof.search import proved

SIZES = {"n": 5, "m": 3, "k": 2}

FILLED = "par n |i| { par m |j| { y[i, j] = x[i, j] } }"
"""What is written plainly, before."""
TWO = "fn f(x: f32[n, m]): f32[n, m] {{ new y: f32[n, m]  let v = reshape(y, (n * m))  {} return y }}"
THREE = (
    "fn f(x: f32[n, m, k]): f32[n, m, k] {{ new y: f32[n, m, k]  let v = reshape(y, (n, m * k))  let w = reshape(y, (n * m, k))"
    "  par n |i| {{ par m |j| {{ par k |l| {{ y[i, j, l] = x[i, j, l] }} }} {} }} {} return y }}"
)
FLAT = "fn f(inout x: f32[n * m]) {{ let v = reshape(x, (n, m))  let w = reshape(x, (m, n))  {} }}"

RIGHT = {
    "written plainly, then flat": TWO.format(FILLED + " par n * m |t| { v[t] += 1.0 }"),
    "written flat, then plainly": TWO.format("par n * m |t| { v[t] = 2.0 } par n |i| { par m |j| { y[i, j] += x[i, j] } }"),
    "both in one iteration": TWO.format(FILLED + " par n * m |t| { v[t] += 1.0  y[t / m, t % m] *= 2.0 }"),
    "by turns": TWO.format(FILLED + " seq 3 |s| { par n * m |t| { v[t] += 1.0 } par n |i| { par m |j| { y[i, j] *= 2.0 } } }"),
    "some of its dimensions": THREE.format(
        "", "par n |i| { par m * k |t| { v[i, t] *= 2.0 } } par n * m |s| { par k |l| { w[s, l] += 1.0 } }"
    ),
    "in one nest": THREE.format("par m * k |t| { v[i, t] *= 2.0 }", "par n * m |s| { par k |l| { w[s, l] += 1.0 } }"),
    "two reshapes": FLAT.format("par n |i| { seq m |j| { v[i, j] += 2.0 } } par m |i| { par n |j| { w[i, j] *= 3.0 } }"),
    "two reshapes and plainly": FLAT.format(
        "par n |i| { par m |j| { v[i, j] += 2.0 } } par m |i| { seq n |j| { w[i, j] *= 3.0 } } par n * m |t| { x[t] += 1.0 }"
    ),
}  # fmt: skip

WRONG = {
    "the next one": TWO.format(FILLED + " par n * m |t| { if t + 1 < n * m { v[t] = v[t + 1] } }"),
    "the first one": TWO.format(FILLED + " par n * m |t| { v[t] = y[0, 0] }"),
    "the first of its row": TWO.format(FILLED + " par n * m |t| { v[t] = 1.0  y[t / m, 0] = 2.0 }"),
    "the first of its column": TWO.format(FILLED + " par n * m |t| { v[t] = y[0, t % m] }"),
    "another reshape": FLAT.format("par n |i| { seq m |j| { v[i, j] += 2.0 } } par m |i| { par n |j| { w[i, j] += v[j, i] } }"),
    "a row of another reshape": THREE.format("", "par n |i| { par m * k |t| { v[i, t] = w[i, 0] } }"),
}


def function_of(text: str) -> Function:
    return parse(text, "reshaped.te").functions[0]


@cache
def compiled(name: str, target: str) -> driver.Compiled:
    return driver.lower(function_of(RIGHT[name]), target, schedule=AUTO)


@pytest.mark.parametrize("name", RIGHT)
def test_reshaped_and_plain_are_accepted_proved_and_right(name: str) -> None:
    function = function_of(RIGHT[name])
    assert check(function) == ()
    sizes = {sym.name: SIZES[sym.name] for sym in function.sizes}
    shape = [extent.evaluate({sym: SIZES[sym.name] for sym in function.sizes}) for extent in function.params[0].shape]
    given = {"x": np.random.default_rng(1).integers(-4, 5, shape).astype(np.float32)}
    want = interpret(function, given, sizes)
    for target in ("cpu", "sm_90a"):
        made = compiled(name, target)
        proof = proved(made.function, made.plan)
        assert [each for each in proof.obligations if each.verdict not in (Verdict.PROVED, Verdict.RUN)] == []
        if target == "cpu":
            got = call(library([made.plan]), made.function, made.plan, given, sizes)
        else:
            ran = run_plan(made.function, made.plan, given, sizes)
            assert ran.reports == []
            got = results(made.function, ran)
        for result, expected in want.items():
            np.testing.assert_array_equal(got[result], expected, f"{name} for {target}")


@pytest.mark.parametrize("name", WRONG)
def test_what_meets_through_a_reshape_is_refused(name: str) -> None:
    assert {found.code for found in check(function_of(WRONG[name]))} & {"E0402", "E0502"}
