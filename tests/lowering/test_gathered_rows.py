"""Rows that a table names, copied four at a time by the tensor memory accelerator; sizes at run time, odd counts of rows."""

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

GATHER = """
fn gather(table: f32[V, D] align(16), I: i32[n]): f32[n, D]
    where D % 4 == 0
    assume I in 0..V
{
    new Y: f32[n, D]
    par n |i| { par D |j| { Y[i, j] = 2.0 * table[I[i], j] } }
    return Y
}"""

TILES = """
    split(i, 18) -> (io, ii)  split(j, 48) -> (jo, ji)
    reorder(io, jo, ii, ji)
    bind(io, grid.y)  bind(jo, grid.x)
    stage(table, at=jo, in=shared, via=gather4{}) -> T
    bind(ii, block.y)  bind(ji, block.x)"""

Case = tuple[dict[str, NDArray[Any]], dict[str, int]]


def case(rows: int, names: int, width: int, dtype: str = "float32", index: str = "int32") -> Case:
    chosen = np.random.default_rng(names).integers(0, max(rows, 1), names).astype(index)
    arrays = {"table": integers(rows, width, seed=1, dtype=dtype), "I": chosen}
    return arrays, {"V": rows, "D": width, "n": names}


def only(made: Laid) -> k.Kernel:
    (kernel,) = k.kernels(made.plan.steps)
    return kernel


@pytest.mark.parametrize("fill", ["", ", fill=zero", ", fill=nan"], ids=["weak", "zero", "nan"])
def test_a_table_of_rows(fill: str) -> None:
    made = laid(GATHER, TILES.format(fill), TARGET)
    for rows, names, width in ((5, 7, 20), (9, 61, 52), (0, 0, 0), (3, 0, 4), (1, 31, 100), (300, 18, 48)):
        assert wrong(made, *case(rows, names, width)) is None, (rows, names, width)
    (load,) = (s for s in made.statements if isinstance(s, k.CopyTensor) and isinstance(s.rows[0], Op))
    assert len(load.rows) == 4 and only(made).maps[0].box == (48, 1)


@pytest.mark.parametrize("swizzle", ["32B", "64B", "128B"])
def test_rows_are_moved_by_their_address(swizzle: str) -> None:
    """Four rows are half of what a swizzle repeats after: every other copy begins in the middle of its pattern."""
    made = laid(GATHER, TILES.format(f", fill=zero, swizzle={swizzle}"), TARGET)
    for rows, names, width in ((5, 7, 20), (9, 61, 52), (0, 0, 0), (300, 18, 48)):
        assert wrong(made, *case(rows, names, width), (None, 0)) is None, (rows, names, width)
    ahead = laid(BAG, SUMMED.format(f", swizzle={swizzle}") + "pipeline(to, stages=3)", TARGET)
    arrays, _ = case(9, 3 * 30, 52)
    arrays["I"] = arrays["I"].reshape(3, 30)
    assert wrong(ahead, arrays, {"V": 9, "D": 52, "b": 3, "m": 30}, (None, 0)) is None
    half = laid(GATHER.replace("f32", "f16").replace("D % 4", "D % 8"), TILES.format(f", swizzle={swizzle}"), TARGET)
    assert wrong(half, *case(9, 61, 56, "float16"), (None, 0)) is None


