"""Sums over rows that have sums of their own: rows by teams, and then the sum; the same results, proved."""

from __future__ import annotations

import pytest
from tests.planner.programs import agrees, blocks, function
from tests.planner.test_phases import planned, said
from tests.proof.plan.verdicts import is_held_to, open_of

from texpr.driver import lower
from texpr.ir import kernel as k
from texpr.ir.program.selection import AUTO
from texpr.proof.search import proved
from texpr.support.diagnostic import TexprError

SUMS = """
fn sums(X: f32[M, N]): (f32, f32) {
    new found: f32
    new most: f32
    found = 1.0
    most = -inf
    par M |i| reduce(found, most) {
        new total: f32 = 0.0
        new least: f32 = inf
        par N |j| reduce(total) { total += X[i, j] }
        par N |j| reduce(least) { least min= X[i, j] }
        let twice = total + total
        found += max(twice, 0.0)
        most max= twice - total
        if total < 3.0 { found -= min(least, 4.0) }
    }
    return (found, most)
}
"""

CHOSEN = """
fn chosen(X: f32[M, N], at: i32[M]): f32
    assume at in 0..N
{
    new loss: f32
    loss = 0.0
    par M |i| reduce(loss) {
        let p = at[i]
        new top: f32 = -inf
        new total: f32 = 0.0
        par N |j| reduce(top) { top max= X[i, j] }
        par N |j| reduce(total) { total += top - X[i, j] }
        loss += total - X[i, p]
    }
    return loss
}
"""

PLANES = """
fn planes(X: i32[B, M, N]): i32 {
    new found: i32
    found = 5
    par B |b| reduce(found) { par M |i| reduce(found) {
        new total: i32
        total = 0
        par N |j| reduce(total) { total += X[b, i, j] }
        found min= total
    } }
    return found
}
"""

APART = """
fn apart(X: f32[B, M, N], inout Y: f32[B]) {
    par B |b| { par M |i| reduce(Y) {
        new total: f32 = 0.0
        par N |j| reduce(total) { total += X[b, i, j] }
        Y[b] += abs(total)
    } }
}
"""

AGAIN = """
fn again(X: f32[M, N]): (f32, f32) {
    new found: f32 = 0.0
    new spread: f32 = 0.0
    par M |i| reduce(found, spread) {
        new top: f32 = -inf
        new total: f32 = 0.0
        par N |j| reduce(top) { top max= X[i, j] }
        par N |j| reduce(spread) { spread += top - X[i, j] }
        par N |j| reduce(total) { total += X[i, j] }
        found += abs(total)
    }
    return (found, spread)
}
"""

COMBINED = """
combine larger(a: f32, b: f32): f32 identity 0.0 { return select(abs(a) > abs(b), a, max(a, b)) }

fn largest(X: f32[M, N]): (f32, i32, i32) {
    new most: f32 = 0.0
    new least: i32 = 2147483647
    new at: i32 = 0
    par M |i| reduce(most, least, at) {
        new total: f32 = 0.0
        par N |j| reduce(total) { total += X[i, j] }
        most larger= abs(total)
        (least, at) min= (i32(N), i32(i))
    }
    return (most, least, at)
}
"""

COLUMNS = """
fn columns(X: f32[M, N]): f32[N] {
    new y: f32[N]
    par N |k| { y[k] = 0.0 }
    par M |i| reduce(y) {
        new total: f32 = 0.0
        par N |j| reduce(total) { total += X[i, j] }
        par N |j| { y[j] += X[i, j] * total }
    }
    return y
}
"""

IN_ORDER = """
fn in_order(X: f32[M, N]): f32 {
    new found: f32 = 0.0
    seq M |i| {
        new total: f32
        total = found
        par N |j| reduce(total) { total += X[i, j] }
        found += total
    }
    return found
}

schedule in_order for cuda { distribute(i, 2, 1) }
"""

KEPT = """
fn kept(X: f32[M, N]): f32 {
    new found: f32 = 0.0
    par M |i| reduce(found) {
        new row: f32[N]
        par N |j| { row[j] = X[i, j] + 1.0 }
        found += row[0]
    }
    return found
}
"""

SUMMED = {
    "sums": SUMS,
    "chosen": CHOSEN,
    "planes": PLANES,
    "apart": APART,
    "again": AGAIN,
    "combined": COMBINED,
    "columns": COLUMNS,
}

