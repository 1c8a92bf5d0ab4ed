"""Sums in parts that other launches add up, and sums that are done ahead of an `if`: faults in them are not proved."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import numpy as np
import pytest
from tests.proof.schedule.altered import noted_otherwise
from tests.proof.schedule.test_sound import other
from tests.proof.schedule.trials import is_proved

from texpr import driver
from texpr.cli.arrays import make_arrays
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import program as ir
from texpr.ir.program.text import print_program
from texpr.ir.proof.notes_text import noted, notes_text
from texpr.proof.schedule import faithful
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace

PARTS = """
fn parts(A: f32[M, K], B: f32[K, N]): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}

schedule parts "given" for cuda { split(k, 64) -> (ko, ki)  partial(ko, at=i) }

schedule parts "kept" for cuda {
    split(k, 64) -> (ko, ki)
    partial(ko, at=i)
    split(i_1, 4) -> (ib, it)
    split(j_1, 8) -> (jb, jt)
    split(ki, 16) -> (kt, kk)
    reorder(ko, ib, jb, kt, it, jt, kk)
    stage(C_parts, at=jb, in=registers) -> acc
    stage(A, at=kt, in=shared) -> As
}
"""

ROWS = """
fn rows(x: f32[n, m]): f32[n] {
    new y: f32[n]
    par n |i| {
        new s: f32 = 1.0
        par m |j| reduce(s) { s max= x[i, j] }
        y[i] = s
    }
    return y
}

schedule rows "given" for cuda { split(j, 32) -> (jo, ji)  partial(jo, at=i) }
"""

AHEAD = """
fn ahead(A: f32[N, K], B: f32[N, K]): f32[N, N] {
    new C: f32[N, N]
    par N |i| { par N |j| {
        new t: f32 = -1.0
        if j <= i {
            t = 2.0
            seq K |k| reduce(t) { t += A[i, k] * B[j, k] }
        }
        C[i, j] = t
    } }
    return C
}

schedule ahead "given" for cuda { hoist(k) }

schedule ahead "kept" for cuda {
    hoist(k)
    split(i, 8) -> (ib, it)
    split(j, 4) -> (jb, jt)
    reorder(ib, jb, k, it, jt)
    skip(k)
}
"""

LOWER = """
fn lower(A: f32[n, n], z: f32[n]): f32[n] {
    new y: f32[n]
    par n |i| {
        y[i] = 0.0
        seq i + 1 |k| reduce(y) { y[i] += A[i, k] * z[k] }
    }
    return y
}

