"""Arrays that lie in the shared memory of all blocks of a cluster: results, what is proved, bugs, machine code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering.clustered import HALO, blocked, in_turns, normalised, sweeps, turned
from tests.lowering.emulated import run_plan
from tests.lowering.mutants import mutants
from tests.proof.plan.mutants import mutants as planted
from tests.schedule.laid import Laid, binary, integers, laid, refusal, wrong

from texpr.emulator import LOCKSTEP, Fault
from texpr.interp.dtypes import numpy_dtype
from texpr.ir import kernel as k
from texpr.ir.kernel import verify as kernel_verify
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.value.types import DTYPES
from texpr.isa.levels import Level, Space
from texpr.proof.plan import Verdict
from texpr.proof.search import proved
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.record import replace
from texpr.toolchain import find_nvcc, this_machine
from texpr.toolchain.cuda import disassemble

SEEDS = (None, LOCKSTEP, 0, 1, 2, 3)
EVERY = ("j", "k", "l", "o")
Arrays = Mapping[str, NDArray[Any]]


def only(made: Laid) -> k.Kernel:
    (kernel,) = k.kernels(made.plan.steps)
    return kernel


def spaces(made: Laid) -> dict[str, Space]:
    return {array.buffer.name: array.space for array in only(made).arrays}


def barriers(made: Laid) -> list[k.Barrier]:
    return [s for s in made.statements if isinstance(s, k.Barrier)]


def is_proved(made: Laid) -> bool:
    return {each.verdict for each in proved(made.function, made.plan).obligations} == {Verdict.PROVED}


SCHEDULES: dict[str, Callable[[int, int], str]] = {
    "one loop, blocked": lambda n, c: blocked(-(-n // c), "j") + "  place(row, cluster)",
    "one loop, in turns": lambda _, c: in_turns(c, "j") + "  place(row, cluster)",
    "all loops, blocked": lambda n, c: blocked(-(-n // c), *EVERY),
    "all loops, in turns": lambda _, c: in_turns(c, *EVERY),
    "written in turns, read blocked": lambda n, c: in_turns(c, "j") + blocked(-(-n // c), "k", "l", "o"),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(("n", "blocks"), [(1, 2), (7, 3), (97, 4), (256, 2), (1000, 8), (331, 5)])
def test_rows_in_every_order(name: str, n: int, blocks: int) -> None:
    """Sizes that nothing divides, fewer elements than blocks, blocks that are no power of two, no rows at all."""
    made = laid(normalised(n), SCHEDULES[name](n, min(n, blocks)) if n > 1 else "split(j, 1) -> (c, e)  bind(c, cluster.x)")
    for rows in (0, 1, 3):
        assert wrong(made, {"x": integers(rows, n)}, {"M": rows}, SEEDS) is None
    assert is_proved(made)


def test_halo_of_a_size_that_is_open() -> None:
    """The array has room for the longest row; a row of any length up to that, none included, is right."""
    made = laid(HALO)
    assert spaces(made) == {"t": Space.CLUSTER}
    for n in (0, 1, 49, 50, 51, 150):
        assert wrong(made, {"x": integers(2, n)}, {"M": 2, "N": n}, SEEDS) is None
    assert is_proved(made)


def test_neighbours_over_time() -> None:
    """A loop around both: each turn's reads come before the next one's writes in all blocks, by two barriers a turn."""
    made = laid(sweeps(101), blocked(34, "i", "j", "k", "l"))
    (loop,) = (s for s in made.statements if isinstance(s, k.For) and s.sym.base == "t")
    assert [s.level for s in loop.body if isinstance(s, k.Barrier)] == [Level.CLUSTER, Level.CLUSTER]
    for times in (0, 1, 3):
        assert wrong(made, {"x": integers(2, 101), "times": integers(times)}, {"M": 2, "T": times}, SEEDS) is None
    assert is_proved(made)


@pytest.mark.parametrize("dtype", ["f64", "i64", "f32", "u32", "f16", "bf16", "i8", "bool"])
def test_every_width_in_a_grid_of_three(dtype: str) -> None:
    made = laid(turned(dtype), blocked(3, "i") + blocked(5, "k"))
    assert spaces(made) == {"s": Space.CLUSTER} and only(made).cluster == (1, 4, 1)
    kind = ml_dtypes.bfloat16 if dtype == "bf16" else numpy_dtype(DTYPES[dtype])
    for shape in ((1, 1, 1), (2, 3, 2), (0, 1, 1)):
        x = np.abs(integers(*shape, 12, 20)).astype(kind)
        assert wrong(made, {"x": x}, dict(zip("ABC", shape, strict=True)), (None, 1)) is None
    assert is_proved(made)


@pytest.mark.parametrize(("n", "threads"), [(77, 32), (150, 64), (700, 256)])
def test_sums_again_and_again(n: int, threads: int) -> None:
    """A sum and the greatest with its place, in each turn of a loop: what a turn leaves is read before the next one writes."""
    text = f"""
