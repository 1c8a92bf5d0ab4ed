"""Loops that are nested have a level each: no mapping gives two of them the same digit of a thread's number."""

from __future__ import annotations

import pytest

from texpr import driver
from texpr.ir import program as ir
from texpr.ir.program.marked import marked
from texpr.ir.program.marks import Bind
from texpr.isa.registry import TARGETS
from texpr.mapping.bound import bound_bands
from texpr.mapping.fully import at_once
from texpr.support.diagnostic import TexprError

LANES = """
fn lanes(x: i32[8, 32]): i32[8, 32] {
    new y: i32[8, 32]
    par 8 |i| { fully par 32 |l| { y[i, l] = x[i, l] } }
    return y
}
"""


@pytest.mark.parametrize(("level", "bands"), [("block.x", None), ("block.y", 1)])
def test_a_loop_around_lanes_has_another_level(level: str, bands: int | None) -> None:
    (function,) = driver.parse(LANES).functions
    (loop,) = (s for s in at_once(function, TARGETS["sm_90a"]).body if isinstance(s, ir.Par))
    body = (marked(loop, Bind(level, span=loop.span)),)
    if bands is None:
        with pytest.raises(TexprError, match="`l` and `i` are nested, and both have"):
            list(bound_bands(body))
    else:
        assert len(list(bound_bands(body))) == bands
