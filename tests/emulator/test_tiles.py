"""Copies of tiles: right kernels give NumPy's results under every schedule, planted faults are named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.backends.tiles import TILED
from tests.emulator.tensors import launch

from texpr.backends.cuda import print_kernels
from texpr.emulator import LOCKSTEP, Emulated

SEEDS = (None, LOCKSTEP, *range(8))
INCLUDE, SOURCE = '#include "texpr_device.h"\n', 'TX_SOURCE("<plan>")\n'


def together(texts: list[str]) -> str:
    """One `.cu` of many plans."""
    return INCLUDE + SOURCE + "".join(texts).replace(INCLUDE, "").replace(SOURCE, "")


EVERY = together([print_kernels(case.plan) for case in TILED.values()])


@pytest.mark.parametrize("name", TILED)
def test_right_under_every_schedule(emulate: Callable[..., Emulated], name: str) -> None:
    case, emulated = TILED[name], emulate(EVERY)
    for seed in SEEDS:
        args = case.args()
        unwritten = [] if name == "reduce" else ["z"]
        assert launch(emulated, case, case.kernel, args, seed=seed, unwritten=unwritten) == []
        np.testing.assert_array_equal(args["z"], case.expected(args))


@pytest.mark.parametrize("name", TILED)
def test_right_in_plain_memory(emulate: Callable[..., Emulated], name: str) -> None:
    case, emulated = TILED[name], emulate(EVERY, checked=False)
    args = case.args()
    assert launch(emulated, case, case.kernel, args) == []
    np.testing.assert_array_equal(args["z"], case.expected(args))
