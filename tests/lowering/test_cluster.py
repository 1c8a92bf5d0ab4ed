"""Clusters of blocks that bring each other tiles: results in every order, the bugs that they may have, what is emitted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from numpy.typing import NDArray
from tests.lowering.emulated import run_plan
from tests.lowering.mutants import mutants
from tests.lowering.tiled import COPY, MATMUL
from tests.schedule.laid import Laid, binary, integers, laid, wrong

from texpr.affine.expr import Sym, expr
from texpr.backends.cuda import print_kernels
from texpr.emulator import LOCKSTEP, Fault
from texpr.ir import kernel as k
from texpr.ir.kernel import verify as kernel_verify
from texpr.isa.levels import Level
from texpr.isa.registry import resolve
from texpr.proof.plan import Verdict
from texpr.proof.search import proved
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.record import replace
from texpr.toolchain import find_nvcc, this_machine
from texpr.toolchain.cuda import disassemble

SEEDS = (None, LOCKSTEP, *range(8))
Arrays = Mapping[str, NDArray[Any]]


def sharing(clusters: str, a: str = "", b: str = "", more: str = "") -> str:
    """Tiles of `MATMUL` whose operands blocks of a cluster share; `a`, `b`: more words on how they come."""
    return f"""
    split(i, 16) -> (bi, ti)  split(j, 32) -> (bj, tj)  split(k, 8) -> (ko, ki)
    split(ti, 4) -> (t1, r1)  split(tj, 4) -> (t2, r2)
    reorder(bi, bj, ko, t1, t2, ki, r1, r2)
    bind(bi, grid.y)  bind(bj, grid.x)
    {clusters}
    stage(A, at=ko, in=shared, via=tma, fill=zero{a}) -> As
    stage(B, at=ko, in=shared, via=tma, fill=zero{b}) -> Bs
    {more}
    bind(t1, block.y)  bind(t2, block.x)"""


def product(m: int, depth: int, n: int) -> tuple[Arrays, dict[str, int]]:
    arrays = {"A": integers(m, depth), "B": integers(depth, n, seed=1)}
    return arrays, {"M": m, "K": depth, "N": n}


def only(made: Laid) -> k.Kernel:
    (kernel,) = k.kernels(made.plan.steps)
    return kernel


def kinds(made: Laid, kind: type[Any]) -> list[Any]:
    return [s for s in made.statements if isinstance(s, kind)]


SHAPES = {
    "2 along x": ("cluster(bj, 2)", ", multicast=bj", ", swizzle=128B"),
    "2 along y": ("cluster(bi, 2)", ", swizzle=32B", ", swizzle=128B, multicast=bi"),
    "2 by 2": ("cluster(bi, 2)  cluster(bj, 2)", ", multicast=bj", ", swizzle=128B, multicast=bi"),
    "2 by 2, no swizzle": ("cluster(bi, 2)  cluster(bj, 2)", ", multicast=bj", ", multicast=bi"),
    "4 along x": ("cluster(bj, 4)", ", swizzle=32B, multicast=bj", ""),
    "2 by 4": ("cluster(bj, 4)  cluster(bi, 2)", ", multicast=bj", ", box=(8, 32), multicast=bi"),
    "3 along x": ("cluster(bj, 3)", ", multicast=bj", ""),
    "one of two": ("cluster(bi, 2)  cluster(bj, 2)", ", multicast=bj", ""),
}


@pytest.mark.parametrize("name", SHAPES)
def test_results_in_every_order(name: str) -> None:
    """Sizes that neither tiles nor clusters divide, none at all, one block, all whole."""
    made = laid(MATMUL, sharing(*SHAPES[name]))
    for sizes in ((19, 20, 36), (3, 0, 4), (16, 4, 32)):
        assert wrong(made, *product(*sizes), SEEDS) is None
    assert wrong(made, *product(33, 20, 132), (None, 3)) is None
    assert wrong(made, *product(0, 4, 4), (None,)) is None


def test_who_brings_what() -> None:
    """Blocks with one row of blocks share A, those with one column B; each brings half of it to both, and waits for all."""
    made = laid(MATMUL, sharing(*SHAPES["2 by 2, no swizzle"]))
    b, a = kinds(made, k.CopyTensor)
    x, y = (Sym(f"{loop}_rank") for loop in ("bj", "bi"))
    assert (a.peers, a.first) == ((0, 1), expr(y) * 2)
    assert (b.peers, b.first) == ((0, 2), expr(x))
    assert str(a.at[1]) == "16 * bi + 8 * bj_rank"
    (expect,) = kinds(made, k.BarrierExpect)
    assert expect.bytes == (16 * 8 + 8 * 32) * 4
    assert only(made).cluster == (2, 2, 1)


def test_one_brings_all_where_a_box_cannot_be_dealt_out() -> None:
    made = laid(MATMUL, sharing(*SHAPES["3 along x"]))
    copies = {copy.target.buffer.name: copy for copy in kinds(made, k.CopyTensor)}
    assert copies["As"].peers == (0, 1, 2)
    (asked,) = (s for s in kinds(made, k.If) if s.then == (copies["As"],))
    assert "bj_rank" in {sym.name for sym in k.value_symbols(asked.condition)}


def test_barriers_are_of_the_cluster_where_a_dependence_is() -> None:
    """One after the barriers of copies are made, one before tiles are overwritten; where nothing is shared, none."""
    made = laid(MATMUL, sharing(*SHAPES["2 along x"]))
    assert [barrier.level for barrier in kinds(made, k.Barrier)] == [Level.CLUSTER, Level.CLUSTER]
    assert {c.kind for c in kinds(made, k.Barrier)[1].covers} == {"WAR"}
    alone = laid(MATMUL, sharing("cluster(bj, 2)"))
    assert {barrier.level for barrier in kinds(alone, k.Barrier)} <= {Level.BLOCK, Level.WARP}
    assert wrong(alone, *product(19, 20, 36), SEEDS) is None


def test_a_grid_of_whole_clusters_asks_nothing() -> None:
    promised = MATMUL.replace("N % 4 == 0", "N % 64 == 0, M % 16 == 0")
    whole, ragged = (laid(text, sharing(*SHAPES["2 along x"])) for text in (promised, MATMUL))
    assert "if (bj < " not in whole.text and "if (bj < " in ragged.text
    assert wrong(whole, *product(16, 20, 128), SEEDS) is None


RING = "pipeline(ko, stages={})"


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("name", ["2 along x", "2 by 2"])
def test_rings(name: str, stages: int) -> None:
    """Copies that run ahead: a slot is filled again when no block reads it any more."""
    made = laid(MATMUL, sharing(*SHAPES[name], more=RING.format(stages)))
    for depth in (0, 4, 20, 44):
        assert wrong(made, *product(19, depth, 36), (None, LOCKSTEP, 0, 1, 2, 3)) is None


HALO = """
    split(i, 8) -> (bi, ti)  split(k, 32) -> (bk, tk)
    reorder(bi, bk, ti, tk)
    bind(bi, grid.y)  bind(bk, grid.x)
    cluster(bi, 2)
    stage(C, at=bk, in=shared, via=tma) -> Cs
    {}"""


def test_blocks_that_fill_a_cluster_store_nothing() -> None:
    """Tiles that go out by the engine, and what threads write, stay inside."""
    made = laid(COPY, HALO.format(""))
    assert wrong(made, {"A": integers(19, 44)}, {"M": 19, "K": 44}, SEEDS) is None


ROWS = """
fn rows(x: f32[M, 64] align(16), w: f32[64] align(16)): f32[M] {
    new y: f32[M]
    par M |i| {
        new s: f32 = 0.0
        par 64 |k| reduce(s) { s += x[i, k] * w[k] }
        y[i] = s
    }
    return y
}"""


def test_reductions_of_a_block() -> None:
    """A vector that all rows use comes once for eight of them; halves of a reduction declare what those behind them use."""
    made = laid(ROWS, "bind(i, grid.x)  cluster(i, 8)  stage(w, at=i, in=shared, via=tma, multicast=i) -> ws")
    assert only(made).cluster == (8, 1, 1)
    for rows in (1, 8, 13):
        assert wrong(made, {"x": integers(rows, 64), "w": integers(64, seed=1)}, {"M": rows}, SEEDS) is None


def faults(made: Laid, kernel: k.Kernel, arrays: Arrays, sizes: Mapping[str, int]) -> set[Fault] | None:
    """What the emulator names in a kernel, over some orders; None where nothing is seen at all."""
    plan = replace(made.plan, steps=(k.Launch(kernel),))
    found: set[Fault] = set()
    for seed in (None, 0, 1, 2):
        found |= {report.fault for report in run_plan(made.function, plan, arrays, sizes, seed).reports}
    if found or wrong(replace(made, plan=plan), arrays, sizes, (None, 0)) is not None:
        return found
    return None


NAMED: dict[str, set[Fault]] = {
    "barrier": {Fault.RACE, Fault.UNFINISHED_COPY, Fault.BAD_BARRIER},
    "wait": {Fault.UNFINISHED_COPY},
    "bytes": {Fault.UNFINISHED_COPY, Fault.DEADLOCK},
    "mask": {Fault.DEADLOCK},
    "share": {Fault.UNFINISHED_COPY, Fault.UNINITIALISED, Fault.RACE},
    "exit": {Fault.EARLY_EXIT, Fault.DEADLOCK},
    "made": {Fault.BAD_BARRIER},
    "fence": {Fault.MISSING_FENCE},
    "coordinate": set(),
}
"""The faults that name each bug, one of them at least; none where the result is wrong, and nothing else."""


@pytest.mark.parametrize("name", ["2 along x", "2 by 2, no swizzle"])
def test_planted_bugs_are_named(name: str) -> None:
    made = laid(MATMUL, sharing(*SHAPES[name]))
    arrays, sizes = {"A": integers(32, 24) + 5, "B": integers(24, 64, seed=1) + 5}, {"M": 32, "K": 24, "N": 64}
    tried: set[str] = set()
    for mutant in mutants(only(made)):
        if mutant.kind in NAMED:
            tried.add(mutant.kind)
            found = faults(made, mutant.kernel, arrays, sizes)
            assert found is not None and (found & NAMED[mutant.kind] or not NAMED[mutant.kind]), (mutant.what, found)
    assert tried == NAMED.keys()


def test_the_verifier_sees_blocks_that_part_at_a_barrier_of_the_cluster() -> None:
    made = laid(MATMUL, sharing(*SHAPES["2 along x"]))
    for mutant in mutants(only(made)):
        if mutant.kind == "exit":
            with pytest.raises(CompilerBug, match="all_come_who_must: blocks of a cluster may part at the loop over ko"):
                kernel_verify.verify_kernel(mutant.kernel)


def test_a_ragged_cluster_is_proved() -> None:
    """With copies by threads, which the verifier reads: blocks that fill the last cluster up do nothing, and nothing twice."""
    made = laid(MATMUL, sharing("cluster(bj, 2)  cluster(bi, 4)").replace("via=tma, fill=zero", "via=ld"))
    assert {each.verdict for each in proved(made.function, made.plan).obligations} == {Verdict.PROVED}


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_nvcc_makes_multicast_of_it(target: str) -> None:
    made = laid(MATMUL, sharing(*SHAPES["2 by 2, no swizzle"]), target)
    found = binary(made, target, print_kernels(made.plan, resolve(target)))
    ptx = found.ptx.decode()
    assert ptx.count(".multicast::cluster") == 2 and ptx.count("barrier.cluster.arrive") == 2
    assert ".explicitcluster" in ptx and ".reqnctapercluster 2, 2, 1" in ptx
    assert all(each.spill_stores + each.spill_loads == 0 for each in found.kernels)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_machine_code_is_multicast(target: str) -> None:
    made, machine = laid(MATMUL, sharing(*SHAPES["2 by 2, no swizzle"]), target), this_machine()
    try:
        text = disassemble(machine, find_nvcc(machine), binary(made, target))
    except TexprError as reason:
        pytest.skip(str(reason))
    assert len(re.findall(r"UTMALDG\S*\.MULTICAST", text)) == 2 and "UCGABAR_ARV" in text
