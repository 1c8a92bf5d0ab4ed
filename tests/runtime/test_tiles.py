"""Plans that copy tiles, through their real launcher: maps are encoded at each call, what no map can be of is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.backends.tile_texts import TRANSPOSE
from tests.backends.tiles import TILED
from tests.lowering.tiled import COPY, copying
from tests.schedule.laid import laid

from texpr import driver
from texpr.backends.c.status import TENSOR_BASE, TENSOR_SIZE, TENSOR_STRIDE
from texpr.ir.kernel.parse import parse_plan
from texpr.runtime import Kernel, load_emulated
from texpr.runtime.memory import aligned_empty
from texpr.support.diagnostic import TexprError
from texpr.toolchain import Toolchain, this_machine

SUM = """fn {}(x: f32[c, 256]): f32[256] {{
    new z: f32[256]
    par 256 |i| {{ z[i] = 0 }}
    seq c |k| {{ par 256 |i| {{ z[i] += x[k, i] }} }}
    return z
}}"""
FUNCTIONS = {
    "transpose": """fn turned(x: f32[m, n]): f32[n, m] {
    new z: f32[n, m]
    par n |j| { par m |i| { z[j, i] = x[i, j] } }
    return z
}""",
    "store": """fn store(x: f32[m, n]): f32[m, n] {
    new z: f32[m, n]
    par m |i| { par n |j| { z[i, j] = x[i, j] + 1 } }
    return z
}""",
    "ring": SUM.format("ring"),
    "large": SUM.format("large"),
}


def build(tools: Toolchain, name: str, text: str | None = None) -> Kernel:
    """The plan of a case, or a text like it, behind the function that it computes."""
    function = driver.parse(FUNCTIONS[name]).functions[0]
    return load_emulated(tools, function, parse_plan(text or TILED[name].text), "sm_90a")


@pytest.fixture(scope="module")
def tools() -> Toolchain:
    return Toolchain(this_machine())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_calls_give_numpys_result(tools: Toolchain, name: str) -> None:
    args = TILED[name].args()
    np.testing.assert_array_equal(build(tools, name)(args["x"]), TILED[name].expected(args))


def test_every_call_has_maps_of_its_own(tools: Toolchain) -> None:
    kernel = build(tools, "transpose")
    for rows, columns in ((1, 4), (33, 64), (45, 52), (0, 4)):
        x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        if rows:
            np.testing.assert_array_equal(kernel(x), x.T)


def test_strides_of_the_call(tools: Toolchain) -> None:
    """Rows that lie apart at run time: what lies between them is neither read as the tensor's, nor written."""
    apart = COPY.replace("A: f32[M, K] align(16)", "A: f32[M, K] stride(lda, 1) align(16)")
    made = laid(apart.replace("K % 4 == 0", "lda % 4 == 0, lda >= K"), copying("fill=zero, swizzle=128B"))
    kernel = load_emulated(tools, made.function, made.plan, "sm_90a")
    for rows, columns, pitch in ((19, 37, 48), (1, 1, 4), (40, 64, 64), (0, 5, 8), (33, 3, 100)):
        room = aligned_empty(np.dtype(np.float32), (rows, pitch), 16)
        room[...] = np.arange(rows * pitch).reshape(rows, pitch) % 1000
        np.testing.assert_array_equal(kernel(room[:, :columns]), room[:, :columns])
    beside = aligned_empty(np.dtype(np.float32), (4, 9), 16)
    assert "lda" in status(kernel, beside[:, :8])


def status(kernel: Kernel, *arrays: Any, **named: Any) -> str:
    with pytest.raises(TexprError) as raised:
        kernel(*arrays, **named)
    return str(raised.value)


def test_what_no_map_can_be_of_is_refused_before_the_launch(tools: Toolchain) -> None:
    x = np.ones((8, 6), np.float32)
    anywhere = TRANSPOSE.replace("    require (n % 4) == 0\n", "").replace("    require m > 0\n    require n > 0\n", "")
    kernel = build(tools, "transpose", anywhere)
    assert TENSOR_STRIDE.text in status(kernel, x)
    wide = build(tools, "transpose", anywhere.replace("strides [4 * n]", "strides [1099511627776 * n]"))
    assert TENSOR_STRIDE.text in status(wide, np.ones((8, 8), np.float32))
    none = build(tools, "transpose", anywhere.replace("sizes [n, m]", "sizes [n, m - 8]"))
    assert TENSOR_SIZE.text in status(none, np.ones((8, 8), np.float32))
    skewed = build(tools, "transpose", anywhere.replace("align 16 sizes", "align 16 from m sizes"))
    assert TENSOR_BASE.text in status(skewed, np.ones((7, 8), np.float32))