@pytest.mark.parametrize("what", ["no swizzle", "another swizzle", "the first half"])
def test_planted_bugs_in_moved_rows_are_seen(what: str) -> None:
    made = laid(GATHER, TILES.format(", swizzle=64B"), TARGET)
    kernel = only(made)
    if "swizzle" in what:
        maps = (replace(kernel.maps[0], swizzle=0 if what.startswith("no") else 128),)
        bad = replace(kernel, maps=maps)
    else:

        def earlier(copy: k.CopyTensor) -> k.CopyTensor:
            *outer, line, within, chunk, lane = copy.target.index
            return replace(copy, target=replace(copy.target, index=(*outer, line // 4 * 4, within, chunk, lane)))

        bad = replace(kernel, body=_planted(kernel.body, earlier))
    plan = replace(made.plan, steps=(k.Launch(bad),))
    assert wrong(replace(made, plan=plan), *case(9, 61, 52)) is not None


WAYS = {
    "backwards": ("table[I[i], j]", "table[I[n - 1 - i], j]"),
    "columns backwards": ("table[I[i], j]", "table[I[i], D - 1 - j]"),
    "two by two": ("table[I[i], j]", "table[I[i / 2], j]"),
    "masked": ("{ Y[i, j] = 2.0 * table[I[i], j] }", "{ Y[i, j] = 0.0  if i % 3 == 0 { Y[i, j] = table[I[i], j] } }"),
    "by a name": ("Y[i, j] = 2.0 * table[I[i], j]", "let p = I[i]  Y[i, j] = 2.0 * table[p, j]"),
    "asked": ("Y[i, j] = 2.0 * table[I[i], j]", "Y[i, j] = 0.0  if I[i] % 2 == 0 { Y[i, j] = table[I[i], j] }"),
}


@pytest.mark.parametrize("name", WAYS)
def test_ways_through_a_table(name: str) -> None:
    made = laid(GATHER.replace(*WAYS[name]), TILES.format(""), TARGET)
    assert any(isinstance(s, k.CopyTensor) and s.rows for s in made.statements)
    for rows, names, width in ((5, 7, 20), (9, 61, 52)):
        assert wrong(made, *case(rows, names, width), (None, 0)) is None


BAG = """
fn bag(table: f32[V, D] align(16), I: i32[b, m]): f32[b, D]
    where D % 4 == 0
    assume I in 0..V
{
    new Y: f32[b, D]
    par b |p| { par D |j| {
        Y[p, j] = 0.0
        seq m |t| reduce(Y) { Y[p, j] += table[I[p, t], j] }
    } }
    return Y
}"""
"""An embedding bag: a sum of rows for each line of the table."""

SUMMED = """
    split(j, 40) -> (jo, ji)  split(t, 7) -> (to, ti)
    reorder(p, jo, to, ji, ti)
    bind(p, grid.y)  bind(jo, grid.x)
    stage(table, at=to, in=shared, via=gather4{}) -> T
    bind(ji, block.x)"""


@pytest.mark.parametrize("more", ["", ", fill=zero"], ids=["weak", "zero"])
@pytest.mark.parametrize("last", ["", "pipeline(to, stages=3)"], ids=["at once", "ahead"])
def test_a_bag_of_rows(more: str, last: str) -> None:
    made = laid(BAG, SUMMED.format(more) + last, TARGET)
    for rows, bags, names, width in ((5, 2, 9, 20), (9, 3, 30, 52), (4, 1, 0, 8), (3, 0, 5, 4)):
        arrays, sizes = case(rows, bags * names, width)
        arrays["I"] = arrays["I"].reshape(bags, names)
        sizes = {"V": rows, "D": width, "b": bags, "m": names}
        assert wrong(made, arrays, sizes, (None, 0, 1)) is None, (rows, bags, names, width)


def test_holes_are_zero() -> None:
    """Rows past the table are added up too."""
    schedule = SUMMED.format(", fill=zero") + "  unguard(ti)"
    made = laid(BAG, schedule, TARGET)
    arrays, _ = case(5, 2 * 9, 20)
    arrays["I"] = arrays["I"].reshape(2, 9)
    sizes = {"V": 5, "D": 20, "b": 2, "m": 9}
    assert wrong(made, arrays, sizes, (None, 0)) is None

    def first(copy: k.CopyTensor) -> k.CopyTensor:
        tested = (row for row in copy.rows if isinstance(row, Op) and row.name == "select")
        elsewhere = {id(row): replace(row, args=(*row.args[:2], Literal(0, I32))) for row in tested}
        return replace(copy, rows=tuple(elsewhere.get(id(row), row) for row in copy.rows))

    kernel = only(made)
    plan = replace(made.plan, steps=(k.Launch(replace(kernel, body=_planted(kernel.body, first))),))
    assert wrong(replace(made, plan=plan), arrays, sizes, (None,)) is not None


def check_random(seed: int) -> None:
    random = Random(seed)
    dtype, numpy, chunk = random.choice(
        [("f32", "float32", 4), ("f16", "float16", 8), ("u8", "uint8", 16), ("i64", "int64", 2)]
    )
    index, small = random.choice([("i32", "int32"), ("i64", "int64"), ("u8", "uint8")])
    apart = random.randint(0, 3)
    tall, wide = random.choice([1, 3, 4, 9, 13]), random.choice([5, chunk, 3 * chunk, 64])
    fill = random.choice(["", ", fill=zero"])
    text = f"""
fn f(table: {dtype}[V, D] align(16), I: {index}[n + {apart}]): {dtype}[n, D]
    where D % {chunk} == 0
    assume I in 0..V
{{
    new Y: {dtype}[n, D]
    par n |i| {{ par D |j| {{ Y[i, j] = table[I[i + {apart}], j] }} }}
    return Y
}}"""
    schedule = f"""
    split(i, {tall}) -> (io, ii)  split(j, {wide}) -> (jo, ji)  reorder(io, jo, ii, ji)
    bind(io, grid.x)  bind(jo, grid.y)  stage(table, at=jo, via=gather4{fill}) -> T  bind(ii, block.y)  bind(ji, block.x)"""
    if wide % chunk:
        assert "a copy begins at a multiple of 16 bytes" in refusal(text, schedule, TARGET)
        return
    made = laid(text, schedule, TARGET)
    assert any(isinstance(s, k.CopyTensor) and s.rows for s in made.statements)
    for _ in range(2):
        rows, names, width = random.randint(1, 9), random.randint(0, 30), chunk * random.randint(0, 6)
        arrays, sizes = case(rows, names + apart, width, numpy, small)
        sizes["n"] = names
        assert wrong(made, arrays, sizes, (None, seed)) is None, (text, schedule, sizes)


@pytest.mark.parametrize("seed", range(6))
def test_random_tables(seed: int) -> None:
    check_random(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(6))
def test_many_random_tables(part: int) -> None:
    for seed in range(100 + 10 * part, 110 + 10 * part):
        check_random(seed)


def test_the_kernel_form_means_the_program() -> None:
    made = laid(GATHER, TILES.format(", fill=zero"), TARGET)
    arrays, sizes = case(5, 23, 52)
    got = machine.run(made.function, made.plan, arrays, sizes, 1)["Y"]
    assert np.array_equal(got, interpret(made.original, arrays, sizes)["Y"])


def _swapped(copy: k.CopyTensor) -> k.CopyTensor:
    return replace(copy, rows=(copy.rows[1], copy.rows[0], *copy.rows[2:]))


def _unasked(copy: k.CopyTensor) -> k.CopyTensor:
    def bare(row: Value) -> Value:
        return row.args[1] if isinstance(row, Op) and row.name == "select" else row

    return replace(copy, rows=tuple(map(bare, copy.rows)))


PLANTED: dict[str, Callable[[k.CopyTensor], k.CopyTensor]] = {
    "rows in another order": _swapped,
    "rows past the table": _unasked,
    "a column on": lambda copy: replace(copy, at=(copy.at[0] + 1,)),
    "one row four times": lambda copy: replace(copy, rows=copy.rows[:1] * 4),
    "the first rows' place": lambda copy: replace(copy, target=replace(copy.target, index=(expr(0), expr(0)))),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_seen(name: str) -> None:
    made = laid(GATHER, TILES.format(""), TARGET)

    kernel = only(made)
    bad = replace(kernel, body=_planted(kernel.body, PLANTED[name]))
    plan = replace(made.plan, steps=(k.Launch(bad),))
    assert wrong(replace(made, plan=plan), *case(9, 61, 52)) is not None


def _planted(body: tuple[k.Stmt, ...], change: Callable[[k.CopyTensor], k.CopyTensor]) -> tuple[k.Stmt, ...]:
    found: list[k.Stmt] = []
    for stmt in body:
        match stmt:
            case k.CopyTensor():
                found.append(change(stmt))
            case k.If():
                found.append(replace(stmt, then=_planted(stmt.then, change), orelse=_planted(stmt.orelse, change)))
            case k.For():
                found.append(replace(stmt, body=_planted(stmt.body, change)))
            case _:
                found.append(stmt)
    return tuple(found)


PROMISE = "    assume I in 0..V\n"
FREE = GATHER.replace(PROMISE, "")
PLAIN = "{ Y[i, j] = 2.0 * table[I[i], j] }"
CUT = FREE.replace("table[I[i], j]", "table[max(0, min(I[i], V - 1)), j]")
ASKED = FREE.replace(PLAIN, "{ Y[i, j] = 0.0  if I[i] >= 0 and I[i] < V " + PLAIN + " }")
ORDERED = FREE.replace("table[I[i], j]", "table[i, j]").replace("[V, D]", "[n, D]")

REFUSED = [
    (GATHER, "", "sm_90a", "the tensor memory accelerator of sm_90a copies no rows by their numbers"),
    (GATHER.replace("D % 4", "D % 2"), "", TARGET, 'add "where D % 4 == 0"'),
    (GATHER.replace(" align(16)", ""), "", TARGET, "promise where it begins"),
    (CUT, "", TARGET, "its row is not what the table says"),
    (ORDERED, "", TARGET, "it is no element of a row that one element of a table names"),
    (ASKED, "", TARGET, "might be no rows of `table`"),
    (GATHER, ", box=(4, 32)", TARGET, "has `box=` with `via=tma` or `via=im2col` alone"),
    (GATHER, ", fill=1", TARGET, "fills with zero or nan, not 1"),
]


@pytest.mark.parametrize(("text", "more", "target", "reason"), REFUSED)
def test_refusals(text: str, more: str, target: str, reason: str) -> None:
    assert reason in refusal(text, TILES.format(more), target)


def test_nvcc_takes_it() -> None:
    made = laid(GATHER, TILES.format(", fill=zero"), TARGET)
    assert b"tile::gather4" in binary(made, TARGET).ptx
