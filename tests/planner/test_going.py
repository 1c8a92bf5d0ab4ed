"""Products whose blocks go through tiles, with a warp that copies and an engine that stores, as the model finds that it pays.

A device with few multiprocessors stands for a whole one: there are as many tiles for each, and the emulator has few to go
through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering.emulated import run_plan
from tests.machine_code import built, code_of, serialised, spills_nothing
from tests.schedule.rows import open_of

from texpr.driver import Compiled, lower, parse
from texpr.ir import program as ir
from texpr.ir.program.text import print_program, print_schedule
from texpr.ir.proof import Verdict
from texpr.ir.proof.notes_text import noted, notes_text
from texpr.isa.registry import DEVICES
from texpr.isa.speed import Figure
from texpr.model.plan.work import launches
from texpr.model.tiles import Goes
from texpr.planner.tensor.going import by_parts, ordered, paired
from texpr.presburger.isl import build, maps, raw, sets
from texpr.proof.schedule import faithful
from texpr.support.record import Record, replace

NUMPY: Mapping[str, type[np.generic]] = {
    "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f8e4m3": ml_dtypes.float8_e4m3fn, "i8": np.int8,
}  # fmt: skip


SCALED, POSITIVE = "f32(s) * b[j]", "max(s + b[j], 0.0)"
"""What becomes of a sum."""


class Case(Record):
    """A product of `of`, summed up in `into` and stored as `out`: of `sizes` M, N, K, and as many of them as `batch`."""

    sizes: tuple[int, int, int]
    of: str = "bf16"
    into: str = "f32"
    out: str = "bf16"
    right: str = "N, K"
    batch: int = 0
    more: str = "s"

    @property
    def text(self) -> str:
        """The program."""
        m, n, k = self.sizes
        at, many, one = ("h, ", f"{self.batch}, ", f"par {self.batch} |h| {{ ") if self.batch else ("", "", "")
        b, shape = ("j, k", f"{n}, {k}") if self.right == "N, K" else ("k, j", f"{k}, {n}")
        reads = f"A[{at}i, k]", f"B[{at}{b}]"
        left, right = (f"i32({each})" if self.into == "i32" else each for each in reads)
        done = f"{self.out}({self.more})" if self.out != self.into else self.more
        head = f"A: {self.of}[{many}{m}, {k}] align(16), B: {self.of}[{many}{shape}] align(16), b: f32[{n}]"
        return f"""
fn f({head}): {self.out}[{many}{m}, {n}] align(16) {{
    new C: {self.out}[{many}{m}, {n}]
    {one}par {m} |i| {{ par {n} |j| {{
        new s: {self.into} = {"0" if self.into == "i32" else "0.0"}
        seq {k} |k| reduce(s) {{ s += {left} * {right} }}
        C[{at}i, j] = {done}
    }} }}{" }" if self.batch else ""}
    return C
}}
"""

    def arguments(self) -> tuple[dict[str, NDArray[Any]], NDArray[Any]]:
        """Arguments, small whole numbers, and the result."""
        m, n, k = self.sizes
        rng, outer = np.random.default_rng(3), (self.batch,) if self.batch else ()
        a, b = (rng.integers(-2, 3, (*outer, rows, k)) for rows in (m, n))
        bias = rng.integers(-3, 4, n).astype(np.float32)
        right = b if self.right == "N, K" else np.ascontiguousarray(b.swapaxes(-1, -2))
        given: dict[str, NDArray[Any]] = {"A": a.astype(NUMPY[self.of]), "B": right.astype(NUMPY[self.of]), "b": bias}
        sums = a.astype(np.float32) @ b.astype(np.float32).swapaxes(-1, -2)  # exact: sums are small
        wanted = {"s": sums, SCALED: sums * bias, POSITIVE: np.maximum(sums + bias, 0)}[self.more]
        return given, wanted.astype({**NUMPY, "f32": np.float32}[self.out])


REAL = {
    "batched": Case((1024, 1024, 1024), batch=16),
    "few terms": Case((8192, 8192, 512)),
    "few terms, f16, transposed": Case((8192, 4096, 512), of="f16", out="f16", right="K, N"),
    "ragged": Case((4000, 4080, 528)),
    "i8, batched": Case((1024, 2048, 1024), of="i8", into="i32", batch=8, more=SCALED),
    "f8, batched": Case((1024, 1024, 1024), of="f8e4m3", batch=16),
    "with a bias": Case((1024, 1024, 1024), batch=16, more=POSITIVE),
}
"""Of a whole device."""


def convolution(channels: int, filters: int) -> str:
    """A convolution of 3 × 3 with a border of zeros."""
    head = f"X: bf16[32, 56, 56, {channels}] align(16), K: bf16[3, 3, {channels}, {filters}] align(16)"
    return f"""
