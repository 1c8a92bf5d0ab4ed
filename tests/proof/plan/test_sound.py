"""What is proved is right, whatever was done to it: plans altered at random, with tags that lead astray, are run by hand.

A plan is altered once to three times (`altered`), and run thread by thread at a few sizes, in several orders. Where that goes
wrong, no tags may prove it: not those that are found for it, not those of the right plan, not any that are altered at random.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from tests.lowering import machine
from tests.lowering.memory import Fault
from tests.proof.plan.altered.plans import altered, with_kernel
from tests.proof.plan.altered.tree import put, spots
from tests.proof.plan.sound_programs import PROGRAMS
from tests.proof.plan.test_tags import altered as told_otherwise
from tests.proof.plan.test_tags import misled
from tests.proof.plan.verdicts import is_proved
from tests.properties.generate import Generator
from tests.schedule.laid import laid

from texpr import driver
from texpr.interp import run as interpret
from texpr.interp.dtypes import numpy_dtype
from texpr.ir import kernel as k
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.verify import verify
from texpr.ir.program import Function, InRange
from texpr.ir.value import Load
from texpr.proof.plan import Tags, prove, question
from texpr.proof.search import search
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.record import Mutable, replace

Arrays = dict[str, Any]
Altering = Callable[[k.Plan, random.Random], tuple[str, k.Plan] | None]
SIZES = ((4, 3), (1, 2), (2, 5))


class Subject(Mutable):
    """A right plan of a function, with its tags, and runs of it: what it is given, and what it gives."""

    function: Function
    plan: k.Plan
    tags: Tags
    runs: list[tuple[Arrays, Mapping[str, Any]]]


def given(function: Function, sizes: Mapping[str, int], rng: np.random.Generator) -> Arrays:
    """Small numbers, within what is assumed of them; in order, where they are indices of rows."""
    values = {size: sizes[size.name] for size in function.sizes}
    found: Arrays = {}
    for param in function.params:
        shape, ranges = tuple(e.evaluate(values) for e in param.shape), (-3, 4)
        for assume in function.assumes:
            if isinstance(assume, InRange) and assume.buffer is param:
                ranges = assume.lo.evaluate(values), assume.hi.evaluate(values)
        made = rng.integers(*ranges, shape).astype(numpy_dtype(param.dtype))
        found[param.name] = np.sort(made) if param.name == "first" else made
    return found


def subject(function: Function, plan: k.Plan, seed: int, sizes: Sequence[tuple[int, int]] = SIZES) -> Subject:
    rng, runs = np.random.default_rng(seed), list[tuple[Arrays, Mapping[str, Any]]]()
    for n, m in sizes:
        arrays = given(function, {"n": n, "m": m}, rng)
        runs.append((arrays, interpret(function, arrays, {})))
    return Subject(function, plan, search(question(function, plan)), runs)


def named(name: str, target: str) -> Subject:
    text, directives = PROGRAMS[name]
    if directives:
        made = laid(text, directives, target)
        return subject(made.function, made.plan, 1)
    compiled = driver.lower(driver.parse(text)["f"], target)
    return subject(compiled.function, compiled.plan, 1)


def drawn(seed: int, target: str) -> Subject | None:
    try:
        compiled = driver.lower(driver.parse(Generator(seed).program())["f"], target)
    except TexprError:
        return None
    return subject(compiled.function, compiled.plan, seed)


def goes_wrong(on: Subject, plan: k.Plan) -> str | None:
    """What is seen of a bug when `plan` is run by hand."""
    for order, (arrays, want) in enumerate(on.runs):
        try:
            got = machine.run(on.function, plan, arrays, {}, order)
        except Fault as fault:
            return str(fault)
        for name, wanted in want.items():
            if not np.array_equal(got[name], wanted):
                return f"{name} is {got[name]}, not {wanted}"
    return None


def changed(on: Subject, rng: random.Random, alter: Altering) -> k.Plan | None:
    """The plan after some alterations, if it is well formed."""
    plan = on.plan
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3])):
        made = alter(plan, rng)
        plan = plan if made is None else made[1]
    try:
        verify(plan)
    except CompilerBug:
        return None
    return None if plan is on.plan else plan


def store_anew(thread: machine.Thread, load: Load, value: Any, store: Any = machine.Thread.store) -> None:
    """Writes what is not there already. Who does an instance again writes the same, and may do so at any time."""
    memory, element = thread.place(load)
    if memory.values.get(element, machine.UNDEFINED) != value:
        store(thread, load, value)


def end_early(thread: machine.Thread) -> None:
    """The end of a thread whose stores of tiles have been read: they are written before the kernel ends, if not waited for."""
    if thread.copies or not all(each.read for each in thread.stores):
        raise Fault("copies are never waited for")
    thread.machine.engine.finish(thread, 0, False)


def used(plan: k.Plan) -> k.Plan:
    """The plan without registers that nobody asks for: when what they read is written, is no matter."""
    steps = plan.steps
    for kernel in dict.fromkeys(k.kernels(plan.steps)):
        body, before = kernel.body, None
        while body is not before:
            before, named = body, k.symbols(body)
            for spot, stmt in reversed(spots(body)):
                if isinstance(stmt, k.Declare) and stmt.sym not in named:
                    body = put(body, spot, drop=1)
        steps = with_kernel(steps, kernel, replace(kernel, body=body))
    return replace(plan, steps=steps)


def is_wrong(on: Subject, plan: k.Plan) -> str | None:
    """The same, but for threads that write the same to one place, for what nobody asks for, and for what is written when a
    kernel ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine.Thread, "end", end_early)
        why = goes_wrong(on, plan)
        if why is not None and any(word in why for word in ("race", "has not waited", "not made")):
            why = goes_wrong(on, used(plan))
        if why is None or not why.startswith("race"):
            return why
        patch.setattr(machine.Thread, "store", store_anew)
        return goes_wrong(on, used(plan))


