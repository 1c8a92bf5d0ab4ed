"""Rows that sum up what they have of each key, without a maximum: one sweep over blocks of keys, on tensor cores."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering.emulated import results, run_plan
from tests.schedule.rows import open_of

from texpr.driver import Compiled, lower, parse
from texpr.interp import run
from texpr.ir import program as ir
from texpr.ir.program.text import print_directive
from texpr.planner.tensor import alive

Array = NDArray[np.float64]

TEXT = Path(__file__).with_name("gradients.te").read_text(encoding="utf-8")

PRODUCTS = {"queries": 3, "keys": 4, "blocks": 4, "rectified": 2}

CASES = [
    ("rectified", "sm_90a"),
    ("keys", "sm_90a"),
    *(
        pytest.param(name, target, marks=pytest.mark.long)
        for name, target in (
            ("queries", "sm_90a"),
            ("queries", "sm_80"),
            ("keys", "sm_80"),
            ("rectified", "sm_80"),
            ("blocks", "sm_90a"),
        )
    ),
]


@cache
def compiled(name: str, target: str) -> Compiled:
    return lower(parse(TEXT)[name], target, schedule="auto")


@pytest.mark.parametrize(("name", "target"), CASES)
def test_products_of_a_sweep_go_to_tensor_cores(name: str, target: str) -> None:
    made = compiled(name, target)
    assert made.schedule is not None
    said = [print_directive(each) for each in made.schedule.directives]
    assert [each.startswith("online(") for each in said] == [name != "blocks", *(False for _ in said[1:])]
    assert sum(each.startswith("mma(") for each in said) == PRODUCTS[name]
    assert all("wgmma" in each for each in said if each.startswith("mma(")) == (target == "sm_90a")
    assert any(each.startswith("roles(") for each in said) == (target == "sm_90a" and name in ("queries", "keys", "rectified"))


@pytest.mark.parametrize(("name", "target"), CASES)
def test_proved(name: str, target: str) -> None:
    """For all sizes, schedule and plan."""
    assert open_of(compiled(name, target)) == []


def given(name: str, length: int) -> dict[str, Any]:
    """Small numbers, of which sums of 64 are exact in bf16."""
    rng, found = np.random.default_rng(length), dict[str, Any]()
    for buffer in parse(TEXT)[name].params:
        shape = [e.evaluate({sym: {"H": 2, "L": length}[sym.name] for sym in e.syms()}) for e in buffer.shape]
        numbers = rng.integers(-1, 2, shape) * (rng.random(shape) < 0.5)
        found[buffer.name] = numbers.astype(ml_dtypes.bfloat16 if buffer.dtype.name == "bf16" else np.float32)
    return found | ({"scale": np.asarray(0.0625, np.float32)} if "scale" in found else {})


def meant(name: str, data: dict[str, Any]) -> tuple[list[Array], list[Array]]:
    """The results, and the sums of magnitudes of their terms, of which bf16 keeps 8 bits."""
    at = {key: np.asarray(value, np.float64) for key, value in data.items()}
    q, k, v = at["Q"], at["K"], at["V"]
    s = np.einsum("hid,hjd->hij", q, k)
    if name == "rectified":
        p = np.tril(np.maximum(s, 0) + 1)
        return [np.einsum("hij,hjd->hid", p, v)], [np.zeros_like(q)]
    p = np.exp(s * at["scale"] - at["lse"][..., None])
    ds = p * (np.einsum("hid,hjd->hij", at["G"], v) - at["delta"][..., None])

    def both(ways: str, x: Array, y: Array, by: float) -> tuple[Array, Array]:
        return by * np.einsum(ways, x, y), by * np.einsum(ways, np.abs(x), np.abs(y))

    scale = float(at["scale"])
    if name == "queries":
        ways = [both("hij,hjd->hid", ds, k, scale)]
    else:
        ways = [both("hij,hid->hjd", ds, q, scale), both("hij,hid->hjd", p, at["G"], 1.0)]
    return [each for each, _ in ways], [most for _, most in ways]


@pytest.mark.parametrize(("name", "target"), CASES)
def test_emulated(name: str, target: str) -> None:
    """No key, one, one block, and blocks that are not full, beside NumPy; exact where no exponential is."""
    made = compiled(name, target)
    for length in (0, 1, 64, 130):
        data = given(name, length)
        right, most = meant(name, data)
        for seed in (None, 1) if length == 130 else (None,):
            ran = run_plan(made.function, made.plan, data, {"H": 2, "L": length}, seed=seed)
            assert ran.reports == []
            for found, each, bound in zip(results(made.function, ran).values(), right, most, strict=True):
                assert np.all(np.abs(np.asarray(found, np.float64) - each) <= 2**-7 * bound), length


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_interpreter_says_the_same(name: str) -> None:
    function = parse(TEXT)[name]
    data = given(name, 5)
    right, most = meant(name, data)
    for found, each, bound in zip(run(function, data, {"H": 2, "L": 5}).values(), right, most, strict=True):
        assert np.all(np.abs(np.asarray(found, np.float64) - each) <= 2**-7 * bound)


def test_what_a_row_keeps_at_once() -> None:
    """Scores and weights of one product are gone when those of the next are there; sums are kept all along."""
    text = """
    fn f(x: f32[n, 64]): f32[n] {
        new y: f32[n]
        par n |i| {
            new sum: f32[64]
            new last: f32
            par 64 |j| { sum[j] = 0.0 }
            seq 4 |t| {
                new a: f32[64]
                new b: bf16[64]
                new c: f32[32]
                par 64 |j| { a[j] = x[i, j] }
                par 64 |j| { b[j] = bf16(a[j]) }
                par 32 |j| { c[j] = f32(b[j]) }
                par 32 |j| { sum[j] += c[j] }
            }
            last = sum[0]
            y[i] = last
        }
        return y
    }
    """
    (par,) = (s for s in parse(text)["f"].body if isinstance(s, ir.Par))
    assert alive.registers(par.body, 64, 128) == 32 + max(32 + 16, 16 + 16)
    assert alive.registers(par.body, 16, 32) == alive.registers(par.body, 64, 128)
