"""Rows whose products the planner gives to warpgroups, one after the other: which; proved, and their numbers are right.

What decides is the relation: attention, and two layers of a network, are rows with two products each.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from bench.common.attention import online
from tests.machine_code import built, spills_nothing
from tests.schedule.linked import exact
from tests.schedule.rows import differences, open_of

from texpr.driver import Compiled, load, lower, parse
from texpr.ir import program as ir
from texpr.isa.registry import resolve
from texpr.planner.follow import Refused
from texpr.planner.nest import NOMINAL, nests
from texpr.planner.strategies import joined, linked
from texpr.planner.strategies.linked import trips
from texpr.planner.strategy import Subject
from texpr.schedule.apply import start
from texpr.support.diagnostic import Diagnostic, TexprError
from texpr.support.record import Record, replace
from texpr.support.span import NOWHERE

WIDE = " align(16)"

LAYERS = """\
fn f(X: bf16[B, 64] align(16), W: bf16[64, 128] align(16), V: bf16[128, 64] align(16), b: f32[128]): f32[B, 64] {
    new Y: f32[B, 64]
    par B |i| {
        new h: f32[128]
        new g: bf16[128]
        new y: f32[64]
        par 128 |j| { h[j] = 0.0 }
        par 128 |js| { seq 64 |k| reduce(h) { h[js] += X[i, k] * W[k, js] } }
        par 128 |jr| { g[jr] = bf16(max(h[jr] + b[jr], 0.0)) }
        par 64 |n| { y[n] = 0.0 }
        par 64 |ns| { seq 128 |t| reduce(y) { y[ns] += g[t] * V[t, ns] } }
        par 64 |no| { Y[i, no] = y[no] }
    }
    return Y
}
"""
"""Two layers of a network: columns of W are neighbours in memory, those of keys are not."""


class Case(Record):
    """A program, its open size, and the instructions that its products get. `apart`: as in `tests.schedule.test_linked`."""

    text: str
    first: str
    second: str
    size: str = "L"
    apart: float = 0.0


NAMES = ("wgmma_m64n64k16_f32_bf16", "wgmma_m64n64k16_f32_bf16_ar_bn")

CASES = {
    "whole numbers": Case(exact(64, 64, WIDE), *NAMES),
    "rows of two lines": Case(exact(128, 64, WIDE), NAMES[0], "wgmma_m64n128k16_f32_bf16_ar_bn"),
    "more keys": Case(exact(64, 128, WIDE), "wgmma_m64n128k16_f32_bf16", NAMES[1]),
    "online, of f16": Case(
        online("f16", 64, 64, align=WIDE), "wgmma_m64n64k16_f32_f16", "wgmma_m64n64k16_f32_f16_ar_bn", apart=2**-10
    ),
    "causal": Case(online(d=64, keys=64, causal=True, align=WIDE), *NAMES, apart=2**-7),
    "two layers": Case(LAYERS, "wgmma_m64n128k16_f32_bf16_bn", NAMES[1], "B"),
}  # fmt: skip


@cache
def compiled(name: str) -> Compiled:
    return lower(parse(CASES[name].text)["f"], "sm_90a", schedule="auto")


def given_to(made: Compiled) -> list[str]:
    """The instructions of products, in the order of the schedule."""
    directives = () if made.schedule is None else made.schedule.directives
    return [str(each.args[3].value) for each in directives if each.name == "mma"]


@pytest.mark.parametrize("name", CASES)
def test_both_products_are_given_to_warpgroups(name: str) -> None:
    made, case = compiled(name), CASES[name]
    assert given_to(made) == [case.first, case.second]
    assert made.planned is not None and made.planned.nests[0].candidate is not None
    told = made.planned.nests[0].candidate.data()
    assert (told["team"], told["instruction"]) == ("warpgroup", f"{case.first}, {case.second}")


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    made = compiled(name)
    assert open_of(made) == []


@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str) -> None:
    case, made = CASES[name], compiled(name)
    for length in (0, 1, 65, 130):
        assert differences(made, parse(case.text)["f"], {case.size: length}, case.apart) == []


KEY = "K: bf16[H, L, 64] align(16)"

TURNED = (
    exact(64, 64, WIDE)
    .replace(KEY, "K: bf16[H, 64, L] align(16)")
    .replace("pad(K, (0, 0, 0), (0, 63, 0), 0.0)", "pad(K, (0, 0, 0), (0, 0, 63), 0.0)")
    .replace("Kp[h, 64 * kb + js, ds]", "Kp[h, ds, 64 * kb + js]")
)
"""Rows of L keys, of which nobody promises that they are whole chunks."""

OTHERS = {
    "nothing promised": (exact(64, 64), "sm_90a"),
    "keys that begin anywhere": (exact(64, 64, WIDE).replace(KEY, "K: bf16[H, L, 64]"), "sm_90a"),
    "rows of half a line": (exact(32, 64, WIDE), "sm_90a"),
    "no tensor core of a warpgroup": (exact(64, 64, WIDE), "sm_90"),
    "another machine": (exact(64, 64, WIDE), "sm_80"),
    "keys that are turned": (TURNED, "sm_90a"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_what_warpgroups_do_not_do(name: str) -> None:
    """Warps do it."""
    text, target = OTHERS[name]
    assert set(given_to(lower(parse(text)["f"], target, schedule="auto"))) == {"mma_m16n8k16_f32_bf16"}


def test_sums_that_are_rounded_as_ieee_says() -> None:
    text = exact(64, 64, WIDE).replace("reduce(acc) {", "reduce(acc) #ieee {").replace("reduce(s) {", "reduce(s) #ieee {")
    assert given_to(lower(parse(text)["f"], "sm_90a", schedule="auto")) == []


def subject(text: str) -> Subject:
    """The nest of a program."""
    state = start(parse(text)["f"], resolve("sm_90a"))
    ((par, nest),) = [each for each in nests(state.function) if isinstance(each[0], ir.Par)]
    return Subject(par, nest, state)


@pytest.mark.parametrize("wide", [64, 128])
def test_the_bound_decides(wide: int) -> None:
    """Of the same rows: matrix units of warps do 0.63 of what those of warpgroups do, and read more of shared memory."""
    about = subject(online(d=wide, keys=64, align=WIDE))
    one, other = (each.STRATEGY.propose(about, ()) for each in (joined, linked))
    assert one is not None and other is not None and 0 < one.cost < 0.75 * other.cost


@pytest.mark.parametrize("name", ["rows of two lines", "causal"])
def test_nothing_spills(name: str) -> None:
    assert spills_nothing(built(compiled(name).source))


def directives(made: Compiled) -> list[str]:
    """The names of an automatic schedule's directives."""
    return [] if made.schedule is None else [each.name for each in made.schedule.directives]


