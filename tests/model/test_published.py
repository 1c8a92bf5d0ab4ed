"""The model against times that others have published: no bound is above one, and ladders are ranked as they were measured.

A step of a ladder is *separable* where the bounds of its two programs differ by more than `NEAR`; of another nothing is said.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from texpr.isa.registry import DEVICES, resolve
from texpr.isa.speed import Device
from texpr.model.bound import Bound, bound
from texpr.model.work import Shape, Work
from texpr.support.record import replace

DATA: dict[str, Any] = json.loads((Path(__file__).parent / "published.json").read_text(encoding="utf-8"))
RUNGS: list[dict[str, Any]] = DATA["ladder"]["rungs"]
OPERATIONS = 2 * 8192**3
NEAR = 0.02
FULL = Shape(1 << 30, 128)
"""So many blocks that no multiprocessor has more than its share."""

TARGET, DEVICE = resolve("sm_90a"), DEVICES["sm_90a"]


def of_rung(rung: dict[str, Any], device: Device = DEVICE) -> Bound:
    return bound(Work(**rung["work"]), Shape(**rung["shape"]), TARGET, device)


def of_attention(entry: dict[str, Any]) -> Bound:
    """Products, exponentials, and inputs and the result once."""
    work = Work(
        issued=entry["exponentials"] / 32,
        units={"special": entry["exponentials"] / 32},
        products={entry["products"]: entry["operations"] / 2},
        dram=entry["dram"],
    )
    return bound(work, FULL, resolve(entry["target"]), DEVICES[entry["target"]])


def of_other(entry: dict[str, Any]) -> Bound:
    work = Work(0.0, {}, entry.get("products", {}), dram=entry.get("dram"))
    return bound(work, FULL, resolve(entry["target"]), DEVICES[entry["target"]])


@pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: f"kernel {rung['kernel']}")
def test_no_bound_of_the_ladder_is_above_its_time(rung: dict[str, Any]) -> None:
    found = of_rung(rung)
    assert found.us <= OPERATIONS / rung["tflops"] / 1e6
    assert found.unknown == ()


@pytest.mark.parametrize("entry", DATA["attention"], ids=lambda entry: entry["what"])
def test_no_bound_of_attention_is_above_its_time(entry: dict[str, Any]) -> None:
    assert of_attention(entry).us <= entry["operations"] / entry["tflops"] / 1e6


@pytest.mark.parametrize("entry", DATA["others"], ids=lambda entry: entry["what"])
def test_no_other_bound_is_above_its_time(entry: dict[str, Any]) -> None:
    found = of_other(entry)
    assert 0 < found.us <= entry["us"]


def step(one: Bound, other: Bound) -> str:
    """How the model ranks two programs, the slower one first."""
    if abs(one.us - other.us) <= NEAR * max(one.us, other.us):
        return "not separable"
    return f"faster by {one.deciding}" if one.us > other.us else "slower"


def test_the_ladder_is_ranked_as_it_was_measured() -> None:
    """Products on the matrix unit, larger tiles, and tiles that two blocks share are seen; what only waits less is not."""
    assert [rung["tflops"] for rung in RUNGS] == sorted(rung["tflops"] for rung in RUNGS)
    bounds = [of_rung(rung) for rung in RUNGS]
    names = [rung["kernel"] for rung in RUNGS]
    found = {f"{a}-{b}": step(x, y) for a, b, x, y in zip(names, names[1:], bounds, bounds[1:], strict=False)}
    assert found == {
        "1-2": "faster by issue",
        "2-4": "faster by l2",
        "4-5": "not separable",
        "5-6": "not separable",
        "6-7": "faster by l2",
        "7-11": "not separable",
    }


@pytest.mark.parametrize("keys", [512, 1024, 2048, 4096, 8192, 16384])
def test_attention_is_ranked_as_it_was_measured(keys: int) -> None:
    """FlashAttention-2 has products of one warp; those of the others are of warp groups, and what they overlap is not seen."""
    at = {entry["what"].partition(",")[0]: entry for entry in DATA["attention"] if f" {keys} keys" in entry["what"]}
    older, newer = at["FlashAttention-2"], at["FlashAttention-3"]
    assert older["tflops"] < newer["tflops"] and step(of_attention(older), of_attention(newer)) == "faster by matrix"
    triton = at["Triton tutorial"]
    assert step(of_attention(triton), of_attention(newer)) == "not separable"


def test_a_bandwidth_that_is_never_reached_would_be_seen() -> None:
    """0.92 of the sheet's is often taken for what can be reached: a sum that was measured is faster."""
    rate = DEVICE.bandwidth.dram
    assert rate.value is not None
    slower = replace(DEVICE, bandwidth=replace(DEVICE.bandwidth, dram=replace(rate, value=0.92 * rate.value)))
    entry = DATA["others"][0]
    assert bound(Work(0.0, {}, {}, dram=entry["dram"]), FULL, TARGET, slower).us > entry["us"]


def test_a_matrix_unit_of_half_the_rate_would_be_seen() -> None:
    rate = DEVICE.matrix.f16
    assert rate.value is not None
    slower = replace(DEVICE, matrix=replace(DEVICE.matrix, f16=replace(rate, value=rate.value / 2)))
    assert of_rung(RUNGS[-1], slower).us > OPERATIONS / RUNGS[-1]["tflops"] / 1e6
