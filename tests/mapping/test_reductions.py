"""Reductions made explicit mean what they meant: random ones interpreted before and after, in chunks of every size."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from texpr import driver
from texpr.checks import check
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import program as ir
from texpr.ir.program import Function
from texpr.ir.program import verify as program_verify
from texpr.ir.program.marked import is_atomic
from texpr.isa.target import Reductions
from texpr.mapping.reductions import arrange as reductions
from texpr.mapping.reductions import parts
from texpr.mapping.reductions.arrange import WAYS, arrange
from texpr.mapping.reductions.way import Rank

HEAD = "combine far(a: i32, b: i32): i32 identity 0 { return max(abs(a), abs(b)) }\n"
SIGNATURE = "fn f(x: i32[n, m], at: i32[n], inout s: i32, inout t: i32, inout y: i32[n], inout h: i32[4]): i32[1]\n"
FACTS = "    assume at in 0..4\n"


def _update(chooser: random.Random, value: str) -> str:
    """Accumulators, one or several, that every iteration meets in."""
    return chooser.choice(
        [
            f"s += {value}",
            f"s -= {value}",
            f"s max= {value}",
            f"s += {value}\n t min= {value} * 2",
            f"s -= {value}\n s += 3\n t -= {value} + 1",
            f"(s, t) max= ({value}, {value} + 3)",
            f"(s, t) min= ({value} / 2, 0 - {value})",
            f"s far= {value}",
            f"s += {value}\n t far= {value}",
            f"let q = {value}\n if q > 1 {{ s += q }} else {{ t += 2 }}",
            f"seq 3 |k| {{ s += {value} * i32(k) }}",
        ]
    )


def _program(seed: int) -> str:
    chooser = random.Random(seed)
    atomic = " #atomic" if chooser.random() < 0.2 else ""
    kind = chooser.randrange(8)
    update = _update(chooser, "x[i, j]")
    if atomic and ("far" in update or "(" in update.split("=")[0]):
        atomic = ""
    meets = ", ".join(name for name in ("s", "t") if f"{name} " in update or f"{name}, " in update or f", {name})" in update)
    op = chooser.choice(["+=", "-=", "max=", "min=", *([] if atomic else ["far="])])
    body = {
        0: f"par n |i| reduce({meets}){atomic} {{ par m |j| reduce({meets}) {{ {update} }} }}",
        1: f"par n |i| reduce({meets}) {{ seq m |j| {{ {update} }} }}",
        2: f"seq m |j| {{ par n |i| reduce({meets}){atomic} {{ {update} }} }}",
        3: f"par n |i| {{ par m |j| reduce(y){atomic} {{ y[i] {op} x[i, j] }} }}",
        4: f"par m |j| reduce(y){atomic} {{ par n |i| {{ y[i] {op} x[i, j] }} }}",
        5: f"par n |i| reduce(h){atomic} {{ h[at[i]] {op} i32(i) + 1 }}",
        6: f"par n |i| reduce(h) {{ par m |j| reduce(h) {{ h[(i + j) % 4] {op} x[i, j] }} }}",
        7: f"par n |i| {{ par m |j| reduce(y){atomic} {{ y[i] {op} at[i] * i32(j) }} }}",
    }[kind]
    return f"{HEAD}{SIGNATURE}{FACTS}{{\n new z: i32[1]\n z[0] = 5\n {body}\n return z\n}}"


def _given(seed: int, n: int, m: int) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(seed)
    return {
        "x": numbers.integers(-9, 10, (n, m)).astype(np.int32),
        "at": numbers.integers(0, 4, n).astype(np.int32),
        "s": np.array(2, np.int32),
        "t": np.array(3, np.int32),
        "y": numbers.integers(-9, 10, n).astype(np.int32),
        "h": numbers.integers(-9, 10, 4).astype(np.int32),
    }


def _same(before: Function, after: Function, seed: int) -> bool:
    for n, m in ((0, 3), (1, 1), (5, 3), (17, 4), (3, 0)):
        given = _given(seed, n, m)
        want, got = interpret(before, given), interpret(after, given)
        if any(not np.array_equal(got[name], want[name]) for name in want):
            return False
    return True


def _form(after: Function) -> str:
    """What became of the reduction."""
    loops = [s for s in ir.walk(after.body) if isinstance(s, ir.Par)]
    if any(is_atomic(p) for p in loops):
        return "atomic"
    if not any(p.reduce for p in loops):
        return "in order"
    return "split" if any(isinstance(s, ir.New) and "parts" in s.buffer.name for s in after.body) else "team"


def test_arranged_reductions_mean_the_same() -> None:
    forms: Counter[str] = Counter()
    for seed in range(70):
        before = parse(_program(seed), "reduction.te").functions[0]
        assert not check(before), f"{_program(seed)}\n{check(before)[0]}"
        after = arrange(before, Reductions(random.Random(seed).choice([1, 2, 3, 7, 4096])))
        program_verify.verify(ir.Program((after,)))
        assert _same(before, after, seed), f"seed {seed}\n{_program(seed)}"
        forms[_form(after)] += 1
        _check_forms(after)
    assert min(forms[form] for form in ("atomic", "in order", "split", "team")) >= 3, forms


@pytest.mark.parametrize(
    ("body", "form"),
    [
        ("par n |i| { par m |j| reduce(y) { y[i] += x[i, j] } }", "team"),
        ("par n |i| { par m |j| reduce(y) { y[i] += at[i] * i32(j) } }", "in order"),
    ],
)
def test_rows_are_summed_into_what_is_there_by_teams(body: str, form: str) -> None:
    """Threads side by side read a row side by side; where they would all read the same, one makes the sum."""
    before = parse(f"{HEAD}{SIGNATURE}{FACTS}{{\n new z: i32[1]\n z[0] = 5\n {body}\n return z\n}}").functions[0]
    assert _form(arrange(before, Reductions(4096))) == form


def _check_forms(after: Function) -> None:
    """Every `par … reduce` left is atomic, or its accumulators do not depend on its index."""
    for stmt in ir.walk(after.body):
        if isinstance(stmt, ir.Par) and stmt.reduce and not is_atomic(stmt):
            for bind in (s for s in ir.walk(stmt.body) if isinstance(s, ir.Bind) and s.update is not None):
                met = [t for t in bind.targets if t.buffer in stmt.reduce]
                assert not any(stmt.sym in e.syms() or t.data for t in met for e in (*t.index, *t.buffer.shape))


def test_differences_joined_by_subtraction_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partial values of `-=` add up: to subtract them again would be wrong."""
    right = parts._join

    def wrong(accumulator: parts.Accumulator, *rest: object) -> ir.Bind:
        bind = right(accumulator, *rest)  # type: ignore[arg-type]
        return ir.Bind(bind.targets, bind.values, accumulator.update, bind.span)

    monkeypatch.setattr(parts, "_join", wrong)
    found = 0
    for seed in range(70):
        before = parse(_program(seed), "reduction.te").functions[0]
        found += not _same(before, arrange(before, Reductions(3)), seed)
    assert found >= 2