OVERLAPS = {
    "rows of a line": (online(d=64, keys=64, align=WIDE), 2),
    "rows of two lines": (online(d=128, keys=64, align=WIDE), 3),
    "more keys": (online(d=128, keys=128, align=WIDE), 2),
}  # fmt: skip
"""And how many warpgroups a block has."""


@pytest.mark.parametrize("name", OVERLAPS)
def test_turns_overlap(name: str) -> None:
    text, groups = OVERLAPS[name]
    made = lower(parse(text)["f"], "sm_90a", {"H": 64, "L": 4096}, schedule="auto")
    assert directives(made)[-3:] == ["pipeline", "overlap", "roles"] or name == "rows of a line"
    assert made.planned is not None and made.planned.nests[0].candidate is not None
    told = made.planned.nests[0].candidate.data()
    assert told["overlaps"] and set(told["tile"].values()) == {64 * groups}


@pytest.mark.parametrize("d, last", [(64, "pipeline"), (128, "roles")])
def test_turns_of_masked_rows_overlap_with_warps_that_copy_alone(d: int, last: str) -> None:
    """Blocks of theirs have some turns, and others many: one more is a larger part of them."""
    text = online(d=d, keys=64, causal=True, align=WIDE, block=128)
    made = lower(parse(text)["f"], "sm_90a", {"H": 64, "L": 4096}, schedule="auto")
    assert directives(made)[-1] == last


def test_one_product_behind_the_other_has_no_turns() -> None:
    assert "overlap" not in directives(compiled("two layers"))


