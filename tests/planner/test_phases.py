"""Rows that go through several phases: a loop around each where tiles of them read less, one loop around all elsewhere."""

from __future__ import annotations

import pytest
from tests.planner import test_cores
from tests.planner.programs import agrees, function
from tests.planner.test_moved import counted
from tests.proof.plan.verdicts import is_held_to, open_of

from texpr.driver import lower
from texpr.ir import kernel as k
from texpr.ir.program.selection import AUTO
from texpr.ir.program.text import print_directive
from texpr.isa.registry import resolve
from texpr.planner.plan import Planned, plan
from texpr.planner.strategies import wide
from texpr.proof.search import proved
from texpr.schedule.directives import vectorize

LAYERS = """
fn layers(X: f32[b, k], W: f32[k, m], c: f32[m], V: f32[m, n]): f32[b, n] {
    new Y: f32[b, n]
    par b |i| {
        new h: f32[m]
        par m |j| {
            h[j] = c[j]
            seq k |t| reduce(h) { h[j] += X[i, t] * W[t, j] }
            h[j] = max(h[j], 0.0)
        }
        par n |j| {
            new y: f32 = 0.0
            par m |t| reduce(y) { y += h[t] * V[t, j] }
            Y[i, j] = y
        }
    }
    return Y
}
"""

LARGEST = """
fn largest(Q: f32[t, d], K: f32[s, d], V: f32[s, d], len: i32[t]): f32[t, d]
    assume len in 0..s + 1
{
    new O: f32[t, d]
    par t |i| {
        new p: f32[s]
        new top: f32 = -inf
        par s |j| {
            p[j] = 0.0
            seq d |k| reduce(p) { p[j] += Q[i, k] * K[j, k] }
        }
        par s |j| reduce(top) { if j < len[i] { top max= p[j] } }
        new sum: f32 = 0.0
        par s |j| { p[j] = select(j < len[i], top - p[j], 0.0) }
        par s |j| reduce(sum) { sum += p[j] }
        par d |k| {
            new o: f32 = 0.0
            seq s |j| reduce(o) { o += p[j] * V[j, k] }
            O[i, k] = o + sum
        }
    }
    return O
}
"""

GROUPED = """
fn grouped(q: f32[B, KV * G, L, D], k: f32[B, KV, S, D], v: f32[B, KV, S, D]): f32[B, KV * G, L, D] {
    new o: f32[B, KV * G, L, D]
    par B |b| { par KV * G |h| { par L |i| {
        new s: f32[S]
        par S |j| {
            new dot: f32 = 0.0
            seq D |d| reduce(dot) { dot += q[b, h, i, d] * k[b, h / G, j, d] }
            s[j] = dot
        }
        new top: f32 = -inf
        par S |j| reduce(top) { top max= s[j] }
        par D |e| {
            new acc: f32 = 0.0
            seq S |j| reduce(acc) { acc += (s[j] - top) * v[b, h / G, j, e] }
            o[b, h, i, e] = acc
        }
    } } }
    return o
}
"""

SCALED = """
fn scaled(X: f32[b, k], g: f32[k], W: f32[n, k]): f32[b, n] {
    new Y: f32[b, n]
    par b |i| {
        new s: f32 = 0.0
        par k |t| reduce(s) { s += X[i, t] }
        let r = s + 1.0
        let q = r * 2.0 + s
        par n |j| {
            Y[i, j] = q
            par k |t| reduce(Y) { Y[i, j] += (X[i, t] - r) * g[t] * W[j, t] }
        }
    }
    return Y
}
"""

CHOSEN = """
fn chosen(X: f32[b, k], at: i32[b], W: f32[e, k, n]): f32[b, n]
    assume at in 0..e
{
    new Y: f32[b, n]
    par b |i| {
        let p = at[i]
        new s: f32 = 0.0
        par k |t| reduce(s) { s += X[i, t] }
        par n |j| {
            Y[i, j] = s
            seq k |t| reduce(Y) { Y[i, j] += X[i, t] * W[p, t, j] }
        }
    }
    return Y
}
"""

NORM = """
fn norm(x: f32[m, n], g: f32[n], c: f32[n]): f32[m, n] where n >= 1 {
    new y: f32[m, n]
    par m |i| {
        new s: f32 = 0.0
        par n |j| reduce(s) { s += x[i, j] }
        let mean = s / f32(n)
        par n |j| { y[i, j] = (x[i, j] - mean) * g[j] + c[j] }
    }
    return y
}
"""

TOP = """
fn top(X: f32[b, k], W: f32[k, m]): (f32[b], f32[b]) {
    new most: f32[b]
    new least: f32[b]
    par b |i| {
        new h: f32[m]
        par m |j| {
            h[j] = 0.0
            seq k |t| reduce(h) { h[j] += X[i, t] * W[t, j] }
        }
        most[i] = -inf
        least[i] = inf
        par m |j| reduce(most, least) { most[i] max= h[j]  least[i] min= h[j] }
    }
    return (most, least)
}
"""

PHASED = {"layers": LAYERS, "largest": LARGEST, "grouped": GROUPED, "scaled": SCALED, "top": TOP}
TILES = {"layers": 2, "largest": 2, "grouped": 2, "scaled": 1, "top": 1}


def planned(text: str, target: str = "sm_90a") -> Planned:
    return plan(function(text), resolve(target))


