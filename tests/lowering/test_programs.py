"""Particular programs, each the same in the interpreter, on a CPU, and in the emulator under several schedules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from tests.lowering import native
from tests.lowering.emulated import results, run_plan
from tests.lowering.programs import PROGRAMS, REDUCED, Program, reduction_over

from texpr.backends.cuda import print_kernels
from texpr.checks import check
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.interp.arguments import shape_of
from texpr.interp.dtypes import numpy_dtype
from texpr.ir.kernel import verify as kernel_verify
from texpr.ir.program import Function
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower

SEEDS = (None, 0, 1, 2)


def arguments(function: Function, sizes: Mapping[str, int], below: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Small integers, sums of which every type holds exactly; index arrays stay below the size that is named for them."""
    numbers = np.random.default_rng(1)
    values = {s: sizes[s.name] for s in function.sizes}
    found: dict[str, np.ndarray] = {}
    for param in function.params:
        lo, hi = (-4, 5) if param.dtype.bits == 32 else (-1, 2)
        if param.name in below:
            limit = below[param.name]
            lo, hi = 0, int(limit) if limit.isdigit() else max(1, sizes[limit])
        if param.dtype.name.startswith("u"):
            lo = 0
        found[param.name] = numbers.integers(lo, hi, shape_of(param, values)).astype(numpy_dtype(param.dtype))
    return found


def check_everywhere(functions: Iterator[tuple[Function, tuple[dict[str, int], ...], dict[str, str]]]) -> None:
    cases = list(functions)
    cpu = []
    for function, _, _ in cases:
        assert not check(function), f"{function.name}: {check(function)[0]}"
        cpu.append(lower(function, resolve("cpu"))[0])
        kernel_verify.verify(cpu[-1])
    loaded = native.library(cpu)
    for (function, every, below), on_cpu in zip(cases, cpu, strict=True):
        on_gpu, _ = lower(function, resolve("sm_90a"))
        kernel_verify.verify(on_gpu)
        text = print_kernels(on_gpu)
        for sizes in every:
            given = arguments(function, sizes, below)
            want = interpret(function, given, sizes)
            got = native.call(loaded, function, on_cpu, given, sizes)
            for name, expected in want.items():
                np.testing.assert_array_equal(got[name], expected, f"cpu, {function.name}{sizes}: {name}")
            for seed in SEEDS:
                run = run_plan(function, on_gpu, given, sizes, seed=seed, text=text)
                assert not run.reports, f"{function.name}{sizes}, seed {seed}: {run.reports[0]}"
                for name, array in results(function, run).items():
                    np.testing.assert_array_equal(array, want[name], f"cuda, {function.name}{sizes}, seed {seed}: {name}")


def function_of(program: Program) -> Function:
    text = re.sub(r"\bfn f\(", f"fn {program.name}(", program.text)
    return parse(text, f"{program.name}.te")[program.name]


def test_particular_programs_mean_the_same_everywhere() -> None:
    check_everywhere((function_of(p), p.sizes, dict(p.below)) for p in PROGRAMS)


def test_reductions_of_every_type_mean_the_same_everywhere() -> None:
    sizes = ({"n": 0, "m": 1}, {"n": 3, "m": 1}, {"n": 2, "m": 77}, {"n": 1, "m": 600})
    check_everywhere(
        (parse(reduction_over(dtype).replace("f32[n, m])", "f32[n, m])"), f"{dtype}.te").functions[0], sizes, {})
        for dtype in REDUCED
    )


@pytest.mark.parametrize("name", ["chain_of_pars", "seq_outside_without_crossing"])
def test_the_number_of_kernels(name: str) -> None:
    """What crosses no block needs no kernel of its own."""
    program = next(p for p in PROGRAMS if p.name == name)
    plan, _ = lower(function_of(program), resolve("sm_90a"))
    launches = len(plan.steps)
    assert launches == {"chain_of_pars": 2, "seq_outside_without_crossing": 2}[name]
