"""Every rule of maps, tiles and barriers, each with a planted bug that it catches; texts that are right are left alone."""

from __future__ import annotations

import pytest
from tests.backends.tile_texts import BULK, LOAD, REDUCE, RING, ROWS, SHARED, STORE, TRANSPOSE
from tests.backends.tiles import TILED
from tests.instr.pairs.test_rules import BROKEN as PAIR_RULES
from tests.instr.tensor_memory.test_rules import BROKEN as COLUMN_RULES
from tests.ir.engine_rules import ENGINE_RULES

from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.tile_verify import TILE_HEAD_RULES
from texpr.ir.kernel.verify import verify
from texpr.ir.value.structure import same
from texpr.isa.registry import resolve
from texpr.support.diagnostic import CompilerBug


@pytest.mark.parametrize("name", TILED)
def test_cases_are_well_formed(name: str) -> None:
    plan = TILED[name].plan
    verify(plan, resolve(TILED[name].targets[0]))
    assert same(parse_plan(plan_text(plan)), plan)


PLACED = LOAD.replace("at 128", "at 128 from 0").replace("full: u64[1]", "full: u64[1] from 2048")
BESIDE = "array shared u: f32[4] from 2032 "

RELEASED = "    barrier cluster\n    mbarrier release full[0] blocks 3\n    let"

