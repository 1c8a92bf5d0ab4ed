"""Stores that combine a tile with what the tensor holds, and tiles that are loaded before they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering import machine
from tests.schedule.laid import Laid, binary, integers, laid, lowered, refusal, wrong

from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.support.diagnostic import Limitation
from texpr.support.record import replace

Array = NDArray[Any]

STAGE = "stage(C, at=bj, in=shared, via=tma{}) -> tile"


def batch(dtype: str, op: str = "+=", mark: str = "") -> str:
    """Layers of X that meet in C."""
    return f"""
fn layers(X: {dtype}[B, M, N], inout C: {dtype}[M, N] align(16))
    where N % 16 == 0
{{
    par B |b| reduce(C) {mark} {{ par M |i| {{ par N |j| {{ C[i, j] {op} X[b, i, j] }} }} }}
}}"""


def layers(out: str = STAGE.format("")) -> str:
    """A block for each layer and tile."""
    return f"""
    split(i, 16) -> (bi, ti)  split(j, 32) -> (bj, tj)
    reorder(b, bi, bj, ti, tj)
    bind(b, grid.z)  bind(bi, grid.y)  bind(bj, grid.x)
    {out}"""


def product(order: str = "reduce(C)", dtype: str = "f32") -> str:
    """A product that is added to C."""
    return f"""
