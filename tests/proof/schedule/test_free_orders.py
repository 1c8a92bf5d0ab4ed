"""The order of a sum is free in a scheduled program only where the written one frees it."""

from __future__ import annotations

import pytest
from tests.proof.schedule.trials import is_proved

from texpr import driver
from texpr.frontend import parse
from texpr.ir.proof import Verdict
from texpr.proof.schedule import faithful

SUMMED = """
fn rows(a: f32[m, n], b: f32[m, n]): f32[m] {
    new y: f32[m]
    par m |i| {
        y[i] = 0.0
        seq n |k| reduce(y) { y[i] += a[i, k] * b[i, k] }
    }
    return y
}
"""


@pytest.mark.parametrize("directives", ["split(k, 16) -> (ko, ki)", "split(i, 4) -> (io, ii)"])
def test_no_order_becomes_free(directives: str) -> None:
    """Not even where it is kept: kernels may round as they will what is summed up in any order."""
    (free,) = parse(f"{SUMMED}schedule rows {{ {directives} }}").functions
    compiled = driver.lower(free, "sm_90a", schedule=free.schedules[0])
    assert is_proved(faithful(free, compiled.function))
    (ordered,) = parse(SUMMED.replace("reduce(y) ", "")).functions
    found = faithful(ordered, compiled.function)
    assert "no `reduce` frees it as it was written" in [each.how for each in found.of(Verdict.REFUSED)]
