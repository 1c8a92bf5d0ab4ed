"""Elaboration against expected core programs, which are checked to be what they stand for."""

from __future__ import annotations

import pytest
from tests.frontend.cases import Case, read, renew
from tests.frontend.same import same

from texpr.frontend import parse
from texpr.ir.program.text import print_program

CASES = read("core.test")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_core(case: Case, request: pytest.FixtureRequest) -> None:
    program = parse(case.source)
    actual = print_program(program)
    if request.config.getoption("--update-golden"):
        renew(case, actual)
        return
    assert actual == case.expected
    assert same(parse(actual), program)
