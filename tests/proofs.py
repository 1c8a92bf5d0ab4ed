"""Proves each plan that tests make: `python -m pytest -p tests.proofs tests/schedule`.

Whatever a test has lowered is proved when the test is over, each different plan once in a process, and its tags are written and
read. What is refused or undecided is an error at the end of the first test that made it. What a compiler makes that is wrong on
purpose, as in tests that are marked `planted`, is not looked at. In tests that are marked `unproved` it may be undecided: such
plans are of a kind of which docs/verifier.md says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import wraps
from time import process_time

import pytest

from texpr.affine.expr import Sym
from texpr.artifact.certificate import written
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.kernel.text import plan_text
from texpr.ir.program.text import print_function
from texpr.ir.proof import Verdict
from texpr.isa.target import Target
from texpr.lowering import lower as lowering
from texpr.lowering.notes import Notes
from texpr.proof.plan import question
from texpr.proof.search import certified

Lower = Callable[..., tuple[k.Plan, tuple[Notes, ...]]]

OPEN = Verdict.REFUSED, Verdict.UNDECIDED

_lower = lowering.lower
_made: list[tuple[ir.Function, k.Plan]] = []
"""What was lowered since it was last looked at."""
_seen: set[str] = set()
"""What was looked at, as text."""


@wraps(_lower)
def lower(
    function: ir.Function, target: Target, fixed: Mapping[Sym, int] | None = None, ending: str = ""
) -> tuple[k.Plan, tuple[Notes, ...]]:
    """As lowering does it, noticed."""
    plan, notes = _lower(function, target, fixed, ending)
    _made.append((function, plan))
    return plan, notes


def _notice() -> None:
    """Puts the function above in place of lowering's in every module that knows that."""
    for module in [m for m in sys.modules.values() if m.__name__ != __name__]:
        for name in [name for name, value in vars(module).items() if value is _lower]:
            setattr(module, name, lower)


_notice()


def undecided(function: ir.Function, plan: k.Plan, verdicts: Sequence[Verdict] = OPEN) -> Iterator[str]:
    """What is not proved of a plan, a line each: what has one of these `verdicts`."""
    try:
        found = certified(question(function, plan), plan)
        written(found.tags, found.asked)  # which looks whether it says the same
        proof = found.proof
    except Exception as why:  # whatever it is, the other plans are to be looked at, too
        yield f"{type(why).__name__}: {why}"
        return
    for each in (each for verdict in verdicts for each in proof.of(verdict)):
        yield f"{each.verdict.value}: {each.kernel}, line {each.span.line}: {each.what}, {each.about}: {each.how}"


def survey(verdicts: Sequence[Verdict] = OPEN) -> tuple[int, list[str]]:
    """How many new plans there are since it was last asked, and what is open of each."""
    made, count, found = list(_made), 0, list[str]()
    _made.clear()
    for function, plan in made:
        text = f"{print_function(function)}\n{plan_text(plan)}"
        if text not in _seen:
            _seen.add(text)
            count, lines = count + 1, list(undecided(function, plan, verdicts))
            found += [f"of a plan for {plan.name}:\n{text}", *lines] if lines else []
    return count, found


def pytest_collection_modifyitems() -> None:
    _notice()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    yield
    if item.get_closest_marker("planted"):
        _made.clear()
    start = process_time()
    count, found = survey(OPEN[:1] if item.get_closest_marker("unproved") else OPEN)
    item.user_properties.append(("plans", f"{count} {process_time() - start:.3f}"))
    if found:
        pytest.fail("\n".join(("not proved", *found)), pytrace=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [r for kind in terminalreporter.stats.values() for r in kind if getattr(r, "when", "") == "teardown"]
    told = [value.split() for r in reports for name, value in r.user_properties if name == "plans"]
    plans, seconds = sum(int(n) for n, _ in told), sum(float(s) for _, s in told)
    terminalreporter.write_line(f"{plans} different plans were looked at, in {seconds:.0f} s of processor time")
