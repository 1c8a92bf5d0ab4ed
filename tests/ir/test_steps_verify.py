"""Every rule of the steps form, each with a planted fault that it alone catches; and what is no text of the form."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from tests.snapshot import ROOT

from texpr import driver
from texpr.frontend import parse
from texpr.ir import program as ir
from texpr.ir.steps import Branch, Loop, Step, Steps
from texpr.ir.steps.parse import parse_steps
from texpr.ir.steps.text import steps_text
from texpr.ir.steps.threads import ALL, ONE, Threads
from texpr.ir.steps.verify import RULES, verify
from texpr.ir.steps.work import End
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.record import replace

PROGRAM = """
fn turn(x: f32[n, 64], m: i32): f32[n, 64] {
    new y: f32[n, 64]
    par n |i| {
        new t: f32[64]
        if m > 0 {
            par 64 |j| { t[j] = 2 * x[i, j] }
        } else {
            par 64 |j| { t[j] = x[i, j] }
        }
        par 64 |j| { y[i, j] = t[63 - j] }
    }
    return y
}

fn sums(x: f32[n, 512]): f32[n] {
    new y: f32[n]
    par n |i| {
        y[i] = 0
        seq 2 |k| reduce(y) {
            par 256 |j| reduce(y) { y[i] += x[i, 256 * k + j] }
        }
    }
    return y
}
"""


@cache
def good(name: str) -> Steps:
    if name == "engine":
        (function, *_) = driver.load(ROOT / "examples" / "tma" / "matmul.te").functions
        return driver.lower(function, "sm_90a", schedule=function.schedules[0]).notes[0].steps
    function = next(each for each in parse(PROGRAM, "planted.te").functions if each.name == name)
    return driver.lower(function, "sm_90a", schedule=None).notes[0].steps


def broken(steps: Steps) -> set[str]:
    """The rules that a form breaks."""
    return {rule.__name__ for rule in RULES if list(rule(steps))}


def between(steps: Steps) -> Steps:
    """A step of work between what decides a branch and the branch."""
    at = next(n for n, node in enumerate(steps.body) if isinstance(node, Branch))
    made = next(node for node in steps.body if isinstance(node, Step) and node.writes)
    return replace(steps, body=(*steps.body[:at], made, *steps.body[at:]))


def with_body(steps: Steps) -> Steps:
    """A loop of the team whose statement says its body again."""
    at, loop = next((n, node) for n, node in enumerate(steps.body) if isinstance(node, Loop))
    inner = next(node for node in loop.body if isinstance(node, Step))
    made = Loop(replace(loop.stmt, body=inner.stmts), loop.body)
    return replace(steps, body=(*steps.body[:at], made, *steps.body[at + 1 :]))


def labelled(steps: Steps) -> Steps:
    """A loop that says more than counts."""
    last = steps.body[-1]
    assert isinstance(last, Step) and isinstance(last.stmt, ir.Par)
    return replace(steps, body=(*steps.body[:-1], replace(last, stmts=(replace(last.stmt, label="last"),))))


TEXTS = [
    ("threads_are_of_the_team", "turn", "all spread reads t writes y", "thread 64 spread reads t writes y"),
    ("threads_are_of_the_team", "turn", "all spread reads t writes y", "threads 0..32 spread reads t writes y"),
    ("threads_are_of_the_team", "turn", "all spread reads t writes y", "threads 0.. by 32 spread reads t writes y"),
    ("digits_fit", "turn", "dealt j by 64:1", "dealt j by 128:1"),
    ("digits_fit", "turn", "dealt j by 64:1", "dealt j by 32:1, 2:16 * 32"),
    ("loops_are_dealt", "turn", "    dealt j by 64:1\n", ""),
    ("loops_are_dealt", "turn", "dealt j by 64:1", "dealt j by 64:1 meets"),
    ("loops_are_dealt", "sums", "by 64:1 meets", "by 64:1"),
    ("indices_are_coordinates", "turn", "axis grid.x i < n", "axis grid.x b < n"),
    ("statements_are_well_formed", "turn", "t[j] = (2.0:f32 * x[i, j])", "t[j] = (2.0:f32 * x[i, q])"),
    ("statements_are_well_formed", "turn", "t[j] = (2.0:f32 * x[i, j])", "t[j] = (2.0:f32 * x[j])"),
    ("locals_have_places", "turn", "array shared t: f32[64]", "array shared t: f32[64, 1]"),
    ("locals_have_places", "engine", "in Cr slots [16, 16, 1, 1]", "in Cr leading [bi]"),
    ("effects_are_told", "turn", "all spread reads t writes y", "all spread reads t"),
    ("effects_are_told", "turn", "all spread reads t writes y", "all spread reads t through async writes y"),
    ("effects_are_told", "engine", "writes Bs through async", "writes Bs"),
    ("reductions_are_whole", "sums", " warps y_own_warps\n{", "\n{"),
    ("reductions_are_whole", "sums", "all total j reads y writes y\n", ""),
    ("reductions_are_whole", "sums", "    reduction j own y_own: f32 warps y_own_warps\n", ""),
    ("engines_are_told", "engine", " completes at Bs_As_full {", " {"),
    ("engines_are_told", "engine", " completes at Bs_As_full {", " completes at As {"),
    ("engines_are_told", "engine", " completes at Bs_As_full {", " completes group bulk {"),
    ("engines_are_told", "engine", "thread 0 issue", "all issue"),
    ("engines_are_told", "engine", "= B_map[", "= C_map["),
    ("engines_are_told", "turn", "all spread reads t writes y", "all spread reads t writes y completes at t"),
    ("order_is_by_operations", "turn", "all order {\n", "thread 0 order {\n"),
    ("order_is_by_operations", "turn", "barrier block covers", "t[0] = 0:f32  barrier block covers"),
    ("branches_are_decided", "turn", "all decide decided reads m", "thread 0 decide decided reads m"),
]
"""A rule, a form, what stands in its text, and what to put there instead."""

MADE: list[tuple[str, str, Callable[[Steps], Steps]]] = [
    ("names_are_words", "turn", lambda steps: replace(steps, function="two words")),
    ("names_differ", "turn", lambda steps: replace(steps, arrays=(*steps.arrays, *steps.arrays))),
    ("locals_have_places", "turn", lambda steps: replace(steps, places=())),
    ("branches_are_decided", "turn", between),
    ("heads_have_no_bodies", "sums", with_body),
    ("statements_are_well_formed", "turn", lambda steps: labelled(steps)),
    ("ends_are_last", "turn", lambda steps: replace(steps, body=(*steps.body, Step(ALL, End())))),
]
"""Faults that no text can have."""


@pytest.mark.parametrize("name", ["turn", "sums", "engine"])
def test_a_form_keeps_the_rules(name: str) -> None:
    verify(good(name))
    verify(parse_steps(steps_text(good(name))))


@pytest.mark.parametrize(("rule", "name", "old", "new"), TEXTS)
def test_a_fault_in_the_text_is_caught(rule: str, name: str, old: str, new: str) -> None:
    text = steps_text(good(name))
    assert old in text
    wrong = parse_steps(text.replace(old, new))
    assert broken(wrong) == {rule}
    with pytest.raises(CompilerBug, match=rule):
        verify(wrong)


@pytest.mark.parametrize(("rule", "name", "change"), MADE, ids=[rule for rule, _, _ in MADE])
def test_a_fault_in_the_form_is_caught(rule: str, name: str, change: Callable[[Steps], Steps]) -> None:
    assert broken(change(good(name))) == {rule}


def test_every_rule_has_a_fault() -> None:
    assert {rule for rule, *_ in (*TEXTS, *MADE)} == {rule.__name__ for rule in RULES}


UNREADABLE = [
    ("sums", "all total j ", "all total k ", "no share of a reduction over `k`"),
    ("turn", "choose decided ", "choose other ", "`other` is not decided"),
    ("turn", "place t: f32[64] in t", "place t: f32[64] in s", "no buffer `s`"),
    ("turn", "all spread reads t", "all scatter reads t", "`scatter` is no kind of work"),
    ("turn", "all spread reads t writes y", "warp spread reads t writes y", "`warp` begins no step"),
    ("turn", "reads t writes y", "reads t through air writes y", "`air` is no proxy"),
    ("turn", "dealt j by 64:1", "dealt j by 64", "expected `:`"),
    ("turn", "threads 64", "thread 64", "`thread` begins no clause of steps"),
    ("sums", "repeat seq 2", "repeat par 2", "is a `seq`"),
    ("engine", "#tma(128, 32, 32)", "#tma(tile)", "no words of `#tma`"),
    ("engine", "completes at Bs_As_full", "completes group nothing", "`nothing` is no kind of group"),
    ("turn", "iteration {", "{", "begins no step|expected threads"),
]


@pytest.mark.parametrize(("name", "old", "new", "said"), UNREADABLE)
def test_what_is_no_form_is_refused_where_it_stands(name: str, old: str, new: str, said: str) -> None:
    text = steps_text(good(name))
    assert old in text
    with pytest.raises(TexprError, match=said) as refused:
        parse_steps(text.replace(old, new))
    assert [each.code for each in refused.value.diagnostics] == ["E0581"]


@pytest.mark.parametrize("name", ["turn", "sums", "engine"])
def test_a_text_that_ends_too_early_is_refused(name: str) -> None:
    text = steps_text(good(name))
    for end in range(0, len(text) - 2, 97):
        with pytest.raises(TexprError):
            parse_steps(text[:end])


@pytest.mark.parametrize(
    ("threads", "numbers"),
    [
        (ALL, range(64)),
        (ONE, range(1)),
        (Threads(32, 64), range(32, 64)),
        (Threads(0, None, 32), range(0, 64, 32)),
        (Threads(8, 24, 4), range(8, 24, 4)),
    ],
)
def test_a_set_of_threads_is_a_value(threads: Threads, numbers: range) -> None:
    assert threads.of(64) == numbers
    assert threads.is_one == (len(numbers) == 1)
    assert threads.is_all == (threads == ALL)
