"""Sizes that a `where` gives: plans are made, read back and proved as for open ones, and looked at with these sizes."""

from __future__ import annotations

import pytest
from tests.schedule.rows import open_of

from texpr.artifact.certificate import said
from texpr.driver import Compiled, lower, parse
from texpr.explain.speed import speed
from texpr.ir.program.selection import AUTO

TEXT = """
fn product(A: OF[M, K], B: OF[K, N]): OF[M, N]
    where WHERE
{
    new Y: OF[M, N]
    par M |i| { par N |j| {
        new total: f32
        total = 0.0
        seq K |k| reduce(total) { total += A[i, k] * B[k, j] }
        Y[i, j] = OF(total)
    } }
    return Y
}
"""


def made(of: str, where: str, target: str) -> Compiled:
    text = TEXT.replace("OF(total)", "total") if of == "f32" else TEXT
    return lower(parse(text.replace("OF", of).replace("WHERE", where))["product"], target, schedule=AUTO)


@pytest.mark.parametrize(
    ("of", "where", "target"),
    [
        ("bf16", "M == 16, K == 4096, N == 4096", "sm_90a"),
        pytest.param("bf16", "M == 100, K == 33, N == 65", "sm_90a", marks=pytest.mark.long),
        pytest.param("f32", "M == 128, K == N", "sm_90a", marks=pytest.mark.long),
        pytest.param("f16", "M == 64, K == 4096, N == 128", "sm_80", marks=pytest.mark.long),
        ("f32", "M == 100, K == 33, N == 65", "cpu"),
    ],
)
def test_a_plan_is_read_back_and_proved(of: str, where: str, target: str) -> None:
    compiled = made(of, where, target)
    for each in (compiled, *([compiled.wide] if compiled.wide else [])):
        said(each.function)
        assert open_of(each) == []


@pytest.mark.parametrize(
    ("where", "sizes", "assumed"),
    [
        ("M == 16, K == 4096", {"M": 16, "K": 4096, "N": 4096}, ["N"]),
        ("M < 100, 5000 <= K, K > 5001, N >= 1", {"M": 99, "K": 5002, "N": 4096}, ["M", "K", "N"]),
        ("M == K, N == 2 * 8", {"M": 4096, "K": 4096, "N": 16}, ["M", "K"]),
    ],
)
def test_bounds_are_of_sizes_that_may_be(where: str, sizes: dict[str, int], assumed: list[str]) -> None:
    told = speed(made("f32", where, "sm_90a"), None, {})
    assert told is not None
    assert told["sizes"] == sizes and told["assumed"] == assumed
