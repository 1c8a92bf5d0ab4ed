"""What is waited for between tiles, beside published times; what tiles bring from memory, beside tiles counted one by one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.model.test_published import NEAR, OPERATIONS, RUNGS, of_rung

from texpr.isa.registry import DEVICES
from texpr.isa.speed import UNKNOWN, Between, Figure
from texpr.model.tiles import Goes, Strips, between, brought
from texpr.support.record import replace

DEVICE = DEVICES["sm_90a"]
TILES = 8192 // 128 * 8192 // 256 / 132
"""Of 128 × 256, for each multiprocessor."""

RESULTS = 128 * 256 * 2.0
"""Bytes of results of one of them."""

GOES = {4: Goes(), 5: Goes(128), 6: Goes(128), 7: Goes(128), 11: Goes(128, 4, True)}
"""How blocks of the ladder's kernels of larger tiles go through them."""

LADDER = [rung for rung in RUNGS if rung["kernel"] in GOES]

FASTER = {"4-5": "waits", "5-6": "neither", "6-7": "l2", "7-11": "waits"}
"""What is seen of each step: cheaper barriers in a turn are not."""


def of_kernel(rung: dict[str, object]) -> tuple[float, float]:
    """Microseconds of the busiest unit, and of waiting."""
    waits = between(GOES[int(str(rung["kernel"]))], TILES, RESULTS, DEVICE)
    assert waits is not None
    return of_rung(rung).us, waits


def test_steps_that_a_bound_does_not_tell_apart_are_ranked_as_they_were_measured() -> None:
    found: dict[str, str] = {}
    for one, other in pairwise(LADDER):
        (bound, waits), (less, fewer) = of_kernel(one), of_kernel(other)
        seen = "l2" if bound > less * (1 + NEAR) else "waits" if waits > fewer else "neither"
        found[f"{one['kernel']}-{other['kernel']}"] = seen
        assert bound + waits >= less + fewer
    assert found == FASTER


@pytest.mark.parametrize("rung", LADDER, ids=lambda rung: f"kernel {rung['kernel']}")
def test_with_waits_no_time_is_above_that_published(rung: dict[str, object]) -> None:
    assert sum(of_kernel(rung)) <= OPERATIONS / float(str(rung["tflops"])) / 1e6


@pytest.mark.parametrize(("one", "other"), [(4, 5), (7, 11)])
def test_no_more_is_said_to_be_gained_than_was(one: int, other: int) -> None:
    at = {rung["kernel"]: rung for rung in RUNGS}
    published = [OPERATIONS / at[n]["tflops"] / 1e6 for n in (one, other)]
    made = [of_kernel(at[n])[1] for n in (one, other)]
    assert 0 < made[0] - made[1] <= 1.1 * (published[0] - published[1])


def test_groups_that_take_turns_wait_for_the_last_results_alone() -> None:
    """Of many tiles all but the last ones are brought to memory, or stored by lanes, beside products of another group."""
    for stored in (False, True):
        few, many = (between(Goes(132, stored=stored, groups=2), tiles, RESULTS, DEVICE) for tiles in (1.0, 16.0))
        assert few == many == between(Goes(132, stored=stored), 1.0, RESULTS, DEVICE)
        waits = [between(Goes(132, stored=stored), tiles, RESULTS, DEVICE) for tiles in (1.0, 2.0, 16.0)]
        assert None not in waits and waits == sorted({*waits}, key=lambda each: each or 0.0)


def test_the_engine_stores_no_sooner_than_lanes_bring_it_results() -> None:
    """At 128 bytes a clock at best."""
    clock = DEVICE.clock.value
    assert clock is not None
    one, more = (between(Goes(132, stored=True), tiles, RESULTS, DEVICE) for tiles in (4.0, 5.0))
    assert one is not None and more is not None and more - one == pytest.approx(RESULTS / 128 / clock)


def test_nothing_is_said_of_a_device_that_nobody_measured() -> None:
    assert between(Goes(), 4.0, RESULTS, DEVICES["sm_80"]) is None
    assert between(Goes(), 4.0, RESULTS, replace(DEVICE, between=Between(Figure(1.0, "of a test"), UNKNOWN))) is None


def one_by_one(goes: Goes, down: int, across: int, row: float, column: float, blocks: int) -> float:
    """Strips of each round of blocks, as sets of numbers."""
    height = down if goes.group == 0 else goes.group
    order = sorted((i // height, j, i % height) for i in range(down) for j in range(across))
    if goes.group == 1:
        order = [(i, j, 0) for i in range(down) for j in range(across)]
    total = 0.0
    for first in range(0, len(order), blocks):
        part = order[first : first + blocks]
        total += len({g * height + line for g, _, line in part}) * row + len({j for _, j, _ in part}) * column
    return total


SIZES = [(32, 16, 132), (64, 32, 132), (33, 17, 132), (16, 128, 132), (128, 8, 264), (5, 3, 4), (1, 40, 7), (40, 1, 7)]


@pytest.mark.parametrize("group", [0, 1, 2, 4, 8, 16])
@pytest.mark.parametrize(("down", "across", "blocks"), SIZES)
def test_what_is_brought(down: int, across: int, blocks: int, group: int) -> None:
    """No less than the strips of each round, and not much more; where a cache holds all, each once."""
    if group > 1 and down % group:
        return
    goes, row, column = Goes(blocks, group), 3.0e6, 5.0e6
    small = replace(DEVICE, cache=Figure(1.0, "of a test"))
    strips = Strips(down, across, row, column)
    found, exact = brought(strips, goes, blocks, small), one_by_one(goes, down, across, row, column, blocks)
    assert exact <= found <= 1.35 * exact + 2 * (row + column)
    large = replace(DEVICE, cache=Figure(1e12, "of a test"))
    assert brought(strips, goes, blocks, large) == down * row + across * column


def test_groups_of_rows_bring_less_than_lines() -> None:
    """8192³ by tiles of 128 × 256: strips of 2 and 4 MiB, 132 tiles at once."""
    lines, grouped = (brought(Strips(64, 32, 2.0**21, 2.0**22), Goes(132, n), 132, DEVICE) for n in (1, 8))
    assert grouped < 0.7 * lines


def test_what_products_share_is_brought_once() -> None:
    """64 products of one matrix, which stays in the cache, with others, which do not."""
    strips = Strips(down=4, across=2, row=2.0**20, column=2.0**20, many=64, rows=64, columns=1)
    assert brought(strips, Goes(), 132, DEVICE) == 64 * 4 * 2.0**20 + 2 * 2.0**20