fn f({head}): bf16[32, 56, 56, {filters}] align(16) {{
    let Z = pad(X, (0, 1, 1, 0), (0, 1, 1, 0), 0.0)
    new Y: bf16[32, 56, 56, {filters}]
    par 32 |b| {{ par 56 |p| {{ par 56 |q| {{ par {filters} |f| {{
        new total: f32
        total = 0.0
        seq 3 |r| reduce(total) {{ seq 3 |s| reduce(total) {{ seq {channels} |c| reduce(total) {{
            total += Z[b, p + r, q + s, c] * K[r, s, c, f]
        }} }} }}
        Y[b, p, q, f] = bf16(total)
    }} }} }} }}
    return Y
}}
"""


TRANSPOSED = """
fn f(X: bf16[16, 56, 56, 256] align(16), K: bf16[2, 2, 256, 128] align(16)): bf16[16, 56, 2, 56, 2, 128] align(16) {
    new Y: bf16[16, 56, 2, 56, 2, 128]
    par 16 |b| { par 56 |p| { par 2 |r| { par 56 |q| { par 2 |s| { par 128 |f| {
        new total: f32
        total = 0.0
        seq 256 |c| reduce(total) { total += X[b, p, q, c] * K[r, s, c, f] }
        Y[b, p, r, q, s, f] = bf16(total)
    } } } } } }
    return Y
}
"""

PIXELS = {
    "a filter of 3 × 3": convolution(64, 64),
    "more channels": convolution(128, 64),
    "a filter's place by parity": TRANSPOSED,
}
"""Tiles of pixels, each of four or six indices; rows of a tile are parts of merged loops, and so are the turns of a sum."""

SMALL = {
    "batched": Case((200, 136, 192), batch=3),
    "ragged": Case((328, 264, 328)),
    "f16, transposed": Case((264, 264, 136), of="f16", out="f16", right="K, N"),
    "f8": Case((136, 264, 272), of="f8e4m3"),
    "i8": Case((264, 272, 640), of="i8", into="i32", more=SCALED),
    "with a bias": Case((264, 264, 320), more=POSITIVE),
}
"""Of a device with two multiprocessors."""


def device_of(multiprocessors: int) -> Any:
    device = DEVICES["sm_90a"]
    return {**DEVICES, "sm_90a": replace(device, multiprocessors=Figure(float(multiprocessors), "of a test"))}


@cache
def real(name: str) -> Compiled:
    return lower(parse(REAL[name].text)["f"], "sm_90a", schedule="auto")


@cache
def of_pixels(name: str) -> Compiled:
    return lower(parse(PIXELS[name])["f"], "sm_90a", schedule="auto")


@cache
def small(name: str) -> Compiled:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("texpr.planner.tensor.cores.DEVICES", device_of(2))
        return lower(parse(SMALL[name].text)["f"], "sm_90a", schedule="auto")


def said(made: Compiled) -> str:
    return "" if made.schedule is None or made.written is None else print_schedule(made.schedule, made.written)


def without_lines(source: str) -> list[str]:
    return re.sub(r"TX_AT\(\d+\)|//.*", "", source).split()


@pytest.mark.parametrize("name", [
    pytest.param(each, marks=pytest.mark.long if "few" in each else ()) for each in REAL
])  # fmt: skip
def test_blocks_share_tiles(name: str) -> None:
    text = said(real(name))
    assert re.search(r"persistent\((h, )?i_b, j_b, blocks=\d+", text) and "roles(" in text, text
    assert open_of(real(name)) == []


@pytest.mark.parametrize("out, more, columns", [("bf16", "s", 128), ("f32", "s", 64), ("bf16", POSITIVE, 128)])
def test_results_leave_in_parts_where_the_ring_is_whole_then(out: str, more: str, columns: int) -> None:
    """A tile of 64 KiB or 128 would leave room for three slots, or two."""
    made = lower(parse(Case((4096, 4096, 4096), out=out, more=more).text)["f"], "sm_90a", schedule="auto")
    text = said(made)
    assert f"split(j_m_2, {columns}) -> (j_h, j_n)" in text and "stage(C, at=j_h, via=tma" in text and "stages=4" in text, text
    assert made.planned is not None
    (nest,) = made.planned.nests
    assert nest.candidate is not None and nest.candidate.data()["parts"] == 256 // columns


def test_parts_are_whole_rows_of_a_swizzle() -> None:
    ways = [goes.parts for goes in by_parts(Goes(stored=True), 4)]
    assert ways == [1, 2, 4]
    assert [goes.parts for goes in by_parts(Goes(stored=True), 2)] == [1, 2]
    assert [goes.parts for goes in by_parts(Goes(), 4)] == [goes.parts for goes in by_parts(Goes(stored=True), 1)] == [1]


@pytest.mark.parametrize("order", [
    pytest.param(order, marks=() if order == "one" else pytest.mark.long) for order in ("one", "forwards", "backwards")
])  # fmt: skip
def test_no_question_of_a_proof_comes_near_the_limit(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a tenth of the operations of the integer solver all are proved, one after the other in any order: what was asked
    before does not matter."""
    names = {"one": ["i8, batched"], "forwards": [*REAL], "backwards": [*REAL][::-1]}[order]
    limit_to_a_tenth(monkeypatch)
    for name in names:
        assert open_of(real(name)) == []


