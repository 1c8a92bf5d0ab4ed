"""Elements whose address is past 2³¹: indices are computed in 64 bits wherever 32 do not suffice."""

from __future__ import annotations

import numpy as np
import pytest

import texpr

FAR = """
fn far(inout x: u8[m, n]): u8[4]
    where m >= 1, n >= 4
{
    new y: u8[4]
    par 4 |i| {
        y[i] = x[m - 1, n - 4 + i]
        x[m - 1, n - 4 + i] = 9
    }
    return y
}
"""
ROWS, COLUMNS = 2, 2**30 + 16


@pytest.mark.parametrize("fixed", [{}, {"m": ROWS, "n": COLUMNS}], ids=["open", "fixed"])
@pytest.mark.parametrize("target", ["cpu", pytest.param("sm_90a", marks=pytest.mark.long)])
def test_far_elements(target: str, fixed: dict[str, int]) -> None:
    # Pages that nobody touches take no memory.
    x = np.zeros((ROWS, COLUMNS), np.uint8)
    x[-1, -4:] = 1, 2, 3, 4
    kernel = texpr.compile(texpr.parse(FAR)["far"], target, fixed, emulate=target != "cpu")
    result = kernel(x)
    assert isinstance(result, np.ndarray)
    assert result.tolist() == [1, 2, 3, 4]
    assert x[-1, -5:].tolist() == [0, 9, 9, 9, 9]
    assert not x[0, :64].any()
