"""Rows that a table names, each a run without a map (`via=bulk`): loaded, stored, and added where several are one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

import numpy as np
import pytest
from tests.lowering import machine
from tests.lowering import test_gathered_rows as gathered
from tests.lowering import test_scattered_rows as scattered
from tests.lowering.mutants import mutants
from tests.lowering.test_combining_stores import numbers
from tests.schedule.laid import Laid, binary, laid, refusal, wrong

from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.proof.plan import Verdict
from texpr.proof.search import proved
from texpr.support.record import replace

TILES = """
    split(i, 18) -> (io, ii)  split(j, 48) -> (jo, ji)
    reorder(io, jo, ii, ji)
    bind(io, grid.y)  bind(jo, grid.x)
    stage({}, at=jo, in=shared, via=bulk) -> T
    """
THREADS = "bind(ii, block.y)  bind(ji, block.x)"

COMBINE = """
fn gathered_up(X: f32[n, D], w: f32[n], I: i32[n], inout Y: f32[V, D] align(16))
    where D % 4 == 0
    assume I in 0..V
{
    par n |i| reduce(Y) #atomic { par D |j| { Y[I[i], j] += w[i] * X[i, j] } }
}"""
"""What experts give goes to the rows of their tokens, of which each has several."""

SHAPES = ((7, 9, 20), (61, 70, 52), (0, 0, 0), (0, 3, 4), (31, 31, 100))


def case(names: int, rows: int, width: int, dtype: str = "f32") -> gathered.Case:
    """Rows by chance, so that some are named twice; sums of halves are exact."""
    chosen = np.random.default_rng(names).integers(0, max(rows, 1), names).astype(np.int32)
    arrays = {"X": numbers(dtype, names, width), "w": numbers(dtype, names, seed=1) % 2, "I": chosen}
    return {**arrays, "Y": numbers(dtype, rows, width, seed=2)}, {"n": names, "V": rows, "D": width}


def run_of(made: Laid) -> k.CopyBulk:
    (run,) = (s for s in made.statements if isinstance(s, k.CopyBulk))
    return run


def test_rows_that_a_table_names_are_loaded() -> None:
    made = laid(gathered.GATHER, TILES.format("table") + THREADS)
    for rows, names, width in ((5, 7, 20), (9, 61, 52), (0, 0, 0), (3, 0, 4), (1, 31, 100)):
        assert wrong(made, *gathered.case(rows, names, width), (None, 0, 1)) is None, (rows, names, width)
    assert run_of(made).barrier is not None


def test_they_come_iterations_ahead() -> None:
    schedule = gathered.SUMMED.format("").replace("via=gather4", "via=bulk") + "pipeline(to, stages=3)"
    made = laid(gathered.BAG, schedule)
    for rows, bags, names, width in ((5, 2, 9, 20), (9, 3, 30, 52), (4, 1, 0, 8)):
        arrays, sizes = gathered.case(rows, bags * names, width)
        arrays["I"] = arrays["I"].reshape(bags, names)
        sizes = {"V": rows, "D": width, "b": bags, "m": names}
        assert wrong(made, arrays, sizes, (None, 0, 1)) is None, (rows, bags, names, width)


@pytest.mark.parametrize("text", [scattered.SCATTER, scattered.SCATTER.replace("2.0 * X[i, j]", "X[i, j] - 2.0 * Y[P[i], j]")],
                         ids=["written", "read first"])  # fmt: skip
def test_rows_that_a_table_names_are_stored(text: str) -> None:
    made = laid(text, TILES.format("Y") + THREADS)
    for shape in SHAPES:
        assert wrong(made, *scattered.case(*shape), (None, 0, 1)) is None, shape


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i32", "i64", "u32"])
def test_rows_are_added_where_several_are_one(dtype: str) -> None:
    text = COMBINE.replace("f32", dtype).replace("D % 4", "D % 8")
    made = laid(text if dtype[0] in "fb" else text.replace(" #atomic", ""), TILES.format("Y"))
    assert run_of(made).reduce == "add"
    for names, rows, width in ((7, 3, 24), (61, 20, 56), (0, 0, 0), (29, 1, 104)):
        assert wrong(made, *case(names, rows, width, dtype), (None, 0, 1)) is None, (names, rows, width)


def test_the_kernel_form_means_the_program() -> None:
    made = laid(COMBINE, TILES.format("Y"))
    arrays, sizes = case(23, 5, 52)
    got = machine.run(made.function, made.plan, arrays, sizes, 1)["Y"]
    assert np.array_equal(got, interpret(made.original, arrays, sizes)["Y"])


PROVED: Mapping[str, Callable[[], Laid]] = {
    "loaded": lambda: laid(gathered.GATHER, TILES.format("table") + THREADS),
    "stored": lambda: laid(scattered.SCATTER, TILES.format("Y") + THREADS),
    "added": lambda: laid(COMBINE, TILES.format("Y")),
}


@pytest.mark.parametrize("name", PROVED)
def test_kernels_are_proved(name: str) -> None:
    made = PROVED[name]()
    proof = proved(made.function, made.plan)
    assert not [*proof.of(Verdict.REFUSED), *proof.of(Verdict.UNDECIDED)]


UNSEEN = {"added": ["gathered_up_Y: fence async at line 13 dropped"]}
"""The fence behind the fill of a tile: what it orders is written over by threads that pass a fence of their own. Lowering has
it all the same, for each thread fences off what it did itself."""


@pytest.mark.parametrize("name", PROVED)
def test_planted_bugs_are_found(name: str) -> None:
    made = PROVED[name]()
    (kernel,) = k.kernels(made.plan.steps)
    cases = {"loaded": gathered.case(9, 61, 52), "stored": scattered.case(61, 70, 52), "added": case(61, 20, 52)}
    arrays, sizes = cases[name]
    arrays = {**arrays, "w": np.arange(1, 62, dtype=np.float32)} if name == "added" else arrays
    tried, unseen = set[str](), list[str]()
    for mutant in mutants(kernel):
        if mutant.kind in ("bytes", "length", "place", "reduce", "store", "fence", "made", "loop"):
            tried.add(mutant.kind)
            planted = replace(made, plan=replace(made.plan, steps=(k.Launch(mutant.kernel),)))
            unseen += [mutant.what] if wrong(planted, arrays, sizes, (None, 0, 1)) is None else []
    assert unseen == UNSEEN.get(name, [])
    assert tried >= {"length", "place", "loop", "bytes" if name == "loaded" else "fence"}


def check_random(seed: int) -> None:
    random = Random(seed)
    dtype, chunk = random.choice([("f32", 4), ("f64", 2), ("f16", 8), ("i32", 4), ("u64", 2)])
    tall, wide = random.choice([1, 3, 4, 9, 13]), chunk * random.choice([1, 2, 5, 8])
    apart = random.randint(0, 3)
    text = f"""