fn peaks(x: f32[M, T, {n}]): (i32[M, T], f32[M]) {{
    new at: i32[M, T]
    new every: f32[M]
    par M |r| {{
        new total: f32 = 0.0
        seq T |t| {{
            new best: f32 = -inf
            new place: i32 = 0
            par {n} |j| reduce(best, place) {{ (best, place) max= (x[r, t, j], i32(j)) }}
            par {n} |k| reduce(total) {{ total += x[r, t, k] * best }}
            at[r, t] = place
        }}
        every[r] = total
    }}
    return (at, every)
}}"""
    made = laid(text, blocked(-(-n // 3), "j", "k"))
    assert only(made).cluster == (1, 3, 1) and only(made).threads == threads
    for rows, times in ((2, 0), (1, 1), (2, 3)):
        x = integers(rows, times, n)
        assert wrong(made, {"x": x}, {"M": rows, "T": times}, SEEDS) is None
    assert is_proved(made)


def test_what_no_other_block_reads_is_a_blocks_own() -> None:
    """Then nothing but the parts of sums goes from block to block."""
    made = laid(normalised(1000), blocked(250, *EVERY) + "  place(row, shared)")
    crossing = {name for name, space in spaces(made).items() if space is Space.CLUSTER}
    assert crossing == {"most_own_blocks", "all_own_blocks"} and spaces(made)["row"] is Space.SHARED
    assert [b.level for b in barriers(made)].count(Level.CLUSTER) == 3
    assert "tx_cluster_shared(row" not in made.text


def test_blocks_end_behind_what_others_read() -> None:
    """The last barrier is there for nothing else."""
    made = laid(normalised(97), blocked(25, "j") + "  place(row, cluster)")
    assert {c.kind for c in barriers(made)[-1].covers} == {"END"}
    assert "-> the block's end" in made.text


def _bare(text: str) -> str:
    """A plan without the places in the program that it names."""
    return re.sub(r" *-- .*| from \d+ to \d+| from \d+", "", text)


def test_the_form_is_read_back() -> None:
    made = laid(normalised(97), blocked(25, "j") + "  place(row, cluster)")
    text = plan_text(made.plan)
    bare = _bare(text)
    assert "array cluster" in text and _bare(plan_text(parse_plan(text))) == bare


@pytest.mark.parametrize("write", ["row[j, 0]", "row[0, j]"])
def test_elements_that_no_block_has_go_to_global_memory(write: str) -> None:
    """Written by other blocks in each turn of a loop: said, and right. Asked for in so many words, it is refused."""
    text = """
