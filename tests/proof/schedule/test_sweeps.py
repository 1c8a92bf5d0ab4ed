"""Maxima and sums in one sweep: each fault that a rewrite could make changes results, and none is proved."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.proof.schedule.trials import is_proved

from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import program as ir
from texpr.ir.program.instances import numbered
from texpr.ir.program.marked import read
from texpr.ir.program.marks import Online
from texpr.ir.program.text import print_function, print_program
from texpr.ir.proof import Proof
from texpr.ir.proof.notes_text import noted, notes_text
from texpr.isa.registry import resolve
from texpr.presburger.formula import TRUE
from texpr.proof.schedule import faithful
from texpr.proof.schedule.sweeps import Unswept, in_one_sweep
from texpr.schedule.apply import followed, laid_out
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace

ROWS = """
fn rows(X: f32[n, n], V: f32[n, 2], scale: f32): (f32[n, 2], f32[n]) {
    new Y: f32[n, 2]
    new most: f32[n]
    par n |i| {
        new s: f32[n]
        new p: f32[n]
        new top: f32 = -inf
        new total: f32 = 0.0
        par i + 1 |j| { s[j] = X[i, j] }
        par i + 1 |j| reduce(top) { top max= s[j] * scale }
        par i + 1 |j| { p[j] = exp(s[j] * scale - top) }
        par i + 1 |j| reduce(total) { total += p[j] }
        par 2 |c| {
            new sum: f32 = 0.0
            par i + 1 |j| reduce(sum) { sum += p[j] * V[j, c] }
            Y[i, c] = sum / total
        }
        most[i] = top
    }
    return Y, most
}
schedule rows { online(j'1, 4) -> b }
"""

WHOLE = """
fn whole(X: f32[n, 8], V: f32[8], w: f32): f32[n] {
    new y: f32[n]
    par n |i| {
        new top: f32 = -inf
        new total: f32 = 0.0
        par 8 |j| reduce(top) { top max= X[i, j] }
        par 8 |j| reduce(total) { total += exp2((X[i, j] - top) * w) * V[j] }
        y[i] = total + top
    }
    return y
}
schedule whole { online(j'0, 4) -> b }
"""

DIVIDED = """
fn divided(X: f32[n, n], V: f32[n, 2]): f32[n, 2] {
    new Y: f32[n, 2]
    par n |i| {
        new p: f32[n]
        new top: f32 = -inf
        new total: f32 = 0.0
        new acc: f32[2] = 0.0
        par n |j| reduce(top) { top max= X[i, j] }
        par n |j| reduce(total) { total += exp(X[i, j] - top) }
        par n |j| { p[j] = exp(X[i, j] - top) / total }
        par 2 |c| { par n |j| reduce(acc) { acc[c] += p[j] * V[j, c] } }
        par 2 |c| { Y[i, c] = acc[c] }
    }
    return Y
}
schedule divided { online(j'0, 4) -> b }
"""

ANEW = """
fn anew(X: f32[n, n], V: f32[n]): (f32[n], f32[n]) {
    new y: f32[n]
    new z: f32[n]
    par n |i| {
        new p: f32[n]
        new top: f32 = -inf
        new total: f32 = 0.0
        new sum: f32 = 0.0
        par i + 1 |j| reduce(top) { top max= X[i, j] }
        par i + 1 |j| { p[j] = exp(X[i, j] - top) }
        par i + 1 |j| reduce(total) { total += p[j] }
        par i + 1 |j| { p[j] = 5.0 }
        par i + 1 |j| reduce(sum) { sum += p[j] * V[j] }
        y[i] = total
        z[i] = sum
    }
    return y, z
}
schedule anew { online(j'0, 4) -> b }
"""

UNSCALED = """
fn unscaled(X: f32[n, n], V: f32[n, 2], w: f32[n]): (f32[n, 2], f32[n]) {
    new Y: f32[n, 2]
    new y: f32[n]
    par n |i| {
        new s: f32[n]
        new p: f32[n]
        new total: f32 = 0.0
        par i + 1 |j| {
            s[j] = 0.0
            par 2 |d| reduce(s) { s[j] += V[i, d] * V[j, d] }
        }
        par i + 1 |j| {
            s[j] = s[j] / (1.0 + X[i, j] * X[i, j])
            p[j] = exp(-s[j]) + w[i]
        }
        par i + 1 |j| reduce(total) { total += s[j] + w[j] }
        par 2 |c| {
            new sum: f32 = 0.0
            par i + 1 |j| reduce(sum) { sum += p[j] * V[j, c] }
            Y[i, c] = sum * total
        }
        y[i] = total
    }
    return Y, y
}
schedule unscaled { online(j'0, 4) -> b }
"""

TEXTS = {"rows": ROWS, "whole": WHOLE, "divided": DIVIDED, "anew": ANEW, "unscaled": UNSCALED}


@cache
def laid(name: str) -> tuple[ir.Function, str, str]:
    """A function as it was written; laid out, as text; and the notes of that."""
    (function,) = parse(TEXTS[name]).functions
    made = laid_out(followed(function, function.schedules[0], resolve("cpu"))).function
    return function, print_program(ir.Program((replace(made, schedules=()),))), notes_text(made)


def spoken(text: str) -> ir.Function:
    """The only function of a text, with its marks."""
    (function,) = parse(text).functions
    return read(function)


def proof(name: str, old: str = "", new: str = "") -> tuple[Proof, ir.Function, ir.Function]:
    """What is shown where each `old` is `new`, and both programs."""
    written, text, notes = laid(name)
    assert old in text, text
    made = noted(spoken(text.replace(old, new) if old else text), notes)
    return faithful(written, made), written, made


def data(function: ir.Function, n: int, spread: float) -> dict[str, NDArray[np.float32]]:
    """Numbers whose maxima come late, some of them −∞."""
    rng, found = np.random.default_rng(n), dict[str, NDArray[np.float32]]()
    for buffer in function.params:
        shape = [e.evaluate({sym: n for sym in e.syms()}) for e in buffer.shape]
        found[buffer.name] = np.asarray(rng.uniform(1, 3, shape) if shape else 0.5, np.float32)
    x = found["X"]
    x += np.arange(x.shape[1], dtype=np.float32) * spread
    x[2::3, :4] = -np.inf
    x[5::6] = -np.inf
    return found


def are_equal(written: ir.Function, made: ir.Function) -> bool:
    """Whether the interpreter computes the same of both, about: sums are rounded otherwise."""
    for n, spread in ((1, 0.0), (3, 0.1), (11, 0.3), (11, -0.3), (11, 60.0)):
        given = data(written, n, spread)
        try:
            with np.errstate(all="ignore"):
                meant, found = (interpret(each, given, {"n": n}).values() for each in (written, made))
        except TexprError:
            return False
        if not all(np.allclose(one, other, rtol=1e-4, equal_nan=True) for one, other in zip(meant, found, strict=True)):
            return False
    return True


@pytest.mark.parametrize("name", TEXTS)
def test_a_sweep_is_proved(name: str) -> None:
    found, written, made = proof(name)
    assert is_proved(found)
    assert [each.about.partition(":")[0] for each in found.obligations if each.what == "one sweep"]
    assert are_equal(written, made)


SEVERAL = """
fn f(X: f32[n, 40], Z: f32[n, m]): (f32[n], f32[n], f32[n]) {
    new y: f32[n]
    new z: f32[n]
    new w: f32[n]
    new r: f32 = 0.0
    seq n |q| scan(r) { r += X[q, 0]  w[q] = r }
    par n |i| {
        new top: f32 = -inf
        new total: f32 = 0.0
        par 40 |j| reduce(top) { top max= X[i, j] }
        par 40 |k| reduce(total) { total += exp(X[i, k] - top) }
        y[i] = log(total) + top
    }
    par n |o| {
        new t: f32 = -inf
        new a: f32 = 0.0
        par m |l| reduce(t) { t max= Z[o, l] }
        par m |p| reduce(a) { a += exp(Z[o, p] - t) }
        z[o] = log(a) + t
    }
    return y, z, w
}
schedule f "both" { online(j, 8) -> b  online(l, 8) -> c }
schedule f "turned, with chunks" { online(l, 8) -> c  online(j, 8) -> b  scan(q, 4) }
schedule f "beside splits" { split(i, 4) -> (i1, i2)  online(l, 8) -> c  split(o, 16) -> (o1, o2) }
"""


@pytest.mark.parametrize("number", range(3))
def test_several_rows(number: int) -> None:
    """Statements of a row have other numbers than in the text, and so have those behind it."""
    (function,) = parse(SEVERAL).functions
    made = laid_out(followed(function, function.schedules[number], resolve("sm_90a"))).function
    assert is_proved(faithful(function, made))


KEEP = "select(top == -inf, top_now, top) - top_now"
MASKED = "select(4 * b + j'2 < i + 1, exp(s_1[j'2] * scale - top_now), 0.0)"

VALUE = "select(4 * b + j'4 < n, V[4 * b + j'4], 0.0)"
TERM = "s_1[j'2] + select(4 * b + j'2 < n, w[4 * b + j'2], 0.0)"

PLANTED = [
    ("the factor is dropped", "rows", "total = total * top_keep", "total = total"),
    ("an old sum is not multiplied", "rows", "sum_1[c_2_1] = sum_1[c_2_1] * top_keep", "sum_1[c_2_1] = sum_1[c_2_1]"),
    ("the factor twice", "rows", "total = total * top_keep", "total = total * top_keep * top_keep"),
    ("the factor upside down", "rows", f"exp({KEEP})", "exp(top_now - select(top == -inf, top_now, top))"),
    ("the maximum of the block", "rows", "top_next = top\n", "top_next = -inf\n"),
    ("the maximum is not kept", "rows", "top = top_next", "top = top"),
    ("the maximum is kept before the factor", "rows", f"top_keep = exp({KEEP})\n            top = top_next",
     f"top = top_next\n            top_keep = exp({KEEP})"),
    ("the scale twice", "rows", "exp(s_1[j'2] * scale - top_now)", "exp(s_1[j'2] * scale * scale - top_now)"),
    ("no scale in the maximum", "rows", "s_1[j'1] * scale", "s_1[j'1]"),
    ("no mask of terms", "rows", MASKED, "exp(s_1[j'2] * scale - top_now)"),
    ("no mask of the maximum", "rows", "select(4 * b + j'1 < i + 1, s_1[j'1] * scale, -inf)", "s_1[j'1] * scale"),
    ("a mask that is one too short", "rows", "4 * b + j'2 < i + 1", "4 * b + j'2 < i"),
    ("a mask that is one too long", "rows", "4 * b + j'2 < i + 1", "4 * b + j'2 < i + 2"),
    ("0 is no neutral maximum", "rows", "s_1[j'1] * scale, -inf)", "s_1[j'1] * scale, 0.0)"),
    ("1 is no neutral term", "rows", "- top_now), 0.0)", "- top_now), 1.0)"),
    ("−∞ from −∞", "rows", "select(top_next == -inf, 0.0, top_next)", "top_next"),
    ("the last block is left out", "rows", "seq i / 4 + 1 |b|", "seq (i + 3) / 4 |b|"),
    ("a sum that begins with 1", "rows", "total = 0.0", "total = 1.0"),
    ("a maximum that begins with 0", "rows", "            top = -inf\n".replace("    ", "", 1), "        top = 0.0\n"),
    ("reads behind the last key", "rows", "select(4 * b + j'4 < n, V[4 * b + j'4, c_2], 0.0)", "V[4 * b + j'4, c_2]"),
    ("weights without a sum", "rows", "total += p_1[j'3]", "total += s_1[j'3]"),
    ("another weight of the factor", "whole", f"({KEEP}) * w", KEEP),
    ("another base of the factor", "whole", f"exp2(({KEEP})", f"exp(({KEEP})"),
    ("the maximum itself is subtracted", "whole", "j'1] - top_now)", "j'1] - top)"),
    ("keys of another block", "whole", "exp2((X[i, 4 * b + j'1]", "exp2((X[i, 4 + j'1]"),
    ("not divided", "divided", "acc[c_1] = acc[c_1] / total", "acc[c_1] = acc[c_1]"),
    ("divided twice", "divided", "acc[c_1] = acc[c_1] / total", "acc[c_1] = acc[c_1] / total / total"),
    ("divided by the sum so far", "divided", "exp(select(4 * b + j'2 < n, X[i, 4 * b + j'2], 0.0) - top_now)",
     "exp(select(4 * b + j'2 < n, X[i, 4 * b + j'2], 0.0) - top_now) / total"),
    ("elements that were written anew, without a mask", "anew", f"select(4 * b + j'4 < i + 1, p_1[j'4] * {VALUE}, 0.0)",
     f"p_1[j'4] * {VALUE}"),
    ("no mask of elements", "unscaled", "select(4 * b + j'1 < i + 1, exp(-s_1[j'1]) + w[i], 0.0)", "exp(-s_1[j'1]) + w[i]"),
    ("no mask of a sum", "unscaled", f"select(4 * b + j'2 < i + 1, {TERM}, 0.0)", TERM),
    ("1 where there is no key", "unscaled", "+ w[i], 0.0)", "+ w[i], 1.0)"),
    ("keys of the first block", "unscaled", "w[4 * b + j'2], 0.0)", "w[j'2], 0.0)"),
    ("the last block of a sum alone is left out", "unscaled", "seq i / 4 + 1 |b|", "seq (i + 3) / 4 |b|"),
    ("elements of another key", "unscaled", "exp(-s_1[j'1])", "exp(-s_1[0])"),
    ("a key too many", "unscaled", "j'1 < i + 1", "j'1 < i + 2"),
    ("no number, and a sum all the same", "whole", "select(top == -inf, nan, total)", "total"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "name", "old", "new"), PLANTED, ids=[each[0] for each in PLANTED])
def test_planted_faults_are_not_proved(what: str, name: str, old: str, new: str) -> None:
    found, written, made = proof(name, old, new)
    assert not is_proved(found), what
    assert not are_equal(written, made), "it is no fault"


@pytest.mark.parametrize("other", ["j'1, 3, 0", "j'1, 4, 1", "j, 4, 0", "j'2, 4, 0", "i, 4, 0", "none, 4, 0", ""])
def test_other_claims_prove_nothing(other: str) -> None:
    found, _, _ = proof("rows", "#online(j'1, 4, 0)", f"#online({other})" if other else "")
    assert not is_proved(found)


START, MOST = "new top: f32 = -inf  new total: f32 = 0.0", "par n |j| reduce(top) { top max= x[j] }"
SUM = "par n |k| reduce(total) { total += exp(x[k] - top) }"
COPY = "new s: f32[n]  par n |a| { s[a] = x[a] }"
KEPT = "new p: f32[n]  new a: f32 = 0.0  par n |j| { p[j] = x[j] }"
EARLY = "par n |l| reduce(a) { a += exp(x[l] - top) / total }"
NONE = [
    ("in order", MOST, "seq n |k| { total += exp(x[k] - top) }"),
    ("rounded as it is written", MOST, SUM.replace(") {", ") #ieee {")),
    ("no exponential", MOST, SUM.replace("exp(x[k] - top)", "x[k] - top")),
    ("an exponential of something else", MOST, SUM.replace("x[k]", "x[k] * x[k]")),
    ("a maximum of something else", MOST.replace("x[j]", "2.0 * x[j]"), SUM),
    ("times the maximum", MOST, SUM.replace("exp", "top * exp")),
    ("and one more", MOST, SUM.replace("- top)", "- top) + 1.0")),
    ("of the maximum's double", MOST, SUM.replace("- top", "- 2.0 * top")),
    ("a test of the maximum", MOST, SUM.replace("exp(x[k] - top)", "select(top > 0.0, exp(x[k] - top), 0.0)")),
    ("the sine of an exponential", MOST, SUM.replace("exp(x[k] - top)", "sin(exp(x[k] - top))")),
    ("two operations", MOST, SUM.replace("+=", "*=")),
    ("divided by itself", MOST, SUM.replace("- top)", "- top) / total")),
    ("divided before it is there", f"new a: f32 = 0.0  {MOST}", f"{EARLY}  {SUM}"),
    ("divided by what is no sum of the row", MOST, SUM.replace("- top)", "- top) / top")),
    ("two maxima", MOST, SUM + f"  {MOST.replace('j', 'l')}"),
    ("fewer keys", MOST, SUM.replace("par n", "par n - 1")),
    ("a minimum", MOST.replace("max=", "min="), SUM),
    ("a start of its own", f"total = 1.0  {MOST}", SUM),
    ("another start of the maximum", f"top = 3.0  {MOST}", SUM),
    ("other keys", f"{COPY}  par n |j| reduce(top) {{ top max= s[j] }}", SUM.replace("x[k]", "s[n - 1 - k]")),
    ("a sum before it is there", KEPT,
     "par n |l| reduce(a) { a += p[l] }  par n |m| { p[m] = x[m] * a }  par n |k| reduce(total) { total += p[k] }"),
    ("a maximum before it is there", KEPT,
     "par n |l| reduce(top) { top max= p[l] }  par n |k| reduce(total) { total += p[k] * top }"),
    ("keys of others without a maximum", KEPT, "par n |k| reduce(total) { total += p[n - 1 - k] }"),
    ("in order without a maximum", KEPT, "seq n |k| { total += p[k] }"),
    ("a sum that is read in its own loop", KEPT, "par n |k| reduce(total) { total += p[k] * total }"),
    ("fewer keys without a maximum", KEPT, "par n - 1 |k| reduce(total) { total += p[k] }"),
    ("keys of others", f"{COPY}  par n |j| reduce(top) {{ top max= s[j] }}", f"{SUM.replace('x[k]', 's[k]')}  total += s[0]"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "most", "sums"), NONE, ids=[each[0] for each in NONE])
def test_no_sweep_of_what_has_none(what: str, most: str, sums: str) -> None:
    """Neither does the directive make one, nor does the checker, asked for it, prove that there is one."""
    text = f"fn f(x: f32[n], inout z: f32[2]) where n >= 1 {{ {START}  {most}  {sums}  z[0] = total  z[1] = top }}"
    (function,) = parse(text + "schedule f { online(j, 4) }").functions
    with pytest.raises(TexprError):
        followed(function, function.schedules[0], resolve("cpu"))
    try:
        form, made, told = in_one_sweep(numbered(function), Online("j", 4, 0), TRUE)
    except Unswept:
        return
    assert not (told and is_proved(faithful(numbered(function), form))), print_function(made)


BODIES = {
    "plain": SUM,
    "two": f"{SUM}  par n |a| reduce(c) {{ c += x[a] * exp2(x[a] - top) }}",
    "by keys": "par n |k| { p[k] = exp(x[k] - top) }  par n |a| reduce(total) { total += p[a] * x[n - 1 - a] }",
    "beside": "par n |k| reduce(total, c) { let w = exp((x[k] - top) * 0.5)  total += w  c += x[k] * x[k] }",
    "rows": "par 3 |d| { par n |k| reduce(y) { y[d] += exp(x[k] - top) * x[(k + d) % n] } }",
    "divided": f"{SUM}  par 3 |d| {{ par n |a| reduce(y) {{ y[d] += exp(x[a] - top) / total * x[(a + d) % n] }} }}",
    "in other words": "par n |k| reduce(total) { total -= 0.0 - exp(-(top - x[k])) }".replace("-= 0.0 -", "+="),
}


@pytest.mark.parametrize("size", [1, 3, 4, 64])
@pytest.mark.parametrize("body", BODIES)
def test_a_sweep_computes_the_same(body: str, size: int) -> None:
    """What the proof compares with, against the program, by the interpreter: all that has to be believed of it."""
    more = "new p: f32[n]  new c: f32 = 0.0  new y: f32[3] = 0.0"
    end = "z[0] = total  z[1] = top  z[2] = c  par 3 |e| { z[3 + e] = y[e] }"
    (function,) = parse(
        f"fn f(x: f32[n], inout z: f32[6]) where n >= 1 {{ {START}  {more}  {MOST}  {BODIES[body]}  {end} }}"
    ).functions
    _, made, told = in_one_sweep(numbered(function), Online("j", size, int(size == 1)), TRUE)
    assert told
    again = parse(re.sub(r"◆\w+\.", "_", print_function(made))).functions[0]
    for n in (1, 2, 5, 8, 11):
        x = np.arange(5, 5 + n, dtype=np.float32) * 7 % 11 - 3
        x[: n // 2 : 2] = -np.inf
        with np.errstate(all="ignore"):
            meant, found = (interpret(f, {"x": x, "z": np.zeros(6, np.float32)}, {"n": n})["z"] for f in (function, again))
        assert np.allclose(meant, found, rtol=1e-5, equal_nan=True), (n, print_function(made))


@pytest.mark.parametrize("size", [1, 3, 4, 64])
def test_a_sweep_without_a_maximum_computes_the_same(size: int) -> None:
    """Terms of blocks, of elements that are masked, and of some that are not, as they are written anew."""
    body = """
        new p: f32[n]  new q: f32[n]  new c: f32 = 0.0  new y: f32[3] = 0.0
        par n |j| { p[j] = x[j] + 1.0 }
        par n |k| { q[k] = p[k] * p[k]  p[k] = q[k] + 2.0 }
        par n |l| reduce(total) { total += p[l] * x[l] }
        par 3 |d| { par n |a| reduce(y) { y[d] += q[a] * x[(a + d) % n] } }
        par n |e| reduce(c) { c += q[e] + 1.0 }
    """
    end = "z[0] = total  z[2] = c  par 3 |e| { z[3 + e] = y[e] }"
    (function,) = parse(f"fn f(x: f32[n], inout z: f32[6]) where n >= 1 {{ {START}  {body}  {end} }}").functions
    _, made, told = in_one_sweep(numbered(function), Online("j", size, int(size == 1)), TRUE)
    assert told
    again = parse(re.sub(r"◆\w+\.", "_", print_function(made))).functions[0]
    for n in (1, 2, 5, 8, 11):
        x = np.arange(5, 5 + n, dtype=np.float32) * 7 % 11 - 3
        meant, found = (interpret(f, {"x": x, "z": np.zeros(6, np.float32)}, {"n": n})["z"] for f in (function, again))
        assert np.array_equal(meant, found), (n, print_function(made))