def said(found: Planned) -> list[str]:
    return [] if found.schedule is None else [print_directive(each) for each in found.schedule.directives]


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
@pytest.mark.parametrize("name", PHASED)
def test_phases_become_tiles(name: str, target: str) -> None:
    found = planned(PHASED[name], target)
    assert said(found)[0].startswith("distribute(i")
    assert sum(each.candidate is not None for each in found.nests) == TILES[name]
    assert len({each.line for each in found.nests}) == len(found.nests), "each phase is told by its own line"


SIZES = (
    {"b": 3, "k": 5, "m": 7, "n": 2, "t": 5, "s": 9, "d": 3, "B": 2, "KV": 2, "G": 3, "L": 5, "S": 6, "D": 4},
    {"b": 130, "k": 33, "m": 65, "n": 17, "t": 67, "s": 70, "d": 18, "B": 1, "KV": 1, "G": 2, "L": 66, "S": 35, "D": 17},
    {"b": 1, "k": 1, "m": 1, "n": 1, "t": 1, "s": 1, "d": 1, "B": 1, "KV": 1, "G": 1, "L": 1, "S": 1, "D": 1},
    {"b": 2, "k": 0, "m": 3, "n": 2, "t": 3, "s": 0, "d": 3, "B": 1, "KV": 2, "G": 1, "L": 2, "S": 0, "D": 3},
    {"b": 0, "k": 4, "m": 0, "n": 2, "t": 0, "s": 3, "d": 0, "B": 0, "KV": 2, "G": 1, "L": 2, "S": 3, "D": 0},
)


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
@pytest.mark.parametrize("case", range(len(SIZES)))
@pytest.mark.parametrize("name", PHASED)
def test_the_same_results(name: str, case: int, target: str) -> None:
    named = {s.name for s in function(PHASED[name]).sizes}
    sizes = {s: value for s, value in SIZES[case].items() if s in named}
    if target == "cpu":
        test_cores.agrees(PHASED[name], sizes)
    else:
        agrees(PHASED[name], sizes, seed=case)


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
@pytest.mark.parametrize("name", PHASED)
def test_they_are_proved(name: str, target: str) -> None:
    made = lower(function(PHASED[name]), target, schedule=AUTO)
    assert open_of(proved(made.function, made.plan)) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("scaled", "r_1[i_1] = (s + 1.0:f32)", "r_1[i_1] = s"),
        ("scaled", "r_1[i_1] = (s + 1.0:f32)", "r_1[0] = (s + 1.0:f32)"),
        ("scaled", "r_1: f32[b]", "r_1: f32[b - 1]"),
        ("layers", "h: f32[b, m]", "h: f32[b, m - 1]"),
    ],
)
def test_what_a_phase_keeps_for_the_next_is_held_to_be_nothing_else(name: str, right: str, wrong: str) -> None:
    made = lower(function(PHASED[name]), "sm_90a", schedule=AUTO)
    assert is_held_to(made, right, wrong)


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
def test_rows_that_read_little_together_stay_rows(target: str) -> None:
    """A row of `g` is read by each row of x, but is no more than that."""
    assert not any(each.startswith("distribute") for each in said(planned(NORM, target)))


def test_a_subscript_goes_along() -> None:
    """What rows read is chosen by data: there is no tile of it, so rows stay rows."""
    assert said(planned(CHOSEN)) == []


def test_tiles_of_phases_move_less() -> None:
    """Bytes as the emulator counts them, against those of rows made one by one."""
    sizes = {"b": 128, "k": 64, "m": 128, "n": 128}
    tiles, rows = (counted(lower(function(LAYERS), "sm_90a", schedule=each), LAYERS, sizes)["bytes"] for each in (AUTO, None))
    assert tiles <= 1.1 * 4 * (2 * 128 * 64 + 64 * 128 + 4 * 128 * 128)
    assert 20 * tiles < rows


VECTORS_BETWEEN = """
fn between(x: f32[b, k] align(16), W: f32[k, m], V: f32[m, n]): f32[b, n] {
    new h: f32[b, m]
    new y: f32[b, n]
    par b |i| { par m |j| { h[i, j] = 0.0  seq k |t| reduce(h) { h[i, j] += x[i, t] * W[t, j] } } }
    par b |i| { par m |j| { h[i, j] = max(h[i, j], 0.0) } }
    par b |i| { par n |j| { y[i, j] = 0.0  seq m |t| reduce(y) { y[i, j] += h[i, t] * V[t, j] } } }
    return y
}
"""


def test_rows_of_a_local_that_may_begin_anywhere_are_no_vectors() -> None:
    made = lower(function(VECTORS_BETWEEN), "sm_90a", schedule=AUTO)
    assert made.planned is not None and not made.planned.failed
    assert [each.candidate is not None for each in made.planned.nests] == [True, False, True]


def test_a_nest_that_cannot_be_lowered_leaves_the_others_their_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide, "_begins_even", lambda *_: True)
    monkeypatch.setattr(vectorize, "_workspace", lambda _: iter(()))
    made = lower(function(VECTORS_BETWEEN), "sm_90a", schedule=AUTO)
    assert made.planned is not None and not made.planned.failed
    assert [each.candidate is not None for each in made.planned.nests] == [True, False, True]
    assert any("E0911: " in each for each in made.planned.nests[1].refused)
    assert len(list(k.kernels(made.plan.steps))) == 3
    agrees(VECTORS_BETWEEN, {"b": 5, "k": 3, "m": 6, "n": 4})
