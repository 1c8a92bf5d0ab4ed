"""Products by the tensor core of a warpgroup from text to numbers: interpreted, lowered, emulated, proved, read back."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.instr.reads_back import reads_back
from tests.instr.warpgroup.texts import CASES
from tests.lowering.emulated import require_right
from tests.proofs import undecided

from texpr.checks import check
from texpr.driver import Compiled, lower
from texpr.emulator import LOCKSTEP
from texpr.frontend import parse
from texpr.interp import run
from texpr.ir import kernel as k
from texpr.ir.program import Function
from texpr.support.diagnostic import Limitation


@cache
def function_of(name: str) -> Function:
    return parse(CASES[name].text, "case.te")["product"]


@cache
def compiled(name: str) -> Compiled:
    function, case = function_of(name), CASES[name]
    schedule = next((each for each in function.schedules if case.schedule in (None, each.name)), None)
    return lower(function, "sm_90a", schedule=schedule)


@pytest.mark.parametrize("name", ["n8", pytest.param("written", marks=pytest.mark.long)])
def test_meaning(name: str) -> None:
    function, (arguments, wanted) = function_of(name), CASES[name].arguments((1, 1, 1))
    assert not check(function), check(function)[0]
    np.testing.assert_array_equal(run(function, arguments)["C"], wanted)


@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str) -> None:
    made, (arguments, wanted) = compiled(name), CASES[name].arguments()
    for seed in (None, 1) if name in ("n256", "both") else (None, LOCKSTEP, 1):
        require_right(made, arguments, wanted, seed=seed)


@pytest.mark.parametrize("name", ["one tile", "ring", "written"])
def test_emulated_with_several_tiles_and_without_any(name: str) -> None:
    made = compiled(name)
    for tiles in ((2, 2, 3), (1, 1, 0)):
        arguments, wanted = CASES[name].arguments(tiles)
        require_right(made, arguments, wanted, seed=3)


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    made = compiled(name)
    assert not list(undecided(made.function, made.plan))


@pytest.mark.parametrize("name", CASES)
def test_texts_read_back(name: str) -> None:
    assert reads_back(CASES[name].text, compiled(name))


def counted(name: str, kind: type[k.Operation]) -> list[k.Operation]:
    return [stmt for kernel in k.kernels(compiled(name).plan.steps) for stmt in k.walk(kernel.body) if isinstance(stmt, kind)]


@pytest.mark.parametrize(
    ("name", "waits", "proxies"), [("one tile", 2, 0), ("ring", 2, 0), ("written", 2, 1), ("scaled", 2, 0)]
)
def test_no_more_is_done_for_order_than_is_asked_for(name: str, waits: int, proxies: int) -> None:
    """One fence and one group a tile; a wait where the tile is written again, and one where lanes touch the sum."""
    assert len(counted(name, k.FenceWarpgroup)) == len(counted(name, k.CommitWarpgroup)) == 1
    assert len(counted(name, k.WaitWarpgroup)) == waits
    assert sum(fence.kind == "async" for fence in counted(name, k.Fence) if isinstance(fence, k.Fence)) == proxies


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100a", "cpu"])
def test_other_targets_have_it_not(target: str) -> None:
    with pytest.raises(Limitation) as caught:
        lower(function_of("written"), target, schedule=None)
    assert caught.value.diagnostics[0].code == "E0541"


def test_descriptors_are_printed_as_types() -> None:
    source = compiled("one tile").source
    assert (
        "tx_instr_wgmma_m64n64k16(0xffffffffu, As, 2 * kk * 8, tx_matrix<128, 16, 1024>(), Bs, 2 * kk * 8, tx_matrix<" in source
    )
    assert '"l"(tx_described(&a[0], a_at, a_how))' in source and '"+f"(d_31)' in source