@pytest.mark.parametrize("name", [
    pytest.param(each, marks=pytest.mark.long if "more" in each else ()) for each in PIXELS
])  # fmt: skip
def test_nor_does_one_of_pixels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limit_to_a_tenth(monkeypatch)
    made = of_pixels(name)
    assert "persistent(b_b, p_b, " in said(made) and "roles(" in said(made)
    assert open_of(made) == []


@pytest.mark.parametrize("old, new", [
    ("if r_m >= 2", "if r_m >= 3"),
    ("seq 11 |r_m|", "seq 10 |r_m|"),
    ("(-tile_b + 255) / 264 + 3 |tile_t|", "(-tile_b + 254) / 264 + 3 |tile_t|"),
    ("par 264 |tile_b|", "par 263 |tile_b|"),
])  # fmt: skip
def test_a_tap_or_a_tile_that_is_left_out_is_named(old: str, new: str) -> None:
    made = of_pixels("a filter of 3 × 3")
    assert made.written is not None
    text = print_program(ir.Program((replace(made.function, schedules=()),)))
    assert text.count(old) == 1
    proof = faithful(made.written, noted(parse(text.replace(old, new))["f"], notes_text(made.function)))
    assert "each instance is done" in [each.what for each in proof.of(Verdict.REFUSED)]


