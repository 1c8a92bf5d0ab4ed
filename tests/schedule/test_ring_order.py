"""Rings of buffers that a user names: what fills them must come before all else that an iteration does with them."""

from __future__ import annotations

import numpy as np
import pytest

import texpr
from texpr.ir.program import Function
from texpr.support.diagnostic import TexprError

TEXT = """
fn f(x: i32[n, 8], inout t: i32[n, 8]): i32[n, 8] {{
    new y: i32[n, 8]
    seq n |k| {{
        new s: i32[8]
        {body}
    }}
    return y
}}
schedule f {{ pipeline(k, s, stages=3) }}
"""
FILLED_AGAIN = """
        par 8 |a| {{ s[a] = x[k, a] }}
        par 8 |b| {{ y[k, b] = s[7 - b] }}
        par 8 |c| {{ s[c] = 2 * x[k, c] }}
        par 8 |d| {{ y[k, d] += s[d] }}"""
WRITTEN_BEFORE = """
        par 8 |a| {{ t[k, a] = x[k, a] }}
        par 8 |b| {{ s[b] = t[k, 7 - b] }}
        par 8 |c| {{ y[k, c] = s[c] }}"""
IN_ORDER = """
        par 8 |a| {{ s[a] = x[k, a] }}
        if k % 2 == 0 {{ par 8 |b| {{ s[b] = x[k, 7 - b] }} }}
        par 8 |c| {{ y[k, c] = s[7 - c] + t[k, c] }}"""


def program(body: str) -> Function:
    return texpr.parse(TEXT.format(body=body.format()))["f"]


@pytest.mark.parametrize("body", [FILLED_AGAIN, WRITTEN_BEFORE])
def test_what_depends_on_the_iteration_itself_is_refused(body: str) -> None:
    with pytest.raises(TexprError) as refused:
        texpr.compile(program(body), target="sm_90a", emulate=True)
    (found,) = refused.value.diagnostics
    assert found.code == "E0906" and found.help == "leave it out" and found.fix is not None


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_fills_in_order_are_taken(n: int) -> None:
    kernel = texpr.compile(program(IN_ORDER), target="sm_90a", emulate=True)
    numbers = np.random.default_rng(n)
    x, t = numbers.integers(-99, 99, (n, 8)).astype(np.int32), numbers.integers(-99, 99, (n, 8)).astype(np.int32)
    want = x[:, ::-1] + t
    want[::2] = x[::2] + t[::2]
    np.testing.assert_array_equal(kernel(x, t), want)
