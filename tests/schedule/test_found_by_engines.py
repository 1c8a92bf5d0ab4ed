"""What random schedules with engines found, each as its least schedule."""

from __future__ import annotations

import numpy as np
import pytest
from tests.schedule.laid import laid, wrong

from texpr.support.diagnostic import TexprError

TURNED = """
fn turned(x: i32[4, 4] align(16)): i32[4, 4] {
    new y: i32[4, 4]
    par 4 |i| { par 4 |j| { y[j, i] = x[i, j] } }
    return y
}"""
SCALED = """
fn scaled(a: f32, x: f32[n] align(16)): f32[n] {
    new y: f32[n]
    par n |i| { y[i] = a * x[i] }
    return y
}"""


@pytest.mark.parametrize("factor", [4, 8, 16])
def test_a_run_ends_where_the_tensor_does(factor: int) -> None:
    """Its length is a number that is less than the region's; it stored the whole of a row of the tile."""
    words = (
        f"split(i, {factor}) -> (b, t)  split(j, 4) -> (c, u)  reorder(b, c, t, u)\nstage(y, at=c, in=shared, via=bulk) -> ys"
    )
    made = laid(TURNED, words)
    assert wrong(made, {"x": np.arange(16, dtype=np.int32).reshape(4, 4)}, {}, (None, 0)) is None


@pytest.mark.parametrize("via", ["tma", "bulk"])
def test_a_number_is_no_box(via: str) -> None:
    with pytest.raises(TexprError, match="`a` is a single number") as refused:
        laid(SCALED, f"split(i, 4) -> (b, t)  stage(a, at=b, in=shared, via={via}) -> held")
    assert refused.value.diagnostics[0].code == "E0916"