SIZES = (
    {"B": 2, "M": 5, "N": 7},
    {"B": 3, "M": 9, "N": 131},
    {"B": 1, "M": 1, "N": 1},
    {"B": 2, "M": 3, "N": 0},
    {"B": 1, "M": 0, "N": 4},
)


def sizes_of(name: str, case: int) -> dict[str, int]:
    named = {s.name for s in function(SUMMED[name]).sizes}
    return {s: size for s, size in SIZES[case].items() if s in named}


@pytest.mark.parametrize("name", SUMMED)
def test_rows_come_first(name: str) -> None:
    found = planned(SUMMED[name])
    assert any(each.startswith("distribute(i") for each in said(found))
    assert len({each.line for each in found.nests}) == len(found.nests), "each part is told by its own line"
    assert not any(each.startswith("distribute") for each in said(planned(SUMMED[name], "cpu"))), "a core does rows alone"


@pytest.mark.parametrize("fix", [False, True], ids=["open", "fixed"])
@pytest.mark.parametrize("case", range(len(SIZES)))
@pytest.mark.parametrize("name", SUMMED)
def test_the_same_results(name: str, case: int, fix: bool) -> None:
    sizes = sizes_of(name, case)
    if name != "chosen" or sizes["N"]:
        agrees(SUMMED[name], sizes, seed=case, fix=fix, tiny=True)


@pytest.mark.parametrize("name", SUMMED)
def test_they_are_proved(name: str) -> None:
    made = lower(function(SUMMED[name]), "sm_90a", schedule=AUTO)
    assert open_of(proved(made.function, made.plan)) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("sums", "twice_1[i] = (total[i] + total[i])", "twice_1[i] = total[i]"),
        ("sums", "twice_1[i] = (total[i] + total[i])", "twice_1[0] = (total[i] + total[i])"),
        ("sums", "twice_1: f32[M]", "twice_1: f32[M - 1]"),
        ("chosen", "total: f32[M]", "total: f32[N]"),
    ],
)
def test_what_a_row_keeps_for_the_sum_is_held_to_be_nothing_else(name: str, right: str, wrong: str) -> None:
    made = lower(function(SUMMED[name]), "sm_90a", schedule=AUTO)
    assert is_held_to(made, right, wrong)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("reduce(found, most)", "reduce(most)"),
        ("found += max(twice, 0.0)", "found += max(twice, 0.0)  twice += found"),
    ],
)
def test_what_is_no_sum_over_rows_is_no_program(right: str, wrong: str) -> None:
    with pytest.raises(TexprError):
        lower(function(SUMS.replace(right, wrong)), "sm_90a", schedule=AUTO)


def test_an_order_that_rows_must_keep_is_not_broken() -> None:
    """A row that reads what rows before it summed up cannot be done before them."""
    text = SUMS.replace("par M |i| reduce(found, most) {", "seq M |i| {")
    assert not any(each.startswith("distribute") for each in said(planned(text)))
    with pytest.raises(TexprError, match="E0906"):
        lower(function(IN_ORDER), "sm_90a", schedule=function(IN_ORDER).schedules[0])


def test_whole_rows_do_not_go_through_memory() -> None:
    assert said(planned(KEPT)) == []


def test_rows_of_a_few_elements_are_threads() -> None:
    assert said(planned(SUMS.replace("par N", "par 8"))) == []


def test_a_block_has_a_row() -> None:
    made = lower(function(CHOSEN), "sm_90a", schedule=AUTO)
    assert blocks(made, {"M": 9000, "N": 4096})[:2] == [9000, 3]


def test_columns_that_rows_add_to_are_no_vectors() -> None:
    """Vectors inside of the sum over rows would have it outside of the kernel, a launch for each row."""
    text = COLUMNS.replace("X: f32[M, N]", "X: f32[M, N] align(16)").replace(": f32[N] {", ": f32[N] where N % 4 == 0 {", 1)
    assert [each for each in said(planned(text)) if each.startswith("vectorize(j")] == ["vectorize(j'0, 4) -> (j_part, j_lane)"]
    made = lower(function(text), "sm_90a", schedule=AUTO)
    assert all(isinstance(step, k.Launch) for step in made.plan.steps)
