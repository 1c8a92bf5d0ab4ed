"""Registers that index expressions name: ends of loops, tests, subscripts, as the program's `let`s say them; and what is wrong
with them in plans that were altered by hand."""

import re
from itertools import product

import pytest
from tests.proof.plan.verdicts import is_proved, open_of

from texpr import driver
from texpr.affine.expr import Number, number_of
from texpr.driver import Compiled
from texpr.ir.kernel import Plan
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.proof.tags import Moved
from texpr.proof.plan import prove, question
from texpr.proof.read import reader
from texpr.proof.search import proved, search
from texpr.support.record import replace

ENDS = """
fn f(len: i32[m], x: i32[m, w]): i32[m, w]
    assume len in 0..w + 1
{
    new y: i32[m, w]
    par m |i| {
        let n = len[i]
        par w |k| { y[i, k] = 0 }
        par n |k| { y[i, k] = x[i, k] }
    }
    return y
}"""
"""Rows as long as data say."""

TESTED = """
fn f(len: i32[m], x: i32[m, w]): i32[m, w]
    assume len in 0..w + 1
{
    new y: i32[m, w]
    par m |i| {
        let n = len[i]
        par w |k| { y[i, k] = 0  if k < n { y[i, k] = x[i, k] } }
    }
    return y
}"""
"""The same by a test."""

PLACED = """
fn f(len: i32[m], x: i32[m, w]): i32[m, w]
    where w >= 1
    assume len in 0..w
{
    new y: i32[m, w]
    par m |i| {
        let n = len[i]
        par w |k| { y[i, k] = 0 }
        y[i, n] = x[i, 0]
    }
    return y
}"""
"""A subscript."""

EACH = """
fn f(len: i32[m], x: i32[m, 4]): i32[m, 4]
    assume len in 0..4
{
    new y: i32[m, 4]
    par m |i| {
        let n = len[i]
        seq 4 |k| { y[i, k] = x[i, k] }
        y[i, n] = 7
        seq n |k| { y[i, k + 1] = y[i, k + 1] + y[i, k] }
    }
    return y
}"""
"""A subscript, and the end of a loop whose turns have an order."""

ROWS = """
fn f(first: i32[m + 1], x: i32[nnz], z: i32[w]): i32[m, w]
    where nnz >= 1
    assume first in 0..nnz + 1
{
    new y: i32[m, w]
    par m |i| {
        let a = first[i]
        let b = first[i + 1]
        par w |k| { y[i, k] = z[k] }
        par min(b - a, w) |k| { y[i, k] = x[min(a + k, nnz - 1)] }
    }
    return y
}"""
"""Rows that are read one behind another."""

WRITTEN = """
fn f(first: i32[m + 1], x: i32[m, w], z: i32[nnz]): i32[nnz]
    where nnz >= 1
    assume first in 0..nnz + 1
{
    new y: i32[nnz]
    par nnz |e| { y[e] = z[e] }
    seq m |i| {
        let a = first[i]
        let b = first[i + 1]
        seq min(b - a, w) |k| { y[min(a + k, nnz - 1)] = x[i, k] }
    }
    return y
}"""
"""Rows that are written one behind another, and over each other."""

SHARED = """
fn f(len: i32[m], x: i32[m, w]): i32[m, w]
    where w <= 300
    assume len in 0..w + 1
{
    new y: i32[m, w]
    par m |i| {
        new t: i32[300]
        let n = len[i]
        par w |k| { t[k] = 0 }
        par n |k| { t[k] = x[i, k] * 2 }
        par w |k| { y[i, k] = t[w - 1 - k] }
    }
    return y
}"""
"""Ends and subscripts in the memory of a block."""

MEET = """
fn f(len: i32[m], x: i32[m, 256]): i32[m, 256]
    assume len in 0..1000
{
    new y: i32[m, 256]
    par m |i| {
        new t: i32[256]
        let n = len[i]
        par 256 |k| { t[k] = x[i, k]  y[i, k] = 0 }
        seq n |s| {
            par 256 |k| { y[i, k] += t[255 - k] }
            par 256 |k| { t[k] = y[i, k] + s }
        }
    }
    return y
}"""
"""As many barriers as data say."""

