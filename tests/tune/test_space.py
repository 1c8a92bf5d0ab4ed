"""Values on the command line, the spaces of programs, and what has none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.planner.programs import MATMUL
from tests.tune.programs import CUBE, PLUS, problem

from texpr.support.diagnostic import TexprError
from texpr.support.record import replace
from texpr.tune.problem import identity, space_of
from texpr.tune.space import MOST, Dimension, Space, Wrong, around, parse_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("16,32, 64", (16, 32, 64)),
        ("4,4,2", (4, 2)),
        ("8..32:8", (8, 16, 24)),
        ("8..=32:8", (8, 16, 24, 32)),
        ("0..3", (0, 1, 2)),
        ("8..=64:*2,100", (8, 16, 32, 64, 100)),
        ("-2..=1", (-2, -1, 0, 1)),
        ("5..5", ()),
        ("", ()),
    ],
)
def test_values_are_read(text: str, values: tuple[int, ...]) -> None:
    assert parse_values(text) == values


@pytest.mark.parametrize("text", ["x", "1..", "1..9:0", "1..9:*1", "0..9:*2", f"0..{MOST + 1}", "1.5", "1...2"])
def test_what_is_no_value_is_refused(text: str) -> None:
    with pytest.raises(Wrong):
        parse_values(text)


def test_a_default_says_what_is_tried_around_it() -> None:
    assert (around(128), around(6), around(1), around(0)) == ((32, 64, 128, 256, 512), (3, 6, 12, 24), (1, 2, 4), (0,))


def test_points_are_numbered() -> None:
    space = Space((Dimension("a", (1, 2), 1), Dimension("b", (5, 6, 7), 6)))
    assert (space.size, space.default) == (6, {"a": 1, "b": 6})
    assert [tuple(point.values()) for point in space.points()] == [(a, b) for a in (1, 2) for b in (5, 6, 7)]


def test_consts_that_only_the_schedule_uses_are_the_space() -> None:
    text = PLUS.replace("const tile", "const times: i32 = 2, const idle: i32 = 3, const tile").replace(
        "x[i] +", "f32(times) * x[i] +"
    )
    assert space_of(problem(text), {}) == Space((Dimension("tile", (32, 64, 128, 256, 512), 128),))
    assert space_of(problem(text), {"tile": (7, 9)}) == Space((Dimension("tile", (7, 9), 7, is_written=False),))
    assert space_of(problem(text), {"tile": (7, 128)}).default == {"tile": 128}


def refusal(text: str, given: dict[str, tuple[int, ...]] | None = None, **sizes: int) -> tuple[str, str]:
    with pytest.raises(TexprError) as raised:
        space_of(problem(text, **sizes), given or {})
    (found,) = raised.value.diagnostics
    return found.code, f"{found.message} {found.help}"


def test_what_has_nothing_to_search_is_refused() -> None:
    code, told = refusal(PLUS.replace("split(i, tile)", "split(i, 8)"))
    assert (code, "uses no const" in told) == ("E0841", True)
    assert "uses no const" in refusal(PLUS, n=9, tile=3)[1]
    assert "the space of `tile` is empty" in refusal(PLUS, {"tile": ()})[1]
    assert "`size` is none of consts that only the schedule uses of `plus` there are: tile" in refusal(PLUS, {"size": (1,)})[1]
    assert "no candidates" in refusal(PLUS[: PLUS.index("schedule")])[1]


def test_a_const_of_the_program_is_not_searched() -> None:
    text = PLUS.replace("x[i] +", "f32(tile) * x[i] +")
    assert "another value is another program" in refusal(text, {"tile": (1, 2)})[1]
    assert refusal(text)[0] == "E0841"
    static = PLUS.replace("z[i] = x[i] + y[i]", "z[i] = 0.0 static for d in 0..tile { z[i] += x[i] }")
    assert "another program" in refusal(static, {"tile": (1, 2)})[1]


def test_a_const_without_a_default_needs_values() -> None:
    text = PLUS.replace(" = 128", "")
    assert "has no default" in refusal(text)[1]
    assert space_of(problem(text), {"tile": (4, 8)}) == Space((Dimension("tile", (4, 8), 4),))


def test_a_promise_may_name_what_is_searched() -> None:
    text = PLUS.replace(": f32[n] {", ": f32[n] where n % tile == 0 {", 1)
    assert [each.name for each in space_of(problem(text, n=1024), {}).dimensions] == ["tile"]


def test_candidates_of_the_planner_are_the_space_of_a_function_without_a_schedule() -> None:
    (nest,) = space_of(problem(MATMUL, "matmul", **CUBE), {}).dimensions
    assert (nest.name, nest.default, nest.values[0]) == ("nest.4", 0, 0)
    assert nest.label(0).startswith("what the compiler") and nest.label(nest.values[-1]).startswith("no schedule")
    assert nest.label(1).startswith("panel: ") and len(set(nest.labels)) == len(nest.values)
    few = space_of(problem(MATMUL, "matmul", **CUBE), {"nest.4": (0, 2)})
    assert few.dimensions == (Dimension("nest.4", (0, 2), 0, (nest.label(0), nest.label(2))),)
    with pytest.raises(TexprError, match="no number 99"):
        space_of(problem(MATMUL, "matmul", **CUBE), {"nest.4": (99,)})


def test_a_search_is_named_by_what_it_measures() -> None:
    one = problem()
    space = space_of(one, {})
    named = identity(one, space)
    assert identity(replace(one, text=f"-- a comment\n{PLUS.replace('= 128', '= 32')}"), space) == named
    for other in (
        replace(one, sizes={"n": 1001}),
        replace(one, objective="bound"),
        replace(one, target="cpu_avx512"),
        replace(one, text=PLUS.replace("x[i] +", "2.0 * x[i] +")),
        replace(one, text=PLUS.replace("(i, tile)", "(i, 2 * tile)")),
    ):
        assert identity(other, space) != named
    assert identity(one, space_of(one, {"tile": (1, 2)})) != named


def test_the_program_of_the_page_has_the_space_that_it_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```te\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (given,) = re.findall(r"--space tile=(\S+) --write", page)
    space = space_of(problem(text, n=100000), {"tile": parse_values(given)})
    assert space.dimensions == (Dimension("tile", tuple(16 << at for at in range(9)), 128),)
