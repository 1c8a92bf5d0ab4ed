"""Sums beyond the end of an array, which threads have and nobody reads: no test is left around what they add.

No planted bug is proved, and the emulator shows those that change something.
"""

from __future__ import annotations

import re
from functools import cache, partial

import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.machine_code import built, spills_nothing
from tests.planted import Bug, is_proved, line_of, only, plain
from tests.planted import open_of as left_of
from tests.schedule.rows import differences, open_of

from texpr.driver import Compiled, lower, parse
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.program.text import print_directive, print_function
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.record import replace

PRODUCT = """
fn f(A: f32[M, K], B: f32[K, N]): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}
"""
BIASED = """
fn f(A: f32[M, K], B: f32[K, N], b: f32[N]): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| {
        new s: f32 = 0.0
        seq K |k| reduce(s) { s += A[i, k] * B[k, j] }
        C[i, j] = max(s + b[j], 0.0)
    } }
    return C
}
"""
FARTHEST = PRODUCT.replace("= 0.0", "= -5.0").replace("+= A[i, k] * B[k, j]", "max= abs(A[i, k] - B[k, j])")
TILE = """
    split(i, 8) -> (i_b, i_e)  split(i_e, 4) -> (i_v, i_t)
    split(j, 16) -> (j_b, j_e)  split(j_e, 8) -> (j_v, j_t)
    split(k, 4) -> (k_o, k_i)
    reorder(i_b, j_b, k_o, i_t, j_t, k_i, i_v, j_v)
    bind(i_t, block.y)  bind(j_t, block.x)
"""
HELD, COPIES = (
    "stage(C, at=j_b, in=registers) -> acc",
    "stage(A, at=k_o, in=shared{0}) -> As  stage(B, at=k_o, in=shared{0}) -> Bs",
)
ALL = "unguard(k_i)  unguard(i_v)  unguard(j_v)"


def scheduled(*parts: str) -> str:
    return f"schedule f for sm_90a {{{TILE}{'  '.join(parts)}\n}}"


CASES = {
    "all": PRODUCT + scheduled(HELD, COPIES.format(", fill=zero"), ALL),
    "derived": PRODUCT + scheduled(HELD, COPIES.format(""), ALL),
    "rows": PRODUCT + scheduled(HELD, COPIES.format(", fill=zero"), "unguard(i_v)"),
    "by threads": PRODUCT + scheduled(HELD, COPIES.format(", fill=zero"), "unguard(k_i)  unguard(i_t)  unguard(j_t)"),
    "in turns": PRODUCT
    + scheduled(HELD, COPIES.format(", via=cp_async, fill=zero"), "pipeline(k_o, stages=3)", ALL, "unroll(i_v)  unroll(j_v)"),
    "a local": BIASED + scheduled(COPIES.format(", fill=zero"), ALL),
    "a maximum": FARTHEST + scheduled(HELD, COPIES.format(", fill=zero"), "unguard(i_v)  unguard(j_v)"),
}


@cache
def compiled(name: str) -> Compiled:
    function = parse(CASES[name])["f"]
    return lower(function, "sm_90a", schedule=function.schedules[0])


@pytest.mark.parametrize("name", CASES)
def test_what_is_left(name: str) -> None:
    """Tests of columns, where rows alone are unguarded, and none of rows."""
    sums = re.split(r"par 4 \|(?:acc_out_0|i_t_2)\|", print_function(compiled(name).function).split("|k_i|", 1)[1])[0]
    assert "< M" not in sums and ("< N" in sums) is (name == "rows")


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    """For all sizes."""
    assert open_of(compiled(name)) == []


SIZES = ({"M": 9, "N": 17, "K": 5}, {"M": 7, "N": 31, "K": 8}, {"M": 8, "N": 16, "K": 4}, {"M": 1, "N": 1, "K": 0})


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str, sizes: dict[str, int]) -> None:
    assert differences(compiled(name), parse(CASES[name])["f"], sizes, 0) == []


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_no_number_stays_in_its_row_and_column(value: float) -> None:
    """Zeros times infinity are left in sums that nobody reads, not in others."""
    made, sizes = compiled("all"), {"M": 9, "N": 17, "K": 5}
    a, b = np.ones((9, 5), np.float32), np.ones((5, 17), np.float32)
    a[8, 0] = b[1, 16] = value
    ran = run_plan(made.function, made.plan, {"A": a, "B": b}, sizes, seed=0)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(ran.arrays["C"], a @ b)


