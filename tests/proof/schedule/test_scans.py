"""Running values in chunks: each fault that a rewrite could make changes results, and none is proved."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.proof.schedule.trials import is_proved

from texpr import driver
from texpr.checks import check
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import program as ir
from texpr.ir.program.marked import read
from texpr.ir.program.text import print_function, print_program
from texpr.ir.proof import Proof
from texpr.ir.proof.notes_text import noted, notes_text
from texpr.proof.schedule import faithful
from texpr.proof.schedule.scans import in_chunks
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace

PREFIX = """
fn prefix(x: i32[n]): (i32[n], i32) {
    new y: i32[n]
    new s: i32
    s = 3
    seq n |j| {
        s += x[j]
        y[j] = s
    }
    return (y, s)
}
schedule prefix "chunks" { scan(j, 4) -> (a, b, m, c, t) }
schedule prefix "alone" { scan(j) }
schedule prefix "twice" { scan(j, 4) -> (a, b, m, c, t)  scan(m) }
schedule prefix "tiles" { split(j, 8) -> (o, u)  scan(u, 2) -> (a, b, m, c, t) }
"""

TURNED = """
combine after(a: i32, b: i32): i32 identity 0 { return select(b == 0, a, b) }

fn last(x: i32[n]): i32[n] {
    new y: i32[n]
    new s: i32
    s = 0
    seq n |j| scan(s) {
        s after= x[j]
        y[j] = s
    }
    return y
}
schedule last "chunks" { scan(j, 4) -> (a, b, m, c, t) }
"""

EXCLUSIVE = """
fn exclusive(x: u8[n]): u8[n] {
    new y: u8[n]
    new s: u8
    s = 2
    seq n |j| {
        y[j] = s
        if x[j] > 1 { s *= x[j] }
    }
    return y
}
schedule exclusive "chunks" { scan(j, 4) -> (a, b, m, c, t) }
"""

TEXTS = {"prefix": PREFIX, "last": TURNED, "exclusive": EXCLUSIVE}


@cache
def laid(name: str, schedule: str) -> tuple[ir.Function, str, str]:
    """A function as it was written; laid out, as text; and the notes of that."""
    (function,) = parse(TEXTS[name]).functions
    chosen = next(each for each in function.schedules if each.name == schedule)
    compiled = driver.lower(function, "cpu", schedule=chosen)
    assert compiled.written is not None
    text = print_program(ir.Program((replace(compiled.function, schedules=()),)))
    return compiled.written, text, notes_text(compiled.function)


def proof(name: str, schedule: str, old: str = "", new: str = "") -> tuple[Proof, ir.Function, ir.Function]:
    """What is shown where the first `old` is `new`, and both programs."""
    written, text, notes = laid(name, schedule)
    assert old in text, text
    made = noted(spoken(text.replace(old, new, 1)), notes)
    return faithful(written, made), written, made


def data(name: str, n: int) -> NDArray[Any]:
    """Numbers for a program: with zeros where chunks begin, odd ones for products, or any small ones."""
    k = np.arange(n)
    match name:
        case "last":
            return ((k % 4 > 0) * (k * 7 % 5)).astype(np.int32)
        case "exclusive":
            return (k * 2 % 7 + k % 2).astype(np.uint8)
        case _:
            return (k * 7 % 5).astype(np.int32)


def spoken(text: str) -> ir.Function:
    """The only function of a text, with its marks."""
    (function,) = parse(text).functions
    return read(function)


def are_equal(written: ir.Function, made: ir.Function, n: int = 23) -> bool:
    """Whether the interpreter computes the same of both, and all."""
    given = {"x": data(written.name, n)}
    try:
        meant, found = (interpret(each, given, {"n": n}).values() for each in (written, made))
    except TexprError:
        return False
    return all(map(np.array_equal, meant, found))


RIGHT = [("prefix", each) for each in ("chunks", "alone", "twice", "tiles")] + [("last", "chunks"), ("exclusive", "chunks")]


@pytest.mark.parametrize(("name", "schedule"), RIGHT)
def test_chunks_are_proved(name: str, schedule: str) -> None:
    found, written, made = proof(name, schedule)
    assert is_proved(found)
    assert are_equal(written, made)


PLANTED = [
    ("a chunk begins one too late", "prefix", "chunks", "s_sum[a] += x[4 * a + b]", "s_sum[a] += x[(4 * a + b + 1) % n]"),
    ("the last of a chunk is left out", "prefix", "chunks", "par 4 |b|", "par 3 |b|"),
    ("the last of a chunk is left out in the end", "prefix", "chunks", "min(-4 * c + n, 4)", "min(-4 * c + n, 3)"),
    ("the start of the wrong chunk", "prefix", "chunks", "s_own = s_at[c]", "s_own = s_at[max(c - 1, 0)]"),
    ("the sum of the wrong chunk", "prefix", "chunks", "s += s_sum[m]", "s += s_sum[0]"),
    ("chunks start behind their own terms", "prefix", "chunks", "s_own = s_at[c]", "s_own = s_at[c] + s_sum[c]"),
    ("another neutral value", "prefix", "chunks", "s_sum[a] = 0", "s_sum[a] = 1"),
    ("a neutral value of sums for products", "exclusive", "chunks", "s_sum[a] = 1", "s_sum[a] = 0"),
    ("exclusive for inclusive", "prefix", "chunks", "s_own += x[4 * c + t]\n            y[4 * c + t] = s_own",
     "y[4 * c + t] = s_own\n            s_own += x[4 * c + t]"),
    ("inclusive for exclusive in the loop over chunks", "prefix", "chunks", "s_at[m] = s\n        s += s_sum[m]",
     "s += s_sum[m]\n        s_at[m] = s"),
    ("a term twice", "prefix", "chunks", "s_sum[a] += x[4 * a + b]", "s_sum[a] += x[4 * a]"),
    ("a term without its test", "exclusive", "chunks", "if x[4 * a + b] > 1 {", "if x[4 * a + b] < 9 {"),
    ("terms of all before, and its own twice", "prefix", "alone", "par j |j_b|", "par j + 1 |j_b|"),
    ("terms of all before but one", "prefix", "alone", "par j |j_b|", "par max(j - 1, 0) |j_b|"),
    ("not all terms at the end", "prefix", "alone", "par n |j_e|", "par max(n - 1, 0) |j_e|"),
    ("each tile starts anew", "prefix", "tiles", "s_at[m] = s\n", "s_at[m] = 3\n"),
    ("chunks of another tile", "prefix", "tiles", "s_own = s_at[c]", "s_own = s_at[3 - c]"),
    ("the order of a combiner is turned", "last", "chunks", "s_at[m] = s\n        s after= s_sum[m]",
     "s_at[m] = s\n        s = select(s == 0, s_sum[m], s)"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "name", "schedule", "old", "new"), PLANTED, ids=[each[0] for each in PLANTED])
def test_planted_faults_are_not_proved(what: str, name: str, schedule: str, old: str, new: str) -> None:
    found, written, made = proof(name, schedule, old, new)
    assert not is_proved(found), what
    assert not are_equal(written, made), "it is no fault"


@pytest.mark.parametrize("other", ["i, 0, 4", "j, 6, 4", "j, 4, 0", "j, 0, 5", ""])
def test_other_claims_prove_nothing(other: str) -> None:
    found, _, _ = proof("prefix", "chunks", "#scanned(j, 0, 4, m, t)", f"#scanned({other}, m, t)" if other else "")
    assert not is_proved(found)


IN_ORDER = [
    ("the text frees nothing", "new s: f32 = 0.0", "s += x[j]", "f32"),
    ("no running value", "new s: i32 = 0", "s = s + x[j]", "i32"),
    ("another element", "new s: i32 = 0", "z[j] += x[j]", "i32"),
    ("terms that depend", "new s: i32 = 0", "s += z[0]", "i32"),
    ("two operations", "new s: i32 = 0", "s += x[j]  s *= 3", "i32"),
    ("terms of itself", "new s: i32 = 0", "s += s + x[j]", "i32"),
    ("a test of itself", "new s: i32 = 0", "if s < 5 { s += x[j] }", "i32"),
]


@pytest.mark.parametrize(("what", "start", "step", "of"), IN_ORDER, ids=[each[0] for each in IN_ORDER])
def test_no_chunks_of_what_has_none(what: str, start: str, step: str, of: str) -> None:
    text = f"fn f(x: {of}[n], inout z: {of}[n]) {{ {start}  seq n |j| {{ {step}  z[j] = s }} }}"
    (function,) = parse(text).functions
    assert in_chunks(function, spoken(text.replace(") {", ") #scanned(j, 0, 4, m, t) {", 1))) is None, what


BODIES = {
    "inclusive": "s += x[j]  z[j] = s",
    "exclusive": "z[j] = s  s -= x[j]",
    "tested": "if j % 2 == 0 { let v = x[j] * 2  s max= v } else { z[j] = s }",
    "inner": "seq 2 |k| { s *= x[j] + i32(k) }  z[n - 1 - j] = s - 1",
    "two": "s += x[j]  z[j] = s * top  top max= x[j]",
    "local": "new q: i32 = 3  q += s  z[j] = q  s += x[j]",
}


@pytest.mark.parametrize("mark", ["j, 0, 1", "j, 0, 3", "j, 0, 0", "j, 4, 2", "j, 6, 3"])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("used", ["", "  z[0] += s + top"])
def test_chunks_compute_the_same(body: str, mark: str, used: str) -> None:
    """What the proof compares with, against the program, by the interpreter: all that has to be believed of it."""
    head, start = "fn f(x: i32[n], inout z: i32[n]) where n >= 1", "new s: i32 = 2  new top: i32 = 1"
    body = f"{{ {start}  seq n |j| {{ {BODIES[body]} }}{used} }}"
    (function,) = parse(f"{head} {body}").functions
    made = in_chunks(function, spoken(f"{head} #scanned({mark}, m, t) {body}"))
    assert made is not None and made is not function
    again = parse(print_function(made).replace("◆", "_").replace(".", "_")).functions[0]
    for n in (1, 2, 5, 6, 7, 12, 13):
        x, z = np.arange(5, 5 + n, dtype=np.int32) * 7 % 11 - 3, np.zeros(n, np.int32)
        meant, found = (interpret(f, {"x": x.copy(), "z": z.copy()}, {"n": n}) for f in (function, again))
        assert np.array_equal(meant["z"], found["z"]), (n, print_function(made))
    assert [each for each in check(again) if each.code.startswith("E04")] == []
