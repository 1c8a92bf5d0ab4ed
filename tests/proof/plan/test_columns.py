"""Columns of pixels, with sizes at run time, weak and filled, in boxes and shared by a cluster; and rows that a table names.

They are proved from the kernels alone, and planted bugs are not.
"""

from __future__ import annotations

from collections import Counter

import pytest
from tests.lowering import test_columns as columns
from tests.lowering import test_gathered_rows as rows
from tests.proof.plan.engine_mutants import planted
from tests.proof.plan.verdicts import open_of
from tests.schedule.laid import Laid, laid

from texpr.ir import kernel as k
from texpr.proof.plan import Verdict
from texpr.proof.search import proved
from texpr.support.record import replace

SLICES = """
    merge(n, y) -> ny  merge(ny, x) -> m  split(m, 32) -> (bm, tm)  split(f, 16) -> (bf, tf)
    reorder(bm, bf, g, r, s, tm, tf, c)  bind(bm, grid.y)  bind(bf, grid.x)
    stage(X, at=s, in=shared, via=im2col, fill=zero) -> Xs"""

PROGRAMS: dict[str, tuple[str, ...]] = {
    "weak": (columns.CONV, columns.TILES.format("")),
    "boxes": (columns.CONV, columns.TILES.format(", fill=zero, box=(16, 8)")),
    "shared": (columns.CONV, columns.SHARED.format(2, ", fill=zero")),
    "shared in parts": (columns.CONV, columns.SHARED.format(2, ", fill=zero, box=(32, 8)")),
    "slices": (columns.SLICES, SLICES),
    **{f"unfold {seed}": columns.unfold(seed)[:2] for seed in range(5)},
    "rows": (rows.GATHER, rows.TILES.format(""), rows.TARGET),
    "rows with nan": (rows.GATHER, rows.TILES.format(", fill=nan"), rows.TARGET),
    "rows, swizzled": (rows.GATHER, rows.TILES.format(", fill=zero, swizzle=64B"), rows.TARGET),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_of_it_is_proved(name: str) -> None:
    made = laid(*PROGRAMS[name])
    assert open_of(proved(made.function, made.plan)) == []


@pytest.mark.long
def test_planted_bugs_are_not_proved() -> None:
    made: Laid = laid(*PROGRAMS["weak"])
    (kernel,) = k.kernels(made.plan.steps)
    found = [(what, replace(made.plan, steps=(k.Launch(bug),))) for what, bug in columns.bugs(kernel)]
    found += [(bug.kind, bug.plan) for bug in planted(made.plan) if "parity" in bug.kind or "bytes" in bug.kind]
    verdicts = Counter[str]()
    for what, plan in found:
        proof = proved(made.function, plan)
        verdicts["refused" if proof.of(Verdict.REFUSED) else "undecided"] += 1
        assert open_of(proof), what
    assert verdicts["refused"] >= 4, verdicts