schedule lower "given" for cuda { resize(k, to=n) -> p  split(i, 8) -> (ib, it)  reorder(ib, p, it)  skip(p) }
"""

TEXTS = {"lower": LOWER, "parts": PARTS, "kept": PARTS, "rows": ROWS, "ahead": AHEAD, "skipped": AHEAD}


@cache
def laid(name: str) -> tuple[ir.Function, str, str]:
    """A function as it was written; laid out, as text; and the notes of that."""
    (function,) = parse(TEXTS[name]).functions
    called = "kept" if name in ("kept", "skipped") else "given"
    wanted = next(each for each in function.schedules if each.name == called)
    compiled = driver.lower(function, "sm_90a", schedule=wanted)
    assert compiled.written is not None
    text = print_program(ir.Program((replace(compiled.function, schedules=()),)))
    return compiled.written, text, notes_text(compiled.function)


def holds(name: str, old: str = "", new: str = "") -> bool:
    """Whether it is proved where `old` is `new`."""
    written, text, notes = laid(name)
    assert old in text, text
    return is_proved(faithful(written, noted(parse(text.replace(old, new)).functions[0], notes)))


@pytest.mark.parametrize("name", TEXTS)
def test_the_right_texts_are_proved(name: str) -> None:
    assert holds(name)


PLANTED = [
    ("a part does not begin", "parts", "C_parts[ko, i_1, j_1] = 0", "C_parts[ko, i_1, j_1] = 1"),
    ("a part goes on where another did", "parts", "C_parts[ko, i_1, j_1] = 0", "C_parts[0, i_1, j_1] = 0"),
    ("the last part is not added", "parts", "seq (K + 63) / 64 |ko_1|", "seq K / 64 |ko_1|"),
    ("the first part is added again", "parts", "C_parts[ko_1, i, j]", "C_parts[ko_1 / 2, i, j]"),
    ("all add the first part", "parts", "C_parts[ko_1, i, j]", "C_parts[0, i, j]"),
    ("parts are those of other elements", "parts", "f32[(K + 63) / 64, M, N]", "f32[(K + 63) / 64, N, M]"),
    ("parts are added where they are not", "parts", "C[i, j] += C_parts", "C[i, j] -= C_parts"),
    ("a part is too short", "parts", "min(K - 64 * ko, 64)", "min(K - 64 * ko, 63)"),
    ("a part is another one's copy", "kept", "C_parts[ko, ", "C_parts[0, "),
    ("a part is copied from a neighbour", "kept", "= acc[acc_out_0, acc_out_1]", "= acc[acc_out_0, 7 - acc_out_1]"),
    ("a part that is kept does not begin", "kept", "acc[it_1, jt_1] = 0", "acc[it_1, 0] = 0"),
    ("a part is of what it is not", "rows", "s_parts[i_1, jo] = -inf", "s_parts[i_1, jo] = 0.0"),
    ("a row has the parts of the next", "rows", "s max= s_parts[i, jo_1]", "s max= s_parts[n - 1 - i, jo_1]"),
    ("more is asked for than was", "ahead", "if j <= i {", "if j <= i + 1 {"),
    ("less is asked for than was", "ahead", "if j <= i {", "if j < i {"),
    ("the other half is asked for", "ahead", "if j <= i {", "if i <= j {"),
    ("all is asked for", "ahead", "if j <= i {", "if j < N {"),
    ("what is ahead does not begin", "ahead", "t_ahead = 0", "t_ahead = 1"),
    ("what is ahead is joined twice", "ahead", "t += t_ahead\n", "seq 2 |w| reduce(t) { t += t_ahead }\n"),
    ("what is ahead is of others", "ahead", "B[j, k]", "B[i, k]"),
    ("what is ahead is too short", "ahead", "seq K |k|", "seq max(K - 1, 0) |k|"),
    ("what is ahead goes out of bounds", "ahead", "B[j, k]", "B[j + 1, k]"),
    ("a tile of the diagonal is skipped", "skipped", "4 * jb <= 8 * ib + 7", "4 * jb <= 8 * ib"),
    ("what is not skipped is asked for", "skipped", "4 * jb <= 8 * ib + 7", "4 * jb <= 8 * ib - 1"),
    ("others are skipped", "skipped", "4 * jb <= 8 * ib + 7", "8 * ib <= 4 * jb + 7"),
    ("a triangle ends too soon", "lower", "8 * ib + 8", "8 * ib + 7"),
    ("a row is another's part", "rows", "s max= s_parts[i, jo_1]", "s max= s_parts[i, 0]"),
]


@pytest.mark.parametrize(("name", "old", "new"), [each[1:] for each in PLANTED])
def test_faults_are_not(name: str, old: str, new: str) -> None:
    assert not holds(name, old, new)


def test_parts_may_come_in_order_too() -> None:
    assert holds("parts", "par (K + 63) / 64 |ko|", "seq (K + 63) / 64 |ko|")


def test_a_sum_in_order_has_no_parts() -> None:
    written, text, notes = laid("parts")
    in_order = parse(PARTS.replace(" reduce(C)", "")).functions[0]
    assert not is_proved(faithful(replace(in_order, schedules=()), noted(parse(text).functions[0], notes)))
    assert is_proved(faithful(written, noted(parse(text).functions[0], notes)))


SIZES = (
    {"M": 3, "N": 5, "K": 130, "n": 3, "m": 70},
    {"M": 4, "N": 8, "K": 64, "n": 2, "m": 32},
    {"M": 2, "N": 1, "K": 3, "n": 1, "m": 5},
)


def goes_wrong(written: ir.Function, found: ir.Function) -> bool:
    """Whether it gives other results at some sizes. What the checks of a program refuse is no other result."""
    for sizes in SIZES:
        own = {size.name: sizes[size.name] for size in written.sizes}
        arrays, _ = make_arrays(written, {p.name: "random" for p in written.params}, own, seed=1)
        want = interpret(written, arrays, own)
        try:
            got = interpret(found, arrays, own)
        except TexprError:
            return False
        if any(not np.array_equal(np.asarray(want[name]), np.asarray(got[name])) for name in want):
            return True
    return False


def tried(name: str, seeds: range) -> Counter[str]:
    """Whatever goes wrong is not proved, whatever is noted of it."""
    written, text, notes = laid(name)
    counts, whole = Counter[str](), noted(parse(text).functions[0], notes)
    for seed in seeds:
        random = Random(seed)
        found = other(whole, random)
        if found is not None:
            wrong = goes_wrong(written, found)
            proved = [is_proved(faithful(written, each)) for each in (found, noted_otherwise(found, random))]
            counts["wrong" if wrong else "not wrong"] += 1
            counts["proved"] += sum(proved)
            assert not (wrong and any(proved)), seed
    return counts


@pytest.mark.parametrize("name", TEXTS)
def test_what_goes_wrong_is_not_proved(name: str) -> None:
    assert tried(name, range(40))["wrong"]


@pytest.mark.long
@pytest.mark.parametrize("first", range(40, 1032, 62))
@pytest.mark.parametrize("name", TEXTS)
def test_of_many_what_goes_wrong_is_not_proved(name: str, first: int) -> None:
    tried(name, range(first, first + 62))
