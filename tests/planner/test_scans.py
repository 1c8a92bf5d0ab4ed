"""Running values by threads: what is planned of rows, few and many, long and short, gives the same, and is proved."""

from __future__ import annotations

import re

import pytest
from tests.planner.programs import agrees, built, function
from tests.proof.plan.verdicts import open_of

from texpr.driver import lower
from texpr.ir.program.selection import AUTO
from texpr.proof.schedule import faithful
from texpr.proof.search import proved


def rows(body: str, start: str, of: str = "i32", clause: str = "", index: str = "j") -> str:
    """Rows of a matrix with a running value."""
    told = re.sub(r"\bx\b", f"X[i, {index}]", re.sub(r"\by\b", f"Y[i, {index}]", body))
    return f"""
fn rows(X: {of}[M, N]): {of}[M, N] {{
    new Y: {of}[M, N]
    par M |i| {{
        new total: {of} = {start}
        seq N |j| {clause} {{ {told} }}
    }}
    return Y
}}
"""


INCLUSIVE = rows("total += x  y = total", "0")
ROWS = {
    "inclusive": INCLUSIVE,
    "inclusive f32": rows("total += x  y = total", "0.0", "f32", "scan(total)"),
    "inclusive f64": rows("total += x  y = total", "3.0", "f64", "scan(total)"),
    "exclusive": rows("y = total  total += x", "7"),
    "reverse": rows("total += x  y = total", "0", index="N - 1 - j"),
    "product": rows("total *= x  y = total", "1"),
    "product u8": rows("total *= x  y = total", "3", "u8"),
    "maximum": rows("total max= x  y = total", "-2147483647"),
    "minimum f32": rows("total min= x  y = total", "inf", "f32"),
    "difference": rows("total -= x  y = total + x", "5"),
    "under a test": rows("if x > 0 { total += x }  y = total", "0"),
    "of a let": rows("let v = x  total += v * v  y = total - v", "0"),
}

LONG = """
fn long(x: i32[n]): i32[n] {
    new y: i32[n]
    new total: i32
    total = 5
    seq n |i| {
        total += x[i]
        y[i] = total
    }
    return y
}
"""

WANTED = """
fn wanted(x: i32[n]): (i32[n], i32) {
    new y: i32[n]
    new total: i32
    total = 5
    seq n |i| {
        y[i] = total
        total -= x[i]
    }
    return (y, total)
}
"""

TWO = """
fn two(X: i32[M, N]): (i32[M, N], i32[M, N], i32[M]) {
    new Y: i32[M, N]
    new Z: i32[M, N]
    new last: i32[M]
    par M |i| {
        new total: i32 = 0
        new top: i32 = -2147483648
        seq N |j| {
            total += X[i, j]
            top max= X[i, j]
            Y[i, j] = total
            Z[i, j] = top - total
        }
        last[i] = total + top
    }
    return (Y, Z, last)
}
"""

LARGER = """
combine larger(a: i32, b: i32): i32 identity 0 { return select(abs(a) > abs(b), a, select(abs(b) > abs(a), b, max(a, b))) }

fn peaks(X: i32[B, M, N]): i32[B, M, N] {
    new Y: i32[B, M, N]
    par B |b| { par M |i| {
        new top: i32 = 0
        seq N |j| scan(top) {
            top larger= X[b, i, j]
            Y[b, i, j] = top
        }
    } }
    return Y
}
"""


AMONG = """
fn among(X: f32[M, N]): f32[M, N] {
    new Y: f32[M, N]
    par M |i| {
        new top: f32 = -inf
        par N |j| reduce(top) { top max= X[i, j] }
        new p: f32[N]
        par N |j| { p[j] = top - X[i, j] }
        new total: f32 = 0.0
        seq N |j| scan(total) {
            total += p[j]
            Y[i, j] = total
        }
    }
    return Y
}
"""

TRIANGLE = """
fn triangle(X: i32[M, M]): i32[M, M] {
    new Y: i32[M, M] = 0
    par M |i| {
        new total: i32 = 0
        seq i + 1 |j| {
            total += X[i, j]
            Y[i, j] = total
        }
    }
    return Y
}
"""

ONE_AFTER_THE_OTHER = """
fn longs(x: i32[n], z: i32[n]): (i32[n], i32[n]) {
    new y: i32[n]
    new w: i32[n]
    new a: i32 = 1
    new b: i32 = 2
    seq n |i| { a += x[i]  y[i] = a }
    seq n |k| { b max= y[k] - z[k]  w[n - 1 - k] = b + a }
    par n |q| { y[q] += w[q] }
    return (y, w)
}
"""

