"""The best schedule in the text."""

from __future__ import annotations

import pytest
from tests.planner.programs import MATMUL
from tests.tune.programs import CUBE, PLUS, problem

from texpr.driver import parse
from texpr.support.diagnostic import CompilerBug
from texpr.tune import written
from texpr.tune.problem import schedule_at, space_of
from texpr.tune.written import text_with


def test_a_const_gets_another_default() -> None:
    assert text_with(problem(), {"tile": 32}) == PLUS.replace("= 128", "= 32")
    bare = PLUS.replace(" = 128", "")
    assert text_with(problem(bare), {"tile": 32}) == PLUS.replace("= 128", "= 32")


def test_a_schedule_of_the_planner_is_written_out() -> None:
    of = problem(MATMUL, "matmul", **CUBE)
    text = text_with(of, {"nest.4": 1})
    assert text.startswith(MATMUL.rstrip()) and 'schedule matmul "tuned" for cpu {' in text
    (found,) = parse(text)["matmul"].schedules
    _, wanted = schedule_at(of, {"nest.4": 1})
    assert wanted is not None and repr(found.directives) == repr(wanted.directives)


def test_no_schedule_is_written_as_one_without_directives() -> None:
    of = problem(MATMUL, "matmul", **CUBE)
    (nest,) = space_of(of, {}).dimensions
    point = {nest.name: nest.values[-1]}
    assert schedule_at(of, point)[1] is None
    assert text_with(of, point).endswith('schedule matmul "tuned" for cpu {\n}\n')


@pytest.mark.planted
def test_what_is_written_wrong_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "consts_of", lambda *_: [])
    with pytest.raises(CompilerBug, match="is not read as"):
        text_with(problem(), {"tile": 32})
