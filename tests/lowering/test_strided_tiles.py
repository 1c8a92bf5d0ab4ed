"""Copies of every other element by the tensor memory accelerator: element strides from a schedule, or inferred, both ways."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from random import Random

import numpy as np
import pytest
from tests.lowering import machine
from tests.schedule.laid import Laid, binary, integers, laid, refusal, wrong

from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.support.record import replace

EVERY = """
fn every(A: f32[M, K] align(16)): f32[(M + 1) / 2, K]
    where K % 4 == 0
{
    new C: f32[(M + 1) / 2, K]
    par (M + 1) / 2 |i| { par K |k| { C[i, k] = A[2 * i, k] } }
    return C
}"""

SPREAD = """
fn spread(A: f32[M, K], inout C: f32[3 * M, K] align(16))
    where K % 4 == 0
{
    par M |i| { par K |k| { C[3 * i + 1, k] = A[i, k] } }
}"""
"""Stored to every third row of what is there; the others stay."""


def tiles(more: str, buffer: str = "A", tile: int = 16) -> str:
    """Tiles of 16 × 32 elements, those of `buffer` staged."""
    return f"""
    split(i, {tile}) -> (bi, ti)  split(k, 32) -> (bk, tk)
    reorder(bi, bk, ti, tk)
    bind(bi, grid.y)  bind(bk, grid.x)
    stage({buffer}, at=bk, in=shared, via=tma{more}) -> tile"""


def only_map(made: Laid) -> k.TensorMap:
    (kernel,) = k.kernels(made.plan.steps)
    (map,) = kernel.maps
    return map


@pytest.mark.parametrize(
    "more",
    ["", ", stride=(2, 1)", ", box=(16, 32), stride=(2, 1)", ", box=(8, 16)", ", swizzle=128B"],
    ids=["inferred", "asked", "boxes", "boxes alone", "swizzled"],
)
def test_every_other_row(more: str) -> None:
    made = laid(EVERY, tiles(f", fill=zero{more}"))
    assert only_map(made).steps == (1, 2)
    for rows, columns in ((19, 44), (0, 4), (1, 4), (4, 0), (64, 36)):
        assert wrong(made, {"A": integers(rows, columns)}, {"M": rows, "K": columns}, (None, 0)) is None


def test_asked_and_inferred_are_one() -> None:
    assert laid(EVERY, tiles(", fill=zero")).text == laid(EVERY, tiles(", fill=zero, stride=(2, 1)")).text.replace(
        ", stride=(2, 1)", ""
    )


def test_what_lies_between_may_be_copied_too() -> None:
    made = laid(EVERY, tiles(", fill=zero, stride=(1, 1)"))
    assert only_map(made).steps == (1, 1) and only_map(made).box == (32, 31)
    assert wrong(made, {"A": integers(19, 44)}, {"M": 19, "K": 44}, (None, 0)) is None


def test_a_store_leaves_what_lies_between() -> None:
    made = laid(SPREAD, tiles("", "C", 8))
    assert only_map(made).steps == (1, 3) and only_map(made).box == (32, 24)
    for rows, columns in ((11, 36), (0, 4), (8, 32)):
        arrays = {"A": integers(rows, columns), "C": integers(3 * rows, columns, seed=1)}
        assert wrong(made, arrays, {"M": rows, "K": columns}, (None, 0)) is None


def random_case(seed: int) -> tuple[str, str, dict[str, np.ndarray], dict[str, int]]:
    """A copy of every s-th element along each dimension from some offset on; sizes at run time, odd ones among them."""
    random = Random(seed)
    dtype, numpy, chunk = random.choice(
        [("f32", "float32", 4), ("f16", "float16", 8), ("i64", "int64", 2), ("u8", "uint8", 16), ("i32", "int32", 4)]
    )
    rank = random.choice([2, 2, 3])
    names, indices = ["M", "N", "K"][-rank:], ["i", "j", "k"][-rank:]
    steps = [*(random.randint(1, 8) for _ in range(rank - 1)), 1]
    first = [random.randint(0, 5) for _ in range(rank)]
    shape = [f"{s} * {n} + {f}" for s, n, f in zip(steps, names, first, strict=True)]
    from_ = [f"{s} * {i} + {f}" for s, i, f in zip(steps, indices, first, strict=True)]
    first[-1] = 0
    shape[-1], from_[-1] = names[-1], indices[-1]
    tile = [random.choice([4, 8]) for _ in range(rank - 1)]
    loops = " ".join(f"par {n} |{i}| {{" for n, i in zip(names, indices, strict=True))
    text = f"""
