"""The steps form: well formed, the same after print and parse, and all that a kernel is emitted from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.snapshot import ROOT, TARGETS, programs

from texpr import driver
from texpr.driver import Compiled
from texpr.ir import kernel as k
from texpr.ir.kernel.text import kernel_text
from texpr.ir.steps.parse import parse_steps
from texpr.ir.steps.text import steps_text
from texpr.ir.steps.verify import verify
from texpr.ir.value.structure import same
from texpr.lowering.emit.kernel import emit
from texpr.support.diagnostic import CompilerBug, TexprError

PROGRAMS = {path.relative_to(ROOT).with_suffix("").as_posix(): path for path in programs()}


def compiled(path: Path, targets: tuple[str, ...]) -> Iterator[Compiled]:
    """What is made of a program, with each of its schedules, the one that is found, and none."""
    try:
        functions = driver.load(path).functions
    except TexprError:
        return
    for function in functions:
        for target in targets:
            for schedule in ("auto", None, *function.schedules):
                try:
                    yield driver.lower(function, target, schedule=schedule)
                except (TexprError, CompilerBug):
                    continue


def holds(made: Compiled) -> int:
    """How many kernels are emitted from the text of their steps alone, each the same as in the plan, to the byte."""
    kernels = {kernel.name: kernel for kernel in k.kernels(made.plan.steps)}
    for notes in made.notes:
        text = steps_text(notes.steps)
        verify(notes.steps)
        again = parse_steps(text)
        assert same(again, notes.steps)
        assert steps_text(again) == text
        verify(again)
        assert kernel_text(emit(again)) == kernel_text(kernels[notes.kernel])
    return len(made.notes)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kernel_is_made_of_the_text_of_its_steps_alone(name: str) -> None:
    every = [holds(made) for made in compiled(PROGRAMS[name], ("cpu", "sm_90a"))]
    assert all(every)


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_so_it_is_for_all_targets(name: str) -> None:
    for made in compiled(PROGRAMS[name], TARGETS):
        assert holds(made) > 0
