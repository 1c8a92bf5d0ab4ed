"""Blocks that go through tiles, one after the other: rings of slots go on from one tile to the next, with roles and without."""

from __future__ import annotations

import re

import pytest
from tests.machine_code import built, code_of, serialised, spills_nothing
from tests.planted import open_of as left_of
from tests.planted import plain
from tests.schedule.rows import open_of
from tests.schedule.tiles import CASES, PRODUCT, by_blocks, compiled, wrong

from texpr.driver import lower, parse
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.program import text
from texpr.support.diagnostic import TexprError

TURNS = (0, 1, 2, 3, 4, 7)
"""Of a tile, for a ring of three slots: none, one, fewer than it has, as many, one more, and more."""

TILES = (8, 64, 136, 330)
"""Columns of the result: of 1, 1, 3 and 6 tiles, the last of which may be ragged."""

RUNS = [
    pytest.param(name, turns, columns, marks=() if columns == 136 and (name == "late" or turns == 4) else pytest.mark.long)
    for name in CASES
    for turns in TURNS
    for columns in TILES
]


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    """For all sizes."""
    assert open_of(compiled(name)) == []
    assert not left_of(compiled(name), parse_plan(plain(compiled(name).plan)))


@pytest.mark.parametrize("name, turns, columns", RUNS)
def test_right_in_any_order(name: str, turns: int, columns: int) -> None:
    sizes = {"M": 40, "N": -(-columns // 8) * 8, "K": 64 * turns - (8 if turns > 1 else 0)}
    for seed in (None, 1):
        assert wrong(compiled(name), compiled(name).plan, sizes, seed) is None


def test_each_block_has_its_own_number_of_turns() -> None:
    printed = text.print_function(compiled("late").function)
    assert "par 2 |j_c| #bind(grid.x) {" in printed and "seq (N - 64 * j_c + 127) / 128 |j_t| {" in printed
    assert "j_c + 2 * j_t" not in printed  # nothing asks whether there is a tile


def test_copies_of_the_next_tile_do_not_wait_for_results() -> None:
    """In the source each role goes through the tiles by itself, and there is no barrier of the block but the first."""
    source = compiled("late").source
    assert source.count("for (int j_t = 0") == 2 and source.count("__syncthreads") == 1
    copies = source[source.index("if (warp >= 4)") :]
    assert "tx_load_tensor" in copies and "tx_store" not in copies


def test_the_last_slots_of_a_tile_are_released_behind_its_loop() -> None:
    for name, releases in (("late", 2), ("two late", 3), ("at once", 1)):
        assert plain(compiled(name).plan).count("mbarrier release") == releases


@pytest.mark.parametrize("name", ["late", "registers", "no roles, at once"])
def test_machine_code(name: str) -> None:
    code = code_of(binary := built(compiled(name).source))
    assert len(binary.kernels) == 1 and spills_nothing(binary) and not serialised(binary)
    assert len(re.findall("USETMAXREG", code)) == (2 if name == "registers" else 0)


REFUSED = {
    "persistent(j_b) -> (j_c, j_t)": "needs `blocks=N`",
    "persistent(j_b, blocks=0) -> (j_c, j_t)": "takes an integer of 1 or more here, not 0",
    "persistent(k_o, blocks=2) -> (j_c, j_t)": "the iterations of `k_o` come in order (`seq`), so blocks cannot share them",
    "persistent(j_b, blocks=2) -> (j_c, j_t)  bind(j_t, grid.z)": "the iterations of `j_t` come in order (`seq`)",
}
"""What is said of other directives."""


@pytest.mark.parametrize("said", REFUSED)
def test_what_does_not_fit_is_refused(said: str) -> None:
    schedule = by_blocks("pipeline(k_o, stages=3)").replace("persistent(j_b, blocks=2) -> (j_c, j_t)", said)
    function = parse(PRODUCT + schedule)["f"]
    with pytest.raises(TexprError) as raised:
        lower(function, "sm_90a", schedule=function.schedules[0])
    assert REFUSED[said] in str(raised.value)
