"""What is tried with numbers where a proof stays open: it finds bugs of which no instance could be named, and nothing else."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.proof.plan.mutants import mutants
from tests.proof.plan.test_engine import bugs
from tests.proof.plan.test_planted import is_harmless

from texpr import driver
from texpr.ir import kernel as k
from texpr.ir.program import Function
from texpr.ir.proof import Obligation
from texpr.proof.plan import Verdict, question
from texpr.proof.search import proved
from texpr.proof.search.trial import trials
from texpr.support.record import replace

EXAMPLES = Path(__file__).parents[3] / "examples"

SHORT = ("saxpy", "transpose", "softmax", "histogram", "tma/permuted")
LONG = (
    "cholesky",
    "argmax",
    "jacobi",
    "matmul",
    "sum",
    "prefix_sum",
    "scheduled/scan",
    "scheduled/softmax_long",
    "tma/transpose",
)


def tried(function: Function, plan: k.Plan) -> list[Obligation]:
    return list(trials(question(function, plan)))


def plans(name: str, target: str) -> Iterator[tuple[Function, k.Plan]]:
    for function in driver.load(EXAMPLES / f"{name}.te").functions:
        compiled = driver.lower(function, target)
        yield compiled.function, compiled.plan


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
@pytest.mark.parametrize("name", [*SHORT, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)])
def test_nothing_is_said_of_what_is_right(name: str, target: str) -> None:
    for function, plan in plans(name, target):
        assert not tried(function, plan)


@pytest.mark.parametrize("name", ["saxpy", "transpose", pytest.param("cholesky", marks=pytest.mark.long)])
def test_what_is_found_goes_wrong(name: str) -> None:
    """Each plan of which something is found gives other results when it is run by hand, or has a fault."""
    found = 0
    for function, plan in plans(name, "sm_90a"):
        for mutant in list(mutants(plan))[::3]:
            if tried(function, mutant.plan):
                found += 1
                with suppress(ValueError):  # a root of what is negative
                    assert not is_harmless(name, function, mutant.plan), mutant.name
    assert found >= 3


def test_two_instances_and_the_element_are_named() -> None:
    """Rows of a tile for its columns: no statement is built so, but what a result is made of shows it."""
    found = [
        each
        for bug, function in bugs("copy")
        if bug.kind in ("coordinates swapped", "coordinate off", "combined, not stored")
        for each in proved(function, bug.plan).of(Verdict.REFUSED)
        if each.what == "a result is right"
    ]
    assert len(found) >= 3
    assert all(each.about.startswith("C[") and "where M = " in each.how for each in found)
    assert any("the kernels make it of A[" in each.how for each in found)
    assert any("the program makes it of A[" in each.how for each in found)
    assert any("of [C[" in each.how for each in found)  # which nobody wrote


def test_a_map_that_is_too_large_is_out_of_bounds() -> None:
    found = [
        [each.what for each in proved(function, bug.plan).of(Verdict.REFUSED)]
        for bug, function in bugs("copy")
        if bug.kind == "map: a size off" and bug.name.endswith("C_map")
    ]
    assert found and all(each == ["in bounds"] for each in found)


def test_what_is_not_understood_is_not_tried() -> None:
    """A statement that reading cannot follow may do what seems to be missing."""
    ((function, plan),) = plans("transpose", "sm_90a")
    asked = question(function, plan)
    wrong = replace(asked, reading=replace(asked.reading, events=asked.reading.events[:-1]))
    assert list(trials(wrong))
    (launch,) = asked.reading.launches
    site = asked.reading.events[0].site
    assert site.launch is launch
    strange = replace(wrong, reading=replace(wrong.reading, strange=[(launch.kernel.body[0], site, "not understood")]))
    assert not list(trials(strange))
