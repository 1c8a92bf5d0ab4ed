"""What was found by trying to break schedules: each test is one fault that was there."""

from __future__ import annotations

import numpy as np
import pytest
from tests.schedule.laid import laid, refusal, wrong

import texpr
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir.program.text import print_directive, print_function
from texpr.ir.program.verify import verify_function
from texpr.isa.registry import resolve
from texpr.schedule.apply import apply_schedule
from texpr.schedule.builder import Schedule

ROWS = """
fn rows(x: i32[n, 16]): i32[n, 16] {
    new y: i32[n, 16]
    par n |i| {
        new v: i32[16]
        par 16 |j| { v[j] = x[i, j] }
        par 16 |k| { y[i, k] = v[15 - k] }
    }
    return y
}"""

NARROW = """
fn narrow(x: i8[n]): i8[n] {
    new y: i8[n]
    par n |i| { y[i] = x[i] }
    return y
}"""

SWEEP = """
fn sweep(inout y: i32[n + 2]) {
    new z: i32[n]
    par n |i| { z[i] = y[i] + y[i + 1] + y[i + 2] }
    par n |k| { y[k + 1] = z[k] }
}"""


def schedule() -> Schedule:
    return Schedule(texpr.parse(ROWS)["rows"], target="sm_90a")


def test_a_fill_fits_its_type() -> None:
    said = refusal(NARROW, "split(i, 32) -> (o, t)  stage(x, at=o, in=shared, fill=300)")
    assert "error[E0306]: 300 does not fit i8" in said
    assert "i8 holds -128 to 127" in said


def test_a_place_that_cannot_be_kept_is_refused() -> None:
    """It was left aside in silence."""
    for space in ("shared", "registers"):
        said = refusal(SWEEP, f"place(z, {space})")
        assert f"[E0913]: `z` cannot live in {space}: it is kept from one kernel to the next" in said
    assert laid(SWEEP, "place(z, workspace)").plan.workspace


def test_copies_that_are_bound_already() -> None:
    said = refusal(ROWS, "split(i, 8) -> (o, t)  distribute(t) -> (a, b)  bind(a, block.y)  bind(b, block.x)")
    assert "`b` is bound to `block.y` already, and so are its copies: `a`" in said
    assert "binding one of them binds them all" in said


@pytest.mark.parametrize(
    ("directives", "help"),
    [
        ("swizzle(i, j, xor=32)", "add iterations first: `resize(j, to=32) -> j_r`"),
        ("swizzle(j, i, xor=8)", "where n % 8 == 0"),
    ],
)
def test_what_a_swizzle_asks_for(directives: str, help: str) -> None:
    """It asked for the promise that 16 is a multiple of 32."""
    text = "fn f(x: i32[n, 16]): i32[n, 16] { new y: i32[n, 16]\n par n |i| { par 16 |j| { y[i, j] = x[i, j] } }\n return y }"
    turned = text.replace("par n |i| { par 16 |j|", "par 16 |j| { par n |i|")
    assert help in refusal(turned if "(j, i" in directives else text, directives)


def test_an_asynchronous_copy_that_is_too_small_is_shown() -> None:
    said = refusal(NARROW, "split(i, 128) -> (o, t)  stage(x, at=o, in=shared, via=cp_async)")
    assert "would move 1 at once" in said and "via=cp_async" in said.split("-->")[1]