PLANTED = [
    ("arrays_lie_right", LOAD, "at 128", "at 96", "tile is aligned to 96 bytes"),
    ("arrays_lie_right", LOAD, "full: u64[1]", "full: i64[1]", "full holds barriers, which are u64 in shared memory"),
    ("shared_places_may_meet", PLACED, "from 2048", "from 2032", "tile lies where full does"),
    ("shared_places_may_meet", PLACED, "array shared full", BESIDE + "array shared full", "tile lies where u does"),
    ("maps_keep_the_rules", LOAD, "box [32, 16]", "box [32, 512]", "xm: box 1: 1 <= box <= 256"),
    ("maps_keep_the_rules", LOAD, "box [32, 16]", "box [3, 16]", "xm: inner box: the innermost row of a box is a"),
    ("maps_keep_the_rules", TRANSPOSE, "swizzle 128", "swizzle 64", "xm: inner box: the innermost row of a box is at most"),
    ("maps_keep_the_rules", LOAD, "steps [1, 1]", "steps [1, 9]", "xm: element stride 1: 1 <= element stride <= 8"),
    ("maps_keep_the_rules", LOAD, "steps [1, 1]", "steps [2, 1]", "xm: element stride 0: the innermost element"),
    ("maps_keep_the_rules", RING, "strides [1024]", "strides [1020]", "xm: stride 1: every stride but the innermost is"),
    ("maps_keep_the_rules", RING, "strides [1024]", "strides []", "xm: strides: each dimension has its size"),
    ("maps_keep_the_rules", RING, "steps [1, 1]", "steps [1]", "xm has 2 sizes, 2 extents of a box and 1 steps"),
    ("maps_keep_the_rules", RING, "steps [1, 1]", "steps [1, 1] swizzle 48", "xm: 48 is not a valid Swizzle"),
    ("maps_keep_the_rules", RING, "steps [1, 1]", "steps [1, 1] interleave 16", "xm: rank: a tensor map has 1 to 5 dimensions"),
    ("map_is_there", LOAD, "prefetch xm", "prefetch ym", "there is no map ym"),
    ("barriers_are_barriers", LOAD, "u64[1] barriers", "u64[1]", "full holds no barriers"),
    ("barriers_are_barriers", BULK, "let v: f32 = tile[63 - t]", "let v: f32 = (full[0] as f32)", "barriers, not numbers"),
    ("barrier_counts_fit", LOAD, "full[0] count 1", "full[0] count 0", "cannot wait for 0 arrivals"),
    ("barrier_counts_fit", LOAD, "bytes 2048", "bytes 1048576", "cannot wait for 1048576 bytes"),
    ("barrier_counts_fit", LOAD, "parity 0", "parity 2", "2 is not known to be 0 or 1"),
    ("barrier_counts_fit", RING, "wait full[i % 3] parity (i / 3) % 2", "wait full[i % 3] parity i / 3", "not known to be 0"),
    ("barrier_is_of_the_cluster", SHARED, "    barrier cluster\n    let", RELEASED, "a cluster has 2 blocks, not 3"),
    ("indices_are_in_scope", LOAD, "xm[32 * q - 4, ", "xm[32 * r, ", "no r in scope"),
    ("tile_fits_its_map", LOAD, "xm[32 * q - 4, 16 * p - 1]", "xm[q]", "xm has 2 dimensions, and is given 1 coordinates"),
    ("tile_fits_its_map", LOAD, "tile: f32[16, 32]", "tile: i32[16, 32]", "tile holds i32, x f32"),
    ("tile_fits_its_map", LOAD, "tile: f32[16, 32]", "tile: f32[15, 32]", "2048 bytes do not lie in tile, which has 1920"),
    ("tile_fits_its_map", LOAD, "load tile[0, 0]", "load tile[1, 0]", "2048 bytes do not lie in tile, which has 2048"),
    ("tile_fits_its_map", LOAD, "at 128", "at 64", "tile is aligned to 64 bytes, and a tile to 128"),
    ("tile_fits_its_map", TRANSPOSE, "at 1024", "at 512", "tile is aligned to 512 bytes, and a tile to 1024"),
    ("tile_fits_its_map", RING, "load stage[i, 0]", "load stage[i, 4]", "begins 16 bytes behind a multiple of 128"),
    ("tile_fits_its_map", LOAD, "array shared tile", "array local tile", "tile is no shared array"),
    ("tile_fits_its_map", ROWS, "I[p, 2], I[p, 3] arr", "I[p, 2] arr", "in boxes of one row, and not 3 of"),
    ("tile_fits_its_map", ROWS, "J[p, 2], J[p, 3] =", "J[p, 2] =", "in boxes of one row, and not 3 of"),
    ("tile_fits_its_map", ROWS, "box [32, 1] steps [1, 1] swizzle", "box [32, 2] steps [1, 1] swizzle", "and not 4 of zm"),
    ("tile_fits_its_map", ROWS, "zm[32 * q] rows", "zm[32 * q, p] rows", "zm has 2 dimensions, and is given 2 coordinates"),
    ("tile_fits_its_map", ROWS, "tensor store", "tensor reduce add", "four rows are stored, and not combined"),
    ("tile_fits_its_map", ROWS, "J: i32", "J: i64", "rows are numbered by i32"),
    ("tile_fits_its_map", ROWS, "made: f32[4, 32]", "made: f32[3, 32]", "512 bytes do not lie in made, which has 384"),
    ("indices_are_in_scope", ROWS, "zm[32 * q]", "zm[32 * r]", "no r in scope"),
    ("peers_are_there", SHARED, "[0, 1] from 0", "[0, 1] from u", "block u + 1 is not known to be one of the cluster's 2"),
    ("peers_are_there", SHARED, "[0, 1]", "[1, 0]", "peers [1, 0] do not rise from 0"),
    ("peers_are_there", SHARED, "    barrier cluster\n    let", "    barrier block\n    let", "do not meet before"),
    ("peers_are_there", SHARED, "    barrier cluster\n    let", "    barrier cluster relaxed\n    let", "do not meet before"),
    ("tile_is_combined_by_the_engine", REDUCE, "reduce add", "reduce mul", "no tile is reduced by mul"),
    ("tile_is_combined_by_the_engine", REDUCE, "reduce add", "reduce max", "no tile of f32 is reduced by max"),
    ("stored_tensor_may_be_written", STORE, "    writes z\n", "", "z is not said to be written"),
    ("bulk_copy_is_of_one_run", BULK, "tile[0] = x[64 * p] count 64", "tile[0] = x[64 * p] count 3", "no multiple of 16"),
    ("bulk_copy_is_of_one_run", BULK, " count 64 arrives full[0]", " count 64", "arrives at a barrier, and no other does"),
    ("bulk_copy_is_of_one_run", BULK, "tile: f32[64]", "tile: f32[64] at 8", "tile is aligned to 8 bytes, and a tile to 16"),
    ("bulk_copy_is_of_one_run", BULK, "arrives full[0]", "exactly 6 arrives full[0]", "6 of 64 elements of f32 are no"),
    ("bulk_copy_is_of_one_run", BULK, "arrives full[0]", "exactly 68 arrives full[0]", "or not among them"),
    ("bulk_copy_is_of_one_run", BULK, "bulk tile", "bulk reduce add tile", "to shared memory combines nothing"),
    ("run_is_combined_by_the_engine", BULK, "bulk z", "bulk reduce max z", "no tile of f32 is reduced by max"),
    ("indices_are_in_scope", BULK, "bytes 256", "bytes 256 exactly 4 * r", "no r in scope"),
    ("run_is_waited_for", BULK, "        wait_bulk 0\n", "", "the kernel waits for no stores of tiles"),
    ("groups_are_there_and_some_are_left", STORE, "        commit_bulk\n", "", "the kernel commits no stores of tiles"),
    ("tile_is_waited_for", STORE, "        wait_bulk 0 read covers WAR tile\n", "", "waits for no stores of tiles"),
    ("tile_is_waited_for", LOAD, "    mbarrier wait full[0] parity 0 covers RAW tile\n", "", "waits for no copies"),
    ("barrier_waited_for_is_made", LOAD, "        mbarrier init full[0] count 1\n", "", "the kernel makes no barriers"),
    ("groups_are_there_and_some_are_left", STORE, "wait_bulk 0", "wait_bulk -1", "-1 groups cannot be left"),
    ("fence_is_known", STORE, "fence async", "fence all", "there is no fence all"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "text", "old", "new", "message"), PLANTED)
def test_planted_bug_is_caught(rule: str, text: str, old: str, new: str, message: str) -> None:
    assert old in text
    with pytest.raises(CompilerBug) as caught:
        verify(parse_plan(text.replace(old, new)))
    assert f"{rule}: " in str(caught.value) and message in str(caught.value)


def test_every_rule_has_a_planted_bug() -> None:
    general = {"barriers_are_barriers", "indices_are_in_scope"}
    rules = {rule.__name__ for rule in (*ENGINE_RULES, *TILE_HEAD_RULES)} - COLUMN_RULES.keys() - PAIR_RULES.keys()
    assert rules | general == {case[0] for case in PLANTED}
