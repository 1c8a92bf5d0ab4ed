"""Rows that a table names, stored four at a time by the tensor memory accelerator; sizes at run time, odd counts of rows."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering import machine
from tests.schedule.laid import Laid, binary, integers, laid, refusal, wrong

from texpr.affine.expr import expr
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir.value import Literal, Op, Value
from texpr.ir.value.types import I32
from texpr.support.record import replace

TARGET = "sm_100a"

SCATTER = """
fn scatter(X: f32[n, D], P: i32[n], inout Y: f32[V, D] align(16))
    where D % 4 == 0
    assume P in 0..V
    assume injective(P)
{
    par n |i| { par D |j| { Y[P[i], j] = 2.0 * X[i, j] } }
}"""
"""What stands elsewhere in Y stays."""

TILES = """
    split(i, 18) -> (io, ii)  split(j, 48) -> (jo, ji)
    reorder(io, jo, ii, ji)
    bind(io, grid.y)  bind(jo, grid.x)
    stage(Y, at=jo, in=shared, via=scatter4{}) -> T
    bind(ii, block.y)  bind(ji, block.x)"""

SHAPES = ((7, 9, 20), (61, 70, 52), (0, 0, 0), (0, 3, 4), (31, 31, 100), (18, 300, 48))
"""Rows that are written, rows that there are, columns."""

Case = tuple[dict[str, NDArray[Any]], dict[str, int]]


def case(names: int, rows: int, width: int, dtype: str = "float32", index: str = "int32") -> Case:
    chosen = np.random.default_rng(names).permutation(rows)[:names].astype(index)
    arrays = {"X": integers(names, width, dtype=dtype), "P": chosen, "Y": integers(rows, width, seed=1, dtype=dtype)}
    return arrays, {"n": names, "V": rows, "D": width}


def only(made: Laid) -> k.Kernel:
    (kernel,) = k.kernels(made.plan.steps)
    return kernel


def is_scattered(made: Laid) -> bool:
    return any(isinstance(s, k.StoreTensor) and len(s.rows) == 4 for s in made.statements)


def test_rows_of_a_permutation() -> None:
    made = laid(SCATTER, TILES.format(""), TARGET)
    for shape in SHAPES:
        assert wrong(made, *case(*shape), (None, 0, 1)) is None, shape
    assert is_scattered(made) and only(made).maps[0].box == (48, 1)


@pytest.mark.parametrize("swizzle", ["32B", "64B", "128B"])
def test_rows_are_moved_by_their_address(swizzle: str) -> None:
    made = laid(SCATTER, TILES.format(f", swizzle={swizzle}").replace("48", "64").replace("18", "14"), TARGET)
    for shape in SHAPES:
        assert wrong(made, *case(*shape), (None, 0)) is None, shape
    assert is_scattered(made) and only(made).maps[0].swizzle == int(swizzle[:-1])
    if swizzle == "128B":
        text = refusal(SCATTER, TILES.format(", swizzle=128B"), TARGET)
        assert "help: leave it out, and `Y` is touched where it is" in text


WAYS = {
    "backwards": ("Y[P[i], j]", "Y[P[n - 1 - i], j]"),
    "read first": ("2.0 * X[i, j]", "X[i, j] - 2.0 * Y[P[i], j]"),
    "updated": ("= 2.0 *", "+="),
    "written twice": ("{ Y[P[i], j] = 2.0 * X[i, j] }", "{ Y[P[i], j] = X[i, j]  Y[P[i], j] += 1.0 }"),
}


@pytest.mark.parametrize("name", WAYS)
def test_ways_to_write(name: str) -> None:
    made = laid(SCATTER.replace(*WAYS[name]), TILES.format(""), TARGET)
    loads = [s for s in made.statements if isinstance(s, k.CopyTensor)]
    assert is_scattered(made) and bool(loads) is (name in ("read first", "updated"))
    for shape in SHAPES[:4]:
        assert wrong(made, *case(*shape), (None, 0, 1)) is None, shape


def test_columns_backwards() -> None:
    """Where tiles divide the columns; elsewhere the last one would begin before the first column, where no store may."""
    backwards = SCATTER.replace("Y[P[i], j]", "Y[P[i], D - 1 - j]")
    assert "a store begins at coordinates that are not negative" in refusal(backwards, TILES.format(""), TARGET)
    made = laid(backwards.replace("D % 4", "D % 48"), TILES.format(""), TARGET)
    for names, rows, width in ((23, 31, 96), (0, 5, 48), (37, 40, 0), (19, 19, 144)):
        assert wrong(made, *case(names, rows, width), (None, 0, 1)) is None, (names, rows, width)


STEPS = TILES.replace("bind(jo, grid.x)", "")
"""A block goes through the columns of its rows, in one tile."""


def test_a_tile_is_read_before_it_is_written_again() -> None:
    """For that it suffices that the engine has read: rows of two turns are not the same."""
    made = laid(SCATTER, STEPS.format(""), TARGET)
    waits = [s for s in made.statements if isinstance(s, k.WaitBulk)]
    assert [(wait.pending, wait.read) for wait in waits] == [(0, True), (0, False)]
    for shape in SHAPES:
        assert wrong(made, *case(*shape), (None, 0, 1)) is None, shape
    planted = made.text.replace("tx_wait_bulk_read<0>();", "", 1)
    assert wrong(made, *case(61, 70, 100), text=planted) is not None


BAG = """
fn places(X: f32[b, m, D], P: i32[b, m], inout Y: f32[V, D] align(16))
    where D % 4 == 0
    assume P in 0..V
    assume injective(P)
{
    par b |p| { par m |t| { par D |j| { Y[P[p, t], j] = X[p, t, j] } } }
}"""


def test_rows_along_one_dimension_of_a_table() -> None:
    schedule = """
    split(t, 7) -> (to, ti)  split(j, 40) -> (jo, ji)
    reorder(p, to, jo, ti, ji)
    bind(p, grid.z)  bind(to, grid.y)  bind(jo, grid.x)
    stage(Y, at=jo, via=scatter4) -> T"""
    made = laid(BAG, schedule, TARGET)
    for bags, names, width in ((2, 9, 20), (3, 30, 52), (1, 0, 8), (0, 5, 4), (1, 7, 40)):
        (arrays, sizes), count = case(bags * names, bags * names + 5, width), bags * names
        arrays |= {"X": arrays["X"].reshape(bags, names, width), "P": arrays["P"].reshape(bags, names)}
        del sizes["n"]
        assert wrong(made, arrays, {**sizes, "b": bags, "m": names}, (None, 0)) is None, (bags, names, width, count)


def check_random(seed: int) -> None:
    random = Random(seed)
    dtype, numpy, chunk = random.choice(
        [("f32", "float32", 4), ("f16", "float16", 8), ("u8", "uint8", 16), ("i64", "int64", 2), ("i16", "int16", 8)]
    )
    index, small = random.choice([("i32", "int32"), ("i64", "int64"), ("u8", "uint8")])
    apart, first = random.randint(0, 3), random.choice([False, True])
    tall, wide = random.choice([1, 3, 4, 9, 13]), chunk * random.choice([2, 4, 6, 8])
    text = f"""
