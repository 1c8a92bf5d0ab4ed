"""Tensor memory over time: which columns a statement touches, and what is done there."""

from __future__ import annotations

from pathlib import Path

import pytest

from texpr.draw.kinds import Undrawable, drawn
from texpr.draw.timeline.columns import KINDS, steps
from texpr.driver import load, lower
from texpr.explain.tensor import tensor_memory
from texpr.ir import kernel as k
from texpr.isa.registry import resolve

EXAMPLES = Path(__file__).parents[2] / "examples"


def kernel(name: str) -> k.Kernel:
    (function,) = load(EXAMPLES / "blackwell" / f"{name}.te").functions
    (found,) = k.kernels(lower(function, "sm_100a", schedule=function.schedules[0]).plan.steps)
    return found


def test_attention_has_scores_sums_and_weights() -> None:
    found = kernel("attention")
    assert tensor_memory(found) == {
        "taken": 256,
        "arrays": [
            {"name": "o", "first": 0, "columns": 64},
            {"name": "s", "first": 64, "columns": 64},
            {"name": "p", "first": 128, "columns": 32},
        ],
    }
    done = [
        (step.words.strip("· ").split(" ")[0], [(at.start, at.stop, KINDS[kind]) for at, kind in step.does])
        for step in steps(found)
    ]
    assert ("tcgen05_m128n64k16_f32_bf16", [(64, 128, "a product sums up")]) in done
    second = [(128, 160, "a product reads, later"), (0, 64, "a product sums up")]
    assert ("tcgen05_m128n64k16_f32_bf16_at_bn", second) in done
    assert ("tcgen05_st_x32_bf16", [(128, 160, "lanes store")]) in done
    assert done[0][0] == "take" and done[-1][0] == "give"


def test_scales_are_copied_and_read() -> None:
    done = {(KINDS[kind], at.start, at.stop) for step in steps(kernel("scaled")) for at, kind in step.does}
    copied = {(at, end) for what, at, end in done if what == "a copy from shared memory writes, later"}
    assert len(copied) == 2 and copied == {(at, end) for what, at, end in done if what == "a product reads, later"}


def test_pictures() -> None:
    (function,) = load(EXAMPLES / "blackwell" / "attention.te").functions
    made = drawn(function, "columns", resolve("sm_100a"), {}, function.schedules[0], None)
    assert made.startswith("<svg") and "256 columns taken; o 0 to 63, s 64 to 127, p 128 to 159" in made
    (plain,) = load(EXAMPLES / "saxpy.te").functions
    with pytest.raises(Undrawable, match="no kernel of it has tensor memory"):
        drawn(plain, "columns", resolve("sm_100a"), {}, "none", None)
