"""Every barrier of the gallery is needed: with any one of them left out, the emulator finds threads that race."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.gallery.scheduled import CASES, Scheduled
from tests.lowering.emulated import run_plan

from references import EXAMPLES, Example
from texpr.backends.cuda import print_kernels
from texpr.driver import Compiled, load, lower
from texpr.emulator import LOCKSTEP
from texpr.support.record import Record

BARRIER = re.compile(r"^ *((?:__sync\w+|tx_bar_sync)\(.*\);)$", re.MULTILINE)

SWITCH = """
#include <cstdlib>
static int left_out() {
    char const *given = std::getenv("TEXPR_TEST_LEFT_OUT");
    return given ? std::atoi(given) : -1;
}
"""
"""In the emulated text: the number of the barrier to be passed without waiting, so that all are tried with one compilation."""


class Case(Record, dict=True):
    """A function as it is compiled, and arguments to try it on, each with its sizes."""

    compiled: Compiled
    inputs: tuple[tuple[Mapping[str, Any], Mapping[str, int]], ...]

    @property
    def text(self) -> str:
        """What is emitted."""
        return print_kernels(self.compiled.plan)


def _example(example: Example) -> Case:
    random = np.random.default_rng(1)
    sizes = (*example.small, *example.large[:1])
    consts = example.split(sizes[0])[0]
    function = load(example.path, consts)[example.function]
    same = [each for each in sizes if example.split(each)[0] == consts]
    return Case(lower(function, "sm_90a"), tuple((example.make(random, each), example.split(each)[1]) for each in same))


def _scheduled(case: Scheduled, schedule: str | None) -> Case:
    inputs = tuple((case.arrays(each), each) for each in (*case.small, *case.large[:1]))
    return Case(case.lowered(schedule), inputs)


PROGRAMS: Mapping[str, Callable[[], Case]] = {
    **{example.name: partial(_example, example) for example in EXAMPLES},
    **{
        f"{case.file} {case.function} {schedule}": partial(_scheduled, case, schedule)
        for case in CASES
        for schedule in case.schedules
        if not case.fixed
    },
}

WITHOUT = {
    "conv2d",
    "gather",
    "histogram",
    "jacobi",
    "matmul",
    "matmul_flat",
    "permute5d",
    "saxpy",
    "transpose",
    "saxpy saxpy None",
    "scan scan lanes",
}
"""Those in which no thread meets another."""


def switched(text: str) -> tuple[str, int]:
    """The text with a switch at each barrier, and how many there are."""
    parts = BARRIER.split(text)
    barriers = parts[1::2]
    for number, barrier in enumerate(barriers):
        parts[2 * number + 1] = f"if (left_out() != {number}) {barrier}"
    return "".join(parts).replace("\n", "\n" + SWITCH, 1), len(barriers)


def faults(case: Case, text: str, orders: tuple[int | None, ...]) -> Iterator[str]:
    """What the emulator reports."""
    for order in orders:
        for arguments, sizes in case.inputs:
            run = run_plan(case.compiled.function, case.compiled.plan, arguments, sizes, order, text)
            yield from map(str, run.reports)


@pytest.mark.long
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_barrier_may_be_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = PROGRAMS[name]()
    text, count = switched(case.text)
    assert (count == 0) == (name in WITHOUT)
    assert not any(faults(case, text, (None,)))
    for number in range(count):
        monkeypatch.setenv("TEXPR_TEST_LEFT_OUT", str(number))
        assert any(faults(case, text, (None, LOCKSTEP, 0, 1, 2, 3))), f"barrier {number} of {count}"