def test_what_is_in_memory_between_the_products_is_not_late() -> None:
    """Here rows are of half a line, so that warps do it, whose instructions wait by themselves."""
    assert "overlap" not in directives(lower(parse(exact(32, 64, WIDE))["f"], "sm_90a", schedule="auto"))


def refused(name: str) -> Refused:
    reason = TexprError([Diagnostic("E0906", NOWHERE, "for a reason", ())])
    return Refused(ir.Directive(name, (), (), NOWHERE), reason, None)


def test_what_is_tried_after_refusals() -> None:
    """Where turns may not overlap, or warps have no work of their own, no other number of warpgroups is tried with that;
    otherwise the next one is."""
    about = subject(online(d=128, keys=64, align=WIDE))

    def tried(*names: str, in_step: bool = False) -> tuple[int, bool, bool] | None:
        found = joined.STRATEGY.propose(replace(about, in_step=in_step), [refused(name) for name in names])
        if found is None:
            return None
        assert isinstance(found.tile, joined.Teams)
        return found.tile.rows, found.tile.late is not None, found.tile.apart is not None

    assert tried() == (192, True, True)
    assert tried("reorder") == (128, True, True)
    assert tried("overlap") == (128, False, False)
    assert tried("roles") == tried(in_step=True) == (192, True, False)
    assert tried("overlap", "mma", "mma") is None


@pytest.mark.parametrize("block", [64, 128])
def test_rows_of_a_block_have_as_many_turns(block: int) -> None:
    """Of a triangle by blocks of rows."""
    found = joined.STRATEGY.propose(subject(online(d=64, keys=64, align=WIDE, causal=True, block=block)), ())
    assert found is not None and isinstance(found.tile, joined.Teams) and found.tile.rows == block


def test_turns_of_a_triangle_are_those_of_its_middle_row() -> None:
    row = subject(online(d=64, keys=64, align=WIDE, causal=True)).par
    while row.body and isinstance(row.body[0], ir.Par):
        row = row.body[0]
    turn = next(each for each in row.body if isinstance(each, ir.Seq))
    assert (trips(row.extent), trips(turn.extent), trips(turn.extent, row)) == (NOMINAL, NOMINAL, NOMINAL // 2 // 64 + 1)


def test_few_rows_are_shared_out_in_smaller_blocks() -> None:
    made = lower(parse(online(d=128, keys=64, align=WIDE))["f"], "sm_90a", {"H": 2, "L": 4096}, schedule="auto")
    assert made.planned is not None and made.planned.nests[0].candidate is not None
    assert set(made.planned.nests[0].candidate.data()["tile"].values()) == {64}


ALONE = {"H": 1, "L": 192, "D": 64}
"""So few rows that a multiprocessor has one warpgroup."""

TILES = Path(__file__).parents[2] / "bench" / "problems" / "attention_tiles.te"


@cache
def alone() -> Compiled:
    return lower(load(TILES)["attention"], "sm_90a", ALONE, schedule="auto")


def test_of_a_warpgroup_alone_what_rescales_is_late_too() -> None:
    """Found, not written: a sum runs a turn late with what it waits for, behind the next scores."""
    made = alone()
    assert made.schedule is not None and made.planned is not None and made.planned.nests[0].candidate is not None
    (overlap,) = [each for each in made.schedule.directives if each.name == "overlap"]
    first, second = (each.args[0].value for each in made.schedule.directives if each.name == "mma")
    assert str(overlap.args[2].value) == str(first) and str(overlap.args[1].value) != str(second)
    turn = made.planned.nests[0].candidate.data()["turn"]
    assert turn["teams"] == 1 and turn["clocks"] == pytest.approx(turn["interval"], rel=0.01)
    assert [(each["writes"], each["late"]) for each in turn["order"]][:3] == [("s", 0), ("acc", 1), ("acc", 1)]


@pytest.mark.long
def test_of_a_warpgroup_alone_proved() -> None:
    assert open_of(alone()) == []


@pytest.mark.long
def test_of_a_warpgroup_alone_emulated() -> None:
    assert differences(alone(), load(TILES)["attention"], {}, 2**-7) == []


@pytest.mark.long
def test_of_a_warpgroup_alone_by_nvcc() -> None:
    """Nothing spills, and ptxas waits behind no product by itself."""
    assert spills_nothing(built(alone().source))
