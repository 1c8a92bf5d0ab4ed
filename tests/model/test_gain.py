"""Whether a second plan is worth its code: instructions of a block from between, which stands for all."""

from __future__ import annotations

import pytest

from texpr.driver import Compiled, lower, parse
from texpr.ir import kernel as k
from texpr.ir.kernel.point import SIZE
from texpr.model.gain import SHARE, saves
from texpr.model.plan.walk import walk_of

TEXTS = {
    "a transpose": "fn f(A: f32[m, n]): f32[n, m] { new B: f32[n, m] par n, m |j, i| { B[j, i] = A[i, j] } return B }",
    "a border": """fn f(x: f32[m, n]): f32[m, n] {
    new y: f32[m, n]
    par m, n |i, j| { if j > 0 { y[i, j] = x[i, j - 1] } else { y[i, j] = 0.0 } }
    return y
}""",
    "a sum": "fn f(x: f32[n]): f32 { new s: f32 s = 0.0 par n |i| reduce(s) { s += x[i] } return s }",
}


def made(text: str) -> Compiled:
    return lower(parse(text)["f"], "sm_90a", schedule="auto")


@pytest.mark.parametrize("name", TEXTS)
def test_a_block_tells_of_all(name: str) -> None:
    """Within a tenth, as blocks at a border have other work."""
    compiled = made(TEXTS[name])
    for kernel in k.kernels(compiled.plan.steps):
        sizes = {sym: SIZE for sym in kernel.sizes}
        whole, part = (walk_of(kernel, sizes, compiled.target.coalescing, roughly=rough).run() for rough in (False, True))
        assert part.sums["issued"] == pytest.approx(whole.sums["issued"], rel=0.1)


def test_what_saves() -> None:
    compiled = made(TEXTS["a transpose"])
    plan, wide = compiled.plan, compiled.plan.wide
    assert wide is not None and saves(wide, plan, compiled.target)
    assert not saves(plan, plan, compiled.target) and not saves(plan, wide, compiled.target) and SHARE < 1
