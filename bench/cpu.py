"""Code for the CPU against NumPy and against Numba (parallel, fastmath), in one run; matmul against NumPy's BLAS.

The ratio is the time of the better peer over ours, the median of all rounds: 1 is as fast, more is faster. `again` is that
ratio with our own kernel for a peer, measured once more: by what it differs from 1 is noise. `--json FILE` keeps the numbers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

import texpr
from common import peers
from common.measure import Row, interleaved, ratio, show

NOISE = 0.03
"""What a ratio may differ from 1 by with no reason: in 9 of 10 runs of sum and jacobi, on two cores that others kept busy, the
same code against itself differed by 0.000 to 0.026. In the tenth it was 0.125: `again` says so in each run."""

EXAMPLES = Path(__file__).parents[1] / "examples"
MATMUL = """
fn matmul(A: f32[M, K], B: f32[K, N]): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
    } }
    return C
}
"""


@dataclass(frozen=True)
class Case:
    """One program at one size. `close`: how far a result may be from NumPy's, relatively."""

    name: str
    program: str
    make: Callable[[np.random.Generator], tuple[np.ndarray | float, ...]]
    numpy: Callable[..., np.ndarray]
    numba: Callable[..., np.ndarray] | None
    bound: str
    close: float = 1e-5


def random(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    """What makes an array of that shape."""
    return lambda numbers: numbers.random(shape, dtype=np.float32)


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
    Case("matmul", "", lambda g: (random(1024, 1024)(g), random(1024, 1024)(g)), peers.matmul, None, "arithmetic", 1e-3),
)  # fmt: skip


def measure(case: Case, rounds: int) -> Row:
    """Milliseconds of each, and the ratio of the better peer's time to ours."""
    program = texpr.load(EXAMPLES / f"{case.program}.te") if case.program else texpr.parse(MATMUL)
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
    """Print the table; exit 1 where a memory-bound program is slower than the better peer by more than that run's noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--rounds", type=int, default=21, help="runs of each, in turn")
    parser.add_argument("--only", help="one program")
    options = parser.parse_args()
    rows = [measure(case, options.rounds) for case in CASES if options.only in (None, case.name)]
    show("code for the CPU against its peers", rows, options.json)
    slow = [row for row in rows if row["bound"] == "memory" and float(row["ratio"]) < 1 - _noise(row)]
    return 1 if slow else 0


def _noise(row: Row) -> float:
    return max(NOISE, abs(float(row["again"]) - 1))


if __name__ == "__main__":
    sys.exit(main())
