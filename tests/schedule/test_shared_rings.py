"""Rings that blocks of a cluster share, with roles: each copies a part for all, and all release a slot before it is filled.

The blocks may have a tile each, or go through tiles; parts of one operand go along one loop of the grid, or of both along both.
"""

from __future__ import annotations

import re

import pytest
from tests.ir.steps_text import check
from tests.machine_code import built, code_of, serialised, spills_nothing
from tests.planted import open_of as left_of
from tests.planted import plain
from tests.schedule.rows import open_of
from tests.schedule.shared import ALONE, CASES, LATE, PRODUCT, ROLES, SHARED, compiled, in_clusters
from tests.schedule.tiles import wrong

from texpr.driver import lower, parse
from texpr.ir.kernel.parse import parse_plan
from texpr.support.diagnostic import TexprError

TURNS = (0, 1, 2, 3, 4, 7)
"""Of a tile, for a ring of three slots: none, one, fewer than it has, as many, one more, and more."""

RUNS = [
    pytest.param(name, turns, marks=() if (name, turns) in (("tiles", 4), ("four blocks", 3)) else pytest.mark.long)
    for name in CASES
    for turns in TURNS
]


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    """For all sizes, of the text of a plan alone, too; and a plan is made of the text of its steps."""
    made = compiled(name)
    assert open_of(made) == []
    assert not left_of(made, parse_plan(plain(made.plan)))
    check(made.plan, made.notes)


@pytest.mark.parametrize("name, turns", RUNS)
def test_right_in_any_order(name: str, turns: int) -> None:
    sizes = {"M": 128, "N": 256, "K": 64 * turns - (8 if turns > 1 else 0)}
    for seed in (None, 1, 2):
        assert wrong(compiled(name), compiled(name).plan, sizes, seed) is None


def test_a_slot_waits_for_the_readers_of_all_blocks() -> None:
    """A phase is an arrival of each warp of each block; of a ring that is a block's own, of its warps alone."""
    for name, blocks in (("tiles", 2), ("four blocks", 4), ("nothing shared", 1)):
        text = plain(compiled(name).plan)
        assert {*re.findall(r"_empty\[\d\] count (\d+)", text)} == {str(4 * blocks)}
        assert {*re.findall(r"mbarrier release .*\]( blocks \d+)?", text)} == {f" blocks {blocks}" if blocks > 1 else ""}
        assert text.count("barrier cluster") == (2 if blocks > 1 else 0)


def test_blocks_of_a_cluster_do_not_meet_between_turns() -> None:
    """They do before the first copy, and behind all."""
    source = compiled("stored").source
    assert source.count("tx_cluster_sync") == 2 and "tx_cluster_meet" not in source and "__syncthreads" not in source
    assert source.index("tx_cluster_sync") < source.index("if (warp < 4) {")
    assert source.rindex("tx_cluster_sync") > source.rindex("tx_barrier_release_among<2>")


@pytest.mark.parametrize("name", ["stored", "registers", "four blocks"])
def test_machine_code(name: str) -> None:
    """What a warp releases in another block is one instruction, without a fence of the whole device in each turn."""
    code = code_of(binary := built(compiled(name).source))
    assert spills_nothing(binary) and not serialised(binary)
    assert len(re.findall("USETMAXREG", code)) == (2 if name == "registers" else 0)
    assert "MULTICAST" in code and "SYNCS.ARRIVE.TRANS64.RED" in code
    lines = code.splitlines()
    meet, fences = ([at for at, each in enumerate(lines) if word in each] for word in ("UCGABAR_ARV", "MEMBAR.ALL.GPU"))
    assert len(meet) == len(fences) == 2 and all(0 < at - fence < 6 for at, fence in zip(meet, fences, strict=True))


REFUSED = {
    "one block has a tile less": (
        PRODUCT.replace("N % 128", "N % 64"),
        in_clusters(SHARED, f"{LATE}  {ROLES}", ", multicast=j_c", ""),
        "how often `j_t` runs may differ from one of them to another",
    ),
    "no whole clusters": (
        PRODUCT.replace("M % 128", "M % 64"),
        in_clusters(ALONE, f"{LATE}  {ROLES}"),
        "grids of no whole clusters",
    ),
}
"""What is said of schedules of other sizes."""


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, schedule, reason = REFUSED[name]
    function = parse(text + schedule)["f"]
    with pytest.raises(TexprError) as raised:
        lower(function, "sm_90a", schedule=function.schedules[0])
    assert reason in str(raised.value)
