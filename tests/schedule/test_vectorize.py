"""`vectorize`: the same results by fewer, wider accesses; refused with the reason where an access is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.schedule.laid import binary, counts, integers, laid, machine_code, refusal, wrong

from texpr.ir import kernel as k
from texpr.ir.types import DTYPES

SAXPY = """
fn saxpy(a: f32, x: f32[n] align(16), y: f32[n] align(16)): f32[n] {
    new z: f32[n]
    par n |i| { z[i] = a * x[i] + y[i] }
    return z
}"""

SCALARS = "split(i, 256) -> (b, t)  bind(b, grid.x)  bind(t, block.x)"
VECTORS = """
    split(i, 256) -> (b, t)
    vectorize(t, 4) -> (u, v)
    bind(b, grid.x)
    bind(u, block.x)"""


def saxpy(n: int) -> dict[str, np.ndarray]:
    return {"a": np.float32(3), "x": integers(n), "y": integers(n, seed=1)}


@pytest.mark.parametrize("n", [0, 1, 3, 4, 255, 256, 1023, 1030])
def test_saxpy(n: int) -> None:
    assert wrong(laid(SAXPY, VECTORS), saxpy(n)) is None


def test_each_request_moves_four_elements() -> None:
    scalar, vector = (counts(laid(SAXPY, how), saxpy(1024)) for how in (SCALARS, VECTORS))
    assert (scalar.global_load_requests, scalar.global_store_requests) == (64, 32)
    assert (vector.global_load_requests, vector.global_store_requests) == (16, 8)
    assert vector.global_load_sectors == scalar.global_load_sectors == 256


def test_an_odd_end_is_left_to_single_lanes() -> None:
    """1022 = 255 · 4 + 2: one thread goes lane by lane, and its warp asks for its vectors apart."""
    found = counts(laid(SAXPY, VECTORS), saxpy(1022))
    assert (found.global_loads, found.global_stores) == (2 * (255 + 2), 255 + 2)


def test_a_promise_leaves_nothing_to_single_lanes() -> None:
    promised = laid(SAXPY.replace("f32[n] {\n", "f32[n]\n    where n % 4 == 0\n{\n", 1), VECTORS)
    assert not any(isinstance(s, k.For) for s in promised.statements)
    assert wrong(promised, saxpy(1028)) is None


def test_the_result_must_begin_at_a_multiple() -> None:
    made = laid(SAXPY, VECTORS)
    assert [b.align for b in made.plan.results] == [16] and [b.align for b in made.original.results] == [None]


@pytest.mark.parametrize(
    ("dtype", "lanes"),
    [(d, n) for d in DTYPES.values() for n in (2, 4, 8, 16) if 2 <= n * d.bytes <= 16],
    ids=lambda value: str(value),
)
def test_every_type(dtype: object, lanes: int) -> None:
    text = f"fn f(x: {dtype}[n] align(16)): {dtype}[n] {{\n new y: {dtype}[n]\n par n |i| {{ y[i] = x[i] }}\n return y\n}}"
    made = laid(text, f"split(i, 64) -> (b, t)  vectorize(t, {lanes}) -> (u, v)  bind(b, grid.x)  bind(u, block.x)")
    (load,) = (s for s in made.statements if isinstance(s, k.LoadVector))
    assert len(load.targets) == lanes


@pytest.mark.parametrize("name", ["f64", "bf16", "u8", "bool"])
def test_types_move_as_they_are(name: str) -> None:
    lanes = 16 // DTYPES[name].bytes
    text = f"fn f(x: {name}[n] align(16)): {name}[n] {{\n new y: {name}[n]\n par n |i| {{ y[i] = x[i] }}\n return y\n}}"
    made = laid(text, f"split(i, 64) -> (b, t)  vectorize(t, {lanes}) -> (u, v)  bind(b, grid.x)  bind(u, block.x)")
    from texpr.interp.dtypes import numpy_dtype
    x = (integers(77) > 0 if name == "bool" else np.abs(integers(77))).astype(numpy_dtype(DTYPES[name]))
    assert wrong(made, {"x": x}, orders=(None, 0)) is None
