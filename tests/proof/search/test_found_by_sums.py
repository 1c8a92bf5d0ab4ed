"""Plans of sums that are right and were refused by wrong tags, as random schedules found them: each class by its cause."""

from __future__ import annotations

import pytest
from tests.proof.plan.verdicts import open_of
from tests.schedule.laid import laid

from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.proof.search import proved

TURNED = """
fn turned(x: i32[n, m]): i32 {
    new s: i32 = 5
    new t: i32[m, n]
    par m |j| { par n |i| { t[j, i] = 0  t[j, i] += x[i, j] } }
    par m |k| reduce(s) { par n |l| reduce(s) { s += t[k, l] } }
    return s
}"""
NESTED = """
fn nested(x: i32[13, 11]): i32 {
    new s: i32 = 5
    par 13 |i| reduce(s) {
        new t: i32[11]
        par 11 |j| { FIRST }
        par 11 |k| reduce(s) { s += t[k] }
    }
    return s
}"""
ONES = """
fn ones(x: i32[7, 5]): i32[7] {
    new y: i32[7]
    par 7 |i| {
        new t: i32[1]
        par 1 |a| { t[a] = 0  par 100 |b| reduce(t) { if b < 5 { t[a] += x[i, b] } } }
        new u: i32[1]
        par 1 |c| { u[c] = 0  par 3 |d| reduce(u) { if d < 1 { u[c] += t[d] } } }
        y[i] = u[0]
    }
    return y
}"""
BEFORE = """
fn before(x: i32[7]): i32[7] {
    new y: i32[7]
    new s: i32 = 1
    seq 7 |i| {
        y[i] = s
        if x[i] > 0 { s += x[i] }
    }
    return y
}"""
RUNNING = """
fn running(x: i32[ROWS, 5]): i32[ROWS, 5] {
    new y: i32[ROWS, 5]
    par ROWS |i| {
        new s: i32 = 2
        seq 5 |j| {
            s += x[i, j]
            y[i, j] = s
        }
    }
    return y
}"""
LONG = """
fn long(x: i32[ROWS, COLUMNS]): i32 {
    new s: i32 = 5
    par ROWS |i| reduce(s) { par COLUMNS |j| reduce(s) { s += x[i, j] * (i32(j) + 1) } }
    return s
}"""
FIRST = {"a sum": "t[j] = 0  t[j] += x[i, j] * (i32(j) + 1)", "one element": "t[j] = x[i, j] * (i32(j) + 1)"}


def left(text: str, words: str) -> list[object]:
    """What is open of a program by a schedule."""
    made = laid(text, words)
    return open_of(proved(made.function, made.plan))


@pytest.mark.parametrize("words", ["bind(k, grid.z)", "bind(j, grid.z)  bind(k, grid.z)", "bind(k, grid.z)  bind(l, grid.x)"])
def test_a_sum_of_what_other_launches_write_is_of_its_own_elements(words: str) -> None:
    """An iteration of a loop around launches reads what all iterations of another one wrote, not its own alone."""
    assert left(TURNED, words) == []


@pytest.mark.parametrize("copies", [2, 4, 13])
@pytest.mark.parametrize("first", FIRST)
def test_what_lanes_take_is_asked_for_though_they_hold_different_elements(first: str, copies: int) -> None:
    assert left(NESTED.replace("FIRST", FIRST[first]), f"unroll(i, {copies})") == []


PLANTED = (
    ("for k in 0..11 uniform", "for k in (thread % 32)..11 by 32"),
    ("for k in 0..11 uniform", "for k in (thread % 2)..11 by 2"),
    ("for k in 0..11 uniform", "for k in 0..11 by 2 uniform"),
    ("if (i32((thread % 32)) == 0:i32)", "if (i32((thread % 32)) == 12:i32)"),
    ("if (i32((thread % 32)) == 0:i32)", "if (i32((thread % 16)) == 0:i32)"),
    ("lane k", "lane k + 1"),
)


@pytest.mark.parametrize(("old", "new"), PLANTED)
def test_what_lanes_take_is_in_the_sum_once(old: str, new: str) -> None:
    made = laid(NESTED.replace("FIRST", FIRST["a sum"]), "unroll(i, 4)")
    text = plan_text(made.plan)
    assert old in text, text
    assert open_of(proved(made.function, parse_plan(text.replace(old, new, 1)))) != []


@pytest.mark.parametrize("words", ["", "bind(i, grid.x)", "bind(i, block.x)"])
def test_arrays_of_one_element_are_no_copies_of_each_other(words: str) -> None:
    assert left(ONES, words) == []


@pytest.mark.parametrize("words", ["scan(i)  serial(i)", "scan(i)  serial(i)  split(i_b, 8) -> (a, b)  bind(a, grid.x)"])
def test_a_chunk_of_each_tile_is_found_again(words: str) -> None:
    assert left(BEFORE, words) == []


@pytest.mark.parametrize("rows", [7, "n"])
def test_values_go_from_register_to_register(rows: int | str) -> None:
    words = "split(i, 16) -> (a, b)  scan(j, 100)  scan(j_m, 3)  stage(s_at_1, at=j_m_c, in=registers) -> h"
    assert left(RUNNING.replace("ROWS", str(rows)), words) == []


@pytest.mark.parametrize("words", ["partial(j, at=i)  bind(j, grid.z)  reorder(j, i_1)", "partial(j)", "partial(i)"])
@pytest.mark.parametrize(("rows", "columns"), [(13, 11), ("n", "m")])
def test_parts_of_sums_are_summed_up_in_any_order(rows: int | str, columns: int | str, words: str) -> None:
    assert left(LONG.replace("ROWS", str(rows)).replace("COLUMNS", str(columns)), words) == []


@pytest.mark.parametrize("copies", [2, 4])
def test_parts_of_a_row_are_summed_up_in_copies_of_their_loop(copies: int) -> None:
    assert left(LONG.replace("ROWS", "13").replace("COLUMNS", "11"), f"partial(j)  unroll(i, {copies})") == []


@pytest.mark.parametrize("words", ["distribute(i)  scan(j)", "distribute(i)  scan(j)  bind(j_e, block.x)"])
@pytest.mark.parametrize("rows", [13, "n"])
def test_of_sums_of_the_same_terms_parts_are_of_the_one_that_takes_them(rows: int | str, words: str) -> None:
    """The running value of a chunk and the sum of a row have the same terms, and registers of like names."""
    assert left(RUNNING.replace("ROWS", str(rows)), words) == []
