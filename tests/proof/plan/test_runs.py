"""Copies without a map, and rows that a table names, are proved from the kernels alone; planted bugs are not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.lowering import test_run_stores as stores
from tests.lowering import test_runs as loads
from tests.lowering import test_scattered_rows as rows
from tests.lowering.mutants import mutants
from tests.lowering.test_combining_stores import SCALED, batch, layers
from tests.proof.plan.verdicts import open_of
from tests.schedule.laid import laid

from texpr.ir import kernel as k
from texpr.proof.search import proved
from texpr.support.record import replace

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "vectors": (stores.AXPY, stores.EACH),
    "tiles": (SCALED, stores.RUNS),
    "strips": (SCALED, stores.STRIPS),
    "sums": (batch("i32"), layers(stores.STAGE)),
    "ragged": (loads.RAGGED, loads.TILES),
    "steps": (loads.RAGGED, loads.STEPS),
    "joined": (loads.SUM, "split(i, 16) -> (b, t)  bind(b, grid.x)  stage(x, at=b, via=bulk) -> rows"),
    "rows": (rows.SCATTER, rows.TILES.format(""), rows.TARGET),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_of_it_is_proved(name: str) -> None:
    made = laid(*PROGRAMS[name])
    assert open_of(proved(made.function, made.plan)) == []


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "rows"])
def test_planted_bugs_are_not_proved(name: str) -> None:
    made = laid(*PROGRAMS[name])
    (kernel,) = k.kernels(made.plan.steps)
    tried: set[str] = set()
    for mutant in mutants(kernel):
        if mutant.kind in ("length", "reduce", "bytes", "store", "place", "fence"):
            tried.add(mutant.kind)
            assert open_of(proved(made.function, replace(made.plan, steps=(k.Launch(mutant.kernel),)))), mutant.what
    assert tried >= {"length", "place"}
