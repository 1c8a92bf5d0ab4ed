"""Attention in three phases, which the planner makes one sweep over blocks of keys: of which; proved, and its numbers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering.emulated import run_plan
from tests.schedule.rows import arguments, open_of

from texpr.driver import Compiled, lower, parse
from texpr.interp import run
from texpr.ir.program.text import print_directive

TEXT = Path(__file__).with_name("swept.te").read_text(encoding="utf-8")

FIRST, SECOND = "wgmma_m64n{}k16_f32_{}", "wgmma_m64n64k16_f32_{}_ar_bn"
KEYS = {"causal": 128}
"""Keys of a block, where they are not 64: rows of a block are as many in a triangle."""

QUICK = [("plain", "sm_90a"), ("causal", "sm_80")]

CASES = [
    *QUICK,
    *(
        pytest.param(name, target, marks=pytest.mark.long)
        for name, target in (
            ("plain", "sm_80"), ("causal", "sm_90a"), ("window", "sm_90a"), ("window", "sm_80"), ("grouped", "sm_90a"),
            ("grouped", "sm_80"), ("causal", "sm_120a"),
        )
    ),
]  # fmt: skip


@cache
def compiled(name: str, target: str) -> Compiled:
    return lower(parse(TEXT)[name], target, schedule="auto")


def directives(made: Compiled) -> list[str]:
    """The schedule, in lines."""
    return [] if made.schedule is None else [print_directive(each) for each in made.schedule.directives]


@pytest.mark.parametrize(("name", "target"), CASES)
def test_products_of_a_sweep_go_to_tensor_cores(name: str, target: str) -> None:
    made = compiled(name, target)
    said = directives(made)
    assert sum(each.startswith("online(") for each in said) == 1 and said[0].startswith("online(")
    products = [each for each in said if each.startswith("mma(")]
    assert len(products) == 2
    if target == "sm_90a":
        of = "f16" if name == "window" else "bf16"
        records = (FIRST.format(KEYS.get(name, 64), of), SECOND.format(of))
        assert all(record in each for each, record in zip(products, records, strict=True))


@pytest.mark.parametrize(("name", "target"), CASES)
def test_proved(name: str, target: str) -> None:
    """For all sizes, schedule and plan."""
    assert open_of(compiled(name, target)) == []


def weighted(made: Compiled, given: dict[str, NDArray[np.float32]]) -> NDArray[np.float64]:
    """Σ p · |v| / Σ p of each result: errors are small beside that, and beside a weight that f16 has no more."""
    assert made.written is not None
    (found,) = run(made.written, {**given, "V": np.abs(given["V"])}).values()
    return np.asarray(found, np.float64)


@pytest.mark.parametrize("scale", [0.25, 60.0])
@pytest.mark.parametrize(("name", "target"), CASES)
def test_emulated(name: str, target: str, scale: float) -> None:
    """Rows of keys that are none, and all, and −∞; and scores whose exponentials would be beyond all numbers."""
    made = compiled(name, target)
    assert made.written is not None
    for length in (0, 1, 64, 130):
        given = {**arguments(made, {"H": 1, "L": length}), "scale": np.asarray(scale, np.float32)}
        with np.errstate(all="ignore"):
            (meant,), most = run(made.written, given).values(), weighted(made, given)
        for seed in (None, 1):
            ran = run_plan(made.function, made.plan, given, {"H": 1, "L": length}, seed=seed)
            found = np.asarray(next(iter(ran.arrays[b.name] for b in made.function.results)), np.float64)
            assert ran.reports == []
            assert np.array_equal(np.isnan(found), np.isnan(meant)), length
            assert np.all((np.abs(found - meant) <= 2**-7 * most + 1e-6) | np.isnan(found)), length


OTHERS = [
    ("in order", "par L |j| reduce(total)", "seq L |j|"),
    ("rounded as it is written", "par L |j| reduce(sum) {", "par L |j| reduce(sum) #ieee {"),
    ("of another type", "new p: bf16[L]", "new p: f32[L]"),
]


@pytest.mark.parametrize(("what", "old", "new"), OTHERS, ids=[each[0] for each in OTHERS])
def test_nothing_is_swept_where(what: str, old: str, new: str) -> None:
    text = TEXT[TEXT.index("fn plain") : TEXT.index("fn causal")]
    assert old in text
    text = text.replace(old, new).replace("p[j] = bf16(s[j])", "p[j] = s[j]" if "f32[L]" in new else "p[j] = bf16(s[j])")
    made = lower(parse(text.replace("sum += p[j] * V[h, j, d]", "sum += f32(p[j]) * f32(V[h, j, d])"))["plain"], "sm_90a")
    assert not any(each.startswith("online(") for each in directives(made)), what
