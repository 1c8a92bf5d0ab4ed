"""Which schedule a target gets: a table of what the file has, what is asked for, and what comes of it."""

from __future__ import annotations

import pytest

from texpr.frontend import parse
from texpr.ir.program import Function, Schedule
from texpr.ir.program.selection import Selected, find_schedule, select_schedule
from texpr.isa.registry import resolve
from texpr.support.diagnostic import TexprError

COPY = "fn f(x: f32[n]): f32[n] { new y: f32[n] par n |i| { y[i] = x[i] } return y }\n"


def function(*heads: str) -> Function:
    """A function with a schedule for each head."""
    return parse(COPY + "\n".join(f"schedule f {head} {{ }}" for head in heads))["f"]


def head(schedule: Selected) -> str | None:
    """A schedule as its head, what is none as it is."""
    if not isinstance(schedule, Schedule):
        return schedule
    name = "" if schedule.name is None else f'"{schedule.name}"'
    return f"{name} for {schedule.target}".strip() if schedule.target is not None else name


def said(function: Function, wanted: Schedule | str, target: str) -> str:
    """The code, the message, the notes and the help of the refusal."""
    with pytest.raises(TexprError) as raised:
        select_schedule(function, wanted, resolve(target))
    (found,) = raised.value.diagnostics
    return "\n".join((f"{found.code}: {found.message}", *(note.text for note in found.notes), f"help: {found.help}"))


PLAIN, EXACT, FAMILY = "", "for sm_90a", "for cuda"
NAMED, FAST, SLOW = '"any"', '"fast" for sm_90a', '"slow" for sm_90a'


@pytest.mark.parametrize(
    ("heads", "wanted", "target", "expected"),
    [
        ([], "auto", "cpu", "auto"),
        ([], "none", "cpu", None),
        ([PLAIN, EXACT], "none", "sm_90a", None),
        # auto: the very target, then its family, then any target, then the compiler's; the order of the file does not count
        ([PLAIN, FAMILY, EXACT], "auto", "sm_90a", EXACT),
        ([EXACT, FAMILY, PLAIN], "auto", "sm_90a", EXACT),
        ([PLAIN, FAMILY, EXACT], "auto", "sm_80", FAMILY),
        ([PLAIN, FAMILY, EXACT], "auto", "cpu", PLAIN),
        ([PLAIN, EXACT], "auto", "sm_90", PLAIN),
        ([FAMILY, EXACT], "auto", "cpu", "auto"),
        ([EXACT], "auto", "sm_90", "auto"),
        # the only one needs no name to be left out, and the one without a name wins
        ([FAST], "auto", "sm_90a", FAST),
        ([NAMED], "auto", "cpu", NAMED),
        ([FAST, EXACT, SLOW], "auto", "sm_90a", EXACT),
        ([FAST, PLAIN], "auto", "sm_90a", FAST),
        ([FAST, SLOW, PLAIN], "auto", "sm_80", PLAIN),
        # a name
        ([FAST, SLOW, EXACT], "slow", "sm_90a", SLOW),
        ([NAMED, EXACT], "any", "sm_90a", NAMED),
        (['"g" for cuda'], "g", "sm_86", '"g" for cuda'),
    ],
)
def test_selected(heads: list[str], wanted: str, target: str, expected: str | None) -> None:
    assert head(select_schedule(function(*heads), wanted, resolve(target))) == expected


def test_unknown_names() -> None:
    assert said(function(), "hopper", "cpu") == "E0860: `f` has no schedule `hopper`\nhelp: there are: auto, none"
    several = function(FAST, SLOW, PLAIN)
    assert said(several, "x", "sm_90a") == "E0860: `f` has no schedule `x`\nhelp: there are: fast, slow, auto, none"
    assert said(several, "fats", "sm_90a") == "E0860: `f` has no schedule `fats`\nhelp: did you mean `fast`?"


def test_another_target() -> None:
    assert said(function(FAST), "fast", "sm_80") == (
        "E0861: schedule `fast` is for sm_90a, not for sm_80\nhelp: leave the choice open: --schedule auto"
    )
    assert "not for cpu" in said(function('"g" for cuda'), "g", "cpu")


def test_several() -> None:
    assert said(function(FAST, SLOW, PLAIN), "auto", "sm_90a") == (
        "E0862: several schedules of `f` fit sm_90a\n"
        "schedule `fast` is here\nschedule `slow` is here\n"
        "help: --schedule fast or --schedule slow"
    )


def test_a_schedule_itself() -> None:
    f = function(FAST, PLAIN)
    for schedule in f.schedules:
        assert select_schedule(f, schedule, resolve("sm_90a")) is schedule
    assert said(f, f.schedules[0], "cpu").startswith("E0861")
    (other,) = parse(COPY.replace("fn f", "fn g") + 'schedule g "x" { }')["g"].schedules
    assert said(f, other, "cpu") == "E0863: schedule `x` is for `g`, not for `f`\nhelp: None"


def test_spans_of_the_refusals() -> None:
    f = function(FAST, SLOW)
    for wanted, target in (("x", "cpu"), ("fast", "cpu"), ("auto", "sm_90a")):
        with pytest.raises(TexprError) as raised:
            select_schedule(f, wanted, resolve(target))
        span = raised.value.diagnostics[0].span
        assert span is not None and span.line == (2 if wanted == "fast" else 1)
    assert find_schedule(f, "slow").span.line == 3
