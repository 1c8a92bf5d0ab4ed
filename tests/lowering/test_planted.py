"""Bugs planted in the gallery's kernels are caught, each by the detectors or by a wrong result, under some schedule."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.emulated import results, run_plan
from tests.lowering.mutants import Mutant, mutants

from references import BY_NAME, Example, distance
from texpr.affine.expr import Sym
from texpr.backends.cuda import print_kernels
from texpr.emulator.harness import LOCKSTEP
from texpr.frontend import parse
from texpr.ir import kernel as k
from texpr.ir.program import Function
from texpr.ir.program.rewrite import specialize
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.support.record import Record, replace

SEEDS = (None, 0, 1, 2, 3, 4, 5, 6, 7)

OWN = "lanes are joined with lane ^ 0, which is their own: a maximum stays what it is"

# Each with the reason why no run can tell it from the original.
EQUIVALENT = {
    "prefix_sum_blocks: loop t at line 10 one too long": (
        "t = 1024 writes s[0, 1024], which is the memory of s[1, 0], from thread 0; line 13 writes s[1, 0] from thread 0 "
        "before anything reads it, and nothing else ever reads it before that"
    ),
    "softmax_rows: loop step at line 7 one too long": OWN,
    "argmax_top_parts: loop step at line 7 one too long": OWN,
    "argmax_top: loop step at line 7 one too long": OWN,
}


class Subject(Record, dict=True):
    """A program at one set of sizes, with its plan, every mutant of its kernels, and one text that holds them all.

    `every` are its sizes with its consts, `sizes` those that are given at run time.
    """

    example: Example
    every: dict[str, int]
    sizes: dict[str, int]
    function: Function
    plan: k.Plan
    found: tuple[Mutant, ...]
    text: str


def subject(example: Example, sizes: dict[str, int]) -> Subject:
    source = example.path.read_text(encoding="utf-8")
    program = parse(source, example.path.name, {c: sizes[c] for c in example.consts})
    function = program[example.function]
    fixed = {s: v for s, v in function.consts if v is not None} | {Sym(c): sizes[c] for c in example.consts}
    function = specialize(function, fixed)
    plan, _ = lower(function, resolve("sm_90a"))
    originals = tuple(dict.fromkeys(k.kernels(plan.steps)))
    found = tuple(m for kernel in originals for m in mutants(kernel))
    everything = replace(plan, steps=(*plan.steps, *(k.Launch(m.kernel) for m in found)))
    rest = {n: v for n, v in sizes.items() if Sym(n) in function.sizes}
    return Subject(example, sizes, rest, function, plan, found, print_kernels(everything))


def planted(plan: k.Plan, mutant: Mutant) -> k.Plan:
    return replace(plan, steps=tuple(_swap(step, mutant) for step in plan.steps))


def _swap(step: k.HostStep, mutant: Mutant) -> k.HostStep:
    match step:
        case k.Launch(kernel):
            return k.Launch(mutant.kernel) if kernel.name == mutant.original else step
        case k.HostLoop() | k.HostIf():
            return replace(step, steps=tuple(_swap(s, mutant) for s in step.steps))


def how_caught(at: Subject, plan: k.Plan) -> str | None:
    """What tells the run of `plan` from a right one: "detector", "value", or None."""
    arrays = at.example.make(np.random.default_rng(0), at.every)
    want = at.example.reference(arrays, at.every)
    given = {p.name: arrays[p.name] for p in at.function.params}
    for seed in SEEDS:
        run = run_plan(at.function, plan, given, at.sizes, seed=seed, text=at.text)
        if run.reports:
            return "detector"
        got = results(at.function, run)
        if any(distance(got[name], want[name], at.example.floor) > at.example.ulp for name in want):
            return "value"
    return None


CASES: dict[str, dict[str, int]] = {
    "saxpy": {"n": 127},
    "softmax": {"M": 3, "N": 300},
    "sum": {"n": 5000},
    "transpose": {"M": 13, "N": 37},
    "matmul": {"M": 13, "N": 35, "K": 7},
    "attention": {"H": 1, "L": 5, "D": 37},
    "cholesky": {"batch": 1, "n": 5},
    "prefix_sum": {"n": 1100},
    "argmax": {"n": 5000},
    "matmul_flat": {"M": 13, "N": 35, "K": 7},
    "jacobi": {"H": 13, "W": 37, "T": 2},
    "layernorm": {"M": 3, "N": 300},
    "rmsnorm": {"M": 3, "N": 300},
    "conv2d": {
        "B": 3, "H": 5, "W": 7, "C": 3, "R": 3, "S": 3, "F": 2, "stride": 1, "dilation": 1, "padding": 1,
    },
    "gather": {"V": 7, "D": 37, "n": 11},
    "histogram": {"n": 300, "bins": 16},
    "permute5d": {"A": 2, "B": 3, "C": 5, "D": 7, "E": 3},
}  # fmt: skip
SHORT = ("saxpy", "softmax", "cholesky", "transpose")


def is_right(at: Subject, plan: k.Plan, seed: int | None, *, values_only: bool) -> bool:
    """Whether one run gives the right values, and, unless `values_only`, the detectors find nothing."""
    arrays = at.example.make(np.random.default_rng(0), at.every)
    want = at.example.reference(arrays, at.every)
    run = run_plan(at.function, plan, arrays, at.sizes, seed=seed, text=at.text)
    got = results(at.function, run)
    return (values_only or not run.reports) and all(distance(got[n], want[n], at.example.floor) <= at.example.ulp for n in want)


def _check(name: str) -> None:
    at = subject(BY_NAME[name], CASES[name])
    assert at.found, "nothing was planted"
    assert how_caught(at, at.plan) is None, "the program is found wrong with no bug in it"
    missed = [m.what for m in at.found if m.what not in EQUIVALENT and how_caught(at, planted(at.plan, m)) is None]
    assert not missed, "\n".join(missed)


@pytest.mark.parametrize("name", SHORT)
def test_every_planted_bug_is_caught(name: str) -> None:
    _check(name)


@pytest.mark.long
@pytest.mark.parametrize("name", [n for n in CASES if n not in SHORT])
def test_every_planted_bug_is_caught_in_the_gallery(name: str) -> None:
    _check(name)


# Sizes at which threads stay in step, so that the lockstep order, or the plain one, hides a race by its values.
IN_STEP: dict[str, tuple[dict[str, int], ...]] = {
    "softmax": ({"M": 1, "N": 256},),
    "layernorm": ({"M": 1, "N": 256},),
    "rmsnorm": ({"M": 1, "N": 256},),
    "cholesky": ({"batch": 1, "n": 2}, {"batch": 1, "n": 5}),
    "attention": ({"H": 1, "L": 2, "D": 256},),
    "prefix_sum": ({"n": 1024},),
    "sum": ({"n": 4096},),
    "argmax": ({"n": 4096},),
}


@pytest.mark.parametrize("name", IN_STEP)
def test_a_planted_race_is_missed_in_a_fixed_order_and_caught_by_a_seed(name: str) -> None:
    subjects = [subject(BY_NAME[name], sizes) for sizes in IN_STEP[name]]
    races = [number for number, mutant in enumerate(subjects[0].found) if mutant.kind == "barrier"]
    assert races
    for number in races:
        mutant = subjects[0].found[number]
        plans = [(at, planted(at.plan, at.found[number])) for at in subjects]
        hidden = [
            (at, plan) for at, plan in plans
            if any(is_right(at, plan, order, values_only=True) for order in (None, LOCKSTEP))
        ]  # fmt: skip
        assert hidden, mutant.what
        caught = [not is_right(at, plan, seed, values_only=False) for at, plan in hidden for seed in range(8)]
        assert any(caught), mutant.what