MADE = """
fn f(x: i32[m, w]): i32[m, w]
{
    new y: i32[m, w]
    new len: i32[m]
    par m |i| {
        len[i] = 0
        seq w |k| { if x[i, k] > 0 { len[i] += 1 } }
    }
    par m |i| {
        let n = min(max(len[i], 0), i32(w))
        par w |k| { y[i, k] = 0  if k < n { y[i, k] = x[i, k] } }
    }
    return y
}"""
"""Lengths that the program makes."""

LATE = """
fn f(inout len: i32[m], x: i32[m, w]): i32[m, w]
{
    new y: i32[m, w]
    par m |i| {
        let n = min(max(len[i], 0), i32(w))
        len[i] = 0
        par w |k| { y[i, k] = 0  if k < n { y[i, k] = x[i, k] } }
    }
    return y
}"""
"""A length that is written over since."""

TURNS = """
fn f(len: i32[m, w], x: i32[m, w]): i32[m, w]
    assume len in 0..w + 1
{
    new y: i32[m, w]
    par m |i| {
        par w |k| { y[i, k] = 0 }
        seq w |t| {
            let n = len[i, t]
            par n |k| { y[i, k] += x[i, t] }
        }
    }
    return y
}"""
"""Another length in each turn of a loop."""

NESTED = """
fn f(of: i32[m], len: i32[q], x: i32[m, w]): i32[m, w]
    assume len in 0..w + 1, of in 0..q
{
    new y: i32[m, w]
    par m |i| {
        let o = of[i]
        let n = len[o]
        par w |k| { y[i, k] = 0 }
        par n |k| { y[i, n - 1 - k] = x[i, k] }
    }
    return y
}"""
"""A length that another number says, and a subscript that counts down from it."""

TWO = """
fn f(one: i32[m], two: i32[m], x: i32[m, w]): (i32[m, w], i32[m, w])
    assume one in 0..w + 1, two in 0..w + 1
{
    new y: i32[m, w]
    new z: i32[m, w]
    par m |i| {
        let n = one[i]
        let q = two[i]
        par w |k| { y[i, k] = 0  z[i, k] = 0 }
        par n |k| { y[i, k] = x[i, k] }
        par q |k| { z[i, k] = x[i, k] }
    }
    return (y, z)
}"""
"""Two lengths."""

TESTS = """
fn f(len: i32[m], x: i32[m, w]): i32[m, w]
    assume len in 0..w + 1
{
    new y: i32[m, w]
    par m |i| {
        par w |k| { y[i, k] = 0 }
        if len[i] > 2 {
            let n = len[i]
            par n |k| { y[i, k] = x[i, k] }
        }
    }
    return y
}"""
"""A length that is asked for only where a test of data says so."""

COLUMNS = """
fn f(len: i32[256], x: i32[m, w]): i32[m, 256]
    where w >= 1
    assume len in 0..1000
{
    new y: i32[m, 256]
    par m |i| { par 256 |j| {
        let n = len[j]
        new s: i32 = 0
        seq n |k| { s = s * 3 + x[i, k % w] }
        y[i, j] = s
    } }
    return y
}"""
"""A length for each thread."""

SCATTERED = """
fn f(at: i32[n], x: i32[n], inout y: i32[m])
    where m >= 2 * n
    assume at in 0..n
{
    seq n |i| { y[at[i] + i] = x[i] }
}"""
"""A place that data say, in each turn another one."""

TWICE = """
fn f(one: i32[n], two: i32[n], inout y: i32[m])
    where m >= 2
    assume one in 0..m - 1, two in 0..m - 1
{
    seq n |i| {
        y[one[i]] = 1
        y[two[i] + 1] = 2
    }
}"""
"""Two places that data say."""

KEPT = """
fn f(x: i32[n], P: i32[n], inout a: i32[n])
    where n >= 1
    assume P in 0..n, x in 0..n
{
    let p = P[0]
    let q = x[0]
    par n |i| { a[i] = x[p] + P[q] + q }
}"""
"""What is read once, in a kernel of its own, and named in the next."""

