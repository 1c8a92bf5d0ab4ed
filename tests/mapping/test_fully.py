"""`fully par`: each iteration is a thread, consecutive ones are consecutive lanes; what cannot run at once is refused."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.emulated import results, run_plan

from texpr import driver
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.isa.levels import Level
from texpr.proof.search import proved
from texpr.support.diagnostic import TexprError


def rows(width: int, marks: str = "") -> str:
    return f"""
fn f(x: f32[n, {width}]): f32[n, {width}] {{
    new y: f32[n, {width}]
    par n |r| {{
        new s: f32[{width}]
        fully par {width} |i| {marks} {{ s[i] = x[r, i] }}
        fully par {width} |i| {marks} {{ y[r, i] = s[{width - 1} - i] }}
    }}
    return y
}}"""


def alone(width: int, marks: str = "") -> str:
    return f"""
fn f(x: f32[{width}]): f32[{width}] {{
    new y: f32[{width}]
    fully par {width} |i| {marks} {{ y[i] = x[i] }}
    return y
}}"""


def summed(width: int) -> str:
    return f"""
fn f(x: f32[n, {width}]): f32[n] {{
    new y: f32[n]
    par n |r| {{
        y[r] = 0.0
        fully par {width} |i| reduce(y) {{ y[r] += x[r, i] }}
    }}
    return y
}}"""


MIXED = """
fn f(x: f32[n, 96]): f32[n, 96] {
    new y: f32[n, 96]
    par n |r| {
        new s: f32[96]
        par 96 |j| { s[j] = x[r, j] + 1.0 }
        seq 3 |t| { fully par 32 |i| #align(32) { s[32 * t + i] = s[32 * t + i] * 2.0 } }
        par 4 |w| #block { fully par 24 |i| { par 1 |u| { y[r, 24 * w + i] = s[95 - 24 * w - i] } } }
    }
    return y
}"""

TEXTS = [
    alone(512), alone(1024), alone(32, "#align(32) #block"), alone(48, "#align(16)"), rows(512), rows(32, "#align(32) #block"),
    rows(100), summed(64), MIXED,
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_all_of_it_runs_at_once(text: str, target: str) -> None:
    made = driver.lower(parse(text).functions[0], target)
    assert proved(made.function, made.plan).counts["refused"] == 0
    widths = [s.extent.constant for s in ir.walk(made.function.body) if isinstance(s, ir.Par) and s.fully]
    assert all(kernel.threads >= max(widths) for kernel in k.kernels(made.plan.steps))
    sizes = {"n": 3} if made.plan.sizes else {}
    shape = [e.evaluate(dict.fromkeys(made.plan.sizes, 3)) for e in made.function.params[0].shape]
    given = {"x": np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32)}
    want = interpret(made.function, given, sizes)
    for seed in (None, 0, 1):
        run = run_plan(made.function, made.plan, given, sizes, seed, made.source)
        assert run.reports == []
        np.testing.assert_array_equal(results(made.function, run)["y"], want["y"])


@pytest.mark.parametrize("text", [alone(512), alone(1024), alone(48), rows(512), rows(100)])
def test_an_iteration_is_the_thread_of_its_number(text: str) -> None:
    """No loop over iterations is left, and the index is the number of the thread."""
    made = driver.lower(parse(text).functions[0], "sm_90a")
    (kernel,) = k.kernels(made.plan.steps)
    assert not [s for s in k.walk(kernel.body) if isinstance(s, k.For)]
    (axis,) = (axis for axis in kernel.axes if axis.level is Level.BLOCK)
    named = [s for s in k.walk(kernel.body) if isinstance(s, k.Declare) and s.sym.base == "i"]
    assert named
    assert all(isinstance(s.value, k.Index) and s.value.expr.as_sym == axis.sym for s in named)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (alone(1025), "runs 1025 iterations at once, and a block of sm_90a has 1024 threads at most"),
        (rows(4096), "runs 4096 iterations at once"),
        (alone(9, "#cluster"), "a cluster of sm_90a has 8 blocks at most"),
        (alone(32, "#grid"), "blocks of a grid need not run at once"),
    ],
)
def test_what_cannot_run_at_once_is_refused(text: str, says: str) -> None:
    with pytest.raises(TexprError) as refused:
        driver.lower(parse(text).functions[0], "sm_90a")
    (found,) = refused.value.diagnostics
    assert found.code == "E0910"
    assert says in found.message
    assert found.help


def test_an_alignment_is_of_lanes() -> None:
    with pytest.raises(TexprError, match="no `fully par`"):
        driver.lower(parse(alone(32, "#align(32)").replace("fully ", "")).functions[0], "sm_90a")
