"""What is written goes out in runs without a map (`via=bulk`), and combines with what is there; sizes at run time."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import numpy as np
import pytest
from tests.lowering import machine
from tests.lowering.mutants import mutants
from tests.lowering.test_combining_stores import KINDS, LAST, SCALED, TILES, batch, layers, numbers, product
from tests.schedule.laid import Laid, binary, integers, laid, refusal, wrong

from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.support.record import replace

STAGE = "stage(C, at=bj, in=shared, via=bulk) -> tile"
RUNS = TILES.replace("via=tma{}", "via=bulk")

AXPY = """
fn axpy(a: f32, x: f32[n] align(16), y: f32[n] align(16)): f32[n]
    where n % 4 == 0
{
    new z: f32[n]
    par n |i| { z[i] = a * x[i] + y[i] }
    return z
}"""

EACH = """
    split(i, 64) -> (b, t)
    bind(b, grid.x)
    stage(x, at=b, via=bulk) -> xs
    stage(y, at=b, via=bulk) -> ys
    stage(z, at=b, via=bulk) -> zs
    bind(t, block.x)"""


def runs(made: Laid) -> list[k.CopyBulk]:
    return [s for s in made.statements if isinstance(s, k.CopyBulk)]


def test_all_of_a_program_by_runs() -> None:
    made = laid(AXPY, EACH)
    assert [run.barrier is None for run in runs(made)] == [False, False, True] and not [
        map for kernel in k.kernels(made.plan.steps) for map in kernel.maps
    ]
    for n in (0, 4, 64, 100, 1000):
        arrays = {"a": np.float32(3), "x": integers(n), "y": integers(n, seed=1)}
        assert wrong(made, arrays, {"n": n}, (None, 0, 1)) is None, n


def test_a_result_is_asked_to_begin_at_a_chunk() -> None:
    made = laid(AXPY, EACH)
    assert [result.align for result in made.plan.results] == [16]


@pytest.mark.parametrize("text", [SCALED, SCALED.replace("2.0 * C[i, j] + A", "A")], ids=["read first", "written"])
def test_tiles_of_a_matrix(text: str) -> None:
    made = laid(text, RUNS)
    assert any(run.barrier is not None for run in runs(made)) is (text is SCALED)
    for rows, columns in ((19, 44), (0, 4), (32, 64), (1, 4)):
        arrays = {"A": integers(rows, columns), "C": integers(rows, columns, seed=1)}
        assert wrong(made, arrays, {"M": rows, "K": columns}, (None, 0, 1)) is None, (rows, columns)


def test_a_store_comes_after_its_own_of_the_iteration_before() -> None:
    made = laid(LAST, RUNS.replace("reorder(bi, bj,", "reorder(bi, bj, t,").replace("at=bj", "at=t"))
    first, _ = (s for s in made.statements if isinstance(s, k.WaitBulk))
    assert not first.read and {(c.kind, c.buffer) for c in first.covers} >= {("WAW", "C")}
    arrays, sizes = {"A": integers(19, 5, 44), "C": integers(19, 44, seed=1)}, {"M": 19, "T": 5, "K": 44}
    assert wrong(made, arrays, sizes) is None
    planted = made.text.replace("tx_wait_bulk<0>", "tx_wait_bulk_read<0>", 1)
    assert wrong(made, arrays, sizes, (None, 0, 1), text=planted) is not None


STRIPS = RUNS.replace("bind(bj, grid.x)", "")
"""A block goes through the columns of its rows, in one tile."""


def test_a_tile_is_read_before_it_is_written_again() -> None:
    """For that it suffices that the engine has read: nobody stores to one place twice."""
    made = laid(SCALED.replace("2.0 * C[i, j] + A", "A"), STRIPS)
    assert [(s.pending, s.read) for s in made.statements if isinstance(s, k.WaitBulk)] == [(0, True), (0, False)]
    arrays, sizes = {"A": integers(19, 100), "C": integers(19, 100, seed=1)}, {"M": 19, "K": 100}
    assert wrong(made, arrays, sizes, (None, 0, 1)) is None
    planted = made.text.replace("tx_wait_bulk_read<0>();", "", 1)
    assert wrong(made, arrays, sizes, (None, 0, 1), text=planted) is not None


@pytest.mark.parametrize(("dtype", "op", "mark"), KINDS, ids=[f"{t}{o}" for t, o, _ in KINDS])
def test_blocks_meet_in_runs(dtype: str, op: str, mark: str) -> None:
    made = laid(batch(dtype, op, mark), layers(STAGE))
    (run,) = runs(made)
    assert run.reduce == {"+=": "add", "-=": "add"}.get(op, op[:3])
    for count, rows, columns in ((3, 19, 48), (0, 4, 16), (5, 1, 16)):
        arrays = {"X": numbers(dtype, count, rows, columns), "C": numbers(dtype, rows, columns, seed=1)}
        assert wrong(made, arrays, {"B": count, "M": rows, "N": columns}, (None, 0)) is None


def test_sums_of_i64_wrap() -> None:
    made = laid(batch("i64"), layers(STAGE))
    arrays = {"X": np.full((2, 1, 16), 2**62, np.int64), "C": np.full((1, 16), -(2**63), np.int64)}
    assert wrong(made, arrays, {"B": 2, "M": 1, "N": 16}, (None,)) is None


def test_a_block_adds_its_sum() -> None:
    made = laid(product(dtype="f64").replace("N % 4", "N % 2"), RUNS)
    for m, depth, n in ((19, 7, 44), (0, 4, 4), (3, 0, 2), (33, 8, 70)):
        arrays = {"A": integers(m, depth, dtype="float64"), "B": integers(depth, n, seed=1, dtype="float64")}
        arrays["C"] = integers(m, n, seed=2, dtype="float64")
        assert wrong(made, arrays, {"M": m, "K": depth, "N": n}, (None, 0)) is None


@pytest.mark.parametrize("seed", [0, 1])
def test_the_kernel_form_means_the_program(seed: int) -> None:
    for text, schedule, arrays, sizes in (
        (SCALED, RUNS, {"A": integers(19, 44), "C": integers(19, 44, seed=1)}, {"M": 19, "K": 44}),
        (
            batch("i32"), layers(STAGE), {"X": numbers("i32", 3, 19, 48), "C": numbers("i32", 19, 48, seed=1)},
            {"B": 3, "M": 19, "N": 48},
        ),
    ):  # fmt: skip
        made = laid(text, schedule)
        got = machine.run(made.function, made.plan, arrays, sizes, seed)["C"]
        assert np.array_equal(got, interpret(made.original, arrays, sizes)["C"])


PLANTED: Mapping[str, tuple[str, str]] = {
    "stored": (SCALED.replace("2.0 * C[i, j] + A", "A"), STRIPS),
    "read first": (SCALED, STRIPS),
    "combined": (batch("i32"), layers(STAGE).replace("bind(bj, grid.x)", "")),
}
HARMLESS = ("wait for stores dropped ()", "WAR the phase of a barrier")
"""A kernel's last wait, where each turn has waited already; a barrier of a turn that has another one, ahead of its store."""
KINDS_OF_BUGS = ("barrier", "wait", "bytes", "made", "length", "place", "reduce", "store", "fence")


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_found(name: str) -> None:
    made = laid(*PLANTED[name])
    (kernel,) = k.kernels(made.plan.steps)
    arrays, sizes = {"A": integers(13, 60), "C": integers(13, 60, seed=1)}, {"M": 13, "K": 60}
    if name == "combined":
        arrays = {"X": numbers("i32", 3, 13, 48) + 1, "C": numbers("i32", 13, 48, seed=1)}
        sizes = {"B": 3, "M": 13, "N": 48}
    tried: set[str] = set()
    for mutant in mutants(kernel):
        if mutant.kind in KINDS_OF_BUGS and not any(each in mutant.what for each in HARMLESS):
            tried.add(mutant.kind)
            planted = replace(made, plan=replace(made.plan, steps=(k.Launch(mutant.kernel),)))
            assert wrong(planted, arrays, sizes, (None, 0, 1)) is not None, mutant.what
    assert tried >= {"length", "place", "fence", "reduce" if name == "combined" else "store"}
    assert tried >= ({"barrier"} if name == "combined" else {"wait", "barrier"})