WINDOW = """
fn f(x: f32[n], k: f32[5]): f32[n] {
    new y: f32[n]
    let p = pad(x, 2, 2, 0.0)
    par n |i| {
        y[i] = 0.0
        par 5 |a| reduce(y) { y[i] += k[a] * p[i + a] }
    }
    return y
}"""


def _shuffles(text: str, sizes: dict[str, int] | None = None) -> int:
    return driver.lower(driver.parse(text)["f"], "sm_90a", sizes).source.count("__shfl")


def test_a_thread_sums_a_window_by_itself() -> None:
    """A warp for each element would leave most of its lanes idle; but not where there are more terms than it has lanes."""
    assert _shuffles(WINDOW) == 0
    assert _shuffles(WINDOW.replace("5", "33").replace("2, 2", "16, 16")) > 0


def test_a_team_sums_a_window_where_there_is_nothing_else_to_do() -> None:
    assert _shuffles(WINDOW, {"n": 4}) > 0


def test_what_a_schedule_says_of_loops_stays() -> None:
    assert _shuffles(WINDOW.replace("|i| {", "|i| #grid {")) > 0


SCATTERED = """
fn f(at: i32[n], x: f32[n, d], inout y: f32[k, d]) assume at in 0..k {
    par n |i| reduce(y) { par d |j| reduce(y) { y[at[i], j] += x[i, j] } }
}"""
SYMMETRIC = """
fn f(x: f32[n, n], inout y: f32[n, n]) {
    par n |i| reduce(y) { par n |j| reduce(y) {
        y[i, j] += x[i, j]
        y[j, i] += x[i, j]
    } }
}"""


def test_iterations_that_never_meet_need_no_order() -> None:
    """Rows that data choose may be the same row, but columns are apart: a thread for each."""

    def grid(text: str) -> bool:
        return "blockIdx" in driver.lower(driver.parse(text)["f"], "sm_90a").source

    assert grid(SCATTERED) and not grid(SYMMETRIC)


def test_ways_are_asked_by_rank_and_the_last_one_is_always_one() -> None:
    assert [way.rank for way in WAYS] == sorted(way.rank for way in WAYS)
    assert {way.rank for way in WAYS} == {*Rank}
    assert WAYS[-1].rank is Rank.ORDER


@pytest.mark.parametrize(("rank", "form"), [(Rank.ATOMIC, "atomic"), (Rank.TEAM, "team"), (Rank.PARTS, "split")])
def test_what_one_way_is_not_for_another_one_makes(rank: Rank, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table without the ways of one rank is slower code, never wrong code."""
    programs = [(seed, parse(_program(seed), "reduction.te").functions[0]) for seed in range(70)]
    whole = Counter(_form(arrange(before, Reductions(3))) for _, before in programs)
    monkeypatch.setattr(reductions, "WAYS", tuple(way for way in WAYS if way.rank is not rank))
    forms: Counter[str] = Counter()
    for seed, before in programs:
        after = arrange(before, Reductions(3))
        assert _same(before, after, seed), f"seed {seed}\n{_program(seed)}"
        forms[_form(after)] += 1
    assert forms[form] < whole[form]
