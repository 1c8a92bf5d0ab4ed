"""Attention as users write it: causal or not, of narrow types, heads of fixed size; proved, and close to NumPy."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.lowering import native
from tests.lowering.emulated import run_plan
from tests.lowering.test_programs import arguments
from tests.proof.plan.verdicts import open_of

from texpr import driver
from texpr.driver import Compiled
from texpr.frontend import parse
from texpr.ir.program import Function
from texpr.ir.program.selection import AUTO
from texpr.proof.search import proved

TEXT = (Path(__file__).parents[2] / "examples" / "attention.te").read_text()
CASES = [(dtype, causal, D) for dtype in ("f32", "bf16", "f16") for causal in (True, False) for D in (32, 64, 128)]


def function_of(dtype: str, causal: bool) -> Function:
    """The example with other inputs."""
    text = TEXT if causal else TEXT.replace("seq i + 1 |j|", "seq L |j|")
    for name in "QKV":
        assert text.count(f"{name}: f32[") == 1
        text = text.replace(f"{name}: f32[", f"{name}: {dtype}[")
    for read in ("Q[h, i, d]", "K[h, j, d]", "V[h, j, d]") if dtype != "f32" else ():
        assert text.count(read) == 1
        text = text.replace(read, f"f32({read})")
    return parse(text).functions[0]


@cache
def made(dtype: str, causal: bool, D: int, target: str) -> Compiled:
    return driver.lower(function_of(dtype, causal), target, {"D": D}, schedule=AUTO)


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize(("dtype", "causal", "D"), CASES)
def test_it_is_proved(dtype: str, causal: bool, D: int, target: str) -> None:
    compiled = made(dtype, causal, D, target)
    assert open_of(proved(compiled.function, compiled.plan)) == []


@pytest.mark.parametrize(("dtype", "causal", "D"), [case for case in CASES if case[2] != 64])
def test_it_is_close_to_numpy(dtype: str, causal: bool, D: int) -> None:
    function, on_cpu, on_gpu = function_of(dtype, causal), made(dtype, causal, D, "cpu"), made(dtype, causal, D, "sm_90a")
    sizes = {"H": 2, "L": 5}
    given = arguments(function, {**sizes, "D": D}, {}) | {"scale": np.array(D**-0.5, np.float32)}
    Q, K, V = (np.asarray(given[name], np.float64) for name in "QKV")
    scores = np.einsum("hid,hjd->hij", Q, K) * D**-0.5
    if causal:
        scores[:, np.triu(np.ones((5, 5), bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = np.einsum("hij,hjd->hid", weights / weights.sum(-1, keepdims=True), V)
    for got in (
        native.call(native.library([on_cpu.plan]), on_cpu.function, on_cpu.plan, given, sizes)["O"],
        run_plan(on_gpu.function, on_gpu.plan, given, sizes, 1, on_gpu.source).arrays["O"],
    ):
        np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=1e-4, atol=1e-4)
