"""Candidates that lowering refuses, or a proof: the next one is taken, and those of other nests stay."""

from __future__ import annotations

import pytest
from tests.planner.programs import MATMUL, agrees

from texpr.driver import Compiled, Way, lower, parse
from texpr.ir.kernel.text import plan_text
from texpr.ir.program.selection import AUTO
from texpr.ir.program.text import print_directive
from texpr.support.diagnostic import limitation

GRAM = """
fn gram(A: bf16[N, K] align(16)): bf16[N, N] align(16) {
    new C: bf16[N, N]
    par N |i| { par N |j| {
        new total: f32 = 0.0
        if j <= i { seq K |k| reduce(total) { total += A[i, k] * A[j, k] } }
        C[i, j] = bf16(total)
    } }
    return C
}
"""

GATED = """
fn gated(X: bf16[T, D] align(16), G: bf16[D, F] align(16), U: bf16[D, F] align(16), W: bf16[F, D] align(16)): bf16[T, D] {
    new h: bf16[T, F]
    new Y: bf16[T, D]
    par T |t| { par F |f| {
        new g: f32 = 0.0
        new u: f32 = 0.0
        seq D |d| reduce(g) { g += X[t, d] * G[d, f] }
        seq D |d| reduce(u) { u += X[t, d] * U[d, f] }
        h[t, f] = bf16(max(g, 0.0) * u)
    } }
    par T |t| { par D |d| {
        new total: f32 = 0.0
        seq F |f| reduce(total) { total += h[t, f] * W[f, d] }
        Y[t, d] = bf16(total)
    } }
    return Y
}
"""

CASES = {
    "a triangle, of which blocks of a cluster would copy different parts": (GRAM, {"N": 4096, "K": 4096}, 1),
    "two products of a nest, with as much shared memory as each": (GATED, {"T": 4096, "D": 4096, "F": 11008}, 3),
}


def products(made: Compiled) -> list[str]:
    """The directives that give products to instructions."""
    every = () if made.schedule is None else made.schedule.directives
    return [print_directive(each) for each in every if each.name == "mma"]


@pytest.mark.parametrize("case", CASES)
def test_the_next_candidate_is_taken_where_one_is_not_lowered(case: str) -> None:
    text, sizes, many = CASES[case]
    (function,) = parse(text).functions
    made = lower(function, "sm_90a", sizes, schedule=AUTO)
    assert made.planned is not None and not made.planned.failed
    assert len(products(made)) == many
    assert any(each.refused for each in made.planned.nests)


@pytest.mark.parametrize("sizes", [{"N": 1, "K": 1}, {"N": 130, "K": 72}])
def test_a_triangle_agrees(sizes: dict[str, int]) -> None:
    agrees(GRAM, sizes)


TWO = """
fn two(x: bf16[b, k] align(16), W: bf16[k, m] align(16), V: bf16[m, n] align(16)): bf16[b, n] {
    new h: bf16[b, m]
    new y: bf16[b, n]
    par b |i| { par m |j| { new s: f32 = 0.0  seq k |t| reduce(s) { s += x[i, t] * W[t, j] }  h[i, j] = bf16(s) } }
    par b |i| { par n |j| { new s: f32 = 0.0  seq m |t| reduce(s) { s += h[i, t] * V[t, j] }  y[i, j] = bf16(s) } }
    return y
}
"""


def test_a_proof_that_is_undecided_leaves_other_candidates_and_other_nests() -> None:
    (function,) = parse(TWO).functions

    def accepted(made: Compiled) -> None:
        text = plan_text(made.plan)
        if "wgmma" in text[text.index("kernel two_h") : text.index("kernel two_y")]:
            raise limitation("E0509", function.span, "undecided")

    made = lower(function, "sm_90a", schedule=AUTO, way=Way(proved=accepted))
    assert made.planned is not None
    assert ["wgmma" in each for each in products(made)] == [False, False]
    assert ["E0509" in "".join(each.refused) for each in made.planned.nests] == [True, False]


def test_where_no_candidate_is_proved_there_is_none() -> None:
    (function,) = parse(MATMUL).functions

    def accepted(made: Compiled) -> None:
        raise limitation("E0509", function.span, "undecided")

    made = lower(function, "cpu", schedule=AUTO, way=Way(proved=accepted))
    assert made.planned is not None and made.schedule is None
    assert all(any("E0509: undecided" in why for why in each.refused) for each in made.planned.nests)
