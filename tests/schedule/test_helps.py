"""What a refusal says to do instead can be done: schedules as they were asked for, and as the help has it."""

from __future__ import annotations

import pytest
from tests.lowering.test_combining_stores import batch, layers
from tests.schedule.laid import laid, refusal

COPY = """
fn copied(A: f32[M, K] align(16)): f32[M, K]
    where K % 4 == 0
{
    new C: f32[M, K]
    par M |i| { par K |k| { C[i, k] = A[i, k] } }
    return C
}"""

BOXES = """
    split(i, 16) -> (bi, ti)  split(k, 32) -> (bk, tk)
    reorder(bi, bk, ti, tk)
    stage(A, at=bk, via=tma{}) -> As"""

PRODUCT = """
fn product(A: f32[M, K] align(16), B: f32[K, N] align(16)): f32[M, N]
    where K % 4 == 0, N % 4 == 0
{
    new C: f32[M, N]
    par M |i| { par N |j| {
        new acc: f32 = 0.0
        seq K |k| reduce(acc) { acc += A[i, k] * B[k, j] }
        C[i, j] = acc
    } }
    return C
}"""

AHEAD = """
    split(i, 16) -> (bi, ti)  split(j, 32) -> (bj, tj)  split(k, 8) -> (ko, ki)
    reorder(bi, bj, ko, ti, tj, ki)
    stage(A, at=ko, via=tma) -> As  stage(B, at=ko, via=tma) -> Bs
    """

SMALL = batch("u8", "+=", "#atomic")
"""Elements that neither the engine nor threads combine."""

CASES = {
    "small": (
        SMALL, layers(), "the engine does not combine u8 by add",
        "do not stage it; where threads do not make such updates either, leave the loop over `b` unbound",
        layers("").replace("bind(b, grid.z)", "").replace("reorder(b, bi, bj,", "reorder(bi, bj, b,"),
    ),
    "small, by threads": (
        SMALL, layers(""), "would meet in elements that threads do not combine so", "help: leave the loop unbound",
        layers("").replace("bind(b, grid.z)", "").replace("reorder(b, bi, bj,", "reorder(bi, bj, b,"),
    ),
    "halves, by threads": (
        batch("f16", "+=", "#atomic"), layers(""), "would meet in elements that threads do not combine so",
        "stage what they meet in by via=tma, or leave the loop unbound", layers(),
    ),
    "stride": (
        COPY, BOXES.format(", stride=(9, 1)"), "the hardware has element strides of 1 to 8, and not 9", "leave `stride=` out",
        BOXES.format(""),
    ),
    "strides": (
        COPY, BOXES.format(", stride=(1, 1, 1)"), "takes a stride for each dimension of `A`, 2 in all",
        "ask for stride=(1, 1), or leave it out", BOXES.format(", stride=(1, 1)"),
    ),
    "rank": (
        COPY, BOXES.format(", box=(1, 5, 20)"), "takes a box with a size for each dimension of `A`, 2 in all",
        "ask for box=(16, 32)", BOXES.format(", box=(16, 32)"),
    ),
    "divisor": (
        COPY, BOXES.format(", box=(5, 20)"), "boxes of 5 do not divide the 16 elements that dimension 0 of the region has",
        "choose a divisor of 16, or one box of more than 16: box=(4, 16)", BOXES.format(", box=(4, 16)"),
    ),
    "small boxes": (
        COPY, BOXES.format(", box=(1, 3)"), "boxes of 3 do not divide the 32 elements",
        "choose a divisor of 32, or one box of more than 32: box=(1, 32)", BOXES.format(", box=(1, 32)"),
    ),
    "pipeline": (
        PRODUCT, AHEAD + "pipeline(ko, As, stages=2)  pipeline(ko, Bs, stages=2)", "`ko` is pipelined already",
        "name all that it copies ahead in one: pipeline(ko, BUFFER, BUFFER, stages=N)",
        AHEAD + "pipeline(ko, As, Bs, stages=2)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_help_can_be_followed(name: str) -> None:
    text, schedule, reason, help, instead = CASES[name]
    said = refusal(text, schedule)
    assert reason in said and help in said
    laid(text, instead)