PROGRAMS = {
    "kept": KEPT,
    "scattered": SCATTERED,
    "twice": TWICE,
    "columns": COLUMNS,
    "ends": ENDS,
    "tested": TESTED,
    "placed": PLACED,
    "each": EACH,
    "rows": ROWS,
    "written": WRITTEN,
    "shared": SHARED,
    "meet": MEET,
    "made": MADE,
    "late": LATE,
    "turns": TURNS,
    "nested": NESTED,
    "two": TWO,
    "tests": TESTS,
}

WRONG = {
    "a kept let for another": (KEPT, ("= p_1[]", "= q_1[]")),
    "kept lets exchanged": (KEPT, ("= p_1[]", "= o_1[]"), ("= q_1[]", "= p_1[]"), ("= o_1[]", "= q_1[]")),
    "a let that is kept too late": (KEPT, ("    launch f_p_1\n    launch f_a", "    launch f_a\n    launch f_p_1")),
    "a let that is written over": (KEPT, ("    q_1[] = x[0]", "    p_1[] = x[0]\n    q_1[] = x[0]")),
    "the wrong row": (ENDS, ("let n: i32 = len[i]", "let n: i32 = len[0]")),
    "a number of its own": (ENDS, ("let n: i32 = len[i]", "let n: i32 = 7:i32")),
    "one too many": (ENDS, ("in thread..n by", "in thread..n + 1 by")),
    "one too few": (ENDS, ("in thread..n by", "in thread..n - 1 by")),
    "another test": (TESTED, ("i64(k) < i64(n)", "i64(k) <= i64(n)")),
    "the test of another row": (TESTED, ("let n: i32 = len[i]", "let n: i32 = len[m - 1 - i]"), ("size w", "size m, w")),
    "a place too far": (PLACED, ("y[i, n] =", "y[i, n + 1] =")),
    "the place of another row": (PLACED, ("len[i]", "len[0]")),
    "a place that each thread writes, of its own": (PLACED, ("let n: i32 = len[i]", "let n: i32 = i32(thread)")),
    "a place that is written too early": (PLACED, ("    barrier block covers WAW y\n", "")),
    "turns the other way round": (
        EACH,
        ("y[i, k'1 + 1] = (y[i, k'1 + 1] + y[i, k'1])", "y[i, n - k'1] = (y[i, n - k'1] + y[i, n - 1 - k'1])"),
    ),
    "a place that is written behind": (
        EACH,
        ("        y[i, n] = 7:i32  -- line 9\n", ""),
        ("+ y[i, k'1])  -- line 10\n        }", "+ y[i, k'1])\n        }\n        y[i, n] = 7:i32"),
    ),
    "registers exchanged": (
        ROWS,
        ("= first[i]", "= first[i + 2]"),
        ("= first[i + 1]", "= first[i]"),
        ("= first[i + 2]", "= first[i + 1]"),
    ),
    "both ends alike": (ROWS, ("= first[i + 1]", "= first[i]")),
    "the start of another": (ROWS, ("x[min(a + k'1", "x[min(b + k'1")),
    "rows the other way round": (
        WRITTEN,
        ("= first[i]", "= first[m - 1 - i]"),
        ("= first[i + 1]", "= first[m - i]"),
        ("x[i, k]", "x[m - 1 - i, k]"),
    ),
    "a row the other way round": (
        WRITTEN,
        ("y[min(a + k, nnz - 1)] = x[i, k]", "y[min(a + min(-a + b, w) - 1 - k, nnz - 1)] = x[i, min(-a + b, w) - 1 - k]"),
    ),
    "nobody waits for a row": (SHARED, ("    barrier block covers RAW t\n", "")),
    "another length for each thread": (MEET, ("let n: i32 = len[i]", "let n: i32 = len[min(thread, i)]")),
    "a barrier that threads come to as often as their own data say": (
        COLUMNS,
        ("for k in 0..n {", "for k in 0..n uniform {\n            barrier block covers RAW y"),
    ),
    "a turn without the others": (MEET, ("        barrier block covers WAR t\n", "")),
    "a length that is made too late": (MADE, ("    launch f_len\n    launch f_y", "    launch f_y\n    launch f_len")),
    "a length that is written over": (LATE, ("    barrier block covers WAR len\n", "")),
    "a length that is read late": (
        LATE,
        ("    let n: i32 = min(max(len[i], 0:i32), i32(w))  -- line 6\n", ""),
        ("    for k in thread", "    let n: i32 = min(max(len[i], 0:i32), i32(w))\n    for k in thread"),
    ),
    "the length of the first turn": (TURNS, ("= len[i, t]", "= len[i, 0]")),
    "the length of the next turn": (TURNS, ("= len[i, t]", "= len[i, min(t + 1, w - 1)]")),
    "the length of something else": (NESTED, ("= len[o]", "= len[i]")),
    "one up, not down": (NESTED, ("n - 1", "o - 1")),
    "two lets merged": (TWO, ("thread..q", "thread..n")),
    "places from the last to the first": (
        SCATTERED,
        ("at[i]", "at[n - 1 - i]"),
        ("x[i]", "x[n - 1 - i]"),
        ("+ i;", "+ n - 1 - i;"),
    ),
    "places by one name, the last one first": (
        TWICE,
        ("y[one'd1; one'd1 = one[i]] = 1:i32", "y[q + 1; q = two[i]] = @"),
        ("y[two'd2 + 1; two'd2 = two[i]] = 2:i32", "y[q; q = one[i]] = 1:i32"),
        ("@", "2:i32"),
    ),
    "two lets exchanged": (TWO, ("= one[i]", "= some[i]"), ("= two[i]", "= one[i]"), ("= some[i]", "= two[i]")),
}