fn f(X: {dtype}[n, D], P: {index}[n + {apart}], inout Y: {dtype}[V, D] align(16))
    where D % {chunk} == 0
    assume P in 0..V
    assume injective(P)
{{
    par n |i| {{ par D |j| {{ Y[P[i + {apart}], j] {"+=" if first else "="} X[i, j] }} }}
}}"""
    schedule = f"""
    split(i, {tall}) -> (io, ii)  split(j, {wide}) -> (jo, ji)  reorder(io, jo, ii, ji)
    bind(io, grid.x)  bind(jo, grid.y)  stage(Y, at=jo, via=scatter4) -> T"""
    made = laid(text, schedule, TARGET)
    assert is_scattered(made)
    for _ in range(2):
        names, width = random.randint(0, 30), chunk * random.randint(0, 12)
        arrays, sizes = case(names + apart, names + apart + random.randint(0, 9), width, numpy, small)
        arrays["X"] = integers(names, width, seed=seed, dtype=numpy)
        assert wrong(made, arrays, {**sizes, "n": names}, (None, seed)) is None, (text, schedule, sizes)


@pytest.mark.parametrize("seed", range(6))
def test_random_tables(seed: int) -> None:
    check_random(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(6))
def test_many_random_tables(part: int) -> None:
    for seed in range(100 + 10 * part, 110 + 10 * part):
        check_random(seed)


def test_the_kernel_form_means_the_program() -> None:
    made = laid(SCATTER, TILES.format(""), TARGET)
    arrays, sizes = case(23, 40, 52)
    got = machine.run(made.function, made.plan, arrays, sizes, 1)["Y"]
    assert np.array_equal(got, interpret(made.original, arrays, sizes)["Y"])


def _unasked(copy: k.StoreTensor) -> k.StoreTensor:
    def bare(row: Value) -> Value:
        return row.args[1] if isinstance(row, Op) and row.name == "select" else row

    return replace(copy, rows=tuple(map(bare, copy.rows)))


def _of_the_next_tile(copy: k.StoreTensor) -> k.StoreTensor:
    """The last four of a tile are four, although it has eighteen."""

    def bare(row: Value) -> Value:
        assert isinstance(row, Op) and row.name == "select"
        (test, *rest) = row.args
        return replace(row, args=(test.args[1] if isinstance(test, Op) and test.name == "and" else test, *rest))

    return replace(copy, rows=tuple(map(bare, copy.rows)))


PLANTED: dict[str, Callable[[k.StoreTensor], k.StoreTensor]] = {
    "rows in another order": lambda copy: replace(copy, rows=(copy.rows[1], copy.rows[0], *copy.rows[2:])),
    "rows past the table": _unasked,
    "rows of the next tile": _of_the_next_tile,
    "a column on": lambda copy: replace(copy, at=(copy.at[0] + 1,)),
    "one row four times": lambda copy: replace(copy, rows=copy.rows[:1] * 4),
    "no row": lambda copy: replace(copy, rows=(Literal(-1, I32),) * 4),
    "the first rows' place": lambda copy: replace(copy, source=replace(copy.source, index=(expr(0), expr(0)))),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_seen(name: str) -> None:
    made = laid(SCATTER, TILES.format(""), TARGET)
    bad = replace(only(made), body=_planted(only(made).body, PLANTED[name]))
    plan = replace(made.plan, steps=(k.Launch(bad),))
    assert wrong(replace(made, plan=plan), *case(61, 80, 52)) is not None


def test_stores_after_no_fence_are_seen() -> None:
    made = laid(SCATTER, TILES.format(""), TARGET)
    assert wrong(made, *case(61, 80, 52), text=made.text.replace("tx_fence_async();", "", 1)) is not None


def _planted(body: tuple[k.Stmt, ...], change: Callable[[k.StoreTensor], k.StoreTensor]) -> tuple[k.Stmt, ...]:
    found: list[k.Stmt] = []
    for stmt in body:
        match stmt:
            case k.StoreTensor():
                found.append(change(stmt))
            case k.If():
                found.append(replace(stmt, then=_planted(stmt.then, change), orelse=_planted(stmt.orelse, change)))
            case k.For():
                found.append(replace(stmt, body=_planted(stmt.body, change)))
            case _:
                found.append(stmt)
    return tuple(found)


ANY = SCATTER.replace("    assume injective(P)\n", "")
MEETING = ANY.replace("par n |i| {", "par n |i| reduce(Y) #atomic {").replace("= 2.0 * X", "+= X")
IN_ORDER = ANY.replace("par n |i|", "seq n |i|").replace(" D |j|", " 64 |j|").replace("D]", "64]").replace("D % 4", "n % 4")
MASKED = SCATTER.replace("{ Y[P[i], j] = 2.0 * X[i, j] }", "{ if i % 3 == 0 { Y[P[i], j] = X[i, j] } }")
NARROW = TILES.replace("split(j, 48)", "split(j, 12)")
ALONE = "split(i, 18) -> (io, ii)  stage(Y, at=io, via=scatter4) -> T"
READ = """
fn rows(T: f32[V, 64] align(16), P: i32[n]): f32[n, 64]
    assume P in 0..V
{
    new Y: f32[n, 64]
    par n |i| { par 64 |j| { Y[i, j] = T[P[i], j] } }
    return Y
}"""

REFUSED = {
    "target": (SCATTER, TILES, "sm_90a", "the tensor memory accelerator of sm_90a copies no rows by their numbers"),
    "pitch": (SCATTER.replace("D % 4", "D % 2"), TILES, TARGET, 'add "where D % 4 == 0"'),
    "base": (SCATTER.replace(" align(16)", ""), TILES, TARGET, "promise where it begins"),
    "sums": (MEETING, TILES, TARGET, "iterations of `io` meet in its rows, and the engine combines no rows four at a time"),
    "twice": (IN_ORDER, ALONE, TARGET, 'promise it: "assume injective(P)"'),
    "masked": (MASKED, TILES, TARGET, "it is written under a condition, so what to copy out is not known"),
    "narrow": (SCATTER, NARROW, TARGET, "leave it out, and `Y` is touched where it is"),
    "read": (READ, "stage(T, at=i, via=scatter4) -> S", TARGET, "stage it by via=gather4"),
    "loaded": (SCATTER, TILES.replace("scatter4", "gather4"), TARGET, "stage it by via=scatter4"),
    "chunk": (
        SCATTER.replace("Y: f32[V, D]", "Y: f32[V, D] stride(E, 1)").replace("D % 4", "E % 4"),
        TILES,
        TARGET,
        "a store writes 16 bytes at once, and a row of `Y`, of D elements, may end within them",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    text, schedule, target, reason = REFUSED[name]
    assert reason in refusal(text, schedule.format(""), target)


@pytest.mark.parametrize("target", ["sm_100a", "sm_103a"])
def test_nvcc_takes_it(target: str) -> None:
    assert b"tile::scatter4.bulk_group" in binary(laid(SCATTER, TILES.format(""), target), target).ptx
