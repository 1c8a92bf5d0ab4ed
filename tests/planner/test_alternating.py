"""Groups that take tiles in turn, found: where tiles have few turns and much to store, and larger ones no whole clusters."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.machine_code import built, serialised, spills_nothing
from tests.planner.test_going import Case, said
from tests.schedule.rows import open_of

from texpr.driver import Compiled, lower, parse
from texpr.isa.registry import DEVICES
from texpr.isa.speed import Figure
from texpr.model.tiles import Goes
from texpr.planner.tensor.going import alternated
from texpr.support.record import replace

WORDS = {
    "a block": Case((8256, 8256, 256), out="f32"),
    "a cluster": Case((8256, 4160, 320), out="f32"),
}
"""Of rows and columns that are odd numbers of tiles."""

SMALL = Case((576, 576, 256), out="f32")
"""Of a device with two multiprocessors, and their share of the second-level cache."""


@cache
def found(name: str) -> Compiled:
    return lower(parse(WORDS[name].text)["f"], "sm_90a", schedule="auto")


@cache
def small() -> Compiled:
    device = DEVICES["sm_90a"]
    l2 = Figure((device.bandwidth.l2.value or 0) * 2 / (device.multiprocessors.value or 1), "of a test")
    few = replace(device, multiprocessors=Figure(2.0, "of a test"), bandwidth=replace(device.bandwidth, l2=l2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("texpr.planner.tensor.cores.DEVICES", {**DEVICES, "sm_90a": few})
        return lower(parse(SMALL.text)["f"], "sm_90a", schedule="auto")


@pytest.mark.parametrize("name", ["a block", pytest.param("a cluster", marks=pytest.mark.long)])
def test_groups_take_turns(name: str) -> None:
    text = said(found(name))
    assert "alternate(tile_t, groups=2)" in text and "roles(k_o, copy=1, compute=2)" in text, text
    assert ("multicast=tile_b" in text) is (name == "a cluster")


@pytest.mark.long
@pytest.mark.parametrize("name", WORDS)
def test_proved(name: str) -> None:
    assert open_of(found(name)) == []


@pytest.mark.long
@pytest.mark.parametrize(
    "case", [Case((8192, 8192, 512)), Case((8192, 8192, 512), out="f32"), Case((4096, 4096, 4096))], ids=str
)
def test_where_larger_tiles_are_in_clusters_they_do_not(case: Case) -> None:
    text = said(lower(parse(case.text)["f"], "sm_90a", schedule="auto"))
    assert "persistent(" in text and "alternate(" not in text


@pytest.mark.long
def test_right() -> None:
    """In orders of threads that are not in step, on a small device."""
    assert "alternate(" in said(small())
    given, wanted = SMALL.arguments()
    for seed in (None, 1):
        ran = run_plan(small().function, small().plan, given, {}, seed=seed)
        assert ran.reports == [] and np.array_equal(ran.arrays["C"], wanted)


@pytest.mark.long
@pytest.mark.parametrize("name", WORDS)
def test_machine_code(name: str) -> None:
    binary = built(found(name).source)
    assert spills_nothing(binary) and not serialised(binary)


def test_groups_are_of_one_warpgroup_each() -> None:
    """Two of two would have no registers for their sums."""
    each = (Goes(1, stored=True), Goes(1))
    assert [way[0].groups for way in alternated(each, 1)] == [1, 2]
    assert [way[0].groups for way in alternated(each, 2)] == [1]
    assert [way[0].groups for way in alternated((Goes(stored=True),), 1)] == [1]


def test_results_of_rows_that_are_no_whole_swizzles_leave_by_lanes() -> None:
    """A tile of 96 columns of 2 bytes, which the engine does not store, is no reason to leave warpgroups out."""
    text = said(lower(parse(Case((32768, 512, 256)).text)["f"], "sm_90a", schedule="auto"))
    assert "wgmma_" in text and "persistent(" in text
