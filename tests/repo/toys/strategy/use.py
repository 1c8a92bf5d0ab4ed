"""The made-up strategy: nests of its kind get its schedule, which is proved, explained and run; others keep theirs."""

from __future__ import annotations

import numpy as np

import texpr
from texpr.driver import Compiled, lower
from texpr.explain.planned import Data, planned
from texpr.ir.program.selection import AUTO
from texpr.ir.program.text import print_schedule
from texpr.proof.search import proved

SOURCE = """
fn turned(x: f32[m, n]): f32[n, m] {
    new y: f32[n, m]
    par n |i| { par m |j| { y[i, j] = x[j, i] } }
    return y
}

fn product(A: f32[M, K], B: f32[K, N]): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}
"""


def nests(made: Compiled) -> list[Data]:
    """What `explain` tells of each nest."""
    found = planned(made)
    assert found is not None
    return found["nests"]


program = texpr.parse(SOURCE)
made = lower(program["turned"], "cpu", schedule=AUTO)
assert made.schedule is not None
said = print_schedule(made.schedule, program["turned"])
assert "split(i, 16) -> (i_b, i_t)" in said and "reorder(i_b, j_b, i_t, j_t)" in said, said
proved(made.function, made.plan).require()
(nest,) = nests(made)
assert nest["tile"] == {"i": 16, "j": 16} and nest["refused"] == [], nest

kernel = texpr.compile(program["turned"], target="cpu", schedule="auto")
for shape in ((0, 3), (1, 1), (16, 16), (37, 50)):
    x = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    np.testing.assert_array_equal(kernel(x), x.T)

(panel,) = nests(lower(program["product"], "cpu", schedule=AUTO))
assert panel["panels"] == ["B"], panel
(turned,) = nests(lower(program["turned"], "sm_90a", schedule=AUTO))
assert "turned round in tiles of 32 × 32" in turned["reason"], turned