def limit_to_a_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    """The integer solver has a tenth of its operations for each question."""
    limit = raw.limited

    def limited(question: Callable[[], Any]) -> Any:
        context = raw._context()  # pyright: ignore[reportPrivateUsage]
        context.set_max_operations(raw.OPERATION_LIMIT // 10)
        try:
            return limit(question)
        finally:
            context.set_max_operations(raw.OPERATION_LIMIT)

    for module in (build, maps, sets):
        monkeypatch.setattr(module, "limited", limited)


@pytest.mark.parametrize("name, shared", [("batched", "B"), ("few terms", "B"), ("f8, batched", "A")])
def test_neighbours_share_strips(name: str, shared: str) -> None:
    """Those of a cluster have tiles beside each other, in groups of an even number of rows, or in a line."""
    text = said(real(name))
    (order,) = re.findall(r"persistent\(.*blocks=132(?:, order=\(grouped, (\d+)\))?\)", text)
    assert (order == "") is (shared == "A") and (order == "" or int(order) % 2 == 0)
    assert "cluster(tile_b, 2)" in text and re.findall(r"stage\((\w), .*multicast=tile_b", text) == [shared]


def test_blocks_of_a_cluster_have_tiles_beside_each_other_and_as_many() -> None:
    """By a count of all orders: of two neighbours both have a tile in each turn or none, in one row or in one column."""
    for rows, columns, many, blocks in product((3, 4, 32), (5, 6), (1, 3), (6, 7)):
        for cluster, goes in paired(Goes(blocks), rows, columns, many, 2):
            for each in ordered(goes, rows, cluster):
                tiles = in_order(each.group, rows, columns, many)
                for turn, block in product(range(len(tiles) // blocks + 1), range(0, blocks, 2)):
                    two = [tiles[at] for at in (turn * blocks + block, turn * blocks + block + 1) if at < len(tiles)]
                    strip = 2 if cluster[0] > 1 else 1
                    assert len(two) != 1 and len({(tile[0], tile[strip]) for tile in two}) <= 1
    assert not any(
        [*paired(Goes(blocks), *tiles, 2)] for blocks, tiles in ((132, (33, 33, 1)), (132, (33, 33, 2)), (7, (4, 4, 1)))
    )


def in_order(group: int, rows: int, columns: int, many: int) -> list[tuple[int, int, int]]:
    """Tiles as (product, row, column), by their number."""
    high = rows if group == 0 else group
    lines = range(0, rows, high)
    return [(h, at + row, column) for h in range(many) for at in lines for column in range(columns) for row in range(high)]


@pytest.mark.parametrize("name", ["batched", "f8, batched"])
def test_what_is_found_can_be_written(name: str) -> None:
    made = real(name)
    function = parse(REAL[name].text + said(made).replace('"automatic"', '"pasted"'))["f"]
    again = lower(function, "sm_90a", schedule=function.schedules[0])
    assert without_lines(again.source) == without_lines(made.source)


@pytest.mark.parametrize("name", [
    pytest.param(each, marks=() if each == "f8" else pytest.mark.long) for each in SMALL
])  # fmt: skip
def test_right(name: str) -> None:
    case, made = SMALL[name], small(name)
    assert "persistent(" in said(made) and "roles(" in said(made)
    given, wanted = case.arguments()
    for seed in (None, 1):
        ran = run_plan(made.function, made.plan, given, {}, seed=seed)
        assert ran.reports == []
        assert np.array_equal(ran.arrays["C"].astype(np.float64), wanted.astype(np.float64))


def test_open_sizes_leave_each_tile_a_block() -> None:
    """Nobody knows how many tiles there are, so not how many blocks may share them."""
    text = REAL["few terms"].text.replace("8192", "M")
    assert "persistent(" not in said(lower(parse(text)["f"], "sm_90a", schedule="auto"))


def test_where_nothing_is_waited_for_tiles_have_blocks() -> None:
    """Fewer tiles, of any size, than multiprocessors hold blocks: each has one anyway."""
    text = said(lower(parse(Case((1024, 1024, 512)).text)["f"], "sm_90a", schedule="auto"))
    assert "persistent(" not in text and "wgmma_" in text


def test_a_device_that_waits_for_nothing_has_nothing_to_gain() -> None:
    """It is the model's own figure by which blocks share tiles, but for strips that neighbours share; the engine writes whole
    lines all the same."""
    device = DEVICES["sm_90a"]
    still = replace(device, between=replace(device.between, begin=Figure(0.0, "of a test")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("texpr.planner.tensor.cores.DEVICES", {**DEVICES, "sm_90a": still})
        patch.setattr("texpr.planner.strategies.warpgroups.CLUSTER", 7)  # which no number of tiles is a multiple of
        made = lower(parse(REAL["batched"].text)["f"], "sm_90a", schedule="auto")
    assert "persistent(" not in said(made) and "roles(" not in said(made)
    assert "stage(C, at=j_h, via=tma" in said(made) and "stages=4" in said(made)


@pytest.mark.parametrize("name", ["batched", "f8, batched"])
def test_machine_code(name: str) -> None:
    code = code_of(binary := built(real(name).source))
    assert spills_nothing(binary) and not serialised(binary)
    assert "UTMASTG" in code and "MULTICAST" in code


def test_no_bound_is_worse() -> None:
    """The engine writes whole lines, so that the second-level cache moves less."""
    made = real("batched")
    (launch,) = launches(made.plan, {}, made.target)
    assert made.schedule is not None
    left = tuple(each for each in made.schedule.directives if each.args[0].value != "C")
    function = parse(REAL["batched"].text)["f"]
    other = lower(function, "sm_90a", schedule=replace(made.schedule, directives=left))
    (without,) = launches(other.plan, {}, other.target)
    assert launch.work.l2 is not None and without.work.l2 is not None and launch.work.l2 < 0.95 * without.work.l2
