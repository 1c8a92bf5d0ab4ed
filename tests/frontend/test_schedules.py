"""Schedules in program form: what their arguments are, where they stand, and how they are printed."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from tests.frontend import trees
from tests.frontend.same import form, same

from texpr.affine.expr import Sym, expr, minimum, sym
from texpr.frontend import elaborate, parse
from texpr.frontend import tree as t
from texpr.ir.program import Argument, ArgumentValue, Directive, Group, Par, Schedule
from texpr.ir.program.rewrite import specialize, specialize_schedule
from texpr.ir.program.text import print_program, print_schedule
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace

COPY = """
fn f(const tile: i32 = 32, const open: i32, x: f32[n, m]): f32[n] {
    new y: f32[n]
    par n |i| 'rows { y[i] = x[i, 0] }
    return y
}
"""


def directive(text: str) -> Directive:
    """The directive `text` of a schedule of `COPY`."""
    (schedule,) = parse(f"{COPY}schedule f {{ {text} }}")["f"].schedules
    (found,) = schedule.directives
    return found


N, M = sym("n"), sym("m")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # words
        ("i", "i"), ("i'1", "i'1"), ("rows", "rows"), ("shared", "shared"), ("grid.y", "grid.y"), ("As.d1", "As.d1"),
        ("128B", "128B"), ("1 warp", "1 warp"), ("2 warpgroups", "2 warpgroups"), ("sm_90a", "sm_90a"), ("_", "_"),
        ("seq", "seq"), ("auto", "auto"), ("x", "x"), ("n warps", "n warps"), ("n.d1", "n.d1"), ('"a b\\n"', "a b\n"),
        # numbers
        ("128", 128), ("-3", -3), ("0x10", 16), ("-0.5", -0.5), ("inf", math.inf), ("-inf", -math.inf),
        # sizes and consts, alone and in expressions; quoted they are words
        ("n", N), ("open", sym("open")), ("tile", 32), ('"n"', "n"), ('"tile"', "tile"),
        ("n / 4", N // 4), ("(n + tile - 1) / tile", (N + 31) // 32), ("-n", -N), ("2 * (n - m) % 8", 2 * (N - M) % 8),
        ("min(n, m, 8)", minimum(N, M, 8)), ("tile * 2", 64), ("n - n", 0), ("- -tile", 32), ("open / 2", sym("open") // 2),
        # groups
        ("()", Group(())), ("(128, 64)", Group((Argument(128), Argument(64)))), ("(n)", Group((Argument(N),))),
        ("(a: 1 warp, b: n / 2)", Group((Argument("1 warp", "a"), Argument(N // 2, "b")))),
        ("((1, n), x)", Group((Argument(Group((Argument(1), Argument(N)))), Argument("x")))),
    ],
)  # fmt: skip
def test_an_argument(text: str, value: ArgumentValue) -> None:
    (found,) = directive(f"d({text})").args
    assert found == Argument(value)
    assert type(found.value) is type(value)
    (found,) = directive(f"d(key={text})").args
    assert found == Argument(value, "key")


def test_an_argument_as_an_index() -> None:
    found = directive("d(8, n, n + 1, i, 0.5, (8, 8))")
    assert [a.index for a in found.args] == [expr(8), N, N + 1, None, None, None]


def test_a_directive() -> None:
    found = directive("stage(x, at=i, box=(tile, 8)) -> (a, b)")
    box = Group((Argument(32), Argument(8)))
    assert found == Directive("stage", (Argument("x"), Argument("i", "at"), Argument(box, "box")), ("a", "b"))
    text = found.span.source.text
    assert text[found.span.start : found.span.end] == "stage(x, at=i, box=(tile, 8)) -> (a, b)"
    assert [text[a.span.start : a.span.end] for a in found.args] == ["x", "at=i", "box=(tile, 8)"]
    (group,) = (a.value for a in found.args if isinstance(a.value, Group))
    assert [text[a.span.start : a.span.end] for a in group.args] == ["tile", "8"]


def test_pragmas_keep_words() -> None:
    program = parse("fn f(inout y: f32[n]) { par n |i| #a(n, 1 warp, k=2) { y[i] = 1.0 } }")
    (loop,) = program["f"].body
    assert isinstance(loop, Par)
    (pragma,) = loop.directives
    assert pragma == Directive("a", (Argument("n"), Argument("1 warp"), Argument(2, "k")))


def test_a_function_carries_its_schedules() -> None:
    text = COPY + "fn g() { }\n" + 'schedule g { }\nschedule f "a" for cuda { split(i, tile) -> (a, b) }\nschedule f { }\n'
    program = parse(text, consts={"tile": 16})
    split = Directive("split", (Argument("i"), Argument(16)), ("a", "b"))
    assert program["f"].schedules == (Schedule("f", "a", "cuda", (split,)), Schedule("f", None, None, ()))
    assert program.schedules_of("f") is program["f"].schedules
    assert program.schedules_of("g") == (Schedule("g", None, None, ()),)
    with pytest.raises(KeyError):
        program.schedules_of("h")


def test_a_schedule_may_stand_before_its_function() -> None:
    program = parse("schedule f { split(i, tile) -> (a, b) }\n" + COPY)
    assert program["f"].schedules[0].directives[0].args[1] == Argument(32)


def test_a_call_takes_no_schedule_along() -> None:
    caller = "fn g(inout y: f32[n]) { h(y) }\n"
    program = parse(caller + "fn h(inout y: f32[n]) { par n |i| { y[i] = 1.0 } }\nschedule h { unroll(i) }")
    assert (len(program["g"].schedules), len(program["h"].schedules)) == (0, 1)


def test_errors_of_a_schedule_and_a_body_are_both_told() -> None:
    with pytest.raises(TexprError) as raised:
        parse("fn f(x: f32[n], inout y: f32[n]) { y[0] = z }\nschedule f { a(k / 2) b(q + 1) }")
    assert [(d.code, d.span.line if d.span else 0) for d in raised.value.diagnostics] == [
        ("E0213", 2),
        ("E0213", 2),
        ("E0201", 1),
    ]


def test_sizes_that_are_fixed() -> None:
    function = parse(COPY + "schedule f { d(n / 4, (n, m, open), i, k=n / open) }")["f"]
    (schedule,) = function.schedules
    fixed = {Sym("n"): 64, Sym("open"): 2}
    (found,) = specialize_schedule(schedule, fixed).directives
    group = Group((Argument(64), Argument(M), Argument(2)))
    assert found.args == (Argument(16), Argument(group), Argument("i"), Argument(32, "k"))
    assert specialize(function, fixed).schedules == ()
    with pytest.raises(ZeroDivisionError):
        specialize_schedule(schedule, {Sym("open"): 0})


PRINTED = r"""fn f(const open: i64, x: f32[n, m]): f32[n] {
    new y: f32[n]
    par n |i| 'rows {
        y[i] = x[i, 0]
    }
    return y
}