def test_numbers_of_numpy() -> None:
    assert str(schedule().split("i", np.int64(8))) == str(schedule().split("i", 8))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: schedule().split("i", True),
        lambda: schedule().bind("i", ("grid", "x")),  # type: ignore[arg-type]
        lambda: schedule().reorder(["i", "j"]),  # type: ignore[arg-type]
        lambda: schedule().split("i", 8, names="ab"),  # type: ignore[arg-type]
        lambda: schedule().split("i", 8, names=("a", 3)),  # type: ignore[arg-type]
        lambda: Schedule(texpr.parse(ROWS)["rows"], name=3),  # type: ignore[arg-type]
        lambda: texpr.compile(texpr.parse(ROWS)["rows"], schedule=3),  # type: ignore[arg-type]
    ],
)
def test_arguments_of_another_type(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(TypeError, match=r"names|must be"):
        wrong()


@pytest.mark.parametrize("name", ["a b", "par", "", "é", "0a"])
def test_names_that_no_text_could_have(name: str) -> None:
    with pytest.raises(texpr.TexprError, match="cannot be a name"):
        schedule().split("i", 8, names=(name, "t"))


@pytest.mark.parametrize("name", ["auto", "none"])
def test_a_schedule_is_not_called_what_means_something_else(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be called"):
        Schedule(texpr.parse(ROWS)["rows"], name=name)


def test_a_loop_kept_whole_from_python() -> None:
    assert "partition(i, off)" in str(schedule().partition("i", on=False))


@pytest.mark.parametrize(
    ("pragma", "help"),
    [
        ("bynd(grid.x)", "did you mean `#bind`?"),
        ("vector", "other directives stand in a schedule"),
        ("split(4)", "other directives stand in a schedule"),
        ("launch_bounds(2)", "other directives stand in a schedule"),
        ("tma(128, 1)", "other directives stand in a schedule"),
        ("async", "other directives stand in a schedule"),
    ],
)
def test_a_pragma_that_there_is_not(pragma: str, help: str) -> None:
    """It was left aside in silence, or taken for a mark of the compiler's own."""
    said = refusal(ROWS.replace("|i|", f"|i| #{pragma}"), "unroll(j)")
    assert f"error[E0901]: there is no pragma `#{pragma.split('(')[0]}`" in said and help in said


def test_a_pragma_whose_loop_the_schedule_has_split() -> None:
    said = refusal(ROWS.replace("|i|", "|i| #grid"), "split(i, 8) -> (a, b)")
    assert "the schedule has made other loops of `i`, so this pragma has none" in said


@pytest.mark.parametrize("directive", ["stage(x, at=i, in=shared)", "place(v, shared)"])
def test_shared_memory_of_a_cpu(directive: str) -> None:
    """`stage` spoke of the threads of a block."""
    said = refusal(ROWS, directive, target="cpu")
    assert "error[E0908]: cpu has no shared memory" in said and "write `registers`" in said


def test_lanes_of_a_vector_keep_their_number_where_their_loop_is_parted() -> None:
    text = """fn f(x: i32[7, 6] align(8), inout y: i32[7, 6] align(8)) {
    par 7 |i| { par 6 |j| { if j < 5 { y[i, j] = x[i, j] } } }
}"""
    made = laid(text, "split(j, 2) -> (a, b)  partition(b)  vectorize(b)")
    assert "par 2 |b| #vector" in print_function(made.function)
    arrays = {name: np.arange(42, dtype=np.int32).reshape(7, 6) + at for at, name in enumerate("xy")}
    assert wrong(made, arrays) is None


def test_python_says_what_a_text_says_of_extents_and_numbers_of_statements() -> None:
    """`resize(to=)` and `distribute` with numbers could be written in a text alone."""
    text = """
fn low(x: i32[n, n]): i32[n] {
    new y: i32[n]
    par n |i| {
        y[i] = 0
        seq i + 1 |j| reduce(y) { y[i] += x[i, j] }
        y[i] += 1
    }
    return y
}
schedule low for cuda { resize(j, to=n) -> p  distribute(i, 2, 1) -> (a, b) }"""
    function = texpr.parse(text)["low"]
    said = Schedule(function, target="sm_90a").resize("j", to="n", name="p").distribute("i", 2, 1, names=("a", "b"))
    told = (said.record, function.schedules[0])
    assert len({tuple(map(print_directive, each.directives)) for each in told}) == 1


def test_vectors_of_which_none_divides_a_sector() -> None:
    """Three words at a time begin at every fourth byte of some sector: the least a box touches is counted over these."""
    text = """
    fn f(y: i32[1]): i32[1, 1] {
        new p: i32[1, 1]
        par 1 |i| { par 1 |k| {
            new v: i32[40]
            par 40 |d| { v[d] = 3 }
            par 40 |e| { v[e] = 4 }
            p[k, i] = y[k] + v[i + 1]
        } }
        return p
    }
    schedule f {
        distribute(k) -> (k1, k2, k3)
        split(d, 3) -> (do, di)
        vectorize(di)
        pipeline(i, v, stages=2)
    }"""
    with pytest.raises(texpr.TexprError, match=r"E0911: .*3 elements of `v` are 12 bytes"):
        texpr.compile(texpr.parse(text)["f"], target="sm_90a", emulate=True)


def test_an_array_that_is_seen_in_two_shapes() -> None:
    """Parts of two lengths: which elements meet is not asked dimension by dimension where two views have not the same ones."""
    text = """
    fn f(x: f32[D], y: f32[L, D]): f32[L, D] #unproved {
        new z: f32[L, D]
        par L |i| {
            new acc: f32[D]
            par D |d| { acc[d] = x[d] }
            par D |e| { acc[e] = acc[e] + y[i, e] }
            par D |g| { z[i, g] = acc[g] }
        }
        return z
    }
    schedule f {
        split(d, parts=L + 1) -> (d1, d2)
        split(e, 8) -> (e1, e2)
    }"""
    kernel = texpr.compile(texpr.parse(text)["f"], target="sm_90a", emulate=True)
    x, y = np.arange(20, dtype=np.float32), np.ones((3, 20), np.float32)
    np.testing.assert_array_equal(kernel(x, y), x + y)


def test_memory_whose_extents_are_of_a_loop_that_has_another_name_now() -> None:
    """The loop over `i` became two; where an element lies was still said in `i`."""
    text = """fn f(x: i32[H, L], inout y: i32[H, L]) {
    par H |h| { par L |i| {
        new t: i32[2, i + 1]
        par i + 1 |j| { t[0, j] = x[h, j] }
        par i + 1 |k| { t[1, k] = t[0, i - k] }
        y[h, i] = t[1, 0]
    } }
}"""
    x, y = np.arange(15, dtype=np.int32).reshape(3, 5), np.zeros((3, 5), np.int32)
    for directives in ("reorder(i, h)  merge(t.d0, t.d1)", "split(i, 2) -> (a, b)  merge(t.d0, t.d1)"):
        (function,) = texpr.parse(f"{text}\nschedule f for cuda {{ {directives} }}").functions
        made = apply_schedule(function, function.schedules[0], resolve("sm_90a"))
        assert made is not None
        verify_function(made.function)
        np.testing.assert_array_equal(interpret(made.function, {"x": x, "y": y})["y"], x)


def test_a_loop_that_is_as_long_as_another_says_and_divided_by_a_size() -> None:
    """Which iterations are left out was counted as if extents were numbers."""
    text = """fn f(x: i32[n, n], z: i32[H], inout y: i32[n]) {
    par n |i| { seq i + 1 |j| { y[i] += x[i, j] } }
}"""
    assert "[E0914]: cannot decide whether this leaves iterations out" in refusal(
        text, "split(j, H + 1) -> (a, b)  resize(a, -1, 0)"
    )


def test_one_value_in_two_loops_of_which_one_is_split() -> None:
    """A `let` went into both loops, and what it reads was staged at the place that it has in the second."""
    text = """fn f(x: i32[n, m], inout t: i32[n]) {
    par n |i| { seq m |j| {
        let v = x[i, j] * 2
        if v > 3 { t[i] += 1 }
    } }
}"""
    made = laid(text, "split(j, 3) -> (o, s)  distribute(s)  split(s, 5) -> (a, b)  stage(x, at=o, in=shared)")
    arrays = {"x": np.arange(28, dtype=np.int32).reshape(4, 7) % 5, "t": np.zeros(4, np.int32)}
    assert wrong(made, arrays) is None


def test_lanes_ask_for_a_register_that_there_is() -> None:
    """All come to a shuffle, before what says that there is such an element."""
    text = """fn f(x: i32[13, 8], inout y: i32[13, 8]) {
    par 13 |i| {
        new t: i32[8, 4]
        par 8 |j| { par 4 |k| { t[j, k] = x[i, j] * (k + 1) } }
        par 8 |l| { seq 4 |m| { y[i, l] += t[7 - l, 3 - m] } }
    }
}"""
    made = laid(text, "split(m, 8) -> (a, b)  reorder(b, l)  split(j, 2) -> (c, d)  stage(t, at=d, in=registers)")
    assert any(isinstance(s, k.Shuffle) for s in made.statements)
    arrays = {name: np.arange(104, dtype=np.int32).reshape(13, 8) + at for at, name in enumerate("xy")}
    assert wrong(made, arrays) is None
