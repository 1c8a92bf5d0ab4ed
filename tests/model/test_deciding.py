"""From which turns of a loop on a test has another outcome, beside all turns one by one."""

from __future__ import annotations

import random

import pytest

from texpr.affine.expr import Sym, expr
from texpr.driver import lower, parse
from texpr.ir import kernel as k
from texpr.ir.kernel.point import holds
from texpr.ir.value import Index, Literal, Op
from texpr.ir.value.types import BOOL, I64
from texpr.isa.registry import resolve
from texpr.model.plan.deciding import changes
from texpr.model.plan.walk import walk_of

AT, N, T = Sym("i"), Sym("n"), Sym("thread")
NAMES = ("lt", "le", "gt", "ge", "eq", "ne")


@pytest.mark.parametrize("seed", range(20))
def test_every_change_is_known(seed: int) -> None:
    rng = random.Random(seed)
    sizes = {N: rng.randint(0, 9)}
    for _ in range(30):
        left = expr(AT) * rng.choice((1, -1)) + rng.randint(-3, 9) + rng.choice((0, 1, -1)) * expr(N)
        right = Index(expr(N), I64) if rng.random() < 0.5 else Literal(rng.randint(-2, 9), I64)
        sides = (Index(left, I64), right) if rng.random() < 0.5 else (right, Index(left, I64))
        test = Op(rng.choice(NAMES), sides, BOOL)
        first, step, turns = rng.randint(-2, 3), rng.randint(1, 3), 12
        loop = k.For(AT, expr(first), expr(first + step * turns), (k.If(test, ()),), expr(step))
        said = [holds(test, {**sizes, AT: first + step * turn}, True) for turn in range(turns)]
        wanted = {turn for turn in range(1, turns) if said[turn] != said[turn - 1]}
        assert wanted <= {*changes(loop, first, step, sizes)}, (test, first, step)


def test_of_what_is_not_known_nothing_is_said() -> None:
    for left in (expr(AT) + expr(T), 2 * expr(AT), expr(AT) * expr(N), expr(N)):
        test = Op("lt", (Index(left, I64), Literal(5, I64)), BOOL)
        assert not [*changes(k.For(AT, expr(0), expr(9), (k.If(test, ()),), expr(1)), 0, 1, {N: 3})]


RING = """
fn f(A: bf16[64, 64 * k] align(16), B: bf16[64, 64 * k] align(16)): f32[64, 64] {
    new C: f32[64, 64]
    par 64 |i| { par 64 |j| {
        C[i, j] = 0.0
        seq 64 * k |t| reduce(C) { C[i, j] += f32(A[i, t]) * f32(B[j, t]) }
    } }
    return C
}

schedule f for sm_90a {
    split(i, 64) -> (i_b, i_m)
    split(t, 64) -> (t_o, t_i)
    reorder(i_b, t_o, i_m, j, t_i)
    stage(C, at=i_b, in=registers) -> acc
    stage(A, at=t_o, via=tma, in=shared, swizzle=128B) -> A_s
    stage(B, at=t_o, via=tma, in=shared, swizzle=128B) -> B_s
    mma(i_m, j, t_i, wgmma_m64n64k16_f32_bf16)
    pipeline(t_o, stages=STAGES, lag=1)
}
"""


@pytest.mark.parametrize("stages", [3, 4, 6])
def test_products_ahead_of_which_copies_go_are_counted_one_by_one(stages: int) -> None:
    function = parse(RING.replace("STAGES", str(stages)))["f"]
    compiled = lower(function, "sm_90a", {"k": 40}, schedule=function.schedules[0])
    (kernel,) = k.kernels(compiled.plan.steps)
    counted = (walk_of(kernel, {}, resolve("sm_90a").coalescing, literal=each).run().products for each in (False, True))
    one, other = counted
    assert one == other and one
