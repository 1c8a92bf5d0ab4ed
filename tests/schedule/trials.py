"""A program with a random schedule, and everything that must hold of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from tests.lowering import native
from tests.lowering.emulated import results, run_plan
from tests.schedule.generate import Drawer
from tests.schedule.subjects import Subject, aligned, extra, gallery, generated, summed

from references import distance
from texpr.backends.cuda import print_kernels
from texpr.checks import check
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.kernel import verify as kernel_verify
from texpr.ir.program import verify as program_verify
from texpr.ir.program.text import print_function, print_schedule
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.schedule.apply import apply_schedule, follow, laid_out, start
from texpr.schedule.state import State
from texpr.support.diagnostic import Limitation, TexprError
from texpr.support.record import Mutable, field, replace

FIT = 0.75
"""How many of the trials with engines begin with directives that fit each other; the others are drawn one by one."""
ALIGNED_FROM = 0.3
"""From which number on, of 0 to 1, a trial with engines has a program whose arrays engines may copy."""

REFUSED_LATE = ("unguard", "pipeline", "place", "stage", "bind", "distribute", "reorder", "split")
"""What lowering, or the program as a whole, may refuse: holes that later directives made, a ring that is not filled."""


@cache
def subjects() -> tuple[Subject, ...]:
    """The programs that are always the same."""
    return (*gallery(), *extra())


class Trial(Mutable, dict=True):
    """A subject, the directives that were accepted, and those that were not, each with its code."""

    seed: int
    subject: Subject
    target: str
    applied: list[ir.Directive] = field(default_factory=list[ir.Directive])
    refused: list[tuple[ir.Directive, str]] = field(default_factory=list[tuple[ir.Directive, str]])
    unlowered: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """The program with its schedule, to be tried by hand."""
        made = self.subject.function
        schedule = ir.Schedule(made.name, "found", None, tuple(self.applied))
        return f"-- {self.subject.name}, seed {self.seed}\n{print_function(made)}{print_schedule(schedule, made)}"

    def state(self) -> State:
        """The program after the directives."""
        state = start(self.subject.function, resolve(self.target))
        for directive in self.applied:
            state = follow(state, directive)
        return state

    def without(self, directives: Sequence[ir.Directive]) -> Trial:
        """The same without some directives, and without those that cannot be followed then."""
        made = Trial(self.seed, self.subject, self.target)
        state = start(self.subject.function, resolve(self.target))
        for directive in self.applied:
            if any(directive is d for d in directives):
                continue
            try:
                state = follow(state, directive)
            except (TexprError, Limitation):
                continue
            made.applied.append(directive)
        return made


def draw(seed: int, target: str = "sm_90a", engines: bool = False, sums: bool = False) -> Trial:
    """The trial of a seed: a program, its sizes fixed or not, and directives until the schedule is at its end.

    With `engines` copies are also made by engines, in rings and in clusters; more of the programs are such as these may copy.
    With `sums` they are in parts, ahead of guards, and in chunks, of programs that have such.
    """
    numbers = random.Random(seed)
    kind = numbers.random()
    subject = generated(numbers.randrange(400)) if kind < 0.25 else numbers.choice(subjects())
    if engines and kind >= ALIGNED_FROM:
        subject = numbers.choice(aligned())
    if sums:
        subject = numbers.choice(summed())
    if numbers.random() < 0.4:
        subject = subject.fixed(numbers.choice(subject.runs[-2:]))
    trial = Trial(seed, subject, target)
    drawer = Drawer(numbers, engines=engines, sums=sums)
    state = start(subject.function, resolve(target))
    if engines and numbers.random() < FIT:
        for directive in drawer.fitting(state):
            state = _tried(trial, state, directive)
    elif numbers.random() < 0.4 and target != "cpu":
        for directive in drawer.tiling(state):
            state = _tried(trial, state, directive)
    for kind in drawer.phases():
        directive = drawer.draw(kind, state)
        if directive is not None:
            state = _tried(trial, state, directive)
    return trial


def _tried(trial: Trial, state: State, directive: ir.Directive) -> State:
    """The state after a directive; where it is refused, that is noted."""
    try:
        state = follow(state, directive)
    except (TexprError, Limitation) as problem:
        trial.refused.append((directive, problem.diagnostics[0].code))
    except Exception as bug:
        trial.applied.append(directive)
        raise AssertionError(f"{type(bug).__name__}: {bug}\n{trial.text}") from bug
    else:
        trial.applied.append(directive)
    return state


class Made(Mutable, dict=True):
    """A trial laid out and lowered; `plan` is None where lowering refused even the least schedule."""

    trial: Trial
    function: ir.Function
    plan: k.Plan | None


def make(trial: Trial) -> Made:
    """The trial, lowered; where lowering refuses, with the last of such directives dropped, and so on."""
    try:
        function = laid_out(trial.state()).function
        program_verify.verify_function(function)
        plan, _ = lower(function, resolve(trial.target), {})
    except (TexprError, Limitation) as problem:
        trial.unlowered.append(problem.diagnostics[0].code)
        at = [d for d in trial.applied if d.name in REFUSED_LATE]
        if not at:
            return Made(trial, trial.subject.function, None)
        unlowered = trial.unlowered
        kept = trial.without(at[-1:])
        trial.applied, trial.unlowered = kept.applied, unlowered
        return make(trial)
    kernel_verify.verify(plan)
    return Made(trial, function, plan)


def findings(made: Made) -> list[str]:
    """What the checks find wrong in the scheduled function; what they cannot decide does not count."""
    return [f"{d.code} {d.message}" for d in check(made.function) if not d.code.startswith("E05") and d.code != "E0416"]


def same_results(trial: Trial, got: dict[str, np.ndarray], want: dict[str, np.ndarray], where: str) -> str | None:
    """How results of a trial differ from what they should be, if they do."""
    for name, expected in want.items():
        apart = distance(np.asarray(got[name]), np.asarray(expected), trial.subject.floor)
        if apart > trial.subject.ulp:
            return f"{where}: `{name}` is {apart} ulps off:\n{got[name]}\nin place of\n{expected}"
    return None


def in_meaning(made: Made) -> str | None:
    """The scheduled function in the interpreter."""
    trial = made.trial
    for run in trial.subject.runs:
        want = interpret(trial.subject.function, run.arrays, run.sizes)
        got = interpret(made.function, run.arrays, run.sizes)
        wrong = same_results(trial, got, want, f"interpreter, at {dict(run.sizes)}")
        if wrong:
            return wrong
    return None


def in_cuda(made: Made, text: str | None = None) -> str | None:
    """The emitted CUDA in the emulator, in order and in two adversarial orders."""
    trial = made.trial
    assert made.plan is not None
    for run in trial.subject.runs:
        want = interpret(trial.subject.function, run.arrays, run.sizes)
        for order in (None, trial.seed, trial.seed + 1):
            ran = run_plan(made.function, made.plan, run.arrays, run.sizes, seed=order, text=text)
            where = f"emulator, at {dict(run.sizes)}, order {order}"
            if ran.reports:
                return f"{where}: {ran.reports[0]}"
            wrong = same_results(trial, results(made.function, ran), want, where)
            if wrong:
                return wrong
    return None


def on_cpu(made: Made, loaded: native.ctypes.CDLL) -> str | None:
    """The emitted C++ on the CPU."""
    trial = made.trial
    assert made.plan is not None
    for run in trial.subject.runs:
        want = interpret(trial.subject.function, run.arrays, run.sizes)
        got = native.call(loaded, made.function, made.plan, run.arrays, run.sizes)
        wrong = same_results(trial, got, want, f"cpu, at {dict(run.sizes)}")
        if wrong:
            return wrong
    return None


def reread(found: Sequence[Made]) -> tuple[Made, ...]:
    """Every trial anew from one text with all their programs and schedules, under names of their own.

    So a schedule is also printed, read again and followed as a whole.
    """
    texts: list[str] = []
    for number, made in enumerate(found):
        function = replace(made.trial.subject.function, name=f"trial{number}")
        schedule = ir.Schedule(function.name, None, None, tuple(made.trial.applied))
        texts.append(f"{print_function(function)}{print_schedule(schedule, function)}")
    program = parse("".join(texts), "trials.te")
    again: list[Made] = []
    for made, function in zip(found, program.functions, strict=True):
        target = resolve(made.trial.target)
        laid = apply_schedule(function, function.schedules[0], target).function
        again.append(Made(made.trial, laid, lower(laid, target, {})[0]))
    return tuple(again)


def kernels_of(found: Sequence[Made]) -> str:
    """One text with the kernels of trials that were read from one text."""
    plans = [m.plan for m in found if m.plan is not None]
    return print_kernels(replace(plans[0], steps=tuple(step for plan in plans for step in plan.steps)))


def shrunk(trial: Trial, fails: Callable[[Trial], str | None]) -> tuple[Trial, str]:
    """The least schedule, by dropping directives, that still fails, and how it fails."""
    said = fails(trial)
    assert said is not None
    smaller = True
    while smaller:
        smaller = False
        for directive in reversed(trial.applied):
            candidate = trial.without([directive])
            still = fails(candidate)
            if still is not None:
                trial, said, smaller = candidate, still, True
                break
    return trial, said


def fails_alone(trial: Trial) -> str | None:
    """What is wrong with one trial, each step of it made anew."""
    try:
        made = make(trial)
        wrong = findings(made)
        if wrong:
            return "; ".join(wrong)
        wrong = in_meaning(made)
        if wrong or made.plan is None or trial.target == "cpu":
            return wrong
        (again,) = reread([made])
        return in_cuda(again, kernels_of([again]))
    except (TexprError, Limitation) as problem:
        return f"refused: {problem}"
    except Exception as bug:
        return f"{type(bug).__name__}: {bug}"


def counted(found: Sequence[Made]) -> Counter[str]:
    """What the trials had in them."""
    total: Counter[str] = Counter()
    for made in found:
        trial = made.trial
        total.update(f"applied {d.name}" for d in trial.applied)
        total.update(f"via {a.value}" for d in trial.applied for a in d.args if a.key == "via")
        total.update(f"refused {code}" for _, code in trial.refused)
        total.update(f"not lowered {code}" for code in trial.unlowered)
        if made.plan is None:
            total["not lowered wholly"] += 1
            continue
        for kernel in k.kernels(made.plan.steps):
            total["kernels"] += 1
            total["kernels with shared memory"] += any(a.space is k.Space.SHARED for a in kernel.arrays)
            total["kernels with barriers"] += any(isinstance(s, k.Barrier) for s in k.walk(kernel.body))
        total[f"transforms {min(6, len(trial.state().transforms))}"] += 1
    return total
