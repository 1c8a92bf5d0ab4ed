"""Vectors of nests without a tile: proved or left out, the same results, a quarter of the requests."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.emulated import module, results, run_plan
from tests.proof.plan.verdicts import is_proved

from texpr.driver import Compiled, lower
from texpr.explain.sigma import sigma
from texpr.frontend import parse
from texpr.interp import run
from texpr.ir import kernel as k
from texpr.ir.program.selection import AUTO
from texpr.ir.program.text import print_directive
from texpr.proof.search import proved

SUM = "{ new z: i32[n] par n |i| { z[i] = 2 * x[i] + y[i] } return z }"
ROWS = "{ new z: i32[m, n] par m |i| { par n |j| { z[i, j] = x[i, j] + y[j] } } return z }"
TEXTS = {
    "whole": f"(x: i32[n] align(16), y: i32[n] align(16)): i32[n] where n % 4 == 0 {SUM}",
    "ragged": f"(x: i32[n] align(16), y: i32[n] align(16)): i32[n] {SUM}",
    "rows": f"(x: i32[m, n] align(16), y: i32[n] align(16)): i32[m, n] where n % 4 == 0 {ROWS}",
}
PLAIN = {
    "no promise": f"(x: i32[n], y: i32[n]): i32[n] {SUM}",
    "rows of any length": f"(x: i32[m, n] align(16), y: i32[n] align(16)): i32[m, n] {ROWS}",
    "backwards": "(x: i32[n] align(16)): i32[n] { new z: i32[n] par n |i| { z[i] = x[n - 1 - i] } return z }",
}


def found(text: str) -> Compiled:
    return lower(parse(f"fn f{text}").functions[0], "sm_90a", schedule=AUTO)


def vectors(compiled: Compiled) -> int:
    stmts = (s for kernel in k.kernels(compiled.plan.steps) for s in k.walk(kernel.body))
    return sum(isinstance(s, k.LoadVector | k.StoreVector) for s in stmts)


@pytest.mark.parametrize("sizes", [{"m": 3, "n": 1000}, {"m": 5, "n": 4}, {"m": 2, "n": 0}, {"m": 1, "n": 1003}])
@pytest.mark.parametrize("name", TEXTS)
def test_the_same_by_vectors(name: str, sizes: dict[str, int]) -> None:
    compiled = found(TEXTS[name])
    assert vectors(compiled) == 3
    own = {
        s.name: sizes[s.name] - sizes[s.name] % (1 if name == "ragged" else 4 if s.name == "n" else 1)
        for s in compiled.function.sizes
    }
    m, n = own.get("m", 1), own["n"]
    x = np.arange(m * n, dtype=np.int32).reshape((m, n) if name == "rows" else n)
    arrays = {"x": x, "y": np.arange(n, dtype=np.int32)[::-1].copy()}
    done = run_plan(compiled.function, compiled.plan, arrays, own, seed=1)
    assert done.reports == []
    assert np.array_equal(
        results(compiled.function, done)["z"], run(parse(f"fn f{TEXTS[name]}").functions[0], arrays, own)["z"]
    )


@pytest.mark.parametrize("name", PLAIN)
def test_what_cannot_be_proved_is_left_out(name: str) -> None:
    compiled = found(PLAIN[name])
    assert vectors(compiled) == 0
    assert compiled.planned is not None and compiled.planned.schedule is None


TWO = """
fn f(x: f32[m, n] align(16), w: f32[m, n] align(16)): f32[m, n]
    where n % 4 == 0
{
    new y: f32[m, n]
    par m, n |i, j| { y[i, j] = 2.0 * x[i, j] }
    par m |a| {
        new total: f32
        total = 0.0
        par n |b| reduce(total) { total += w[a, b] * y[a, b] }
        par n |c| { y[a, c] = w[a, c] / total }
    }
    return y
}"""
"""Vectors of the first nest have the result aligned, so the second one is another statement then."""


def test_a_nest_is_looked_at_as_those_before_it_left_it() -> None:
    compiled = lower(parse(TWO).functions[0], "sm_90a", schedule=AUTO)
    assert compiled.schedule is not None
    said = [print_directive(each).split(",")[0] for each in compiled.schedule.directives]
    assert said == ["vectorize(j", "vectorize(b", "vectorize(c"]
    assert is_proved(proved(compiled.function, compiled.plan))


def test_requests_are_a_quarter_and_are_what_is_said() -> None:
    counts: list[int] = []
    n = 4096
    for text in (TEXTS["whole"], PLAIN["no promise"]):
        compiled = found(text)
        emulated = module(compiled.source)
        emulated.clear_counts()
        arrays = {"x": np.zeros(n, np.int32), "y": np.zeros(n, np.int32)}
        run_plan(compiled.function, compiled.plan, arrays, {"n": n}, count=True)
        (each,) = emulated.counts().values()
        counts.append(each.global_load_requests + each.global_store_requests)
        assert each.global_load_sectors + each.global_store_sectors == 3 * n * 4 // 32
    assert counts == [3 * n // 128, 3 * n // 32]
    (note,) = found(TEXTS["whole"]).notes
    said = sigma(note.solved[0])
    assert (said["sectors"], said["requests"], said["certificate"]) == (48, 3, "globally optimal")
