"""Programs that are products in disguise, or look like one: which instruction each is given to, or why none; and numbers.

`disguised.te` and `strangers.te` have the programs, and above each what is expected of it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.lowering.emulated import results, run_plan
from tests.planner.programs import arrays_of

from texpr.cli import main
from texpr.driver import Compiled, fix, lower, parse
from texpr.explain.planned import left
from texpr.interp import run as interpret
from texpr.ir.kernel import kernels
from texpr.ir.program import Function, Program
from texpr.ir.program.promised import promised
from texpr.isa.registry import resolve
from texpr.planner.plan import plan
from texpr.planner.untaken import sums, untaken
from texpr.planner.wider import promise
from texpr.presburger.formula import compare, holds
from texpr.schedule.apply import laid_out
from texpr.support.record import Record

FILE, OTHER = (Path(__file__).with_name(f"{name}.te") for name in ("disguised", "strangers"))
Sizes = dict[str, int]
LINE = 16
"""Elements of the widest vector."""


class Expected(Record):
    """What is said above a program. `given`: the instruction by target; `left`: reasons."""

    sizes: Sizes
    whole: Sizes
    given: dict[str, str]
    left: tuple[str, ...]


def expected() -> dict[str, Expected]:
    found: dict[str, Expected] = {}
    for part in (part for file in (FILE, OTHER) for part in file.read_text(encoding="utf-8").split("\n\n")[1:]):
        said = re.findall(r"^-- (\w+): (.+)$", part, re.MULTILINE)
        name = re.search(r"^fn (\w+)", part, re.MULTILINE)
        assert name is not None
        at = next(text for key, text in said if key == "at").split(" / ")
        sizes, *whole = ({size: int(n) for size, n in re.findall(r"(\w+)=(\d+)", text)} for text in at)
        given = {key: text for key, text in said if key.startswith("sm_")}
        found[name[1]] = Expected(sizes, whole[0] if whole else sizes, given, tuple(t for key, t in said if key == "left"))
    return found


EXPECTED = expected()


@cache
def program() -> Program:
    return parse("".join(file.read_text(encoding="utf-8") for file in (FILE, OTHER)))


def planned(name: str, target: str) -> tuple[set[str], list[str]]:
    """The instructions that an automatic schedule names for callers who promise whole vectors, and the reasons for the rest."""
    machine = resolve(target)
    function, _ = fix(program()[name])
    asked = promise(function, machine.vector)
    function = promised(function, asked.align, asked.where)
    found = plan(function, machine)
    scheduled = laid_out(found.state).function
    given = () if found.schedule is None else found.schedule.directives
    used = {str(each.args[3].value) for each in given if each.name == "mma"}
    return used, [reason for _, reason in untaken(function, scheduled, found.nests, machine)]


def is_as_expected(name: str, target: str, used: set[str], reasons: list[str]) -> None:
    wanted = EXPECTED[name]
    assert used == ({wanted.given[target]} if target in wanted.given else set())
    assert reasons == [reason.replace("TARGET", target) for reason in wanted.left]
    assert used or reasons


SLOW = {"complex", "padded", "outer_sums", "nine_products", "triangular", "mahalanobis"}


@pytest.mark.parametrize("name", [name for name in EXPECTED if name not in SLOW])
def test_each_is_given_to_an_instruction_or_told_why_not(name: str) -> None:
    is_as_expected(name, "sm_80", *planned(name, "sm_80"))


def computes(function: Function, made: Compiled, sizes: Sizes) -> None:
    arrays = arrays_of(function, sizes)
    ran = run_plan(made.function, made.plan, arrays, sizes, seed=1)
    meant, found = interpret(function, arrays, sizes), results(made.function, ran)
    assert ran.reports == []
    for name, value in meant.items():
        assert np.array_equal(np.asarray(value), np.asarray(found[name])), name


def test_a_gram_matrix_in_the_emulator() -> None:
    function = program()["gram"]
    computes(function, lower(function, "sm_80", schedule="auto"), EXPECTED["gram"].sizes)


def whole(made: Compiled, wanted: Expected) -> Sizes:
    """Sizes at which a launcher takes a plan with vectors: those that are said, or the next whole vectors."""
    values = {size: wanted.whole[size.name] for size in made.function.sizes}
    promised = [compare(fact.op, fact.left, fact.right) for fact in made.function.where]
    if all(holds(fact, values) for fact in promised):
        return wanted.whole
    return {name: -(-size // LINE) * LINE for name, size in wanted.whole.items()}


@pytest.mark.long
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_launched_and_its_numbers_in_the_emulator(name: str, target: str) -> None:
    function, wanted = program()[name], EXPECTED[name]
    made = lower(function, target, schedule="auto")
    computes(function, made, wanted.sizes)
    last = made.wide or made
    if made.wide is not None:
        computes(function, made.wide, whole(made.wide, wanted))
    used = {instr.name for kernel in kernels(last.plan.steps) for instr in kernel.instrs if instr.products is not None}
    is_as_expected(name, target, used, [each["reason"] for each in left(last)])


def test_a_workspace_whose_rows_may_begin_anywhere_is_an_operand() -> None:
    """Of a function that promises nothing, too: it is copied by elements then."""
    made = lower(program()["mahalanobis"], "sm_80", schedule="auto")
    assert made.planned is not None
    assert [each.candidate is not None for each in made.planned.nests] == [False, True, False]


def test_sums_of_products_are_told_from_others() -> None:
    text = """
fn f(x: f32[n, m], w: f32[3], v: f32[m]): (f32[n], f32[n], f32[n], f32[n]) where m >= 3 {
    new a: f32[n]
    new b: f32[n]
    new c: f32[n]
    new d: f32[n]
    par n |i| {
        a[i] = 0.0  b[i] = 0.0  c[i] = 0.0  d[i] = 0.0
        seq m |j| reduce(a) { a[i] += x[i, j] * x[i, j] }
        seq m |j| reduce(b) { b[i] += 0.5 * x[i, j] }
        seq 3 |j| reduce(c) { c[i] += x[i, j] * w[j] }
        seq m |j| reduce(d) { d[i] += x[i, 0] * v[j] }
    }
    return a, b, c, d
}"""
    assert [each.line for each in sums(parse(text)["f"])] == [11]


def test_explain_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(FILE), "matrix_vector", "--for", "sm_80"]) == 0
    told = next(line for line in capsys.readouterr().out.splitlines() if "no tensor cores:" in line)
    assert "it is no product of matrices: `x` has no loop over results to itself" in told
