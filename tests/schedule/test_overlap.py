"""Loops whose turns overlap: chains of statements, drawn at random, in the interpreter; what is proved of them.

Nothing here shares code with the directive: the interpreter runs both programs, and the proof of schedules reads both.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from texpr.driver import parse
from texpr.interp import run
from texpr.ir import program as ir
from texpr.ir.proof import Verdict
from texpr.isa.registry import resolve
from texpr.proof.schedule import faithful
from texpr.schedule.apply import apply_schedule
from texpr.schedule.turns import overlap
from texpr.support.diagnostic import TexprError

COUNTS = (0, 1, 2, 3, 6)
"""Trip counts."""

STATEMENTS = 4

LOCALS = ("s", "t", "p")


def chain(seed: int) -> str:
    """A loop of a few statements: over locals of an iteration, what is kept from turn to turn, and arrays of callers."""
    random, made = Random(seed), set[str]()
    body = [*_statements(random, made)]
    late = random.randrange(1, STATEMENTS)
    first = random.randrange(late)
    listed = "\n        ".join(body)
    return f"""
fn f(inout z: i32[n + 2, 4], inout w: i32[4], x: i32[n + 2, 4]): i32[4] {{
    new y: i32[4]
    par 4 |e| {{ y[e] = 0 }}
    seq n |k| {{
        new s: i32[4]
        new t: i32[4]
        new p: i32[4]
        {listed}
    }}
    return y
}}
schedule f {{ overlap(k, i{late}, behind=i{first}) }}
"""


def _statements(random: Random, made: set[str]) -> Iterator[str]:
    for at in range(STATEMENTS):
        own = random.choice("yywz" if at == STATEMENTS - 1 else [*LOCALS, *LOCALS, "w", "z"])
        adds = own not in (*LOCALS, "z") or (own in made and random.random() < 0.5)
        read = [_read(random, at, made - {own}) for _ in range(2)]
        target = f"z[k + {random.randrange(3)}, i{at}]" if own == "z" else f"{own}[i{at}]"
        read = [each for each in read if not each.startswith(own)]
        value = " + ".join((*(f"{random.randrange(2, 5)} * {each}" for each in read), str(random.randrange(9))))
        yield f"par 4 |i{at}| {{ {target} {'+=' if adds else '='} {value} }}"
        made |= {own} & {*LOCALS}


def _read(random: Random, at: int, made: set[str]) -> str:
    index = random.choice((f"i{at}", f"3 - i{at}"))
    name = random.choice([*sorted(made) * 4, "x", "x", "z", "w"])
    return f"{name}[k + {random.randrange(3)}, {index}]" if name in "xz" else f"{name}[{index}]"


def laid_out(function: ir.Function) -> ir.Function:
    made = apply_schedule(function, function.schedules[0], resolve("sm_90a"))
    assert made is not None
    return made.function


def results(function: ir.Function, count: int) -> list[np.ndarray]:
    """Of arrays whose values no operation makes equal by chance."""
    random = np.random.default_rng(count)
    shapes = {b.name: (count + 2, 4) if b.rank == 2 else (4,) for b in function.params}
    given = {name: random.integers(-999, 999, shape).astype(np.int32) for name, shape in shapes.items()}
    found = run(function, given)
    return [np.asarray(found[name]) for name in sorted(found)]


def same(one: ir.Function, other: ir.Function) -> bool:
    return all(np.array_equal(a, b) for n in COUNTS for a, b in zip(results(one, n), results(other, n), strict=True))


def proved(written: ir.Function, made: ir.Function) -> bool:
    proof = faithful(written, made)
    return not [*proof.of(Verdict.REFUSED), *proof.of(Verdict.UNDECIDED)]


SEEDS = range(32)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_taken_is_right(seed: int) -> None:
    """And is proved, whatever the directive thinks of it."""
    function = parse(chain(seed))["f"]
    try:
        made = laid_out(function)
    except TexprError as refused:
        assert refused.diagnostics[0].code == "E0906"
        return
    assert same(function, made)
    assert proved(function, made)


@pytest.mark.planted
def test_what_is_refused_is_not_proved_where_it_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The directive does not look; then the proof of the schedule does not hold wherever what comes out differs."""
    functions = [parse(chain(seed))["f"] for seed in SEEDS]
    refused = [function for function in functions if not is_taken(function)]

    def believes(*_: object) -> None:
        """Whatever it is asked."""

    monkeypatch.setattr(overlap, "_require_order", believes)
    wrong = [(function, made) for function in refused if not same(function, made := laid_out(function))]
    assert not any(proved(function, made) for function, made in wrong)
    assert len(wrong) >= 8 and len(functions) - len(refused) >= 6


def is_taken(function: ir.Function) -> bool:
    try:
        laid_out(function)
    except TexprError:
        return False
    return True
