"""Faults put into programs as they are laid out, each as a directive could make it: none is proved, and it is told why."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from tests.proof.schedule.trials import is_proved

from texpr import driver
from texpr.frontend import parse
from texpr.ir import program as ir
from texpr.ir.program.text import print_program
from texpr.ir.proof import Proof, Verdict
from texpr.ir.proof.notes_text import noted, notes_text
from texpr.planner.strategies import pitched
from texpr.planner.table import STRATEGIES
from texpr.proof.schedule import faithful
from texpr.support.record import replace

EXAMPLES = Path(__file__).parents[3] / "examples"


@cache
def laid(name: str) -> tuple[ir.Function, str, str]:
    """A function as it was written; laid out for a GPU, as text; and the notes of that."""
    name, _, dtype = name.partition(" of ")
    text = (EXAMPLES / f"{name}.te").read_text(encoding="utf-8")
    (function,) = parse(text.replace("bf16", dtype or "bf16")).functions
    with pytest.MonkeyPatch.context() as patch:  # with nothing copied ahead, so that lanes bring elements, and test for ends
        patch.setattr("texpr.planner.plan.STRATEGIES", tuple(each for each in STRATEGIES if each is not pitched.STRATEGY))
        compiled = driver.lower(function, "sm_90a", schedule="auto")
    assert compiled.written is not None
    text = print_program(ir.Program((replace(compiled.function, schedules=()),)))
    return compiled.written, text, notes_text(compiled.function)


def proof(name: str, old: str = "", new: str = "", times: int = 1) -> Proof:
    """What is shown where the first `times` of `old` are `new`."""
    written, text, notes = laid(name)
    assert old in text
    return faithful(written, noted(parse(text.replace(old, new, times)).functions[0], notes))


PLANTED = [
    (
        "a tile of A one column over",
        "matmul of f32",
        "A_s_1 + 16 * k_o]",
        "A_s_1 + 16 * k_o + 1]",
    ),
    ("the other slot of a ring is read", "matmul of f32", "B_s[(k_o + 1) % 2, k_i, j", "B_s[k_o % 2, k_i, j"),
    ("a ring of one slot", "matmul of f32", "B_s[k_o % 2, B_s_0, B_s_1]", "B_s[0, B_s_0, B_s_1]"),
    ("the last part of a sum is left out", "matmul of f32", "seq (K + 15) / 16 + 1 |k_o|", "seq (K + 15) / 16 |k_o|"),
    (
        "a sum begins somewhere else",
        "matmul of f32",
        "C_acc[i_t_1, j_t_1, i_v_1, j_v_1] =",
        "C_acc[j_t_1, i_t_1, i_v_1, j_v_1] =",
    ),
    (
        "tiles come back turned round",
        "matmul of f32",
        "= C_acc[C_acc_out_0, C_acc_out_1, ",
        "= C_acc[C_acc_out_1, C_acc_out_0, ",
    ),
    ("a rim is no tile", "matmul of f32", "par (M + 127) / 128 |i_b|", "par M / 128 |i_b|"),
    ("a rim does not add", "matmul of f32", "if 128 * i_b + i_t + 16 * i_v_2 < M", "if 128 * i_b + i_t + 16 * i_v_2 + 1 < M"),
    (
        "a `par` races",
        "matmul of f32",
        "seq min(K - 16 * k_o + 16, 16) |k_i| reduce(C_acc)",
        "par min(K - 16 * k_o + 16, 16) |k_i|",
    ),
    (
        "a rim reaches into the next row",
        "matmul_flat",
        "16 * C_acc_out_3 + 128 * j_b < N {",
        "16 * C_acc_out_3 + 128 * j_b < N + 1 {",
    ),
    ("a halo is short", "jacobi", "par 4356 |now_s_0_m|", "par 4290 |now_s_0_m|"),
    ("a tile is of the other array", "jacobi", "] = now[64 *", "] = next[64 *"),
    ("a row of tiles is left out", "jacobi", "par (H + 61) / 64 |i_2_b| {", "par (H + 61) / 64 - 1 |i_2_b| {"),
    # a product by instructions of lanes
    ("lanes load the next rows", "matmul", "A_s[(k_o + 1) % 3, i + ", "A_s[(k_o + 1) % 3, 1 + i + "),
    ("lanes load another part of the sum", "matmul", "j + 16 * k_i_o]", "j]"),
    ("lanes load for the wrong warp", "matmul", "64 * (group / 2), j + 16 * k_i_o]", "64 * (group % 2), j + 16 * k_i_o]"),
    ("registers of a are others", "matmul", "8 * i_m_o_1 + 2 * (i / 8) + j % 2", "8 * i_m_o_1 + 2 * (i / 8) + (j + 1) % 2"),
    ("lanes of b are others", "matmul", "i_1 / 2 % 4 + 4 * (j_1 % 8)", "i_1 % 4 + 4 * (j_1 % 8)"),
    (
        "an instruction sums up in another tile",
        "matmul",
        "32 * i_m_o_2 + 4 * j_m_o_2 + 2 * (i_2 / 8)",
        "32 * i_m_o_2 + 4 * j_m_o_2 + 2 * (i_2 % 2)",
    ),
    ("an instruction takes another tile", "matmul", "4 * (i_2 % 8), 8 * i_m_o_2 +", "4 * (i_2 % 8), 8 * (i_m_o_2 / 2) +"),
    ("rows of the result are others", "matmul", "= C_acc[lane_1, ", "= C_acc[127 - lane_1, "),
    ("lanes of the result are others", "matmul", "lane_1 / 4 % 8 + 64", "lane_1 % 8 + 64"),
    ("the other slot of a ring is loaded", "matmul", "A_s[(k_o + 1) % 3, i", "A_s[k_o % 3, i"),
    ("the last part of a product is left out", "matmul", "seq (K + 31) / 32 + 2 |k_o|", "seq (K + 31) / 32 + 1 |k_o|"),
    ("holes of the sum are not filled", "matmul", "B_s[k_o % 3, B_s_0, B_s_1] = 0\n", "B_s[k_o % 3, B_s_0, B_s_1] = inf\n"),
    ("a hole of the result is stored", "matmul", "64 * (lane_1 / 64) < M {", "64 * (lane_1 / 64) < M + 1 {"),
    ("the tile is not begun", "matmul", "seq 4 |r| {", "seq 3 |r| {"),
]


@pytest.mark.parametrize(("name", "old", "new"), [each[1:] for each in PLANTED], ids=[each[0] for each in PLANTED])
def test_faults_are_not_proved(name: str, old: str, new: str) -> None:
    found = proof(name, old, new)
    assert not is_proved(found)
    (told, *_) = (*found.of(Verdict.REFUSED), *found.of(Verdict.UNDECIDED))
    assert told.what and told.about and told.how


@pytest.mark.parametrize("name", sorted({name for _, name, _, _ in PLANTED}))
def test_the_right_texts_are(name: str) -> None:
    assert is_proved(proof(name))


INLINED = """
fn folded(x: f32[8, 4]): f32[8] {
    new y: f32[8]
    new t: f32[8, 4]
    par 8 |i| { par 4 |j| { t[i, j] = 2.0 * x[i, j] } }
    par 8 |k| { y[k] = t[k, 1] }
    return y
}
schedule folded { inline(t) }
"""


@pytest.mark.parametrize(
    ("old", "new", "right"),
    [("x[k, 1]", "x[k, 1]", True), ("x[k, 1]", "x[k, 2]", False), ("x[k, 1]", "x[1, k]", False)],
)
def test_what_is_written_out_is_the_element_that_was_read(old: str, new: str, right: bool) -> None:
    (function,) = parse(INLINED).functions
    compiled = driver.lower(function, "sm_90a", schedule=function.schedules[0])
    text = print_program(ir.Program((replace(compiled.function, schedules=()),)))
    assert old in text
    found = faithful(function, noted(parse(text.replace(old, new)).functions[0], notes_text(compiled.function)))
    assert is_proved(found) is right


TWICE = """
fn folded(x: f32[8, 4]): f32[8] {
    new y: f32[8]
    new t: f32[11]
    seq 8 |i| { seq 4 |j| { t[i + j] = 2.0 * x[i, j] } }
    par 8 |k| { y[k] = t[k] }
    return y
}
"""
WRITTEN_OUT = """
fn folded(x: f32[8, 4]): f32[8] {
    new y: f32[8]
    par 8 |k| { y[k] = 2.0 * x[k, 0] }
    return y
}
"""


def test_what_two_instances_make_is_not_written_out() -> None:
    """The last of them gives an element its value: which that is its subscripts do not say."""
    function, laid = (parse(text).functions[0] for text in (TWICE, WRITTEN_OUT))
    assert not is_proved(faithful(function, noted(laid, "notes folded statements 1 { statement 0 does 1 [k] }")))


def by_hand(written: str, laid: str, *notes: str) -> Proof:
    """What is shown of a program that was laid out by hand; `notes`: one each of its statements, of copies an empty one."""
    function, other = (parse(text).functions[0] for text in (written, laid))
    said = " ".join(f"statement {at} does {note}" for at, note in enumerate(notes) if note)
    return faithful(function, noted(other, f"notes {other.name} statements {len(notes)} {{ {said} }}"))


LEAST = """
fn least(a: i8[n], b: i8[n]): i16 {
    new y: i16
    y = 32767
    par n |k| reduce(y) { y min= i16((a[k] * a[k] + b[k]) * a[k]) }
    return y
}
"""
LEAST_OF_MORE = """
fn least(a: i8[n], b: i8[n]): i16 {
    new y: i16
    new s: i8[n + 1]
    new t: i8[n + 1]
    y = 32767
    par n |i| { s[i] = a[i] }
    par n |j| { t[j] = b[j] }
    s[n] = 31
    t[n] = 96
    seq n + 1 |k| { y min= i16((s[k] * s[k] + t[k]) * s[k]) }
    return y
}
"""
FIRST = """
fn first(x: f32[n], at: i32[n]): (f32, i32) {
    new top: f32
    new row: i32
    top = -inf
    row = 7
    par n |k| reduce(top, row) { (top, row) max= (x[k], at[k]) }
    return (top, row)
}
"""
FIRST_OF_MORE = """
fn first(x: f32[n], at: i32[n]): (f32, i32) {
    new top: f32
    new row: i32
    new s: f32[n + 1]
    new t: i32[n + 1]
    top = -inf
    row = 7
    par n |i| { s[i] = x[i] }
    par n |j| { t[j] = at[j] }
    s[n] = -inf
    t[n] = -2147483648
    seq n + 1 |k| reduce(top, row) { (top, row) max= (s[k], t[k]) }
    return (top, row)
}
"""


def test_holes_hold_what_changes_nothing_in_their_type() -> None:
    """31 · 31 · 31 + 96 · 31 is 32767, which changes no minimum; but not in eight bits. Of pairs no hole is neutral."""
    assert not is_proved(by_hand(LEAST, LEAST_OF_MORE, "0 []", "", "", "", "", "1 [k]"))
    assert not is_proved(by_hand(FIRST, FIRST_OF_MORE, "0 []", "1 []", "", "", "", "", "2 [k]"))


TESTED = """
fn tested(x: f32[n], z: f32[1]): f32 {
    new y: f32
    new w: f32
    w = z[0]
    y = 0.0
    par n |k| reduce(y) { if w > 0.0 { y += x[k] } }
    return y
}
"""
TESTED_OF_MORE = """
fn tested(x: f32[n], z: f32[1]): f32 {
    new y: f32
    new s: f32[n + 1]
    new w: f32
    w = z[0]
    y = 0.0
    par n |i| { s[i] = x[i] }
    s[n] = 0.0
    seq n + 1 |k| { if w > 0.0 { y += s[k] } }
    return y
}
"""


def test_holes_may_be_tested() -> None:
    assert is_proved(by_hand(TESTED, TESTED_OF_MORE, "0 []", "1 []", "", "", "2 [k]"))


GATHERED = """
fn gathered(at: i32[n], to: i32[n], x: f32[m]): (f32[n], i32[n])
    assume at in 0..m, to in 0..m
{
    new y: f32[n]
    new z: i32[n]
    par n |i| {
        let d = at[i]
        let e = to[i]
        y[i] = x[d] + x[at[i]]
        z[i] = index(e)
    }
    return (y, z)
}
"""


@pytest.mark.parametrize(
    ("old", "new", "first", "second"),
    [
        ("let d = at[i]", "let d = to[i]", "", "1 [i]"),
        ("x[at[i]]", "x[i8(at[i])]", "0 [i]", "1 [i]"),
        ("let d = at[i]\n        let e = to[i]", "let e = at[i]\n        let d = to[i]", "0 [i]", "1 [i]"),
        ("z[i] = index(e)", "z[i] = index(d)", "1 [i]", "0 [i]"),
    ],
    ids=["a number that is not noted", "one that wraps", "two change names", "and what they are noted as"],
)
def test_numbers_that_data_say_are_the_same(old: str, new: str, first: str, second: str) -> None:
    assert old in GATHERED
    assert is_proved(by_hand(GATHERED, GATHERED, "0 [i]", "1 [i]", "2 [i]", "3 [i]"))
    assert not is_proved(by_hand(GATHERED, GATHERED.replace(old, new), first, second, "2 [i]", "3 [i]"))


NUMBERED = """
fn numbered(at: i32[n], to: i32[n]): i32[n] {
    new z: i32[n]
    par n |i| {
        let d = at[i]
        let e = to[i]
        z[i] = index(d)
    }
    return z
}
"""


def test_what_a_number_is_called_says_nothing() -> None:
    other = NUMBERED.replace("d = at", "d = to").replace("e = to", "e = at")
    assert not is_proved(by_hand(NUMBERED, other, "1 [i]", "0 [i]", "2 [i]"))
    assert is_proved(by_hand(NUMBERED, other.replace("index(d)", "index(e)"), "1 [i]", "0 [i]", "2 [i]"))


SUM = """
fn sum(x: f32[n, m]): f32[n] {
    new y: f32[n]
    new c: f32[n]
    par n |i| { c[i] = 0.0 }
    par n |j| { par m |k| reduce(c) { c[j] += x[j, k] } }
    par n |l| { y[l] = c[l] }
    return y
}
"""
JOINED = """
fn sum(x: f32[n, m]): f32[n] {
    new y: f32[n]
    new c: f32[n]
    new h: f32[n]
    new p: f32[n]
    par n |a| { c[a] = 0.0 }
    par n |i| { p[i] = 0.0 }
    par n |j| { seq m |k| { p[j] += x[j, k] } }
    par n |b| { c[b] += p[b] }
    par n |l| { y[l] = c[l] }
    return y
}
"""


@pytest.mark.parametrize(
    ("written", "laid", "right"),
    [
        (SUM, JOINED, True),
        (SUM, JOINED.replace("c[a] = 0.0", "h[a] = 0.0"), False),
        (SUM.replace("+=", "-="), JOINED.replace("+=", "-="), False),
    ],
    ids=["a part of a sum", "it is joined with nothing", "differences are taken from what they are joined with"],
)
def test_parts_are_joined_with_what_is_there(written: str, laid: str, right: bool) -> None:
    assert is_proved(by_hand(written, laid, "0 [a]", "", "1 [j, k]", "", "2 [l]")) is right


RAISED = "fn raised(inout x: f32[n]) { par n |i| { x[i] += 1.0 } }"
RAISED_ELSEWHERE = """
fn raised(inout x: f32[n]) {
    new t: f32[n]
    par n |a| { t[a] = x[a] }
    par n |i| { t[i] += 1.0 }
    par n |b| { x[b] = t[b] }
}
"""


def test_what_callers_gave_is_brought() -> None:
    assert is_proved(by_hand(RAISED, RAISED_ELSEWHERE, "", "0 [i]", ""))
    lines = RAISED_ELSEWHERE.replace("    par n |a| { t[a] = x[a] }\n", "")
    assert not is_proved(by_hand(RAISED, lines, "0 [i]", ""))


TWO = """
fn two(x: f32[2]): f32[2] {
    new y: f32[2]
    new c: f32
    c = x[0]
    y[0] = c
    c = x[1]
    y[1] = c
    return y
}
"""
TWO_PLACES = """
fn two(x: f32[2]): f32[2] {
    new y: f32[2]
    new c: f32[2]
    c[0] = x[0]
    y[0] = c[0]
    c[1] = x[1]
    y[1] = c[1]
    return y
}
"""


def test_an_element_that_changed_at_another_place_is_not_at_the_first() -> None:
    notes = "0 []", "1 []", "2 []", "3 []"
    assert is_proved(by_hand(TWO, TWO_PLACES, *notes))
    assert not is_proved(by_hand(TWO, TWO_PLACES.replace("y[1] = c[1]", "y[1] = c[0]"), *notes))


COPIED = "fn copied(x: f32[n]): f32[n] {\n    new y: f32[n]\n    par n |i| { y[i] = x[i] }\n    return y\n}"
COPIED_OVER = """
fn copied(x: f32[n]): f32[n] {
    new y: f32[n]
    par n |i| {
        par 2 |j| {
            if j == 0 { y[i] = x[i] }
            if j == 1 { y[i] = y[i] }
        }
    }
    return y
}
"""


def test_a_copy_of_what_is_there_races() -> None:
    assert not is_proved(by_hand(COPIED, COPIED_OVER, "0 [i]", ""))
    assert is_proved(by_hand(COPIED, COPIED_OVER.replace("par 2", "seq 2"), "0 [i]", ""))


IN_TURN = """
fn sum(x: f32[n, m]): f32[n] {
    new y: f32[n]
    new c: f32[n]
    new p: f32[n]
    par n |a| { c[a] = 0.0 }
    par n |j| {
        seq m |k| {
            if k == 0 { p[j] = c[j] }
            p[j] += x[j, k]
            if k == m - 1 { c[j] = p[j] }
        }
    }
    par n |l| { y[l] = c[l] }
    return y
}
"""


def test_only_updates_meet_where_a_loop_reduces() -> None:
    notes = "0 [a]", "", "1 [j, k]", "", "2 [l]"
    assert is_proved(by_hand(SUM, IN_TURN, *notes))
    assert not is_proved(by_hand(SUM, IN_TURN.replace("seq m |k|", "par m |k| reduce(p, c)"), *notes))


def test_only_joins_meet_in_the_engine() -> None:
    """A statement of the written program is not one step of the engine, whatever its loop is marked as."""
    marked = SUM.replace("par m |k| reduce(c)", "par m |k| #tma")
    assert not is_proved(by_hand(SUM, marked, "0 [i]", "1 [j, k]", "2 [l]"))


ROWS = "fn rows(x: f32[n, n]): f32[n] {\n    new y: f32[n]\n    par n |i| { y[i] = x[i, 0] }\n    return y\n}"
ANOTHER = """
fn rows(x: f32[n, n]): f32[n] {
    new y: f32[n]
    new t: f32[n]
    par n |i| { t[i] = x[i, 0] }
    par n |j| { y[j] = x[j, 0] }
    return y
}
"""


def test_what_is_brought_to_a_result_is_its_own() -> None:
    found = by_hand(ROWS, ANOTHER, "0 [i]", "")
    assert not is_proved(found)
    assert any(each.what == "what is read is there" for each in found.of(Verdict.UNDECIDED))


MIRRORED = """
fn mirrored(x: f32[n]): f32[n] {
    new t: f32[n]
    new y: f32[n]
    par n |i| { t[i] = 2.0 * x[i] }
    par n |j| { y[j] = t[j] + t[n - 1 - j] }
    return y
}
"""
MADE_ANEW = """
fn mirrored(x: f32[n]): f32[n] {
    new y: f32[n]
    par n |j| {
        new u: f32[2]
        u[0] = 2.0 * x[j]
        u[1] = 2.0 * x[n - 1 - j]
        y[j] = u[0] + u[1]
    }
    return y
}
"""


def test_what_is_made_anew_is_what_is_read_there() -> None:
    assert is_proved(by_hand(MIRRORED, MADE_ANEW, "", "", "1 [j]"))
    assert not is_proved(by_hand(MIRRORED, MADE_ANEW.replace("x[n - 1 - j]", "x[j]"), "", "", "1 [j]"))
