"""Code for the CPU against NumPy and against Numba (parallel, fastmath), in one run; products of matrices against NumPy's BLAS.

The ratio is the time of the better peer over ours, the median of all rounds: 1 is as fast, more is faster. `again` is that
ratio with our own kernel for a peer, measured once more: by what it differs from 1 is noise. `--json FILE` keeps the numbers.

Threads of OpenMP are bound to cores (OMP_PROC_BIND=true) unless the environment says otherwise: two that wake on one core stay
there for milliseconds, longer than a short kernel takes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

os.environ.setdefault("OMP_PROC_BIND", "true")  # OpenMP reads it when it is loaded

import ml_dtypes
import numpy as np

import texpr
from common import peers
from common.measure import Row, interleaved, ratio, show
from texpr.support.record import Record

NOISE = 0.03
"""What a ratio may differ from 1 by with no reason: in 9 of 10 runs of sum and jacobi, on two cores that others kept busy, the
same code against itself differed by 0.000 to 0.026. In the tenth it was 0.125: `again` says so in each run."""

EXAMPLES = Path(__file__).parents[1] / "examples"
HALF = 0.5
"""What the product of two f32 matrices of 1024 × 1024 must reach of BLAS."""

PRODUCT = """
fn product(LEFT, RIGHT): TYPE[M, N] {
    new C: TYPE[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += A * B }
    } }
    return C
}
"""
BATCHED = """
fn batched(X: f32[B, M, K], Y: f32[B, K, N]): f32[B, M, N] {
    new Z: f32[B, M, N]
    par B |b| { par M |i| { par N |j| {
        Z[b, i, j] = 0.0
        seq K |k| reduce(Z) { Z[b, i, j] += X[b, i, k] * Y[b, k, j] }
    } } }
    return Z
}
"""

LAYERS = """
fn layers(X: f32[B, K], W: f32[K, M], b: f32[M], V: f32[M, N]): f32[B, N] {
    new Y: f32[B, N]
    par B |i| {
        new h: f32[M]
        par M |j| {
            h[j] = b[j]
            par K |k| reduce(h) { h[j] += X[i, k] * W[k, j] }
            h[j] = max(h[j], 0.0)
        }
        par N |j| {
            Y[i, j] = 0.0
            par M |k| reduce(Y) { Y[i, j] += h[k] * V[k, j] }
        }
    }
    return Y
}
"""
NORMED = """
fn normed(X: f32[B, K], g: f32[K], W: f32[N, K]): f32[B, N] where K >= 1 {
    new Y: f32[B, N]
    par B |i| {
        new s: f32 = 0.0
        par K |k| reduce(s) { s += X[i, k] * X[i, k] }
        let r = 1.0 / sqrt(s / f32(K) + 1e-5)
        par N |j| {
            Y[i, j] = 0.0
            par K |k| reduce(Y) { Y[i, j] += X[i, k] * r * g[k] * W[j, k] }
        }
    }
    return Y
}
"""
ATTENTION = """
fn attention(Q: f32[H, L, D], K: f32[H, S, D], V: f32[H, S, D], scale: f32): f32[H, L, D] {
    new O: f32[H, L, D]
    par H |h| { par L |i| {
        new p: f32[S]
        par S |j| {
            p[j] = 0.0
            par D |d| reduce(p) { p[j] += Q[h, i, d] * K[h, j, d] }
        }
        new top: f32 = -inf
        par S |j| reduce(top) { top max= p[j] }
        new total: f32 = 0.0
        par S |j| reduce(total) {
            p[j] = exp((p[j] - top) * scale)
            total += p[j]
        }
        par D |e| {
            new o: f32 = 0.0
            par S |j| reduce(o) { o += p[j] * V[h, j, e] }
            O[h, i, e] = o / total
        }
    } }
    return O
}
"""


class Case(Record, dict=True):
    """One program at one size. `program`: a file of the examples, or a text. `close`: how far from NumPy's a result may be.

    `least`: the ratio below which the run fails; 0 for none, but that of what memory bounds.
    """

    name: str
    program: str
    make: Callable[[np.random.Generator], tuple[np.ndarray | float, ...]]
    numpy: Callable[..., np.ndarray]
    numba: Callable[..., np.ndarray] | None
    bound: str
    close: float = 1e-5
    least: float = 0.0


def random(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    """What makes an array of that shape."""
    return lambda numbers: numbers.random(shape, dtype=np.float32)


def product(
    name: str, sizes: tuple[int, int, int], form: str = "NN", dtype: str = "f32", given: str = "", least: float = 0.0
) -> Case:
    """M × N × K = `sizes`. `form`: T where a factor is transposed, else N. `given`: the type of both, if not the result's."""
    m, n, k = sizes
    given = given or dtype
    left, a = (f"A: {given}[M, K]", "A[i, k]") if form[0] == "N" else (f"A: {given}[K, M]", "A[k, i]")
    right, b = (f"B: {given}[K, N]", "B[k, j]") if form[1] == "N" else (f"B: {given}[N, K]", "B[j, k]")
    text = PRODUCT.replace("A * B", f"{a} * {b}").replace("LEFT, RIGHT", f"{left}, {right}").replace("TYPE", dtype)
    types = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}
    wide = types[dtype]

    def make(g: np.random.Generator) -> tuple[np.ndarray, ...]:
        shapes = ((m, k) if form[0] == "N" else (k, m), (k, n) if form[1] == "N" else (n, k))
        return tuple(g.random(shape, np.float32).astype(types[given]) for shape in shapes)

    def numpy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x, y = x.astype(wide, copy=False), y.astype(wide, copy=False)
        return np.matmul(x if form[0] == "N" else x.T, y if form[1] == "N" else y.T)

    return Case(name, text, make, numpy, None, "arithmetic", 1e-3, least)


