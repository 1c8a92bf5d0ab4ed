"""`serial`: the iterations of a `par` in order; results, orders of other loops around them, and what is refused."""

from __future__ import annotations

import pytest
from tests.proof.plan.verdicts import open_of
from tests.schedule.laid import integers, laid, refusal, wrong

from texpr.ir import program as ir
from texpr.proof.search import proved

MATMUL = """
fn matmul(A: f32[M, K], B: f32[K, N]): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        par K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}"""

TILES = """
    serial(k)
    split(i, 8) -> (io, ii)  split(j, 32) -> (jo, ji)  split(k, 4) -> (ko, ki)
    reorder(io, jo, ko, ii, ji, ki)
    bind(ii, block.y)  bind(ji, block.x)
    stage(C, at=jo, in=registers) -> Cr"""


@pytest.mark.parametrize("directives", ["serial(k)", TILES, "serial(i)", "serial(j) serial(k)", "serial(k) reorder(k, i, j)"])
def test_results(directives: str) -> None:
    made = laid(MATMUL, directives)
    for m, k, n in ((9, 7, 33), (1, 1, 1), (0, 3, 2), (4, 0, 5)):
        arrays = {"A": integers(m, k, seed=1), "B": integers(k, n, seed=2)}
        assert wrong(made, arrays, {"M": m, "K": k, "N": n}, (None, 0)) is None
    assert open_of(proved(made.function, made.plan)) == []


def test_a_sum_is_no_team_s() -> None:
    assert "__shfl" in laid(MATMUL).text
    made = laid(MATMUL, "serial(k)")
    assert "__shfl" not in made.text
    (loop,) = (s for s in ir.walk(made.function.body) if isinstance(s, ir.Seq))
    assert loop.sym.name == "k" and [b.name for b in loop.reduce] == ["C"]


@pytest.mark.parametrize(
    ("directives", "reason"),
    [
        ("serial(k) serial(k)", "the loop over `k` is a `seq` already"),
        ("bind(i, grid.x) serial(i)", "`i` has been given to `bind` already"),
        ("serial(q)", "`q`"),
        ("serial()", "serial(LOOP)"),
        ("serial(i, j)", "serial(LOOP)"),
        ("serial(k) -> (a)", "serial"),
        ("serial(k) bind(k, block.x)", "`k`"),
    ],
)
def test_refusals(directives: str, reason: str) -> None:
    assert reason in refusal(MATMUL, directives)


def test_a_loop_whose_lanes_run_together_stays() -> None:
    fully = "fn f(x: f32[32], inout y: f32[32]) { fully par 32 |i| { y[i] = x[i] } }"
    assert "its iterations are lanes already" in refusal(fully, "serial(i)")


SUM = "fn f(x: f32[n], inout s: f32) { par n |i| reduce(s) { s += x[i] } }"
STAGED = "split(i, 3) -> (o, t) {} stage(x, at=o, in=registers) -> r reorder(t, o) {}"


def test_a_copy_of_a_loop_that_reduces_is_not_bound() -> None:
    """Binding one of the loops over an IterDomain binds them all."""
    assert "the iterations of `t` meet in a `reduce`" in refusal(SUM, STAGED.format("", "bind(r_0, block.z)"))
