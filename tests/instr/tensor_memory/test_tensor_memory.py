"""Products in tensor memory from text to numbers: lowered, emulated, proved, read back."""

from __future__ import annotations

import pytest
from tests.instr.reads_back import reads_back
from tests.instr.tensor_memory.texts import CASES, compiled
from tests.lowering.emulated import require_right
from tests.proofs import undecided

from texpr.driver import lower
from texpr.emulator import LOCKSTEP
from texpr.frontend import parse
from texpr.ir import kernel as k
from texpr.support.diagnostic import TexprError


def emulated(name: str, sizes: tuple[int, int, int], seed: int | None) -> None:
    made, (arguments, wanted) = compiled(name), CASES[name].arguments(sizes)
    require_right(made, arguments, wanted, seed=seed)


@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str) -> None:
    for seed in (None, 1) if name == "n256" else (None, LOCKSTEP, 1):
        emulated(name, (128, CASES[name].columns, 128), seed)


@pytest.mark.parametrize("name", ["ring", "late"])
@pytest.mark.parametrize("sizes", [(136, 72, 200), (1, 8, 8), (130, 128, 0), (0, 8, 8), (8, 0, 8)])
def test_ragged_sizes_and_none(name: str, sizes: tuple[int, int, int]) -> None:
    emulated(name, sizes, 3)


@pytest.mark.parametrize("seed", range(4, 10))
def test_orders(seed: int) -> None:
    emulated("ring", (128, 128, 264), seed)
    emulated("late", (128, 64, 520), seed)


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    made = compiled(name)
    assert not list(undecided(made.function, made.plan))


@pytest.mark.parametrize("name", CASES)
def test_texts_read_back(name: str) -> None:
    assert reads_back(CASES[name].text, compiled(name))


@pytest.mark.parametrize(("name", "columns"), [("n16", 32), ("ring", 64), ("f8e4m3", 128), ("n256", 256)])
def test_columns_are_a_power_of_two(name: str, columns: int) -> None:
    (kernel,) = k.kernels(compiled(name).plan.steps)
    taken = [stmt.count for stmt in k.walk(kernel.body) if isinstance(stmt, k.TakeColumns | k.FreeColumns)]
    assert taken == [columns, columns]


def test_one_commit_and_one_wait_a_turn() -> None:
    (kernel,) = k.kernels(compiled("ring").plan.steps)
    kinds = [type(stmt) for stmt in k.walk(kernel.body)]
    assert [kinds.count(each) for each in (k.CollectiveAlone, k.CommitColumns, k.BarrierWait)] == [1, 1, 2]


def test_a_turn_late_two_are_under_way() -> None:
    """Two barriers, a wait in each turn for the one before, and one behind the loop."""
    (kernel,) = k.kernels(compiled("late").plan.steps)
    waits = [s for s in k.walk(kernel.body) if isinstance(s, k.BarrierWait) and s.barrier.buffer.name == "total_done"]
    made = [s for s in k.walk(kernel.body) if isinstance(s, k.BarrierInit) and s.barrier.buffer.name == "total_done"]
    assert (len(waits), len(made)) == (2, 2)


def test_roles_are_refused() -> None:
    text = CASES["ring"].text.replace("pipeline(k_o, stages=3)", "pipeline(k_o, stages=3)\n    roles(k_o, copy=1, compute=1)")
    function = parse(text, "case.te")["product"]
    with pytest.raises(TexprError, match="E0920"):
        lower(function, "sm_100a", schedule=function.schedules[0])


def test_rows_beyond_lanes_are_tiles_beside_each_other() -> None:
    text = CASES["ring"].text.replace("split(i, 128)", "split(i, 256)")
    function = parse(text, "case.te")["product"]
    made, (arguments, wanted) = (
        lower(function, "sm_100a", schedule=function.schedules[0]),
        CASES["ring"].arguments((264, 64, 72)),
    )
    require_right(made, arguments, wanted, seed=1)
    assert not list(undecided(made.function, made.plan))
    (kernel,) = k.kernels(made.plan.steps)
    assert [stmt.count for stmt in k.walk(kernel.body) if isinstance(stmt, k.TakeColumns)] == [128]


@pytest.mark.parametrize("name", ["ring", pytest.param("late", marks=pytest.mark.long)])
def test_blocks_of_a_cluster_share_a_strip(name: str) -> None:
    """Each has its own columns, and multiplies by itself."""
    text = CASES[name].text.replace("    stage(A,", "    cluster(i_b, 2)\n    stage(A,")
    function = parse(text.replace("swizzle=128B) -> B_s", "swizzle=128B, multicast=i_b) -> B_s"), "case.te")["product"]
    made, (arguments, wanted) = (
        lower(function, "sm_100a", schedule=function.schedules[0]),
        CASES[name].arguments((264, 64, 200)),
    )
    require_right(made, arguments, wanted, seed=1)
    assert not list(undecided(made.function, made.plan))


def test_more_columns_than_there_are_are_refused() -> None:
    text = CASES["n256"].text.replace("split(i, 128)", "split(i, 512)").replace("pipeline(k_o, stages=4)", "")
    text = text.replace("swizzle=128B) -> A_s", "swizzle=128B, box=(128, 64)) -> A_s")
    function = parse(text, "case.te")["product"]
    with pytest.raises(TexprError, match="1024 columns of tensor memory, and a multiprocessor has 512"):
        lower(function, "sm_100a", schedule=function.schedules[0])
