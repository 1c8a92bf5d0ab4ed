"""Products of which an `if` asks for a part: sums ahead of it, tiled; the same results, proved."""

from __future__ import annotations

import pytest
from tests.planner.programs import agrees, blocks, built, function
from tests.planner.test_phases import planned, said

from texpr.driver import lower
from texpr.ir.program.selection import AUTO
from texpr.ir.proof import Verdict
from texpr.proof.schedule import faithful

SCORES = """
fn scores(Q: TYPE[H, L, D], K: TYPE[H, L, D]): f32[H, L, L] {
    new S: f32[H, L, L]
    par H |h| { par L |i| { par L |j| {
        new total: f32
        total = -inf
        if j <= i {
            total = 0.0
            seq D |d| reduce(total) { total += Q[h, i, d] * K[h, j, d] }
        }
        S[h, i, j] = total
    } } }
    return S
}
"""

GRAM = """
fn gram(A: TYPE[N, K]): f32[N, N] {
    new C: f32[N, N]
    par N |i| { par N |j| {
        C[i, j] = 0.0
        if j <= i { seq K |k| reduce(C) { C[i, j] += A[i, k] * A[j, k] } }
    } }
    return C
}
"""

BAND = """
fn band(A: f32[N, K], B: f32[K, N], inout C: f32[N, N]) {
    par N |i| { par N |j| {
        if j <= i + 9 { if i <= j + 9 { par K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] } } }
    } }
}
"""

PROGRAMS = {
    "gram f32": GRAM.replace("TYPE", "f32"),
    "scores bf16": SCORES.replace("TYPE", "bf16"),
    "gram bf16": GRAM.replace("TYPE", "bf16"),
    "scores f32": SCORES.replace("TYPE", "f32"),
}

SIZES = (
    {"H": 2, "L": 37, "D": 19, "N": 37, "K": 19},
    {"H": 1, "L": 64, "D": 32, "N": 64, "K": 32},
    {"H": 1, "L": 5, "D": 0, "N": 5, "K": 0},
    {"H": 0, "L": 3, "D": 4, "N": 1, "K": 40},
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_are_tiled(name: str) -> None:
    names = [each.partition("(")[0] for each in said(planned(PROGRAMS[name]))]
    assert "hoist" in names
    assert "reorder" in names
    assert ("mma" in names) is name.endswith("bf16")


@pytest.mark.parametrize("fix", [False, True], ids=["open", "fixed"])
@pytest.mark.parametrize("case", range(len(SIZES)))
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_results(name: str, case: int, fix: bool) -> None:
    named = {s.name for s in function(PROGRAMS[name]).sizes}
    agrees(PROGRAMS[name], {s: size for s, size in SIZES[case].items() if s in named}, seed=case, fix=fix, tiny=True)


@pytest.mark.parametrize("name", ["gram f32", "scores bf16"])
def test_tiles_of_which_nothing_is_asked_for_are_skipped(name: str) -> None:
    sizes = {"H": 1, "L": 150, "D": 16, "N": 150, "K": 16}
    own = {s.name: sizes[s.name] for s in function(PROGRAMS[name]).sizes}
    made = built(PROGRAMS[name], tuple(own.items()))
    assert made.schedule is not None
    assert made.schedule.directives[-1].name == "skip"
    assert max(blocks(made, {})) > 1
    agrees(PROGRAMS[name], own, seed=2, fix=True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_are_proved(name: str) -> None:
    made = lower(function(PROGRAMS[name]), "sm_90a", schedule=AUTO)
    for each in (made, made.wide):
        if each is not None:
            assert each.written is not None
            found = faithful(each.written, each.function)
            assert not found.of(Verdict.REFUSED)
            assert not found.of(Verdict.UNDECIDED)


@pytest.mark.parametrize(
    "guard",
    ["i == j", "j + 4000 <= i", "A[i, 0] > 0.0", "j <= i and A[i, 0] > 0.0"],
    ids=["a diagonal", "a corner", "data", "data and indices"],
)
def test_few_are_not_done_for_all(guard: str) -> None:
    text = GRAM.replace("TYPE", "f32").replace("j <= i", guard)
    assert not any(each.startswith("hoist") for each in said(planned(text)))


def test_a_band_that_is_narrow_is_not_done_for_all() -> None:
    assert not any(each.startswith("hoist") for each in said(planned(BAND)))
    wide = BAND.replace("+ 9", "+ 2000")
    assert any(each.startswith("hoist") for each in said(planned(wide)))
    assert built(wide).schedule is not None