MORE = {
    "long": LONG,
    "wanted": WANTED,
    "two": TWO,
    "larger": LARGER,
    "among": AMONG,
    "triangle": TRIANGLE,
    "longs": ONE_AFTER_THE_OTHER,
}

OTHERS = {
    "a sum that nothing reads": "fn f(X: i32[M, N], inout Y: i32[M]) { par M |i| { seq N |j| { Y[i] += X[i, j] } } }",
    "in place": """
fn f(inout X: i32[M, N]) {
    par M |i| {
        new s: i32 = 0
        seq N |j| { s += X[i, j]  X[i, j] = s }
    }
}
""",
    "rows that data say": """
fn f(X: i32[M, N], at: i32[N]): i32[M, N] assume at in 0..N {
    new Y: i32[M, N]
    par M |i| {
        new s: i32 = 0
        seq N |j| { s += X[i, at[j]]  Y[i, j] = s }
    }
    return Y
}
""",
    "an element of an array": """
fn f(X: i32[M, N], inout Y: i32[M]): i32[M, N] {
    new Z: i32[M, N]
    par M |i| { seq N |j| { Y[i] += X[i, j]  Z[i, j] = Y[i] } }
    return Z
}
""",
    "columns": """
fn f(X: i32[M, N]): i32[M, N] {
    new Y: i32[M, N]
    par N |j| {
        new s: i32 = 0
        seq M |i| { s += X[i, j]  Y[i, j] = s }
    }
    return Y
}
""",
}


def is_scanned(text: str, sizes: dict[str, int] | None = None) -> bool:
    """Whether the plan has chunks."""
    made = lower(function(text), "sm_90a", sizes, schedule=AUTO)
    return made.schedule is not None and any(each.name == "scan" for each in made.schedule.directives)


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    assert is_scanned(ROWS[name])
    agrees(ROWS[name], {"M": 2, "N": 411}, 0)


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (1, 1), (2, 63), (1, 2817), (1, 5700)])
def test_rows_of_any_length(sizes: tuple[int, int]) -> None:
    agrees(INCLUSIVE, dict(zip("MN", sizes, strict=True)), -1)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_rows_in_any_order_of_threads(order: int) -> None:
    agrees(ROWS["exclusive"], {"M": 1, "N": 3001}, order)


@pytest.mark.parametrize("sizes", [(300, 64), (300, 100), (300, 1281)])
def test_rows_of_fixed_length(sizes: tuple[int, int]) -> None:
    text = INCLUSIVE.replace("M,", "3,").replace("par M", "par 3")
    agrees(text, {"N": sizes[1]}, 0, fix=True, tiny=True)


@pytest.mark.parametrize("text", [LONG, WANTED], ids=["alone", "read behind"])
@pytest.mark.parametrize("n", [0, 1, 5000, 16384, 33000])
def test_one_row_by_all_blocks(text: str, n: int) -> None:
    assert is_scanned(text)
    agrees(text, {"n": n}, 0)


@pytest.mark.parametrize("sizes", [(3, 2101), (2, 9000)])
def test_few_rows_by_all_blocks(sizes: tuple[int, int]) -> None:
    known = dict(zip("MN", sizes, strict=True))
    assert is_scanned(ROWS["inclusive f32"], known)
    agrees(ROWS["inclusive f32"], known, 1, fix=True)


@pytest.mark.parametrize(
    ("text", "sizes"), [(TWO, {"M": 1, "N": 1500}), (LARGER, {"B": 2, "M": 1, "N": 300})], ids=["two", "larger"]
)
def test_several_running_values_and_combiners(text: str, sizes: dict[str, int]) -> None:
    assert is_scanned(text)
    agrees(text, sizes, 0)


@pytest.mark.parametrize(("name", "sizes"), [("among", {"M": 2, "N": 300}), ("triangle", {"M": 70}), ("longs", {"n": 2100})])
def test_among_other_things(name: str, sizes: dict[str, int]) -> None:
    assert is_scanned(MORE[name])
    agrees(MORE[name], sizes, 0)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_left_to_a_thread(name: str) -> None:
    assert not is_scanned(OTHERS[name])


def test_the_order_of_floating_point_sums_stays_where_nobody_frees_it() -> None:
    assert not is_scanned(rows("total += x  y = total", "0.0", "f32"))


@pytest.mark.parametrize("text", [*ROWS.values(), *MORE.values()], ids=[*ROWS, *MORE])
def test_plans_are_proved(text: str) -> None:
    made = lower(function(text), "sm_90a", schedule=AUTO)
    for each in (made, *((made.wide,) if made.wide else ())):
        assert each.written is not None
        assert not open_of(proved(each.function, each.plan))
        assert not open_of(faithful(each.written, each.function))


def test_a_cpu_keeps_the_order() -> None:
    assert built(INCLUSIVE, (), "cpu").schedule is None
