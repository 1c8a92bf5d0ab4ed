"""The made-up way to reduce: programs of its kind are made so, proved and run; others as they were."""

from __future__ import annotations

import numpy as np

import texpr
from texpr.driver import lower
from texpr.ir import kernel as k
from texpr.proof.search import proved

SOURCE = """
fn count(x: f32[n], inout found: i32) {
    par n |i| reduce(found) { if x[i] > 0.5 { found += 1 } }
}

fn total(x: i32[n], inout found: i32) {
    par n |i| reduce(found) { found += x[i] }
}
"""

program = texpr.parse(SOURCE)
made = lower(program["count"], "sm_90a")
proved(made.function, made.plan).require()
(kernel,) = k.kernels(made.plan.steps)
assert "atomicAdd" in made.source and not kernel.arrays, made.source
assert len([*k.kernels(lower(program["total"], "sm_90a").plan.steps)]) == 2

counted = texpr.compile(program["count"], target="cpu")
for n in (0, 1, 1000):
    x, found = np.linspace(0, 1, n, dtype=np.float32), np.array(3, np.int32)
    counted(x, found)
    assert found == 3 + (x > 0.5).sum()
