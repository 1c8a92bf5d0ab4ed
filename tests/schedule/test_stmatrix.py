"""Results that lanes store to shared memory by an instruction: which one, what it stores, and where none fits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest
from tests.schedule.rows import differences, open_of
from tests.schedule.test_stored_by_roles import ONE, SMALL, WIDE, stored
from tests.schedule.tiles import by_blocks

from texpr.driver import Compiled, lower, parse
from texpr.ir import kernel as k
from texpr.support.record import Record

ROLES = stored(by_blocks(ONE), ", swizzle=128B", False)
PLAIN = stored(by_blocks(ONE), "", False)
TURNED = SMALL.replace("bf16[M, N]", "bf16[N, M]").replace("C[i, j]", "C[j, i]").replace("N % 8", "M % 8 == 0, N % 8")
BIASED = SMALL.replace("align(16)):", "align(16), bias: f32[N]):").replace("bf16(total)", "bf16(max(total + bias[j], 0.0))")
BYTES = (
    SMALL.replace("): bf16", "): f8e4m3").replace("C: bf16", "C: f8e4m3").replace("bf16(", "f8e4m3(").replace("N % 8", "N % 16")
)


class Case(Record):
    """A program with a schedule, and the instructions that store, each once."""

    text: str
    wanted: tuple[str, ...]
    sizes: tuple[Mapping[str, int], ...] = ({"M": 40, "N": 72, "K": 72}, {"M": 8, "N": 8, "K": 8}, {"M": 128, "N": 64, "K": 0})


CASES = {
    "by rows": Case(SMALL + ROLES, ("stmatrix_x4_bf16",)),
    "plain rows": Case(SMALL + PLAIN, ("stmatrix_x4_bf16",)),
    "by columns": Case(TURNED + ROLES, ("stmatrix_x4_trans_bf16",)),
    "values of callers": Case(BIASED + ROLES, ()),
    "whole tiles": Case(
        (BIASED + ROLES).replace("N % 8 == 0", "M % 64 == 0, N % 64 == 0"),
        ("stmatrix_x4_bf16",),
        ({"M": 64, "N": 128, "K": 72},),
    ),
    "f16": Case((SMALL.replace("bf16", "f16") + ROLES).replace("_bf16)", "_f16)"), ("stmatrix_x4_f16",)),
    "f32": Case(WIDE + stored(by_blocks(ONE), ", box=(64, 32), swizzle=128B", False), ()),
    "8 bits": Case(BYTES + PLAIN, ()),
}  # fmt: skip


@cache
def compiled(name: str) -> Compiled:
    function = parse(CASES[name].text)["f"]
    return lower(function, "sm_90a", schedule=function.schedules[0])


def storing(made: Compiled) -> tuple[str, ...]:
    """The instructions that store, each once."""
    every = (s.name for kernel in k.kernels(made.plan.steps) for s in k.walk(kernel.body) if isinstance(s, k.Collective))
    return tuple(dict.fromkeys(name for name in every if "stmatrix" in name))


@pytest.mark.parametrize("name", CASES)
def test_which_one(name: str) -> None:
    assert storing(compiled(name)) == CASES[name].wanted


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.wanted])
def test_proved(name: str) -> None:
    assert open_of(compiled(name)) == []


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.wanted])
def test_emulated(name: str) -> None:
    function = parse(CASES[name].text)["f"]
    for sizes in CASES[name].sizes:
        assert differences(compiled(name), function, sizes, 0) == []
