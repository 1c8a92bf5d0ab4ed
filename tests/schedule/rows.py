"""What is asked of plans of rows that go through several products: proofs, and results beside the interpreter's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain

import numpy as np
from tests.lowering.emulated import run_plan
from tests.proofs import undecided
from tests.schedule.test_mma import NUMPY

from texpr.driver import Compiled
from texpr.interp import run
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.proof import Verdict
from texpr.proof.schedule import faithful
from texpr.support.diagnostic import CompilerBug

OPEN = (Verdict.REFUSED, Verdict.UNDECIDED)


def arguments(made: Compiled, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Small integers."""
    rng, found = np.random.default_rng(3), dict[str, np.ndarray]()
    for buffer in made.function.params:
        shape = [e.evaluate({sym: sizes[sym.name] for sym in e.syms()}) for e in buffer.shape]
        found[buffer.name] = np.asarray(rng.integers(-3, 4, shape) if shape else 0.25).astype(NUMPY[buffer.dtype.name])
    found |= {"most": np.asarray(16.0, np.float32)} if "most" in found else {}
    return found


def open_of(made: Compiled) -> list[object]:
    """What is not proved, for all sizes, of the schedule and of the plan."""
    assert made.written is not None
    proof = faithful(made.written, made.function)
    return [*chain(*(proof.of(verdict) for verdict in OPEN)), *undecided(made.function, made.plan)]


def differences(made: Compiled, function: ir.Function, sizes: Mapping[str, int], apart: float) -> list[str]:
    """What the emulator reports in two orders of threads, and results that are more than `apart`, a part of each element, from
    those of the interpreter. Of matrices there is one, H."""
    given, found = arguments(made, {"H": 1, **sizes}), list[str]()
    wanted = run(function, given)
    for seed in (None, 1):
        ran = run_plan(made.function, made.plan, given, sizes, seed=seed)
        found += [f"{report} at {sizes}, order {seed}" for report in ran.reports]
        for result, value in wanted.items():
            one, other = (np.asarray(each, np.float32) for each in (ran.arrays[result], value))
            if not np.all(np.abs(one - other) <= apart * np.abs(other)):
                found.append(f"{result} at {sizes}, order {seed}")
    return found


def is_shown(made: Compiled, function: ir.Function, plan: Callable[[], k.Plan], length: int, orders: int = 3) -> bool:
    """Whether a planted bug shows: the plan is of no form, cannot be printed, has a fault in one of so many orders of threads,
    or gives other numbers than the interpreter."""
    given = arguments(made, {"H": 1, "L": length})
    wanted = run(function, given)
    try:
        altered = plan()
        for seed in (None, *range(1, orders)):
            found = run_plan(made.function, altered, given, {"L": length}, seed=seed)
            if found.reports or any(not np.array_equal(found.arrays[name], value) for name, value in wanted.items()):
                return True
    except CompilerBug:
        return True
    return False
