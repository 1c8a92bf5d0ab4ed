"""The gallery as `auto` builds it, where that is by a schedule that was found: on a CPU, and as emulated CUDA."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

import texpr
from references import BY_NAME, distance
from texpr.driver import lower, parse
from texpr.ir.program import Function
from texpr.ir.program.selection import AUTO
from texpr.runtime import Kernel

FOUND = [("matmul", "sm_90a"), ("conv2d", "sm_90a"), ("jacobi", "sm_90a"), ("conv2d", "cpu")]


@cache
def function_of(name: str, consts: tuple[tuple[str, int], ...]) -> Function:
    example = BY_NAME[name]
    return parse(example.path.read_text(encoding="utf-8"), dict(consts))[example.function]


@cache
def kernel_of(name: str, target: str, consts: tuple[tuple[str, int], ...]) -> Kernel:
    return texpr.compile(function_of(name, consts), target, emulate=target != "cpu")


def check(name: str, target: str, sizes: Mapping[str, int], seed: int) -> None:
    """Run at those sizes: what the reference says, within the example's bound."""
    example = BY_NAME[name]
    consts, rest = example.split(dict(sizes))
    key = tuple(consts.items())
    arrays = example.make(np.random.default_rng(1), sizes)
    kernel = kernel_of(name, target, key)
    kernel.seed = seed
    function = function_of(name, key)
    names = {size.name for size in function.sizes}
    found = kernel(*(arrays[p.name] for p in function.params), **{n: s for n, s in rest.items() if n in names})
    ((_, wanted),) = example.reference(arrays, sizes).items()
    assert distance(np.asarray(found), wanted, example.floor) <= example.ulp, (name, target, sizes)


@pytest.mark.parametrize(("name", "target"), [*FOUND[:1], *FOUND[2:], pytest.param(*FOUND[1], marks=pytest.mark.long)])
def test_small(name: str, target: str) -> None:
    for number, sizes in enumerate(BY_NAME[name].small):
        check(name, target, sizes, number)


@pytest.mark.long
@pytest.mark.parametrize(("name", "target"), FOUND)
def test_large(name: str, target: str) -> None:
    for sizes in BY_NAME[name].large:
        for seed in (-1, 0, 1):
            check(name, target, sizes, seed)


@pytest.mark.parametrize(("name", "target"), FOUND)
def test_a_schedule_is_found(name: str, target: str) -> None:
    consts, _ = BY_NAME[name].split(BY_NAME[name].small[0])
    assert lower(function_of(name, tuple(consts.items())), target, schedule=AUTO).schedule is not None
