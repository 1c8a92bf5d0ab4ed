"""Kernels with instructions of lanes, altered at random: what is proved nevertheless gives the right numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random

import numpy as np
import pytest
from tests.instr.texts import CASES
from tests.lowering.emulated import run_plan

from texpr.driver import Compiled, lower
from texpr.frontend import parse
from texpr.ir.kernel import Plan
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.proof import Verdict
from texpr.proof.plan import question
from texpr.proof.search import certified
from texpr.support.diagnostic import TexprError

NAMES = (
    "registers",
    "ldmatrix",
    "scaled",
    "some warps",
    "tile",
    "warps",
    "turned",
    "met",
    "m16n8k32 i8",
    "stmatrix",
    "few matrices",
)
HEADS = ("param", "result", "size", "buffer", "axis", "array", "asm", "operand")
NUMBER = re.compile(r"(?<![\w.'])\d+(?![\w.])")


def altered(text: str, random: Random) -> str | None:
    """A plan with another number in a line, without a line, or with one twice."""
    lines = [line.split("  -- ")[0] for line in text.splitlines()]
    places = [at for at, line in enumerate(lines) if NUMBER.search(line) and line.startswith("    ")]
    at = random.choice([at for at in places if not lines[at].strip().startswith(HEADS)])
    line, kind = lines[at], random.randrange(5)
    if kind < 3:
        found = random.choice(list(NUMBER.finditer(line)))
        number = int(found[0])
        other = random.choice((number + 1, max(0, number - 1), number * 2, number // 2, 0, 1))
        lines[at] = f"{line[: found.start()]}{other}{line[found.end() :]}"
    elif not line.rstrip().endswith("{"):
        lines[at : at + 1] = [] if kind == 3 else [line, line]
    made = "\n".join(lines) + "\n"
    return None if lines[at : at + 1] == [line] and kind < 3 else made


def check(
    made: Compiled,
    arguments: Mapping[str, np.ndarray | int],
    out: str,
    wanted: np.ndarray,
    random: Random,
    tried: int,
    read: Callable[[str], Plan | None] = parse_plan,
) -> None:
    """Alters the plan of `made` so many times: what is proved nevertheless gives what is `wanted`, and not all is proved."""
    text, proved = plan_text(made.plan), 0
    for _ in range(tried):
        other = altered(text, random)
        try:
            plan = None if other is None else read(other)
        except TexprError:
            continue
        if plan is None:
            continue
        proof = certified(question(made.function, plan), plan).proof
        if any(True for verdict in (Verdict.REFUSED, Verdict.UNDECIDED) for _ in proof.of(verdict)):
            continue
        proved += 1
        for seed in (None, 1):
            found = run_plan(made.function, plan, arguments, seed=seed)
            assert not found.reports, other
            np.testing.assert_array_equal(found.arrays[out], wanted, other)
    assert proved < tried


@pytest.mark.planted
@pytest.mark.parametrize("tried", [10, pytest.param(60, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_proved_is_right(name: str, tried: int) -> None:
    case = CASES[name]
    made = lower(parse(case.text, "case.te")[case.name], case.target, schedule=None)
    check(made, *case.arguments(), Random(name), tried)
