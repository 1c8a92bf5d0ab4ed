"""Random programs mean the same in the interpreter, as C++ on a CPU, and as CUDA in the emulator under any schedule."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering import native
from tests.lowering.emulated import results, run_plan
from tests.properties.generate import Facts, Generator

from texpr.backends.cuda import print_kernels
from texpr.checks import check
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir.kernel import verify as kernel_verify
from texpr.ir.program import verify as program_verify
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.support.record import as_dict, replace

SIZES = ((7, 5), (1, 1), (0, 3), (4, 0), (40, 33))
BATCH = 12


def _arguments(seed: int, n: int, m: int) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(seed)
    shapes = {"x": (n, m), "y": (n,), "w": (m,)}
    return {name: numbers.integers(-4, 5, shape).astype(np.int32) for name, shape in shapes.items()}


def _compare(seeds: range) -> Facts:
    """Every program of `seeds` at every size; what they had in them, added up (depth: the greatest)."""
    made = [Generator(seed, f"g{seed}") for seed in seeds]
    program = parse("\n".join(g.program() for g in made), "random.te")
    for function in program.functions:
        assert not check(function), f"{function.name}: {check(function)[0]}"
    program_verify.verify(program)
    cuda = [lower(f, resolve("sm_90a"))[0] for f in program.functions]
    cpu = [lower(f, resolve("cpu"))[0] for f in program.functions]
    for plan in (*cuda, *cpu):
        kernel_verify.verify(plan)
    text = print_kernels(replace(cuda[0], steps=tuple(step for plan in cuda for step in plan.steps)))
    loaded = native.library(cpu)
    for seed, function, on_gpu, on_cpu in zip(seeds, program.functions, cuda, cpu, strict=True):
        for n, m in SIZES:
            given = _arguments(seed, n, m)
            want = interpret(function, given)
            got = native.call(loaded, function, on_cpu, given)
            for name, expected in want.items():
                np.testing.assert_array_equal(got[name], expected, f"cpu, seed {seed}, n = {n}, m = {m}: {name}")
            for order in (None, seed):
                run = run_plan(function, on_gpu, given, seed=order, text=text)
                assert not run.reports, f"seed {seed}, n = {n}, m = {m}: {run.reports[0]}"
                for name, array in results(function, run).items():
                    np.testing.assert_array_equal(array, want[name], f"cuda, seed {seed}, n = {n}, m = {m}: {name}")
    total = {key: sum(as_dict(g.facts)[key] for g in made) for key in as_dict(Facts())}
    total["depth"] = max(g.facts.depth for g in made)
    return Facts(**total)


def test_random_programs_mean_the_same_everywhere() -> None:
    facts = _compare(range(BATCH))
    assert facts.depth >= 3
    assert min(facts.guards, facts.reductions, facts.locals, facts.sequential, facts.inner_pars) >= 3, facts
    assert facts.reads_of_written >= BATCH // 3, facts


@pytest.mark.long
@pytest.mark.parametrize("start", range(BATCH, BATCH + 300, 20))
def test_many_random_programs_mean_the_same_everywhere(start: int) -> None:
    _compare(range(start, start + 20))
