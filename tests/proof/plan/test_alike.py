"""Of accesses that are alike few pairs are asked about: no bug is missed by it, and questions grow as the program does."""

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pytest
from tests.proof.plan.mutants import mutants
from tests.proof.plan.sound_programs import TURNS

from texpr import driver
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.proof.plan import prove
from texpr.proof.plan.alike import Family
from texpr.proof.plan.flow import Access
from texpr.proof.search import proved
from texpr.support.record import replace


def statements(count: int) -> str:
    binds = "\n".join(f"        a[i] = a[i] * 0.5 + x[i + {n % 3}]" for n in range(count))
    body = f"    new a: f32[n]\n    par n |i| {{\n        a[i] = 0.0\n{binds}\n    }}\n    return a\n"
    return f"fn f(x: f32[n + 2]): f32[n] {{\n{body}}}"


def updates(count: int) -> str:
    pars = "\n".join(f"    par n |i| {{ {'ab'[n % 2]}[i] = {'ba'[n % 2]}[i] + {n}.0 }}" for n in range(count))
    return f"fn f(inout a: f32[n], inout b: f32[n]) {{\n{pars}\n}}"


def nests(count: int, around: str = "seq 1 |s|") -> str:
    """Nests of three statements each, which become one loop of the kernel."""
    pars = "\n".join(f"par n |i| {{ {' '.join(f'y[i] = y[i] * {n + m}.0 + x[i]' for m in range(3))} }}" for n in range(count))
    return f"fn f(x: f32[n], inout y: f32[n]) {{\n{around} {{\n{pars}\n}}\n}}"


def phases(count: int, around: str = "") -> str:
    pars = "\n".join(f"        par 64 |t| {{ {'ab'[n % 2]}[t] = {'ba'[n % 2]}[63 - t] + {n}.0 }}" for n in range(count))
    return f"""fn f(x: f32[n, 64]): f32[n, 64] {{
    new y: f32[n, 64]
    par n |g| {{
        new a: f32[64]
        new b: f32[64]
        par 64 |t| {{ a[t] = x[g, t] }}
        par 64 |t| {{ b[t] = x[g, t] }}
        {around} {{
{pars}
        }}
        par 64 |t| {{ y[g, t] = a[t] + b[t] }}
    }}
    return y
}}"""


PROGRAMS = {
    "statements": statements(3),
    "updates": updates(4),
    "nests": nests(2),
    "nests in a loop": nests(2, "seq n |s|"),
    "phases": phases(3, "seq 1 |s|"),
    "phases in a loop": phases(2, "seq n |s|"),
}


def swapped(body: tuple[k.Stmt, ...]) -> Iterator[tuple[k.Stmt, ...]]:
    """The list of statements with two neighbours in the other order, or one below it."""
    for at, (one, two) in enumerate(pairwise(body)):
        if not isinstance(one, k.Declare):
            yield (*body[:at], two, one, *body[at + 2 :])
    for at, stmt in enumerate(body):
        if isinstance(stmt, k.For):
            yield from ((*body[:at], replace(stmt, body=made), *body[at + 1 :]) for made in swapped(stmt.body))
        if isinstance(stmt, k.If):
            yield from ((*body[:at], replace(stmt, then=made), *body[at + 1 :]) for made in swapped(stmt.then))


def plans(plan: k.Plan) -> Iterator[tuple[str, k.Plan]]:
    """`plan`, and it with one bug, or two statements of its only kernel in the other order, which may be one."""
    yield "as it is", plan
    yield from ((mutant.name, mutant.plan) for mutant in mutants(plan))
    if len(plan.steps) == 1 and isinstance(plan.steps[0], k.Launch):
        kernel = plan.steps[0].kernel
        for number, body in enumerate(swapped(kernel.body)):
            yield f"swapped {number}", replace(plan, steps=(k.Launch(replace(kernel, body=body)),))


def alone(accesses: Sequence[Access]) -> list[Family]:
    return [(access,) for access in accesses]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_proved_is_what_all_pairs_prove(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (function,) = driver.parse(PROGRAMS[name]).functions
    compiled = driver.lower(function, "sm_90a")
    bugs = 0
    for bug, plan in plans(compiled.plan):
        monkeypatch.undo()
        few = proved(compiled.function, plan)
        monkeypatch.setattr(sys.modules[prove.__module__], "families", alone)
        every = proved(compiled.function, plan)
        wrong = [bool(each.counts["refused"] or each.counts["undecided"]) for each in (few, every)]
        assert wrong[0] == wrong[1], bug
        assert sum(few.counts.values()) <= sum(every.counts.values())
        bugs += wrong[0]
    assert bugs > 5


@pytest.mark.parametrize("kind", [statements, updates, nests, phases], ids=["statements", "updates", "nests", "phases"])
def test_questions_grow_as_the_program_does(kind: Callable[..., str]) -> None:
    counts: list[int] = []
    for length in (12, 24, 48):
        text = kind(length, "seq 1 |s|") if kind is phases else kind(length)
        (function,) = driver.parse(text).functions
        compiled = driver.lower(function, "sm_90a")
        counts.append(sum(proved(compiled.function, compiled.plan).counts.values()))
    assert counts[2] - counts[1] <= 2.2 * (counts[1] - counts[0])


EVEN = "            y_own = (y_own {} x[i, 2 * k])\n"
ODD = "            y_own = (y_own * x[i, 2 * k + 1])\n"


@pytest.mark.parametrize("right", [True, False])
def test_turns_come_before_the_order_of_statements(right: bool) -> None:
    """Two turns in one of the kernel: the last statement of an even one comes before the only one of an odd one."""
    compiled = driver.lower(driver.parse(TURNS)["f"], "sm_90a")
    text = plan_text(compiled.plan)
    before, after = text.index("        for k in"), text.index("        y[i] = y_own")
    two = EVEN.format("+") + (EVEN.format("-") + ODD if right else ODD + EVEN.format("-"))
    plan = parse_plan(f"{text[:before]}        for k in 0..3 {{\n{two}        }}\n{text[after:]}")
    counts = proved(compiled.function, plan).counts
    assert not counts["undecided"] and bool(counts["refused"]) is not right