fn moving(x: f32[M, 12]): f32[M, 12] {
    new y: f32[M, 12]
    par M |r| {
        new row: f32[12]
        par 12 |i| { row[i] = 0.0 }
        seq 12 |s| { par 12 |j| { row[(j + s) % 12] += x[r, j] } }
        par 12 |l| { y[r, l] = row[l] }
    }
    return y
}"""
    made = laid(text, blocked(3, "i", "j", "l"))
    assert not only(made).arrays and [b.name for b in made.plan.workspace] == ["row"]
    assert wrong(made, {"x": integers(2, 12)}, {"M": 2}, SEEDS) is None
    assert is_proved(made)
    told = refusal(text, blocked(3, "i", "j", "l") + "  place(row, cluster)")
    assert "E0913" in told and "blocks of the cluster write the same elements" in told


def test_rows_that_fit_no_cluster_go_to_global_memory() -> None:
    made = laid(normalised(500_000), blocked(62_500, "j"))
    assert [b.name for b in made.plan.workspace] == ["row"]
    told = refusal(normalised(500_000), blocked(62_500, "j") + "  place(row, cluster)")
    assert "a block of the cluster would need 250000 bytes, and has 232448" in told


def test_refusals() -> None:
    text = normalised(96)
    assert "its blocks are in no cluster" in refusal(text, "split(j, 32) -> (c, e)  place(row, cluster)")
    assert "sm_80 has no clusters of blocks" in refusal(text, "place(row, cluster)", "sm_80")
    assert "sm_80 has no level `cluster.x`" in refusal(text, blocked(24, "j"), "sm_80")
    assert "has 12 iterations, and `cluster.x` takes 1 to 8" in refusal(text, blocked(8, "j"))
    assert "blocks of the cluster read each other's elements" in refusal(text, blocked(24, "j") + "  place(row, shared)")
    both = "split(j, 4) -> (a, e)  split(a, 6) -> (c, d)  bind(c, cluster.y)  bind(d, cluster.x)"
    assert "cluster.y 4 · cluster.x 6 are 24 blocks, and every sm_90a takes 8 in a cluster" in refusal(text, both)
    odd = blocked(24, "j") + "  split(j_e, 24) -> (js, jt)  reorder(j_c, jt, js)  bind(jt, block.x)"
    assert "a block has 24 threads, and blocks of a cluster that share loops are whole warps" in refusal(text, odd)
    assert "blocks along a loop of the grid are in clusters" in refusal(
        text, "bind(r, grid.x)  cluster(r, 2)" + blocked(24, "j")
    )


def test_a_row_that_is_staged_comes_once() -> None:
    """By vectors of four; with each block's own part of it, every block reads what it has brought."""
    text = """
fn spread(x: f32[M, 272] align(16)): f32[M, 272] {
    new y: f32[M, 272]
    par M |r| {
        new all: f32 = 0.0
        par 272 |j| reduce(all) { all += x[r, j] }
        par 272 |k| { y[r, k] = x[r, k] - all }
    }
    return y
}"""
    wide = "split({0}, parts=4) -> ({0}b, {0}p)  bind({0}b, cluster.x)  vectorize({0}p, 4) -> ({0}q, {0}l)"
    every = "\n".join(wide.format(loop) for loop in ("row_1", "j", "k"))
    made = laid(text, f"bind(r, grid.x)  stage(x, at=r, in=cluster) -> row\n{every}")
    assert spaces(made)["row"] is Space.SHARED
    assert {len(s.stored) for s in made.statements if isinstance(s, k.StoreVector)} == {4}
    assert wrong(made, {"x": integers(3, 272)}, {"M": 3}, SEEDS) is None
    assert is_proved(made)
    across = laid(text, f"bind(r, grid.x)  stage(x, at=r, in=cluster) -> row\n{wide.format('row_1')}\n{wide.format('k')}")
    assert spaces(across)["row"] is Space.CLUSTER
    assert wrong(across, {"x": integers(3, 272)}, {"M": 3}, SEEDS) is None
    assert is_proved(across)


def test_no_boxes_by_the_engine_for_what_blocks_share() -> None:
    text = normalised(64).replace("x: f32[M, 64]", "x: f32[M, 64] align(16)")
    told = refusal(text, "bind(r, grid.x)  stage(x, at=r, in=shared, via=tma) -> tile\n" + blocked(16, "j"))
    assert "E0913" in told and "blocks of the cluster read each other's elements" in told


def test_blocks_meet_where_all_of_them_come() -> None:
    """A test of sizes is the same in all blocks; one of what was computed is not known to be, and then they meet around it."""
    text = """
fn either(x: f32[M, 100]): f32[M, 100] {
    new y: f32[M, 100]
    par M |r| {
        new row: f32[100]
        par 100 |j| { row[j] = x[r, j] }
        new all: f32 = 0.0
        par 100 |k| reduce(all) { all += row[k] }
        if WHEN {
            INSIDE
            par 100 |p| { y[r, p] = row[99 - p] }
        } else {
            par 100 |o| { y[r, o] = x[r, o] }
        }
    }
    return y
}"""
    inside = "par 100 |l| { row[l] = x[r, l] * 2.0 }"
    one, both = (blocked(25, *loops) + "  place(row, cluster)" for loops in ("j", "jl"))
    for when, more in (("M > 1", inside), ("r > 0", inside), ("row[3] > 0.0", inside), ("all > 0.0", "")):
        made = laid(text.replace("WHEN", when).replace("INSIDE", more), both if more else one)
        for rows in (1, 3):
            assert wrong(made, {"x": integers(rows, 100)}, {"M": rows}, SEEDS) is None
        assert is_proved(made)
    told = refusal(text.replace("WHEN", "all > 0.0").replace("INSIDE", inside), both)
    assert "E0918" in told and "would have to meet for `row` where some of them may not come" in told


