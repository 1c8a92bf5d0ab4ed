"""Work grows with the number of statements, no faster: counted in calls, of checks, lowering, proofs and printed texts."""

from __future__ import annotations

from collections.abc import Callable
from cProfile import Profile

import pytest

from texpr import artifact, driver
from texpr.frontend import parse
from texpr.ir.program.selection import AUTO


def of(body: str) -> str:
    return f"fn f(x: f32[n]): f32[n] {{\n new y: f32[n]\n par n |i| {{\n{body}\n }}\n return y\n}}"


def updates(count: int) -> str:
    return of("\n".join(["y[i] = x[i]", *["y[i] = y[i] * 0.5 + x[i]"] * count]))


def names(count: int) -> str:
    lines = (f"let a{at + 1} = a{at} * 0.5 + x[i]" for at in range(count))
    return of("\n".join(["let a0 = x[i]", *lines, f"y[i] = a{count}"]))


def registers(count: int) -> str:
    lines = (f"new a{at + 1}: f32\n a{at + 1} = a{at} * 0.5 + x[i]" for at in range(count))
    return of("\n".join(["new a0: f32", "a0 = x[i]", *lines, f"y[i] = a{count}"]))


def one_register(count: int) -> str:
    return of("\n".join(["new a: f32", "a = x[i]", *["a = a * 0.5 + x[i]"] * count, "y[i] = a"]))


def work(text: str) -> None:
    program = parse(text)
    assert not driver.check(program)
    made = driver.lower(program.functions[0], "cpu", schedule=AUTO)
    artifact.show(made.function, made.plan, made.written)


def calls(text: str) -> int:
    """How many calls `work` makes of what lies in the package, and of what that calls."""
    profile = Profile()
    profile.runcall(work, text)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("made", [updates, names, registers, one_register])
def test_twice_as_many_statements_are_twice_the_work(made: Callable[[int], str]) -> None:
    calls(made(8))  # modules are loaded, and what is remembered of any program
    few, some, many = (calls(made(count)) for count in (40, 80, 120))
    ratio = (many - some) / (some - few)
    assert ratio < 1.015, ratio
