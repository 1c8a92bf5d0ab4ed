"""Rings of a text with something changed at random: what is taken has no fault in any order of a run that is tried."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.proof.plan.test_text_rings import BEHIND, EXAMPLE, RING, SEEDS

from texpr.frontend import parse
from texpr.interp import run
from texpr.ir import program as ir
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.ordered import check
from texpr.support.diagnostic import TexprError

TEXTS = {"a ring": RING, "one behind the other": BEHIND, "the example": EXAMPLE.read_text(encoding="utf-8")}
TESTS = ("k >= 1", "k >= 2", "k >= 4", "k + 1 < m", "k + 4 < m", "k % 2 == 0", "t % 2 == 0", "t >= 16")
STEP = re.compile(r"wait\(|arrive\(|slots\[|one\[|other\[")


def mutated(text: str, random: Random) -> str:
    """`text` with one or two lines changed: gone, twice, elsewhere, under a test, or with another number."""
    lines = text.splitlines()
    for _ in range(random.choice((1, 1, 2))):
        steps = [at for at, line in enumerate(lines) if STEP.search(line)]
        at, other = random.choice(steps), random.choice(steps)
        match random.randrange(6):
            case 0:
                lines[at] = ""
            case 1:
                lines.insert(at, lines[at])
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines[at] = f"if {random.choice(TESTS)} {{ {lines[at].strip()} }}"
            case _:
                some = [n for n, line in enumerate(lines) if re.search(r"\d", line.split("--")[0]) and "fn" not in line]
                at = random.choice(some)
                number = random.choice([*re.finditer(r"\b\d+\b", lines[at])])
                value = int(number.group())
                instead = random.choice((value + 1, max(value - 1, 0), 2 * value, max(1, value // 2)))
                lines[at] = lines[at][: number.start()] + str(instead) + lines[at][number.end() :]
    return "\n".join(lines) + "\n"


def taken(text: str) -> ir.Function | None:
    """The function of a text, if nothing is said of it."""
    try:
        function = parse(text, "f.te").functions[0]
    except TexprError:
        return None
    return None if check(function) else function


@pytest.mark.long
@pytest.mark.planted
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", TEXTS)
def test_nothing_escapes(name: str, seed: int) -> None:
    random = Random(seed)
    for _ in range(40):
        text = mutated(TEXTS[name], random)
        if (function := taken(text)) is None:
            continue
        plan, _ = lower(function, resolve("sm_90a"))
        for m in (0, 1, 2, 3, 4, 5, 9):
            sizes = {sym: {"n": 2, "m": m, "p": 2}[sym.name] for sym in function.sizes}
            shape = [extent.evaluate(sizes) for extent in function.params[0].shape]
            x = np.random.default_rng(m).integers(-4, 5, shape).astype(np.float32)
            wanted = run(function, {"x": x})["y"]  # which refuses what would wait for ever
            for order in SEEDS:
                ran = run_plan(function, plan, {"x": x}, seed=order)
                assert not ran.reports and np.array_equal(ran.arrays["y"], wanted), text
