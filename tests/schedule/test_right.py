"""What each directive makes of a program: `right.test`, renewed with `--update-golden`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.frontend.cases import Case, read, renew

from texpr.checks import check
from texpr.frontend import parse
from texpr.ir.program import Function
from texpr.ir.program.text import print_function
from texpr.isa.registry import resolve
from texpr.schedule.apply import apply_schedule
from texpr.schedule.rules import RULES

CASES = read(str(Path(__file__).with_name("right.test")))
BY_NAME = {case.name: case for case in CASES}


def laid_out(source: str) -> Function:
    """The only function of `source`, as its schedule lays it out."""
    (function,) = parse(source).functions
    return apply_schedule(function, function.schedules[0], resolve("sm_90a")).function


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_right(case: Case, request: pytest.FixtureRequest) -> None:
    function = laid_out(case.source)
    actual = print_function(function)
    if request.config.getoption("--update-golden"):
        renew(case, actual)
        return
    assert actual == case.expected
    assert [found for found in check(function) if not found.code.startswith("E05")] == []  # a product of sizes is undecided


@pytest.mark.parametrize("name", [name for name in BY_NAME if name.startswith("divisible")])
def test_what_divides_asks_nothing(name: str) -> None:
    assert "if " not in BY_NAME[name].expected


def test_every_directive_has_a_case() -> None:
    used = {name for case in CASES for name in re.findall(r"^    (\w+)\(", case.source.split("schedule f")[1], re.MULTILINE)}
    assert used == set(RULES)
