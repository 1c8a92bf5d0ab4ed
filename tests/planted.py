"""Bugs planted in the text of a plan: what tests share that show that none is proved, and that the emulator finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from numpy.typing import NDArray
from tests.lowering.emulated import run_plan

from texpr.driver import Compiled
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.proof import Verdict
from texpr.proof.plan import question
from texpr.proof.search import certified
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import Record


class Bug(Record):
    """`old` becomes `new`. `shown`: the emulator finds a fault, or the numbers are others. `turns`: of each tile there."""

    old: str
    new: str
    shown: bool = True
    turns: int = 5


def plain(plan: k.Plan) -> str:
    """The text of a plan without lines of the program, and without what waits say of why they are there."""
    return "\n".join(line.split("  -- ")[0].split(" covers ")[0] for line in plan_text(plan).splitlines()) + "\n"


def line_of(text: str, start: str, at: int = 0) -> str:
    """The whole line that begins so, the `at`-th of these."""
    return [each for each in text.splitlines(keepends=True) if each.strip().startswith(start)][at]


def only(test: str, lines: str) -> str:
    """Lines where a test of indices holds."""
    pad = " " * (len(lines) - len(lines.lstrip()))
    return f"{pad}if ({test}) uniform {{\n{lines}{pad}}}\n"


def changed(text: str, start: str, old: str, new: str) -> str:
    """`old` becomes `new` in the lines that begin so, fused or not."""
    lines = text.splitlines()
    at = [n for n, line in enumerate(lines) if line.strip().removeprefix("fused ").startswith(start) and old in line]
    assert at, [line for line in lines if line.strip().startswith(start)]
    for number in at:
        lines[number] = lines[number].replace(old, new)
    return "\n".join(lines) + "\n"


def with_bug(text: str, bug: Bug) -> k.Plan:
    """The plan of a text with a bug wherever it may be. Raises CompilerBug where that has not the form of a plan."""
    assert bug.old in text, bug.old
    return parse_plan(text.replace(bug.old, bug.new))


def open_of(made: Compiled, plan: k.Plan) -> list[str]:
    """What is refused or undecided of a plan in place of its own."""
    proof = certified(question(made.function, plan), plan).proof
    return [f"{each.what}: {each.how}" for verdict in (Verdict.REFUSED, Verdict.UNDECIDED) for each in proof.of(verdict)]


def is_proved(made: Compiled, plan: Callable[[], k.Plan]) -> bool:
    """Whether a plan in place of its own has the form of one, and is proved."""
    try:
        found = plan()
    except CompilerBug:  # of no form
        return False
    return not open_of(made, found)


def is_shown(
    made: Compiled,
    plan: Callable[[], k.Plan],
    given: Mapping[str, NDArray[Any]],
    right: Callable[[Mapping[str, NDArray[Any]]], bool],
    seeds: Iterable[int | None] = (None, 1, 2, 3),
) -> bool:
    """Whether a plan in place of its own is seen to be wrong: it has no form, is not printed, stops, is reported in some order
    of threads, or its arrays are not `right`."""
    try:
        found = plan()
    except CompilerBug:  # of no form
        return True
    for seed in seeds:
        try:
            ran = run_plan(made.function, found, given, seed=seed)
        except (CompilerBug, RuntimeError, AssertionError):  # not printed, or stopped
            return True
        if ran.reports or not right(ran.arrays):
            return True
    return False
