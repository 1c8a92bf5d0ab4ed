"""Blocks of any number of threads, as a schedule may bind: bands beside the one that is bound are shared out over them, too."""

from __future__ import annotations

import numpy as np
import pytest

import texpr

TEXT = """
fn turn(x: i32[n, 96]): (i32[n, 96], i32[n, 96]) {{
    new y: i32[n, 96]
    new z: i32[n, 96]
    par n |i| {{
        par 96 |j| {{ y[i, j] = 2 * x[i, j] }}
        par 96 |k| {{ z[i, k] = x[i, 95 - k] }}
    }}
    return (y, z)
}}
schedule turn {{
    split(j, {threads}) -> (jo, ji)
    bind(i, grid.x)
    bind(ji, block.x)
}}
"""


@pytest.mark.parametrize("threads", [1, 2, 5, 16, 31, 32, 48, 64, 96])
def test_every_thread_number(threads: int) -> None:
    function = texpr.parse(TEXT.format(threads=threads))["turn"]
    kernel = texpr.compile(function, target="sm_90a", emulate=True)
    x = np.random.default_rng(threads).integers(-99, 99, (3, 96)).astype(np.int32)
    y, z = kernel(x)
    np.testing.assert_array_equal(y, 2 * x)
    np.testing.assert_array_equal(z, x[:, ::-1])