def test_other_machines_leave_a_pragma_out() -> None:
    for target in ("sm_80", "cpu"):
        laid(HALO, "", target)


# Bugs.


def faults(made: Laid, plan: k.Plan, arrays: Arrays, sizes: Mapping[str, int]) -> set[Fault] | None:
    """What the emulator finds in a plan, over some orders; None where nothing is seen at all."""
    try:
        kernel_verify.verify(plan)
    except CompilerBug:
        return {Fault.DEADLOCK}
    found: set[Fault] = set()
    for seed in (None, LOCKSTEP, 0, 1, 2):
        found |= {report.fault for report in run_plan(made.function, plan, arrays, sizes, seed).reports}
    if found or wrong(replace(made, plan=plan), arrays, sizes, (None, 0)) is not None:
        return found
    return None


PLANTED = {
    "a row": (normalised(97), blocked(25, "j") + "  place(row, cluster)", {"x": (3, 97)}, {"M": 3}),
    "neighbours": (sweeps(70), blocked(24, *"ijkl"), {"x": (2, 70), "times": (3,)}, {"M": 2, "T": 3}),
}


@pytest.mark.parametrize("name", PLANTED)
def test_barriers_left_out_are_named(name: str) -> None:
    """Each one, and each that joins a block where it is to join the cluster: refused, and seen as a race or as an early end."""
    text, schedule, shapes, sizes = PLANTED[name]
    made, arrays = laid(text, schedule), {a: integers(*shape, seed=3) + 5 for a, shape in shapes.items()}
    seen: set[Fault] = set()
    for mutant in mutants(only(made)):
        if mutant.kind == "barrier":
            plan = replace(made.plan, steps=(k.Launch(mutant.kernel),))
            found = faults(made, plan, arrays, sizes)
            assert found and found <= {Fault.RACE, Fault.EARLY_EXIT, Fault.UNINITIALISED}, (mutant.what, found)
            assert not is_proved(replace(made, plan=plan)), mutant.what
            seen |= found
    assert seen >= {Fault.RACE, Fault.EARLY_EXIT}


PART = 4
"""Of how many parts of the bugs below one is tried in short."""


@pytest.mark.parametrize("part", [pytest.param(n, marks=[pytest.mark.long] if n else []) for n in range(PART)])
@pytest.mark.parametrize("name", PLANTED)
def test_bugs_are_refused_or_are_none(name: str, part: int) -> None:
    """Other blocks and places, barriers moved, guards and bounds: what is proved still, runs right in all orders."""
    text, schedule, shapes, sizes = PLANTED[name]
    made, arrays = laid(text, schedule), {a: integers(*shape, seed=3) + 5 for a, shape in shapes.items()}
    every = list(planted(made.plan))[part::PART]
    missed = [
        m.name for m in every if is_proved(replace(made, plan=m.plan)) and faults(made, m.plan, arrays, sizes) is not None
    ]
    assert every and not missed


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_nvcc_reads_other_blocks(target: str) -> None:
    made = laid(sweeps(101), blocked(34, *"ijkl"), target)
    found = binary(made, target)
    ptx = found.ptx.decode()
    assert ptx.count("ld.shared::cluster.b32") == ptx.count("mapa.shared::cluster.u32") > 0
    assert ".explicitcluster" in ptx and ".reqnctapercluster 1, 3, 1" in ptx
    machine = this_machine()
    try:
        text = disassemble(machine, find_nvcc(machine), found)
    except TexprError as reason:
        pytest.skip(str(reason))
    assert "SR_SWINHI" in text and "UCGABAR_ARV" in text  # the window of the cluster's memory, and its barrier
