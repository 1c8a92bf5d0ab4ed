"""Sums of rows that meet in one element: a sum for each row is proved where updates are atomic, and only there."""

from __future__ import annotations

import pytest

from texpr import driver
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.proof import Verdict
from texpr.proof.plan import question
from texpr.proof.search import certified

ROWS = """fn f(x: i32[n, m]): i32[n] {
    new y: i32[n]
    par n |i| { y[i] = 0 }
    par n |i| reduce(y) { par m |j| reduce(y) { y[i] += x[i, j] } }
    return y
}"""
HALVES = ROWS.replace("y[i] +=", "y[i / 2] +=")
PARTS = {"cpu": "y_lanes_all", "sm_90a": "y_own_all"}


def is_proved(program: str, text: str) -> bool:
    """Whether the text is proved to be a plan of the program."""
    function, plan = driver.parse(program).functions[0], parse_plan(text)
    proof = certified(question(function, plan), plan).proof
    return not any(proof.of(verdict) for verdict in (Verdict.REFUSED, Verdict.UNDECIDED))


def text_of(program: str, target: str) -> str:
    return plan_text(driver.lower(driver.parse(program).functions[0], target).plan)


@pytest.mark.parametrize("target", PARTS)
def test_rows_that_meet_are_added_at_once(target: str) -> None:
    part = PARTS[target]
    own, meeting = f"y[i'1] = (y[i'1] + {part})", f"atomic y[(i'1 / 2)] add= {part}"
    text = text_of(ROWS, target)
    assert own in text and is_proved(ROWS, text)
    halves = text.replace(own, meeting)
    assert is_proved(HALVES, halves) and not is_proved(ROWS, halves)
    assert not is_proved(HALVES, text.replace(own, own.replace("i'1", "(i'1 / 2)")))  # two cores, or blocks, at one element
    for wrong in (f"y[i'1] = {part}", f"y[0] = (y[0] + {part})", f"if (i64(i'1) < 5:i64) {{\n{own}\n}}"):
        assert not is_proved(ROWS, text.replace(own, wrong)), wrong


@pytest.mark.parametrize("target", PARTS)
def test_updates_that_meet_are_atomic(target: str) -> None:
    atomic, plain = "atomic y[(i'1 / 2)] add= x[i'1, j]", "y[(i'1 / 2)] = (y[(i'1 / 2)] + x[i'1, j])"
    text = text_of(HALVES, target)
    assert atomic in text and is_proved(HALVES, text)
    assert not is_proved(HALVES, text.replace(atomic, plain))