def test_the_planner_does_so() -> None:
    """Of a product of odd sizes no thread tests where its sums are."""
    function = parse(PRODUCT)["f"]
    made = lower(function, "sm_90a", {"M": 1025, "N": 1023, "K": 129}, schedule="auto")
    assert made.schedule is not None
    said = [print_directive(each) for each in made.schedule.directives]
    assert sorted(each[:9] for each in said if "unguard" in each) == ["unguard(i", "unguard(j", "unguard(k"]
    loops = re.findall(r"for \(int k_i[^\n]*\n(.*?)\n\s*__syncthreads", made.source, re.DOTALL)
    assert loops and all("if (" not in each.split("tx_wait")[0] for each in loops)
    assert spills_nothing(built(made.source))


INTO = """
fn f(A: f32[M, K], B: f32[K, N], inout C: f32[M, N]) {
    par M |i| { par N |j| { seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] } } }
}
"""
BESIDE = BIASED.replace("new s: f32 = 0.0", "new s: f32  C[i, j] = 0.0  s = 0.0").replace("max(s +", "max(C[i, j] + s +")
KNOWN = "elements of their own, which others know"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PRODUCT + scheduled(COPIES.format(", fill=zero"), "unguard(i_v)"), KNOWN),
        (INTO + scheduled(HELD, COPIES.format(", fill=zero"), "unguard(i_v)"), KNOWN),
        (PRODUCT + scheduled(HELD, "unguard(i_v)"), "a hole may lie outside of `A`"),
        (
            BESIDE + scheduled(COPIES.format(", fill=zero"), "unguard(i_v)"),
            "`s` begins, or is added to, beside what others know",
        ),
    ],
    ids=["no local", "begun by a copy", "operands are where they are", "begun beside others"],
)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(TexprError, match="E0906") as raised:
        lower((function := parse(text)["f"]), "sm_90a", schedule=function.schedules[0])
    assert reason in raised.value.diagnostics[0].message


TEXT = plain(compiled("in turns").plan)
line = partial(line_of, TEXT)
START, SUM, STORE = line("acc["), line("fused acc["), line("C[")
ROW, FILL = line("if (i64(acc_out_0"), line("copy As[")

BUGS = {
    "begun in the first rows alone": Bug(START, only("i64(i_v_1) < i64(1)", START)),
    "begun at another number": Bug(START, START.replace("0.0", "1.0")),
    "stored beyond the last row": Bug(ROW, ROW.replace("< i64(M)", "<= i64(M)")),
    "the last row is left": Bug(ROW, ROW.replace("< i64(M)", "< i64(M - 1)")),
    "no test where it is stored": Bug(ROW, ROW.replace("< i64(M)", "< i64(M + 8)")),
    "added to a neighbour": Bug(SUM, SUM.replace("acc[0, 0, i_v, j_v]", "acc[0, 0, j_v, i_v]")),
    "rows of others": Bug(SUM, SUM.replace("i_t + 4 * i_v", "i_t + 2 * i_v")),
    "columns of others": Bug(SUM, SUM.replace("j_t + 8 * j_v", "j_t + 4 * j_v")),
    "a sum of another": Bug(STORE, STORE.replace("acc_out_2, acc_out_3]\n", "acc_out_3, acc_out_2]\n")),
    "no zeros behind the end of a sum": Bug(FILL, FILL.replace("i64(As_1 + 4 * k_o) < i64(K)", "i64(0) < i64(K)")),
    "no zeros behind the last row": Bug(FILL, FILL.replace("i64(As_0 + 8 * i_b) < i64(M)", "i64(0) < i64(M)")),
    "a turn is left": Bug("for k_i in 0..4", "for k_i in 0..3"),
}


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    bug = BUGS[name]
    assert bug.old in TEXT and bug.old != bug.new, bug.old
    assert not is_proved(compiled("in turns"), lambda: parse_plan(TEXT.replace(bug.old, bug.new)))


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_the_emulator_shows_it(name: str) -> None:
    bug, function = BUGS[name], parse(CASES["in turns"])["f"]
    try:
        altered = replace(compiled("in turns"), plan=parse_plan(TEXT.replace(bug.old, bug.new)))
        assert any(differences(altered, function, sizes, 0) for sizes in SIZES)
    except CompilerBug:  # it may not even be printed
        return


def test_what_is_right_is_proved() -> None:
    assert not left_of(compiled("in turns"), parse_plan(TEXT))