fn f(X: {dtype}[n, D], I: i32[n + {apart}], inout Y: {dtype}[V, D] align(16))
    where D % {chunk} == 0
    assume I in 0..V
{{
    par n |i| reduce(Y) #atomic {{ par D |j| {{ Y[I[i + {apart}], j] += X[i, j] }} }}
}}"""
    schedule = f"""
    split(i, {tall}) -> (io, ii)  split(j, {wide}) -> (jo, ji)  reorder(io, jo, ii, ji)
    bind(io, grid.x)  bind(jo, grid.y)  stage(Y, at=jo, via=bulk) -> T"""
    made = laid(text, schedule)
    assert run_of(made).reduce == "add"
    for _ in range(2):
        names, width = random.randint(0, 30), chunk * random.randint(0, 12)
        arrays, sizes = case(names + apart, random.randint(1, 9), width, dtype)
        arrays = {"X": numbers(dtype, names, width, seed=seed), "I": arrays["I"], "Y": arrays["Y"]}
        assert wrong(made, arrays, {**sizes, "n": names}, (None, seed)) is None, (text, schedule, sizes)


@pytest.mark.parametrize("seed", range(5))
def test_random_tables(seed: int) -> None:
    check_random(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_many_random_tables(part: int) -> None:
    for seed in range(100 + 20 * part, 120 + 20 * part):
        check_random(seed)


REFUSED = {
    "twice": (scattered.ANY, TILES.format("Y"), "two elements of `P` might name one row"),
    "pitch": (COMBINE.replace("D % 4", "D % 2"), TILES.format("Y"), "rows of the region need not begin at multiples of 16"),
    "row": (COMBINE, TILES.format("Y").replace("split(j, 48)", "split(j, 6)"), "a row of the region has 24 bytes"),
    "subnormal": (
        COMBINE.replace(" #atomic", "").replace("par n |i| reduce(Y)", "seq n |i| reduce(Y)"),
        "split(i, 18) -> (io, ii)  split(j, 48) -> (jo, ji)  reorder(jo, io, ii, ji)  stage(Y, at=io, via=bulk) -> T",
        "a copy without a map adds f32 as atomics do",
    ),
    "order": (
        COMBINE.replace("f32", "f64").replace("par n |i| reduce(Y) #atomic", "seq n |i|"),
        "split(i, 18) -> (io, ii)  split(j, 48) -> (jo, ji)  reorder(jo, io, ii, ji)  stage(Y, at=io, via=bulk) -> T",
        "the order of a sum of f64 would change, which `ii` keeps; `reduce(Y)` on that loop frees it",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, schedule, reason = REFUSED[name]
    assert reason in refusal(text, schedule).splitlines()[0]


def test_nvcc_takes_them() -> None:
    assert (
        b"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32" in binary(laid(COMBINE, TILES.format("Y")), "sm_90a").ptx
    )
