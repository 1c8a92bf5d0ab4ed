"""Programs with nothing but `par` and `seq`, and what to try them with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from tests.lowering.emulated import results, run_plan

from texpr.affine.expr import Sym
from texpr.cli.arrays import make_arrays
from texpr.driver import Compiled, lower, parse
from texpr.interp import run as interpret
from texpr.ir.kernel import kernels
from texpr.ir.program import Function
from texpr.ir.program.selection import AUTO

Sizes = Mapping[str, int]

MATMUL = """
fn matmul(A: f32[M, K], B: f32[K, N]): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| {
        new acc: f32 = 0.0
        seq K |k| reduce(acc) { acc += A[i, k] * B[k, j] }
        C[i, j] = acc
    } }
    return C
}
"""

IN_ORDER = """
fn product(A: TYPE[M, K], B: TYPE[K, N], inout C: TYPE[M, N]) {
    par M |i| { par N |j| { seq K |k| { C[i, j] += A[i, k] * B[k, j] } } }
}
"""

OUTSIDE = """
fn outside(A: f32[M, K], B: f32[K, N]): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| { C[i, j] = 0.0 } }
    par M |r| { seq K |k| { par N |c| { C[r, c] += A[r, k] * B[k, c] } } }
    return C
}
"""

CONV = """
fn conv(X: f32[H, W], K: f32[3, 3]): f32[H, W] {
    let Z = pad(X, (1, 1), (1, 1), 0.0)
    new Y: f32[H, W]
    par H |p| { par W |q| {
        Y[p, q] = 0.0
        seq 3 |r| reduce(Y) { seq 3 |s| reduce(Y) { Y[p, q] += Z[p + r, q + s] * K[r, s] } }
    } }
    return Y
}
"""

VALID = """
fn valid(X: f32[H, W], K: f32[3, 3]): f32[H - 2, W - 2]
    where H >= 2, W >= 2
{
    new Y: f32[H - 2, W - 2]
    par H - 2 |p| { par W - 2 |q| {
        Y[p, q] = 0.0
        seq 3 |r| { seq 3 |s| { Y[p, q] += X[p + r, q + s] * K[r, s] } }
    } }
    return Y
}
"""

JACOBI = """
fn jacobi(A: f32[H, W], const T: i32 = 2): f32[H, W] {
    new now: f32[H, W]
    new next: f32[H, W]
    par H |i| { par W |j| { now[i, j] = A[i, j]  next[i, j] = A[i, j] } }
    seq T |t| {
        par H - 2 |i| { par W - 2 |j| {
            next[i + 1, j + 1] = 0.25 * (now[i, j + 1] + now[i + 2, j + 1] + now[i + 1, j] + now[i + 1, j + 2])
        } }
        par H - 2 |i| { par W - 2 |j| {
            now[i + 1, j + 1] = 0.25 * (next[i, j + 1] + next[i + 2, j + 1] + next[i + 1, j] + next[i + 1, j + 2])
        } }
    }
    return now
}
"""

SUM_IN_ORDER = """
fn layers(X: f32[H, W, C], K: f32[3, 3, C, F]): f32[H - 2, W - 2, F] where H >= 2, W >= 2 {
    new Y: f32[H - 2, W - 2, F]
    par H - 2 |p| { par W - 2 |q| { par F |f| {
        Y[p, q, f] = 0.0
        seq 3 |r| { seq 3 |s| { seq C |c| { Y[p, q, f] += X[p + r, q + s, c] * K[r, s, c, f] } } }
    } } }
    return Y
}
"""

MATVEC = """
fn matvec(A: f32[M, K], x: f32[K]): f32[M] {
    new y: f32[M]
    par M |i| { y[i] = 0.0  seq K |k| reduce(y) { y[i] += A[i, k] * x[k] } }
    return y
}
"""

BATCHED = """
fn batched(A: f32[B, M, K], W: f32[B, K, N]): f32[B, M, N] {
    new C: f32[B, M, N]
    par B |b| { par M |i| { par N |j| {
        new acc: f32 = 0.0
        seq K |k| reduce(acc) { acc += A[b, i, k] * W[b, k, j] }
        C[b, i, j] = acc
    } } }
    return C
}
"""

PAIRS = """
fn forces(x: f32[n]): f32[n] {
    new f: f32[n]
    par n |i| {
        new total: f32 = 0.0
        seq n |j| reduce(total) { total += x[j] * (x[j] - x[i]) }
        f[i] = total
    }
    return f
}
"""


@cache
def function(text: str) -> Function:
    """The only function of a text."""
    (found,) = parse(text).functions
    return found


@cache
def built(text: str, fixed: tuple[tuple[str, int], ...] = (), target: str = "sm_90a") -> Compiled:
    """The function by its automatic schedule."""
    return lower(function(text), target, dict(fixed), schedule=AUTO)


def arrays_of(found: Function, sizes: Sizes) -> dict[str, np.ndarray]:
    """Small integers for every parameter."""
    made, _ = make_arrays(found, {p.name: "random" for p in found.params}, sizes, seed=1)
    return made


def agrees(
    text: str, sizes: Sizes, seed: int | None = None, *, fix: bool = False, target: str = "sm_90a", tiny: bool = False
) -> None:
    """The emulated code of the automatic schedule gives what the interpreter gives, to the bit, and nothing goes wrong."""
    compiled = built(text, tuple(sizes.items()) if fix else (), target)
    assert tiny or compiled.schedule is not None, "of known sizes that are tiny nothing need be tiled"
    arrays = arrays_of(function(text), sizes)
    given = {} if fix else dict(sizes)
    ran = run_plan(compiled.function, compiled.plan, arrays, given, seed=seed)
    assert ran.reports == []
    meant = interpret(function(text), arrays, sizes)
    found = results(compiled.function, ran)
    assert meant.keys() == found.keys()
    for name, value in meant.items():
        assert np.array_equal(np.asarray(value), np.asarray(found[name])), (name, sizes, seed)


def blocks(compiled: Compiled, sizes: Sizes) -> list[int]:
    """Blocks of each kernel."""
    values = {Sym(name): size for name, size in sizes.items()}
    return [
        int(np.prod([a.extent.evaluate(values) for a in e.axes if a.level.value == "grid"]))
        for e in kernels(compiled.plan.steps)
    ]
