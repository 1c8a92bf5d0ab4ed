"""What a refusal says to do instead can be done: schedules as they were asked for, and as the help has it."""

from __future__ import annotations

import pytest
from tests.lowering.test_combining_stores import batch, layers
from tests.schedule.laid import laid, refusal

from texpr.schedule.call import Call
from texpr.schedule.edits import Offers
from texpr.support.diagnostic import Diagnostic, Edit, TexprError, edited

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
        "where threads do not make such updates either, the loop over `b` is bound to nothing",
        layers("").replace("bind(b, grid.z)", "").replace("reorder(b, bi, bj,", "reorder(bi, bj, b,"),
    ),
    "small, by threads": (
        SMALL, layers(""), "would meet in elements that threads do not combine so", "help: leave the loop unbound",
        layers("").replace("bind(b, grid.z)", "").replace("reorder(b, bi, bj,", "reorder(bi, bj, b,"),
    ),
    "halves, by threads": (
        batch("f16", "+=", "#atomic"), layers(""), "would meet in elements that threads do not combine so",
        "help: leave the loop unbound",
        layers("").replace("bind(b, grid.z)", "").replace("reorder(b, bi, bj,", "reorder(bi, bj, b,"),
    ),
    "stride": (
        COPY, BOXES.format(", stride=(9, 1)"), "the hardware has element strides of 1 to 8, and not 9", "leave `stride=` out",
        BOXES.format(""),
    ),
    "strides": (
        COPY, BOXES.format(", stride=(1, 1, 1)"), "takes a stride for each dimension of `A`, 2 in all",
        "ask for stride=(1, 1)", BOXES.format(", stride=(1, 1)"),
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
        "name all that it copies ahead in one: `pipeline(ko, As, Bs, stages=2)`",
        AHEAD + "pipeline(ko, As, Bs, stages=2)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_help_can_be_followed(name: str) -> None:
    text, schedule, reason, help, instead = CASES[name]
    said = refusal(text, schedule)
    assert reason in said and help in said
    laid(text, instead)


CLOSURE = """
fn closed(inout d: i32[n, n]) {
    seq n |k| {
        new row: i32[n]
        par n |a| { row[a] = d[k, a] }
        seq n |i| {
            new through: i32 = d[i, k]
            par n |j| { d[i, j] min= through + row[j] }
        }
    }
}"""
"""Floyd and Warshall's shortest paths."""

SUMS = """
fn sums(x: f32[n, m]): (f32, f32[n]) {
    new s: f32
    new r: f32[n]
    s = 0.0
    par n |h| { r[h] = 0.0 }
    par n |i| reduce(s) { par m |j| reduce(s) { s += x[i, j] } }
    par n |a| { par m |b| reduce(r) { r[a] += x[a, b] } }
    return (s, r)
}"""

HELPED = (
    (CLOSURE, "bind(k, grid.x)"), (CLOSURE, "bind(i, block.x)"), (CLOSURE, "vectorize(i, 4)"),
    (CLOSURE, "swizzle(i, j, shift)"), (CLOSURE, "stage(d, at=k)"),
    (CLOSURE, "stage(d, at=i, in=registers)"), (CLOSURE, "stage(d, at=i)"),
    (CLOSURE, "pipeline(k, row, d, stages=2)"), (CLOSURE, "pipeline(k, stages=2)"),
    (SUMS, "bind(i, grid.x)"), (SUMS, "bind(i, block.x)"), (SUMS, "bind(b, lane)"), (SUMS, "bind(a, grid.x)  bind(b, grid.y)"),
    (SUMS, "split(b, 32) -> (o, t)  bind(t, warp)"), (SUMS, "stage(s, at=i, in=registers)"), (SUMS, "stage(r, at=b)"),
    (SUMS, "stage(s, at=j)"), (SUMS, "bind(i, grid.x)  pipeline(i, s, stages=2)"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "directives"), HELPED)
def test_bound_reductions_and_shortest_paths_are_refused_with_a_change_that_helps(text: str, directives: str) -> None:
    with pytest.raises(TexprError) as raised:
        laid(text, directives)
    for found in raised.value.diagnostics:
        assert found.code in ("E0906", "E0909", "E0911", "E0912")
        assert found.help and isinstance(found.fix, Edit), found
        assert change_of(found) is None, edited(found)


def change_of(found: Diagnostic) -> str | None:
    """What is still said of the changed text in the words of a diagnostic; None where nothing is."""
    text = edited(found)
    assert text is not None
    head, _, rest = text.partition("\nschedule ")
    try:
        laid(head, rest.partition("{")[2].rstrip().removesuffix("}"))
    except TexprError as left:
        return next((d.message for d in left.diagnostics if d.message == found.message), None)
    return None


def test_a_change_that_does_not_help_is_not_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two changes that are offered the one that works is given, and where none does only advice is."""
    text, directives = SUMS, "bind(b, lane)"

    def first(call: Call) -> Offers:
        return call.instead("do it again: %", lambda said: said)

    monkeypatch.setattr("texpr.schedule.directives.bind._left_open", first)
    laid.cache_clear()
    with pytest.raises(TexprError) as raised:
        laid(text, directives)
    (found,) = raised.value.diagnostics
    assert found.code == "E0909" and found.fix is None and found.help is None
    laid.cache_clear()