LARGE, SIDE = 1 << 26, 4096

CASES = (
    Case("saxpy", "saxpy", lambda g: (2.0, random(LARGE)(g), random(LARGE)(g)), peers.saxpy, peers.saxpy_numba, "memory"),
    Case("sum", "sum", lambda g: (random(LARGE)(g),), peers.total, peers.total_numba, "memory", 1e-3),
    Case("transpose", "transpose", lambda g: (random(SIDE, SIDE)(g),), peers.transpose, peers.transpose_numba, "memory"),
    Case("jacobi", "jacobi", lambda g: (random(SIDE, SIDE)(g),), peers.jacobi, peers.jacobi_numba, "memory"),
    Case("softmax", "softmax", lambda g: (random(SIDE, SIDE)(g),), peers.softmax, peers.softmax_numba, "memory", 1e-4),
    Case(
        "layernorm", "layernorm", lambda g: (random(SIDE, SIDE)(g), random(SIDE)(g), random(SIDE)(g), 1e-5),
        peers.layernorm, peers.layernorm_numba, "memory", 1e-3,
    ),
    Case(
        "gather", "gather", lambda g: (random(50000, 256)(g), g.integers(0, 50000, 65536).astype(np.int32)),
        peers.gather, peers.gather_numba, "memory",
    ),
    Case(
        "permute5d", "permute5d", lambda g: (g.random((16, 32, 24, 32, 40), dtype=np.float32).astype(np.float16),),
        peers.permute5d, None, "memory",
    ),
    product("matmul", (1024, 1024, 1024), least=HALF),
    product("matmul TN", (1024, 1024, 1024), "TN"),
    product("matmul NT", (1024, 1024, 1024), "NT"),
    product("matmul TT", (1024, 1024, 1024), "TT"),
    product("matmul f64", (768, 768, 768), dtype="f64"),
    product("matmul of f16", (512, 512, 512), given="f16"),
    product("matmul of bf16", (1024, 1024, 1024), given="bf16"),
    product("matmul of bf16, flat", (4096, 4096, 512), given="bf16"),
    product("matmul odd", (1000, 333, 777)),
    product("matmul prime", (509, 509, 509)),
    product("matmul tall", (20000, 16, 256)),
    product("matmul flat rows", (16, 20000, 256)),
    product("matmul deep", (384, 384, 4096)),
    Case("batched", BATCHED, lambda g: (random(16, 200, 128)(g), random(16, 128, 200)(g)), np.matmul, None, "arithmetic", 1e-3),
    Case(
        "layers", LAYERS, lambda g: (random(512, 512)(g), random(512, 1024)(g), random(1024)(g), random(1024, 512)(g)),
        peers.layers, None, "arithmetic", 1e-3,
    ),
    Case(
        "normed", NORMED, lambda g: (random(512, 768)(g), random(768)(g), random(768, 768)(g)),
        peers.normed, None, "arithmetic", 1e-3,
    ),
    Case(
        "attention", ATTENTION, lambda g: (random(8, 512, 64)(g), random(8, 512, 64)(g), random(8, 512, 64)(g), 0.125),
        peers.attention, None, "arithmetic", 1e-3,
    ),
)  # fmt: skip


def measure(case: Case, rounds: int) -> Row:
    """Milliseconds of each, and the ratio of the better peer's time to ours."""
    program = texpr.parse(case.program) if "\n" in case.program else texpr.load(EXAMPLES / f"{case.program}.te")
    kernel = texpr.compile(program.functions[0])
    given = case.make(np.random.default_rng(0))
    want, got = case.numpy(*given), kernel(*given)
    np.testing.assert_allclose(np.asarray(got), want, rtol=case.close, atol=case.close)
    out = np.empty_like(want)
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: kernel(*given, out=out),
        "numpy": lambda: case.numpy(*given),
        "again": lambda: kernel(*given, out=out),
    }
    if case.numba is not None:
        numba = case.numba
        np.testing.assert_allclose(numba(*given), want, rtol=case.close, atol=case.close)
        calls["numba"] = lambda: numba(*given)
    times = interleaved(calls, rounds=rounds)
    ratios = {name: ratio(found, times["ours"]) for name, found in times.items() if name != "ours"}
    shown = {name: 1e3 * median(times[name]) if name in times else "" for name in ("ours", "numpy", "numba")}
    return {
        "program": case.name,
        "bound": case.bound,
        **{f"{n} ms": v for n, v in shown.items()},
        "again": ratios.pop("again"),
        "ratio": min(ratios.values()),
    }


def main() -> int:
    """Print the table; exit 1 where a memory-bound program is slower than the better peer by more than that run's noise, or
    where a ratio is below what the case asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--rounds", type=int, default=21, help="runs of each, in turn")
    parser.add_argument("--only", default="", help="programs whose names begin so")
    options = parser.parse_args()
    rows = [measure(case, options.rounds) for case in CASES if case.name.startswith(options.only)]
    show("code for the CPU against its peers", rows, options.json)
    least = {case.name: case.least for case in CASES}
    slow = [row for row in rows if row["bound"] == "memory" and float(row["ratio"]) < 1 - _noise(row)]
    slow += [row for row in rows if float(row["ratio"]) < least[str(row["program"])]]
    return 1 if slow else 0


def _noise(row: Row) -> float:
    return max(NOISE, abs(float(row["again"]) - 1))


if __name__ == "__main__":
    sys.exit(main())