def believed(on: Subject, plan: k.Plan, rng: random.Random) -> bool:
    """Whether some tags prove `plan`."""
    asked = question(on.function, plan)
    own = search(asked)
    every = [own, on.tags, *(told_otherwise(tags, len(asked.program.actions), rng) for tags in (own, on.tags) if tags.events)]
    every += [misled(tags, len(asked.reading.steps) or 1, rng) for tags in (own, on.tags) if tags.turns or any(tags.ends)]
    return any(is_proved(prove(asked, plan, tags)) for tags in every if len(tags.events) == len(asked.reading.events))


class Count(Mutable):
    wrong: int = 0
    right: int = 0
    proved: int = 0


def holes(on: Subject, turns: int, rng: random.Random, count: Count, alter: Altering = altered) -> Iterator[str]:
    """Altered plans that are wrong, and proved."""
    assert goes_wrong(on, on.plan) is None
    for _ in range(turns):
        plan = changed(on, rng, alter)
        if plan is None:
            continue
        why = is_wrong(on, plan)
        if why is None:
            count.right += 1
            if rng.random() < 0.1:
                count.proved += believed(on, plan, rng)
        else:
            count.wrong += 1
            if believed(on, plan, rng):
                yield f"{why}\n{plan_text(plan)}"


def all_is_right(on: Subject, name: str, alter: Altering = altered) -> None:
    """Of many alterations, which `name` draws, none that goes wrong is proved; and enough go wrong."""
    rng, count = random.Random(name), Count()
    assert not list(holes(on, 200, rng, count, alter))
    assert count.wrong > 30


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_what_is_proved_is_right(target: str) -> None:
    rng, count = random.Random(target), Count()
    for name in PROGRAMS:
        assert not list(holes(named(name, target), 3, rng, count)), name
    assert count.wrong > 10 and count.right > 1


@pytest.mark.long
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_proved_of_small_programs_is_right(name: str, target: str) -> None:
    rng, count = random.Random(f"{name} {target}"), Count()
    assert not list(holes(named(name, target), 300, rng, count))
    assert count.wrong > 50 and count.proved > 0


@pytest.mark.long
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("part", range(8))
def test_what_is_proved_of_random_programs_is_right(part: int, target: str) -> None:
    rng, count = random.Random(f"{part} {target}"), Count()
    for seed in range(10 * part, 10 * (part + 1)):
        on = drawn(seed, target)
        if on is not None:
            assert not list(holes(on, 25, rng, count)), seed
    assert count.wrong > 50