schedule f "wide \"é\"" for sm_90a {
    split(i, (n + 3) / 4, -n, "n", "open") -> (a, i'1)
    stage(x, at=a, box=(128, 1 warp, s: (inf, -0.5)), swizzle=128B, v="1e5", w="a-b", u="inf") -> As
    none()
}

schedule f {
}
"""


def test_printed() -> None:
    program = parse(PRINTED)
    assert print_program(program) == PRINTED
    (first, _) = program["f"].schedules
    assert print_schedule(first, program["f"]) == PRINTED.split("\n\n")[1] + "\n"


def test_what_is_printed_differs_where_the_schedule_does() -> None:
    program = parse(PRINTED)
    for old, new in (("4, -n", "4, n"), ('"n"', "n"), ("s: ", ""), ("128B", "64B"), ("i'1)", "i)"), ("sm_90a", "sm_80")):
        assert not same(parse(PRINTED.replace(old, new)), program), (old, new)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(trees.SCHEDULES)
def test_random_schedules(schedule: t.Schedule) -> None:
    """Whatever a schedule elaborates to reads back as it was."""
    written = replace(schedule, function=t.Ident("f"), target=None)
    sizes = t.TypeExp(t.Ident("f32"), tuple(map(t.Name, ("x", "n", "i", "i'1", "f32", "in", "for"))))
    fn = t.Fn(t.Ident("f"), (t.Param(t.Ident("A"), sizes),), (), ())
    try:
        program = elaborate(t.Tree((fn, written)))
    except TexprError:
        return
    again = parse(print_program(program))
    assert form(again) == form(program)