fn more(A: {dtype}[M, K], B: {dtype}[K, N], inout C: {dtype}[M, N] align(16))
    where N % 4 == 0
{{
    par M |i| {{ par N |j| {{ seq K |k| {order} {{ C[i, j] += A[i, k] * B[k, j] }} }} }}
}}"""


TILES = f"""
    split(i, 16) -> (bi, ti)  split(j, 32) -> (bj, tj)
    reorder(bi, bj, ti, tj)
    bind(bi, grid.y)  bind(bj, grid.x)
    {STAGE}"""


def numbers(dtype: str, *shape: int, seed: int = 0) -> Array:
    """Small ones, as that type."""
    name = {"f16": "float16", "f32": "float32", "f64": "float64"}.get(dtype)
    made = np.random.default_rng(seed).integers(0, 9, shape)
    if name is None and not dtype.startswith("b"):
        name = {"i": "int", "u": "uint"}[dtype[0]] + dtype[1:]
    return made.astype(ml_dtypes.bfloat16 if name is None else name)


KINDS = [
    ("i32", "+=", ""), ("i32", "-=", ""), ("u32", "max=", ""), ("i32", "min=", ""), ("i64", "+=", ""), ("i64", "min=", ""),
    ("u64", "+=", ""), ("f32", "+=", "#atomic"), ("f64", "+=", "#atomic"), ("f16", "+=", "#atomic"), ("bf16", "-=", "#atomic"),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "op", "mark"), KINDS, ids=[f"{t}{o}" for t, o, _ in KINDS])
def test_blocks_meet_in_a_tile(dtype: str, op: str, mark: str) -> None:
    made = laid(batch(dtype, op, mark), layers())
    (store,) = (s for s in made.statements if isinstance(s, k.StoreTensor))
    assert store.reduce == {"+=": "add", "-=": "add"}.get(op, op[:3])
    for count, rows, columns in ((3, 19, 48), (0, 4, 16), (5, 1, 16)):
        arrays = {"X": numbers(dtype, count, rows, columns), "C": numbers(dtype, rows, columns, seed=1)}
        assert wrong(made, arrays, {"B": count, "M": rows, "N": columns}, (None, 0)) is None


def test_sums_of_i64_are_those_of_u64() -> None:
    """The engine adds no signed words of 64 bits, and both wrap alike."""
    made = laid(batch("i64"), layers())
    (kernel,) = k.kernels(made.plan.steps)
    assert [map.element for map in kernel.maps] == ["uint64"]
    arrays = {"X": np.full((2, 1, 16), 2**62, np.int64), "C": np.full((1, 16), -(2**63), np.int64)}
    assert wrong(made, arrays, {"B": 2, "M": 1, "N": 16}, (None,)) is None


def test_a_block_adds_its_sum() -> None:
    made = laid(product(), TILES.format(""))
    for m, depth, n in ((19, 7, 44), (0, 4, 4), (3, 0, 4), (33, 8, 68)):
        arrays = {"A": integers(m, depth), "B": integers(depth, n, seed=1), "C": integers(m, n, seed=2)}
        assert wrong(made, arrays, {"M": m, "K": depth, "N": n}, (None, 0)) is None
    arrays = {"A": integers(17, 7), "B": integers(7, 36, seed=1), "C": integers(17, 36, seed=2)}
    sizes = {"M": 17, "K": 7, "N": 36}
    assert np.array_equal(
        machine.run(made.function, made.plan, arrays, sizes, 0)["C"], interpret(made.original, arrays, sizes)["C"]
    )


def test_a_sum_of_one_term_is_the_same_to_the_bit() -> None:
    """A tile begins as −0, so that −0 is added to −0."""
    text = "fn plus(x: f32[n], inout C: f32[n] align(16)) where n % 4 == 0 { par n |j| { C[j] += x[j] } }"
    made = laid(text, f"split(j, 32) -> (bj, tj)  bind(bj, grid.x)  {STAGE.format('')}")
    values = np.array([-0.0, 0.0, -0.0, 1.0], np.float32)
    arrays, sizes = {"x": values, "C": np.array([-0.0, -0.0, 0.0, 2.0], np.float32)}, {"n": 4}
    got = machine.run(made.function, made.plan, arrays, sizes, 0)["C"]
    assert np.array_equal(np.signbit(got), np.signbit(interpret(made.original, arrays, sizes)["C"]))
    assert "= -0.0f;" in made.text and wrong(made, arrays, sizes, (None,)) is None


def test_boxes_and_swizzles() -> None:
    made = laid(product(), TILES.format(", box=(8, 16), swizzle=64B"))
    arrays = {"A": integers(19, 7), "B": integers(7, 44, seed=1), "C": integers(19, 44, seed=2)}
    assert wrong(made, arrays, {"M": 19, "K": 7, "N": 44}, (None, 0)) is None
    assert sum(isinstance(s, k.StoreTensor) for s in made.statements) == 4


SCALED = """
fn scaled(A: f32[M, K], inout C: f32[M, K] align(16))
    where K % 4 == 0
{
    par M |i| { par K |j| { C[i, j] = 2.0 * C[i, j] + A[i, j] } }
}"""


@pytest.mark.parametrize("more", ["", ", swizzle=128B", ", box=(8, 16)"], ids=["whole", "swizzled", "boxes"])
def test_what_is_read_first_is_loaded_first(more: str) -> None:
    made = laid(SCALED, TILES.format(more))
    for rows, columns in ((19, 44), (0, 4), (32, 64)):
        arrays = {"A": integers(rows, columns), "C": integers(rows, columns, seed=1)}
        assert wrong(made, arrays, {"M": rows, "K": columns}, (None, 0, 1)) is None
    assert {type(s) for s in made.statements} >= {k.CopyTensor, k.StoreTensor, k.BarrierWait}


LAST = """
fn last(A: f32[M, T, K], inout C: f32[M, K] align(16))
    where K % 4 == 0
{
    par M |i| { seq T |t| { par K |j| { C[i, j] = A[i, t, j] } } }
}"""


def test_a_store_comes_after_its_own_of_the_iteration_before() -> None:
    """What is stored again has arrived before: that a tile was read is not enough."""
    made = laid(LAST, TILES.format("").replace("reorder(bi, bj,", "reorder(bi, bj, t,").replace("at=bj", "at=t"))
    first, _ = (s for s in made.statements if isinstance(s, k.WaitBulk))
    assert not first.read and {(c.kind, c.buffer) for c in first.covers} >= {("WAW", "C")}
    arrays, sizes = {"A": integers(19, 5, 44), "C": integers(19, 44, seed=1)}, {"M": 19, "T": 5, "K": 44}
    assert wrong(made, arrays, sizes) is None
    planted = made.text.replace("tx_wait_bulk<0>", "tx_wait_bulk_read<0>", 1)
    assert wrong(made, arrays, sizes, (None, 0, 1), text=planted) is not None


def changed(kernel: k.Kernel) -> Iterator[tuple[str, k.Kernel]]:
    """The kernel with one bug in a store or where a tile begins."""
    (store,) = (s for s in k.walk(kernel.body) if isinstance(s, k.StoreTensor))
    for what, wrong_one in (
        ("stored", replace(store, reduce=None)),
        ("max", replace(store, reduce="max")),
        ("column", replace(store, at=(store.at[0] + 4, *store.at[1:]))),
        ("row", replace(store, at=(store.at[0], store.at[1] + 1))),
    ):
        yield what, _with(kernel, store, (wrong_one,))
    yield "twice", _with(kernel, store, (store, store))
    for fence in (s for s in k.walk(kernel.body) if isinstance(s, k.Fence)):
        yield "fence", _with(kernel, fence, ())


def _with(kernel: k.Kernel, victim: k.Stmt, instead: tuple[k.Stmt, ...]) -> k.Kernel:
    def block(body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
        return tuple(each for stmt in body for each in (instead if stmt is victim else (inside(stmt),)))

    def inside(stmt: k.Stmt) -> k.Stmt:
        match stmt:
            case k.For():
                return replace(stmt, body=block(stmt.body))
            case k.If():
                return replace(stmt, then=block(stmt.then), orelse=block(stmt.orelse))
            case _:
                return stmt

    return replace(kernel, body=block(kernel.body))


def test_planted_bugs_are_found() -> None:
    made = laid(batch("i32"), layers())
    arrays = {"X": numbers("i32", 3, 32, 32) + 1, "C": numbers("i32", 32, 32, seed=1)}
    (kernel,) = k.kernels(made.plan.steps)
    for what, planted in changed(kernel):
        bad = replace(made, plan=replace(made.plan, steps=(k.Launch(planted),)))
        assert wrong(bad, arrays, {"B": 3, "M": 32, "N": 32}, (None, 0, 1)) is not None, what


ORDER = "what is touched of `C` cannot be staged: the order of a sum of f32 would change, which `k` keeps; `reduce(C)`"
REFUSED = {
    "order": (product(""), TILES.format(""), ORDER),
    "nan": (batch("f16", "max=", "#atomic"), layers(), "the engine's max of f16 loses a nan"),
    "type": (batch("i8"), layers(), "the engine does not combine i8 by add"),
    "atomic": (batch("f32"), layers(), "blocks that share `b` meet in `C` in no order that is known"),
    "product": (batch("i32", "*="), layers(), "blocks that share `b` meet in `C` in no order that is known"),
    "halves": (batch("f16", "+=", "#atomic"), layers(""), "blocks that share `b` would meet in elements that threads do not"),
    "box": (batch("i32"), layers(STAGE.format(", box=(16, 64)")), "its box may touch elements of another iteration"),
    "box that is loaded": (SCALED, TILES.format(", box=(16, 64)"), "an element of its box is read, or stored with it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, schedule, reason = REFUSED[name]
    assert reason in refusal(text, schedule).splitlines()[0]


def test_sums_of_integers_need_no_words() -> None:
    made = laid(product("", "i32"), TILES.format(""))
    arrays = {"A": numbers("i32", 19, 7), "B": numbers("i32", 7, 36, seed=1), "C": numbers("i32", 19, 36, seed=2)}
    assert wrong(made, arrays, {"M": 19, "K": 7, "N": 36}, (None, 0)) is None


def test_blocks_meet_by_atomics_where_nothing_is_staged() -> None:
    made = laid(batch("f32", "+=", "#atomic"), layers(""))
    assert any(isinstance(s, k.Atomic) for s in made.statements)
    arrays = {"X": integers(3, 19, 48), "C": integers(19, 48, seed=1)}
    assert wrong(made, arrays, {"B": 3, "M": 19, "N": 48}, (None, 0)) is None


def test_blocks_meet_in_one_element() -> None:
    text = "fn total(x: i32[n], inout s: i32[1]) { par n |i| reduce(s) { s[0] += x[i] } }"
    made = laid(text, "split(i, 64) -> (b, t)  bind(b, grid.x)")
    arrays = {"x": numbers("i32", 150), "s": np.array([5], np.int32)}
    assert wrong(made, arrays, {"n": 150}, (None, 0)) is None


def test_marks_without_a_proof_are_refused() -> None:
    """An update that the engine does not make, in a text that says it does."""
    body = "par n |i| #bind(grid.x) { new s: f32[1, 64] par 64 |j| { s[0, j] = A[i, j] }"
    text = (
        f"fn f(A: f32[n, 64], inout B: f32[n, 64] align(16)) {{ {body} par 64 |k| #tma(0, 1, 64) {{ B[i, k] *= s[0, k] }} }} }}"
    )
    (function,) = parse(text, "t.te").functions
    with pytest.raises(Limitation, match="which another directive has changed"):
        lowered(function, function)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_nvcc_makes_reductions_of_tiles(target: str) -> None:
    made: Laid = laid(batch("f32", "+=", "#atomic"), layers(), target)
    assert "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile" in binary(made, target).ptx.decode()
