"""What is proved is right of sums down columns: parts of each element, kept for a later launch, of two rows each."""

from __future__ import annotations

import random
from functools import cache
from unittest.mock import patch

import pytest
from tests.proof.plan.test_sound import Count, Subject, all_is_right, holes, subject

from texpr import driver
from texpr.ir.kernel.text import plan_text
from texpr.lowering import lower as lowering
from texpr.mapping.reductions.arrange import arrange
from texpr.support.record import replace

COLUMNS = {
    "sum": "par m |j| { y[j] = w[j]  par n |i| reduce(y) { y[j] += x[i, j] } }",
    "weighted": "par m |j| { y[j] = 0  par n |i| reduce(y) { y[j] -= x[i, j] * v[i] } }",
    "most": "par m |j| { y[j] = w[j]  par n |i| reduce(y) { y[j] max= x[i, j] } }",
    "turned": "par m |j| { y[m - 1 - j] = 0  par n |i| reduce(y) { y[m - 1 - j] += x[n - 1 - i, j] } }",
    "two": """par m |j| {
        new s: i32
        s = 1
        par n |i| reduce(s) { s += x[i, j] }
        y[j] = s
        par n |k| reduce(y) { y[j] min= x[k, j] }
    }""",
    "turns": "par m |j| { y[j] = 0 } seq 2 |t| { par m |j| { par n |i| reduce(y) { y[j] += x[i, j] * (t + 1) } } }",
}
SIZES = ((4, 3), (1, 2), (7, 5))


@cache
def named(name: str) -> Subject:
    """A program of `COLUMNS`, lowered."""
    text = f"fn f(x: i32[n, m], v: i32[n], w: i32[m]): i32[m] {{ new y: i32[m] {COLUMNS[name]} return y }}"
    part = 1 if name == "turns" else 2
    with patch.object(lowering, "arrange", lambda bound, machine: arrange(bound, replace(machine, part=part))):
        made = driver.lower(driver.parse(text)["f"], "sm_90a")
    assert "_parts" in plan_text(made.plan)
    return subject(made.function, made.plan, 1, SIZES)


def test_what_is_proved_is_right() -> None:
    rng, count = random.Random(1), Count()
    for name in COLUMNS:
        assert not list(holes(named(name), 2, rng, count)), name
    assert count.wrong > 3


@pytest.mark.long
@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("name", COLUMNS)
def test_what_is_proved_of_columns_is_right(name: str, part: int) -> None:
    all_is_right(named(name), f"{name} {part}")
