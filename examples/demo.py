"""The demo of `make run`: one program, checked, compiled, run on the CPU and as emulated CUDA, and compared with NumPy.

The program is `matmul_flat.te`: three nested loops over flat arrays.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import texpr
from references import Array
from texpr import driver
from texpr.emulator import IN_ORDER, LOCKSTEP
from texpr.runtime import Kernel

SOURCE = Path(__file__).with_name("matmul_flat.te")
M, N, K = 200, 150, 100
ORDERS = (IN_ORDER, LOCKSTEP, 0, 1, 2, 3)


class Step:
    """One line of the demo: what is done, then how it went and how long it took."""

    def __init__(self, what: str):
        print(f"  {what:<48}", end="", flush=True)
        self.start = time.perf_counter()

    def done(self, how: str) -> None:
        """Close the line."""
        print(f"{how}  ({time.perf_counter() - self.start:.2f} s)")


def agrees(kernel: Kernel, a: Array, b: Array, c: Array, expected: Array) -> bool:
    """Whether `kernel` adds to `c` what NumPy gives, to the bit."""
    total = c.copy()
    kernel(a, b, total, M=M, N=N, K=K)
    return np.array_equal(total, expected)


def main() -> int:
    """The demo; 0 if everything agrees."""
    print(f"\n{SOURCE.read_text(encoding='utf-8')}")
    generator = np.random.default_rng(0)
    a, b, c = (generator.integers(-8, 9, size).astype(np.float32) for size in (M * K, K * N, M * N))
    expected = c + (a.reshape(M, K) @ b.reshape(K, N)).ravel()

    step = Step("check: bounds, independence, for all sizes")
    module = texpr.load(SOURCE)
    found = driver.check(module)
    step.done("legal" if not found else f"{len(found)} errors")

    step = Step("compile for the CPU: C++ with OpenMP and SIMD")
    on_cpu = texpr.compile(module["matmul"], target="cpu")
    step.done("built")

    step = Step("compile for sm_90a: CUDA, for the emulator")
    emulated = texpr.compile(module["matmul"], target="sm_90a", emulate=True)
    step.done("built")

    results: list[bool] = []
    step = Step(f"run on the CPU, {M} × {K} × {N}")
    results.append(agrees(on_cpu, a, b, c, expected))
    step.done("equal to NumPy" if results[-1] else "DIFFERS from NumPy")
    for order in ORDERS:
        emulated.seed = order
        name = {IN_ORDER: "threads in order", LOCKSTEP: "threads in lockstep"}.get(order, f"random order {order}")
        step = Step(f"run the CUDA, {name}")
        results.append(agrees(emulated, a, b, c, expected))
        step.done("equal to NumPy" if results[-1] else "DIFFERS from NumPy")

    good = not found and all(results)
    print(f"\n{'All equal, to the bit.' if good else 'Something is wrong.'} Next:")
    print(f"  .venv/bin/texpr explain examples/{SOURCE.name}     what was decided, and why")
    print("  .venv/bin/texpr --help                           everything else\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