fn some(A: {dtype}[{", ".join(shape)}] align(16)): {dtype}[{", ".join(names)}]
    where K % {chunk} == 0
{{
    new C: {dtype}[{", ".join(names)}]
    {loops} C[{", ".join(indices)}] = A[{", ".join(from_)}] {"}" * rank}
    return C
}}"""
    grid = [f"b{i}" for i in indices]
    inner = [f"t{i}" for i in indices]
    cuts = "  ".join(f"split({i}, {t}) -> (b{i}, t{i})" for i, t in zip(indices, (*tile, 2 * chunk), strict=True))
    bound = "  ".join(f"bind({b}, grid.{axis})" for b, axis in zip(grid, "zyx"[-rank:], strict=True))
    schedule = f"""
    {cuts}
    reorder({", ".join((*grid, *inner))})
    {bound}
    stage(A, at={grid[-1]}, in=shared, via=tma, fill={random.choice(["zero", "weak"])}) -> As"""
    sizes = {n: random.randint(0, 11) for n in names[:-1]} | {"K": chunk * random.randint(1, 3)}
    extents = [s * sizes[n] + f for s, n, f in zip(steps, names, first, strict=True)]
    return text, schedule, {"A": integers(*extents, seed=seed, dtype=numpy)}, sizes


def check_random(seed: int) -> None:
    text, schedule, arrays, sizes = random_case(seed)
    made = laid(text, schedule)
    assert wrong(made, arrays, sizes, (None, seed)) is None, (text, schedule, sizes)
    want = interpret(made.original, arrays, sizes)
    assert np.array_equal(machine.run(made.function, made.plan, arrays, sizes, seed)["C"], want["C"])
    map = only_map(made)
    assert map.bytes == prod(-(-b // s) for b, s in zip(map.box, map.steps, strict=True)) * map.buffer.dtype.bytes


@pytest.mark.parametrize("seed", range(5))
def test_random(seed: int) -> None:
    check_random(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_many(seed: int) -> None:
    check_random(seed)


def bugs(map: k.TensorMap) -> Iterator[tuple[str, k.TensorMap]]:
    """The map with one field wrong."""
    for d in range(1, map.rank):
        for step in (map.steps[d] - 1, map.steps[d] + 1):
            if step > 0:
                yield f"step {d} is {step}", replace(map, steps=(*map.steps[:d], step, *map.steps[d + 1 :]))
        larger = (*map.box[:d], map.box[d] + map.steps[d], *map.box[d + 1 :])
        yield f"box {d} is {larger[d]}", replace(map, box=larger)
        far = (*map.strides[: d - 1], map.strides[d - 1] * 2, *map.strides[d:])
        yield f"stride {d} is twice", replace(map, strides=far, sizes=(*map.sizes[:d], map.sizes[d] // 2, *map.sizes[d + 1 :]))
    yield "the base is 4 elements on", replace(map, offset=map.offset + 4)


CAUGHT = {
    "load": (EVERY, tiles(", fill=zero"), {"A": integers(64, 64) + 8}, {"M": 64, "K": 64}),
    "store": (SPREAD, tiles("", "C", 8), {"A": integers(16, 64) + 8, "C": integers(48, 64)}, {"M": 16, "K": 64}),
}


@pytest.mark.parametrize("name", CAUGHT)
def test_planted_bugs_are_found(name: str) -> None:
    """Another element stride, box, stride or base: a fault, or another result."""
    text, schedule, arrays, sizes = CAUGHT[name]
    made = laid(text, schedule)
    (kernel,) = k.kernels(made.plan.steps)
    for what, map in bugs(only_map(made)):
        planted = replace(made, plan=replace(made.plan, steps=(k.Launch(replace(kernel, maps=(map,))),)))
        assert wrong(planted, arrays, sizes, (None,)) is not None, what


REFUSED = {
    "between": (", stride=(3, 1)", "a stride of 3 steps over elements that dimension 0 of the region has: they lie 2 apart"),
    "inner": (", stride=(2, 2)", "a stride of 2 steps over elements that dimension 1 of the region has: they lie 1 apart"),
    "box": (", stride=(2, 1), box=(15, 32)", "a stride of 2 does not divide the box of 15 in dimension 0, of size M"),
    "part": (", stride=(2, 1), box=(12, 32)", "boxes of 12 do not divide the 32 elements that dimension 0 of the region has"),
    "rank": (", stride=(2)", "`stage` takes a stride for each dimension of `A`, 2 in all"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    more, reason = REFUSED[name]
    assert reason in refusal(EVERY, tiles(more)).splitlines()[0]


COLUMNS = """
fn columns(A: f32[M, 2 * K] align(16)): f32[M, K]
    where K % 2 == 0
{
    new C: f32[M, K]
    par M |i| { par K |k| { C[i, k] = A[i, 2 * k] } }
    return C
}"""


def test_elements_of_a_row_are_not_stepped_over() -> None:
    """The hardware has no element stride there: all of them are copied, and where it is asked for that is said."""
    assert only_map(laid(COLUMNS, tiles(", fill=zero, box=(16, 64)"))).steps == (1, 1)
    reason = "element stride 0: the innermost element stride is 1, but for interleaved tensors"
    assert reason in refusal(COLUMNS, tiles(", stride=(1, 2)")).splitlines()[0]


def test_nvcc_takes_strided_copies() -> None:
    made = laid(SPREAD, tiles("", "C", 8))
    assert "cp.async.bulk.tensor.2d.global.shared::cta" in binary(made, "sm_90a").ptx.decode()
