"""Triangles, tiled as squares: the same results, proved, and fewer bytes."""

from __future__ import annotations

import pytest
from tests.planner import test_cores
from tests.planner.programs import agrees, function
from tests.planner.test_moved import counted
from tests.planner.test_phases import planned, said
from tests.proof.plan.verdicts import open_of

from texpr.driver import lower
from texpr.ir.program.selection import AUTO
from texpr.proof.search import proved

LOWER = """
fn lower(A: f32[n, k], B: f32[n, k], inout C: f32[n, n]) {
    par n |i| { par i + 1 |j| { seq k |t| reduce(C) { C[i, j] += A[i, t] * B[j, t] } } }
}
"""

UPPER = """
fn upper(A: f32[b, n, k], B: f32[k, n]): f32[b, n, n] {
    new C: f32[b, n, n]
    par b |e| { par n |i| { par n |j| { C[e, i, j] = 1.0 } } }
    par b |e| { par n |i| { par n - i |j| { seq k |t| reduce(C) { C[e, i, i + j] -= A[e, i, t] * B[t, i + j] } } } }
    return C
}
"""

CAUSAL = """
fn causal(Q: f32[H, L, D], K: f32[H, L, D], V: f32[H, L, D]): f32[H, L, D] {
    new O: f32[H, L, D]
    par H |h| { par L |i| {
        new p: f32[L]
        par i + 1 |j| {
            p[j] = 0.0
            par D |d| reduce(p) { p[j] += Q[h, i, d] * K[h, j, d] }
        }
        new top: f32 = -inf
        par i + 1 |j| reduce(top) { top max= p[j] }
        par D |e| {
            new o: f32 = 0.0
            par i + 1 |j| reduce(o) { o += (p[j] - top) * V[h, j, e] }
            O[h, i, e] = o
        }
    } }
    return O
}
"""

SQUARED = {"lower": LOWER, "upper": UPPER, "causal": CAUSAL}
SIZES = (
    {"b": 2, "n": 5, "k": 3, "H": 2, "L": 5, "D": 3},
    {"b": 1, "n": 131, "k": 18, "H": 1, "L": 131, "D": 17},
    {"b": 1, "n": 1, "k": 1, "H": 1, "L": 1, "D": 1},
    {"b": 1, "n": 3, "k": 0, "H": 1, "L": 3, "D": 0},
    {"b": 2, "n": 0, "k": 2, "H": 1, "L": 0, "D": 2},
)


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
@pytest.mark.parametrize("name", SQUARED)
def test_triangles_become_tiles(name: str, target: str) -> None:
    found = planned(SQUARED[name], target)
    assert any(each.startswith("resize(") and "to=" in each for each in said(found))
    assert any(each.candidate is not None for each in found.nests)


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
@pytest.mark.parametrize("case", range(len(SIZES)))
@pytest.mark.parametrize("name", SQUARED)
def test_the_same_results(name: str, case: int, target: str) -> None:
    named = {s.name for s in function(SQUARED[name]).sizes}
    sizes = {s: value for s, value in SIZES[case].items() if s in named}
    if target == "cpu":
        test_cores.agrees(SQUARED[name], sizes)
    else:
        agrees(SQUARED[name], sizes, seed=case)


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
@pytest.mark.parametrize("name", SQUARED)
def test_they_are_proved(name: str, target: str) -> None:
    made = lower(function(SQUARED[name]), target, schedule=AUTO)
    assert open_of(proved(made.function, made.plan)) == []


def test_they_move_less() -> None:
    sizes = {"n": 256, "k": 32}
    tiles, plain = (counted(lower(function(LOWER), "sm_90a", schedule=each), LOWER, sizes)["bytes"] for each in (AUTO, None))
    assert 3 * tiles < plain


CORES = {
    "half of A · Aᵀ": """
    fn f(A: bf16[n, k] align(16)): f32[n, n] where k % 8 == 0 {
        new C: f32[n, n]
        par n |i| { par n |j| { C[i, j] = 1.0 } }
        par n |i| { par i + 1 |j| { seq k |t| reduce(C) { C[i, j] += A[i, t] * A[j, t] } } }
        return C
    }
    """,
    "the other half, of two matrices": """
    fn f(A: bf16[n, k] align(16), B: bf16[n, k] align(16), inout C: f32[n, n]) where k % 8 == 0 {
        par n |i| { par n - i |j| { seq k |t| reduce(C) { C[i, i + j] += A[i, t] * B[i + j, t] } } }
    }
    """,
    "sums of as many terms as rows are behind": """
    fn f(A: bf16[n, n] align(16), B: bf16[n, k] align(16)): f32[n, k] where n % 8 == 0, k % 8 == 0 {
        new C: f32[n, k]
        par n |i| { par k |j| {
            new s: f32 = 0.0
            seq i + 1 |t| reduce(s) { s += A[i, t] * B[t, j] }
            C[i, j] = s
        } }
        return C
    }
    """,
}


@pytest.mark.parametrize("name", CORES)
def test_of_triangles_tensor_cores_do_no_more_than_is_right(name: str) -> None:
    for sizes in ({"n": 8, "k": 8}, {"n": 136, "k": 72}):
        agrees(CORES[name], sizes)
    made = lower(function(CORES[name]), "sm_90a", schedule=AUTO)
    assert open_of(proved(made.function, made.plan)) == []


def test_half_of_a_product_goes_to_tensor_cores() -> None:
    made = lower(function(CORES["half of A · Aᵀ"]), "sm_90a", schedule=AUTO)
    assert made.schedule is not None and [each.name for each in made.schedule.directives].count("mma") == 1
