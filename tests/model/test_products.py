"""What instructions of lanes have the matrix unit do, read from plans: as many multiply-adds as the product has."""

from __future__ import annotations

import pytest
from tests.instr.texts import CASES
from tests.instr.warpgroup.test_warpgroup import compiled

from texpr.driver import Compiled, lower
from texpr.frontend import parse
from texpr.isa.devices.h100 import DEVICE
from texpr.isa.registry import resolve
from texpr.model.bound import SYNC
from texpr.model.plan.work import launches

TARGET = resolve("sm_90a")


def products(made: Compiled, **sizes: int) -> dict[str, float]:
    """By type, of the one launch of a plan."""
    (found,) = launches(made.plan, {sym: sizes[sym.name] for sym in made.plan.sizes}, TARGET)
    return {name: amount for name, amount in found.work.products.items() if amount}


@pytest.mark.parametrize(("name", "dtype", "tile"), [
    ("one tile", "bf16", (64, 64, 64)), ("groups", "bf16", (128, 64, 64)), ("n256", "bf16", (64, 256, 64)),
    ("tf32", "tf32", (64, 64, 32)), ("f8e4m3", "f8", (64, 64, 128)), ("u8", "i8", (64, 64, 128)),
])  # fmt: skip
def test_of_a_warpgroup(name: str, dtype: str, tile: tuple[int, int, int]) -> None:
    rows, columns, depth = tile
    assert products(compiled(name), m=3, n=5, p=7) == {dtype: 3 * rows * 5 * columns * 7 * depth}


def test_of_a_warp() -> None:
    made = lower(parse(CASES["registers"].text, "case.te")["product"], "sm_90a", schedule=None)
    assert products(made, m=3, n=5, p=7) == {f"bf16{SYNC}": 3 * 16 * 5 * 8 * 7 * 16}


def test_what_a_multiprocessor_does_in_a_clock() -> None:
    """2048 multiply-adds of bf16, 1024 of tf32, 4096 of 8 bits (NVIDIA H100 whitepaper, "tensor core performance")."""
    rates = {name: DEVICE.matrix.rate(name).value for name in ("bf16", "tf32", "f8", "i8")}
    assert rates == {"bf16": 2048, "tf32": 1024, "f8": 4096, "i8": 4096}