def compiled(text: str, target: str) -> Compiled:
    """The only function of `text`, as it is laid out by itself."""
    return driver.lower(driver.parse(text)["f"], target)


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_registers_name_is_proved(name: str, target: str) -> None:
    made = compiled(PROGRAMS[name], target)
    assert open_of(proved(made.function, made.plan)) == []


def altered(name: str) -> tuple[Compiled, Plan]:
    """What is lowered, and a plan with what is wrong."""
    program, *changes = WRONG[name]
    made = compiled(program, "sm_90a")
    text = re.sub(r" from \d+ to \d+(?=$|,)", "", plan_text(made.plan).replace(" dependent\n", "\n"), flags=re.MULTILINE)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return made, parse_plan(text)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_not_proved(name: str) -> None:
    """Not by the tags that are found for it, nor by those of the right plan."""
    made, plan = altered(name)
    asked = question(made.function, plan)
    right = search(question(made.function, made.plan))
    every = [tags for tags in (search(asked), right) if len(tags.events) == len(asked.reading.events)]
    assert not any(is_proved(prove(asked, plan, tags)) for tags in every)


def test_what_a_register_holds_is_asked() -> None:
    """Or, of a table whose range is promised, known: it is no matter of names then, and nothing passes for another element."""
    made, plan = altered("two lets exchanged")
    asked = question(made.function, plan)
    asked.reading.named.clear()
    assert not is_proved(prove(asked, plan, search(asked)))


@pytest.mark.parametrize("name", ["the wrong row", "registers exchanged"])
def test_what_reads_another_element_is_called_after_that(name: str) -> None:
    """So it would not pass for a `let`, if nobody asked."""
    made, plan = altered(name)
    asked = question(made.function, plan)
    asked.reading.named.clear()
    assert not is_proved(prove(asked, plan, search(asked)))


@pytest.mark.parametrize("name", ["a kept let for another", "kept lets exchanged"])
def test_a_copy_of_another_let_is_not_called_so(name: str) -> None:
    """Whatever tags say that it is a copy of."""
    made, plan = altered(name)
    asked = question(made.function, plan)
    right = search(question(made.function, made.plan))
    moved = dict.fromkeys(tag for tag in right.events if isinstance(tag, Moved))
    places = [at for at, tag in enumerate(right.events) if isinstance(tag, Moved)]
    assert len(places) == 2
    for two in product(moved, repeat=2):
        events = [*right.events]
        for at, tag in zip(places, two, strict=True):
            events[at] = tag
        assert not is_proved(prove(asked, plan, replace(right, events=tuple(events))))


def one_number(label: str, _: object) -> Number:
    return number_of(label.split("#", maxsplit=1)[0], ())


@pytest.mark.parametrize("name", ["places from the last to the first", "places by one name, the last one first"])
def test_numbers_are_functions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else places of two turns, or of two statements, would never meet."""
    made, plan = altered(name)
    monkeypatch.setattr(reader, "number_of", one_number)
    assert is_proved(proved(made.function, plan))