F32 = "a copy without a map adds f32 as atomics do, with zero for subnormal numbers; `reduce(C) #atomic` asks for that"
REFUSED: Mapping[str, tuple[str, str, str]] = {
    "subnormal": (product(), RUNS, F32),
    "order": (product("", "f64"), RUNS, "the order of a sum of f64 would change, which `k` keeps"),
    "nan": (batch("f16", "max=", "#atomic"), layers(STAGE), "the engine's max of f16 loses a nan"),
    "type": (batch("i8"), layers(STAGE), "the engine does not combine i8 by add"),
    "base": (SCALED.replace(" align(16)", ""), RUNS, "`C` need not begin at a multiple of 16 bytes"),
    "row": (SCALED, RUNS.replace("split(j, 32)", "split(j, 6)"), "a row of the region has 24 bytes, no multiple of 16"),
    "rows": (SCALED.replace("K % 4", "K % 2"), RUNS, "rows of the region need not begin at multiples of 16 bytes"),
    "words": (SCALED, RUNS.replace("via=bulk", "via=bulk, box=(8, 16)"), "`stage` has `box=` with `via=tma`"),
    "target": (SCALED, RUNS.replace("via=bulk", "via=bulk, in=registers"), "`via=bulk` is for what is only read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, schedule, reason = REFUSED[name]
    assert (
        reason in refusal(text, schedule.replace("in=shared, via=bulk, in=registers", "in=registers, via=bulk")).splitlines()[0]
    )


TYPES = {"f32": 4, "f64": 2, "f16": 8, "bf16": 8, "i32": 4, "u64": 2, "u8": 16, "i16": 8}


def check_random(seed: int) -> None:
    """A tile by tile copy of random size that adds, replaces or updates, with room before and behind in either dimension."""
    random = Random(seed)
    dtype = random.choice(list(TYPES))
    chunk = TYPES[dtype]
    combining = dtype not in ("u8", "i16") and random.random() < 0.5
    tall, wide = random.choice([1, 3, 8, 13]), chunk * random.choice([1, 2, 3, 8])
    reads = not combining and random.random() < 0.3
    bind = "C[i, j] += A[i, j]" if reads or combining else "C[i, j] = A[i, j]"
    if reads:
        bind = "C[i, j] = C[i, j] + A[i, j]"
    loop = "par 3 |p| reduce(C) #atomic { par M |i| { par K |j| {" if combining else "par M |i| { par K |j| {"
    text = f"""
fn f(A: {dtype}[M, K] align(16), inout C: {dtype}[M, K] align(16))
    where K % {chunk} == 0
{{
    {loop} {bind} }} }} {"}" if combining else ""}
}}"""
    outer = ("p, ", "bind(p, grid.z)") if combining else ("", "")
    across = random.choice(["bind(bj, grid.x)", "" if not combining else "bind(bj, grid.x)"])
    schedule = f"""
    split(i, {tall}) -> (bi, ti)  split(j, {wide}) -> (bj, tj)  reorder({outer[0]}bi, bj, ti, tj)
    {outer[1]}  bind(bi, grid.y)  {across}
    {random.choice(["", "stage(A, at=bj, via=bulk) -> a"])}
    stage(C, at=bj, via=bulk) -> c"""
    made = laid(text, schedule)
    assert any(run.barrier is None and (run.reduce is not None) is combining for run in runs(made))
    for _ in range(2):
        rows, columns = random.randint(0, 30), chunk * random.randint(0, 12)
        arrays = {"A": numbers(dtype, rows, columns, seed=seed), "C": numbers(dtype, rows, columns, seed=seed + 1)}
        assert wrong(made, arrays, {"M": rows, "K": columns}, (None, seed)) is None, (text, schedule, rows, columns)


@pytest.mark.parametrize("seed", range(8))
def test_random_tiles(seed: int) -> None:
    check_random(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_many_random_tiles(part: int) -> None:
    for seed in range(100 + 20 * part, 120 + 20 * part):
        check_random(seed)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_nvcc_makes_runs(target: str) -> None:
    sums = laid(batch("bf16", "+=", "#atomic"), layers(STAGE), target)
    assert b"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16" in binary(sums, target).ptx
    assert b"cp.async.bulk.global.shared::cta.bulk_group" in binary(laid(AXPY, EACH, target), target).ptx
