"""Random programs with locals in lanes: refused, or right in every order and proved. The oracle is the interpreter."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from tests.lowering import machine
from tests.schedule.laid import laid, wrong

from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.proof.search import proved
from texpr.support.diagnostic import TexprError


def made(seed: int) -> tuple[str, str, int]:
    """A program over rows, a schedule for it, and the elements of a row."""
    random = Random(seed)
    width = random.choice([1, 5, 16, 29, 32, 32, 32, 48, 64, 64, 96, 128])

    def subscript(j: str, *, reads: bool = True) -> str:
        a, b = random.choice([1, 1, 3, 5, 7]), random.randrange(width)
        plain = [j, f"{width - 1} - {j}", f"({a} * {j} + {b}) % {width}"]
        others = [f"{j} / 2", str(b), f"{j} / 4 * 4", f"({j} + {width} - {b}) % {width}"]
        return random.choice(plain + others) if reads else random.choice(plain[:2])

    def value(j: str, of: str, depth: int = 2) -> str:
        kind = random.randrange(6 if depth else 2)
        if kind < 2:
            return f"{of}[{subscript(j)}]"
        if kind == 2:
            return f"x[r, {j}]"
        if kind == 3:
            limit = random.randrange(width + 1)
            return f"select({j} < {limit}, {value(j, of, depth - 1)}, {value(j, of, depth - 1)})"
        return f"{value(j, of, depth - 1)} {random.choice('+-')} {value(j, of, depth - 1)}"

    def step(number: int, of: str, target: str) -> str:
        j = f"j{number}"
        tests = [f"if {j} < {random.randrange(width + 1)}", f"if x[r, {j}] > 0", f"if {of}[{subscript(j)}] > 0"]
        kind = random.randrange(5)
        first = f"{target} = {value(j, of)}"
        body = [first]
        if kind == 0:
            body += [f"{random.choice(tests)} {{", f"{target} = {value(j, of)}", "} else {", f"{target} = x[r, {j}]", "}"]
        elif kind == 1:
            turned = value(f"({j} + k{number}) % {width}", of)
            body += [f"seq {random.choice([1, 3, 7])} |k{number}| {{", f"{target} += {turned}", "}"]
        lines = "\n".join(body)
        return f"par {width} |{j}| {{\n{lines}\n}}"

    steps = [f"par {width} |i| {{ t[{subscript('i', reads=False)}] = x[r, i] }}"]
    loops, of = ["i"], "t"
    for number in range(random.randrange(3)):
        steps += [f"new t{number}: i32[{width}]", step(number, of, f"t{number}[j{number}]")]
        loops.append(f"j{number}")
        of = f"t{number}"
    steps.append(step(9, of, "y[r, j9]"))
    loops.append("j9")
    body = "\n        ".join(steps)
    text = f"""fn f(x: i32[m, {width}]): i32[m, {width}] {{
    new y: i32[m, {width}]
    par m |r| {{
        new t: i32[{width}]
        {body}
    }}
    return y
}}"""
    how = random.randrange(3) if width > 32 else 0
    if how == 0:
        return text, " ".join(f"bind({loop}, block.x)" for loop in loops), width
    factor = 32 if how == 1 else -(-width // 32)
    split = " ".join(f"split({loop}, {factor}) -> ({loop}_o, {loop}_i)" for loop in loops)
    bound = " ".join(f"bind({loop}_{'i' if how == 1 else 'o'}, block.x)" for loop in loops)
    return text, f"{split} {bound}", width


def outcome(seed: int) -> str:
    """What became of a program: "refused", or how its local is kept, where all is right."""
    text, schedule, width = made(seed)
    try:
        found = laid(text, f"{schedule} place(t, lanes)")
    except TexprError as reason:
        assert reason.diagnostics[0].code in ("E0913", "E0401", "E0906"), reason
        return "refused" if reason.diagnostics[0].code == "E0913" else "no program"
    for count in (1, 3):
        x = np.random.default_rng(seed).integers(-3, 4, (count, width)).astype(np.int32)
        assert wrong(found, {"x": x}, orders=(None, 0, 1)) is None, (text, schedule)
        got = machine.run(found.function, found.plan, {"x": x}, order=seed)
        assert np.array_equal(got["y"], interpret(found.original, {"x": x})["y"]), (text, schedule)
    said = proved(found.function, found.plan).counts
    assert not said["refused"] and not said["undecided"], (text, schedule)
    return "read by others" if any(isinstance(s, k.Shuffle) for s in found.statements) else "read by its thread"


def test_programs_are_right_or_refused() -> None:
    found = Counter(outcome(seed) for seed in range(24))
    assert found["read by others"] >= 8 and found["refused"] >= 2, found


@pytest.mark.long
@pytest.mark.parametrize("start", range(100, 400, 50))
def test_more_programs_are_right_or_refused(start: int) -> None:
    found = Counter(outcome(seed) for seed in range(start, start + 50))
    assert found["read by others"] >= 15 and found["refused"] >= 5, found
