"""A program as a schedule lays it out: lowered for a GPU, run in the emulator against the interpreter, counted, compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.ir.steps_text import check
from tests.lowering.emulated import module, results, run_plan
from tests.machine_code import built

from texpr.backends.cuda import print_kernels
from texpr.emulator import LOCKSTEP, Counts
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.kernel import verify as kernel_verify
from texpr.ir.program import Function, Schedule
from texpr.ir.program import verify as program_verify
from texpr.ir.program.marked import read
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.schedule.apply import apply_schedule
from texpr.schedule.proposals import tried
from texpr.schedule.tree import replaced
from texpr.support.diagnostic import TexprError
from texpr.support.record import Record, replace
from texpr.support.render import render
from texpr.toolchain.cuda import CudaBinary

Arrays = Mapping[str, NDArray[Any]]
ORDERS = (None, LOCKSTEP, 0, 1, 2, 3)
"""The emulator's schedules: in order, in step, and at random."""


class Laid(Record, dict=True):
    """A function, the same as its schedule lays it out, and the plan of that."""

    original: Function
    function: Function
    plan: k.Plan

    @property
    def text(self) -> str:
        """The CUDA source."""
        return print_kernels(self.plan)

    @property
    def statements(self) -> tuple[k.Stmt, ...]:
        """Every statement of every kernel."""
        return tuple(s for kernel in k.kernels(self.plan.steps) for s in k.walk(kernel.body))


@cache
def laid(text: str, directives: str = "", target: str = "sm_90a") -> Laid:
    """The only function of `text` under `directives`; as the compiler maps it itself where there are none."""
    family = "cpu" if target == "cpu" else "cuda"
    name = text.split("fn ")[1].split("(")[0]
    (function,) = parse(f'{text}\nschedule {name} "s" for {family} {{\n{directives}\n}}\n', "t.te").functions

    def follow(function: Function, schedule: Schedule | None) -> Laid:
        made = apply_schedule(function, schedule, resolve(target))
        return lowered(function, function if made is None else made.function, target)

    try:
        return follow(function, function.schedules[0])
    except TexprError as raised:
        raise tried(raised, function, function.schedules[0], follow) from None


def lowered(original: Function, function: Function, target: str = "sm_90a") -> Laid:
    """`function`, which means what `original` does, as a plan; all forms are verified. Its text may have marks."""
    function = read(function)
    program_verify.verify_function(function)
    plan, notes = lower(function, resolve(target), {})
    kernel_verify.verify(plan)
    check(plan, notes)
    return Laid(original, function, plan)


def in_shared(function: Function) -> Function:
    """`function` with every array that it makes inside of loops placed in shared memory."""
    body = function.body
    for new in [s for stmt in body for s in ir.walk((stmt,)) if isinstance(s, ir.New) and s is not stmt and s.buffer.rank]:
        body = replaced(body, new, lambda old: (replace(old, space="shared"),))  # pyright: ignore[reportCallIssue]
    return replace(function, body=body)


def refusal(text: str, directives: str, target: str = "sm_90a") -> str:
    """What is said of a schedule that is refused."""
    with pytest.raises(TexprError) as found:
        laid(text, directives, target)
    return "\n".join(map(render, found.value.diagnostics))


def wrong(made: Laid, arrays: Arrays, sizes: Mapping[str, int] | None = None, orders: Sequence[int | None] = ORDERS,
          text: str | None = None, allowed: str | None = None) -> str | None:  # fmt: skip
    """What the emulator finds wrong in the kernels, but for an `allowed` fault, or in results against the interpreter's."""
    want = interpret(made.original, arrays, sizes or {})
    for order in orders:
        ran = run_plan(made.function, made.plan, arrays, sizes or {}, seed=order, text=text)
        faults = [report.fault.value for report in ran.reports if report.fault.value != allowed]
        if faults:
            return f"{faults[0]} in order {order}"
        got = results(made.function, ran)
        for name, expected in want.items():
            if not np.array_equal(got[name], expected):
                return f"{name} differs in order {order}"
    return None


def counts(made: Laid, arrays: Arrays, sizes: Mapping[str, int] | None = None) -> Counts:
    """What the only kernel of the plan does to memory."""
    emulated = module(made.text)
    emulated.clear_counts()
    ran = run_plan(made.function, made.plan, arrays, sizes or {}, count=True)
    assert ran.reports == []
    (found,) = (c for c in emulated.counts().values() if c.launches)
    return found


def integers(*shape: int, seed: int = 0, dtype: str = "float32") -> NDArray[Any]:
    """Small integers, of which sums and products are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def binary(made: Laid, target: str, text: str | None = None) -> CudaBinary:
    """The kernels (or `text`) compiled by nvcc; skips where there is none."""
    return built(text or made.text, target)
