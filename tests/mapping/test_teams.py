"""Teams of threads for rows, and turns that all threads of one have: sizes of every kind, emulated in adversarial orders."""

from __future__ import annotations

import re

import numpy as np
import pytest

import texpr
from texpr.driver import lower
from texpr.interp import run as interpret
from texpr.ir import kernel as k

ROWS = """fn f(x: f32[m, n]): f32[m, n] {
    new y: f32[m, n]
    par m |i| {
        new most: f32
        new total: f32
        most = -inf
        total = 0.0
        par n |j| reduce(most) { most max= x[i, j] }
        par n |j| reduce(total) { total += most - x[i, j] }
        par n |j| { y[i, j] = total + x[i, j] }
    }
    return y
}
"""

MAP = """fn f(x: f32[m, n]): f32[m, n] {
    new y: f32[m, n]
    par m |i| {
        new z: f32[n]
        par n |j| { z[j] = x[i, j] }
        par n |j| { y[i, j] = z[n - 1 - j] }
    }
    return y
}
"""


def threads(text: str, **sizes: int) -> tuple[int, int]:
    """Threads of a block, and of a team."""
    plan = lower(texpr.parse(text)["f"], "sm_90a", sizes).plan
    (kernel,) = k.kernels(plan.steps)
    rows = re.search(r"int const i = (\d+) \* i_block", texpr.driver.lower(texpr.parse(text)["f"], "sm_90a", sizes).source)
    return kernel.threads, kernel.threads // (int(rows[1]) if rows else 1)


@pytest.mark.parametrize(
    ("m", "n", "wanted"),
    [
        (1 << 18, 48, (128, 32)),
        (1 << 18, 128, (128, 32)),  # four iterations a lane
        (1 << 18, 129, (128, 32)),
        (1 << 18, 256, (64, 64)),
        (1 << 18, 512, (128, 128)),
        (1 << 18, 4096, (256, 256)),
        (1 << 12, 128, (64, 64)),  # 2^18 threads are left
        (64, 128, (128, 128)),  # rows that do not fill a machine
        (1, 1000, (256, 256)),
    ],
)
def test_a_team_has_some_iterations_a_thread_where_rows_fill_the_machine(m: int, n: int, wanted: tuple[int, int]) -> None:
    assert threads(ROWS, m=m, n=n) == wanted


def test_open_sizes_and_rows_without_sums_are_as_wide_as_they_can_be() -> None:
    assert threads(ROWS)[0] == 256
    assert threads(ROWS, n=128) == (128, 32)
    assert threads(MAP, m=1 << 18, n=128)[0] == 128


@pytest.mark.parametrize("n", [1, 31, 32, 64, 96, 128, 130, 256, 1000, 1024, 2048, 2049])
def test_counted_turns_are_the_iterations(n: int) -> None:
    function = texpr.parse(ROWS)["f"]
    source = lower(function, "sm_90a", {"n": n}).source
    assert (re.search(r"< \d; \+\+turn", source) is not None) == (n % 32 == 0 and n >= 64)
    kernel = texpr.compile(function, target="sm_90a", sizes={"n": n}, emulate=True, schedule="none")
    for m in (0, 1, 5):
        x = np.random.default_rng(n).integers(-4, 9, (m, n)).astype(np.float32)
        np.testing.assert_array_equal(kernel(x), interpret(function, {"x": x})["y"])
