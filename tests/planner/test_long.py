"""Rows that no block has room for: the schedule that is found, its results, and what it reads."""

from __future__ import annotations

import pytest
from tests.lowering.clustered import normalised
from tests.lowering.emulated import module, results, run_plan
from tests.schedule.laid import integers

from texpr import driver
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir.program.text import print_schedule
from texpr.proof.search import proved

TWICE = """
fn centred(x: f32[M, N]): f32[M, N] {
    new y: f32[M, N]
    par M |r| {
        new all: f32 = 0.0
        par N |j| reduce(all) { all += x[r, j] }
        par N |k| { y[r, k] = x[r, k] - all }
    }
    return y
}"""


def planned(text: str, target: str = "sm_90a", **sizes: int) -> driver.Compiled:
    (function,) = parse(text, "t.te").functions
    return driver.lower(function, target, sizes, schedule="auto")


def clusters(compiled: driver.Compiled) -> set[tuple[int, int, int]]:
    return {kernel.cluster for kernel in k.kernels(compiled.plan.steps)}


@pytest.mark.parametrize(("n", "blocks"), [(16_000, 2), (30_000, 4), (50_000, 4), (60_000, 8), (130_001, 8), (400_000, 8)])
def test_as_few_blocks_as_have_room_beside_others(n: int, blocks: int) -> None:
    """Four on a multiprocessor, of rows that no cache keeps, where there are enough blocks of a cluster."""
    made = planned(TWICE, N=n)
    assert clusters(made) == {(1, blocks, 1)}
    assert made.planned is not None and f"{blocks} blocks of a cluster keep rows of `x` (read once, not 2 times)" in (
        made.planned.nests[0].reason
    )


def test_nothing_of_it_where_a_cache_keeps_rows_or_no_cluster_has_room() -> None:
    assert clusters(planned(TWICE, N=12_000)) == {(1, 1, 1)}
    assert clusters(planned(TWICE, N=50_001)) == {(1, 1, 1)}, "parts would be no whole vectors"
    assert clusters(planned(TWICE, N=600_000)) == {(1, 1, 1)}
    assert clusters(planned(TWICE)) == {(1, 1, 1)}
    assert clusters(planned(TWICE, "sm_80", N=60_000)) == {(1, 1, 1)}
    once = TWICE.replace("x[r, k] - all", "all")
    assert clusters(planned(once, N=60_000)) == {(1, 1, 1)}


def test_results_and_what_is_read() -> None:
    """A row comes once, where it came twice; and what is found is proved, like any other kernel."""
    n, rows = 58_304, 2
    made = planned(TWICE, N=n)
    (function,) = parse(TWICE, "t.te").functions
    arrays = {"x": integers(rows, n)}
    want = interpret(function, arrays, {"M": rows, "N": n})
    module(made.source).clear_counts()
    for order in (None, 0):
        ran = run_plan(made.function, made.plan, arrays, {"M": rows}, seed=order, count=order is None)
        assert ran.reports == []
        assert (results(made.function, ran)["y"] == want["y"]).all()
    (found,) = (c for c in module(made.source).counts().values() if c.launches)
    assert found.global_load_sectors == rows * n * 4 // 32
    assert not {"refused", "undecided"} & {o.verdict.value for o in proved(made.function, made.plan).obligations}


def test_a_local_that_is_too_long() -> None:
    """Its memory is the program's own, and nothing of it is left in global memory."""
    made = planned(normalised(70_001))
    assert clusters(made) == {(1, 8, 1)} and made.plan.workspace == ()


def test_the_schedule_can_be_pasted() -> None:
    (function,) = parse(TWICE, "t.te").functions
    found = planned(TWICE, N=60_000).planned
    assert found is not None and found.schedule is not None
    pasted = parse(f"{TWICE}\n{print_schedule(found.schedule, function)}", "t.te").functions[0]
    made = driver.lower(pasted, "sm_90a", {"N": 60_000}, schedule=pasted.schedules[0])
    assert clusters(made) == {(1, 8, 1)} and "tx_cluster_shared(all_own_blocks" in made.source
