"""Memory of more sizes than 128 bits can multiply."""

from __future__ import annotations

import numpy as np
import pytest

from texpr.delivery import compile as built
from texpr.driver import parse
from texpr.runtime import Kernel

MANY = """
fn many(x: f32[a, b, c, d, e]): f32[a, b, c, d] {
    new t: f32[a, b, c, d, e]
    par a |i| { par b |j| { par c |k| { par d |l| { par e |m| { t[i, j, k, l, m] = 2.0 * x[i, j, k, l, m] } } } } }
    new y: f32[a, b, c, d]
    par a |i| { par b |j| { par c |k| { par d |l| {
        y[i, j, k, l] = 0.0
        seq e |m| { y[i, j, k, l] += t[i, j, k, l, e - 1 - m] }
    } } } }
    return y
}"""


@pytest.fixture(scope="module", params=["cpu", "emulator"])
def many(request: pytest.FixtureRequest) -> Kernel:
    (function,) = parse(MANY).functions
    return built(function) if request.param == "cpu" else built(function, "sm_90a", emulate=True)


def test_sums_are_right(many: Kernel) -> None:
    x = np.arange(2 * 3 * 1 * 2 * 5, dtype=np.float32).reshape(2, 3, 1, 2, 5)
    assert np.array_equal(many(x), 2 * x.sum(axis=-1))


@pytest.mark.parametrize("shape", [(2, 3, 1, 2, 0), (0, 3, 1, 2, 5), (2**20, 2**20, 2**10, 0, 2**9)])
def test_nothing_is_nothing(many: Kernel, shape: tuple[int, ...]) -> None:
    result = many(np.zeros(shape, np.float32))
    assert result.shape == shape[:4] and not result.any()
