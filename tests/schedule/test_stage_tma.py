"""Staging by the tensor memory accelerator: what it means in the plain program, and what is refused, word for word."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from tests.lowering.tiled import BLUR, COPY, MATMUL, SLABS, SLICING, copying, multiplying
from tests.schedule.laid import integers, laid, refusal, wrong

from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir.program import text
from texpr.schedule.stage.boxes import Boxes
from texpr.tma.swizzle import Swizzle


def said(program: str, schedule: str, target: str = "sm_90a") -> tuple[str, str]:
    """The first line of a refusal, and its help."""
    lines = refusal(program, schedule, target).splitlines()
    return lines[0], next(line.split("help: ")[1] for line in lines if "help: " in line)


def test_the_plain_program_fills() -> None:
    made = laid(COPY, copying("fill=zero, box=(16, 32), swizzle=128B"))
    printed = text.print_function(made.function)
    assert "new As: f32[16, 8, 4]" in printed
    assert "par 16 |As_0| #tma(128, 16, 32) {" in printed
    assert "As[As_0, xor(As_1 / 4, As_0, 3), As_1 % 4] = A[As_0 + 16 * bi, As_1 + 32 * bk]" in printed
    assert "As[As_0, xor(As_1 / 4, As_0, 3), As_1 % 4] = 0\n" in printed


@pytest.mark.parametrize("out", ["", "stage(C, at=bk, in=shared, via=tma, swizzle=128B) -> Cs"])
def test_the_plain_program_means_the_same(out: str) -> None:
    made = laid(COPY, copying("fill=zero, box=(8, 8), swizzle=32B", out=out))
    arrays = {"A": integers(19, 44)}
    want, got = (interpret(each, arrays, {"M": 19, "K": 44}) for each in (made.original, made.function))
    assert np.array_equal(want["C"], got["C"])


@pytest.mark.parametrize("swizzle", Swizzle)
@pytest.mark.parametrize("extent", [(16, 128), (12, 64), (2, 6, 32), (3, 32), (32,)])
def test_memory_is_that_of_the_engine(swizzle: Swizzle, extent: tuple[int, ...]) -> None:
    """Every element of every box lies where the engine writes it: rows one behind the other, chunks moved by their address."""
    width = swizzle.span // 2 or extent[-1]
    if extent[-1] % width:
        width = extent[-1]
        swizzle = Swizzle.NONE
    boxes = Boxes(extent, (*extent[:-1], width), 2, swizzle)
    graph = boxes.allocation("As")
    shape = [leaf.extent.constant for leaf in graph.leaves]
    for index in product(*map(range, extent)):
        below = graph.below({d.sym: i for d, i in zip(graph.logical, index, strict=True)})
        own = [below[leaf.sym].constant for leaf in graph.leaves]
        number = index[-1] // width
        row = int(np.ravel_multi_index(index[:-1], extent[:-1])) if len(extent) > 1 else 0
        byte = swizzle(row * boxes.row + index[-1] % width * 2)
        assert int(np.ravel_multi_index(own, shape)) * 2 == number * boxes.bytes + byte
    assert prod(shape) * 2 == boxes.bytes * prod(boxes.counts)


LINE = "fn line(x: f32[n]): f32[n] { new y: f32[n] par n |i| { y[i] = x[i] } return y }"
NO_ENGINE = "has no tensor memory accelerator"
CANNOT = "error[E0916]: the tensor memory accelerator cannot copy"
ROW = "inner box: the innermost row of a box is a multiple of 16 bytes"
HALO = "split(i, 8) -> (bi, ti)  split(j, 32) -> (bj, tj)  reorder(bi, bj, ti, tj)  bind(bi, grid.y)  bind(bj, grid.x)\n"
CASES = {
    "target": (
        COPY,
        copying("box=(16, 32)"),
        f"error[E0908]: sm_80 {NO_ENGINE}",
        "stage it by via=cp_async",
    ),
    "cpu": (
        COPY,
        copying("box=(16, 32)").replace("bind(bi, grid.y)  bind(bk, grid.x)", ""),
        f"error[E0908]: cpu {NO_ENGINE}",
        "stage it in registers",
    ),
    "base": (
        COPY.replace(" align(16)", ""),
        copying("fill=zero"),
        f"{CANNOT} `A`: base: the tensor begins at a multiple of 16 bytes, of 32 with slices of 32",
        "promise where it begins: `A: f32[…] align(16)`",
    ),
    "stride": (
        COPY.replace("where K % 4 == 0", ""),
        copying("fill=zero"),
        f"{CANNOT} `A`: stride 1: every stride but the innermost is a multiple of 16 bytes, of 32 with slices of 32",
        'add "where K % 4 == 0"',
    ),
    "row": (COPY, copying("box=(16, 2)"), f"{CANNOT} `A`: {ROW}", "ask for box=(16, 32)"),
    "halo": (
        BLUR,
        f"{HALO}stage(x, at=bj, in=shared, via=tma, fill=zero, box=(10, 36)) -> xs",
        "error[E0916]: boxes of 36 do not divide the 40 elements that dimension 1 of the region has, 3 of them for a begin at "
        "a multiple of 16 bytes",
        "choose a divisor of 40, or one box of more than 40: box=(10, 40)",
    ),
    "large": (
        COPY,
        copying("fill=zero", (16, 512)),
        f"{CANNOT} `A`: box 0: 1 <= box <= 256",
        "ask for box=(16, 256)",
    ),
    "part": (
        COPY,
        copying("box=(16, 12)"),
        "error[E0916]: boxes of 12 do not divide the 32 elements that dimension 1 of the region has",
        "choose a divisor of 32, or one box of more than 32: box=(16, 8)",
    ),
    "span": (
        COPY,
        copying("swizzle=64B"),
        "error[E0916]: with `swizzle=64B` a row of a box has 64 bytes, and here it has 128",
        "ask for box=(16, 16)",
    ),
    "fill": (
        COPY,
        copying("fill=2.0"),
        "error[E0916]: the tensor memory accelerator fills with zero or nan, not 2.0",
        "stage it by via=ld",
    ),
    "negative zero": (
        COPY,
        copying("fill=-0.0"),
        "error[E0916]: the tensor memory accelerator fills with zero or nan, not -0.0",
        "stage it by via=ld",
    ),
    "nan": (
        COPY.replace("f32", "i32"),
        copying("fill=nan"),
        "error[E0916]: the tensor memory accelerator has no nan of i32",
        "leave it out",
    ),
    "nan of 8 bits": (
        COPY.replace("f32", "f8e4m3").replace("K % 4", "K % 16"),
        copying("fill=nan"),
        "error[E0916]: the tensor memory accelerator has no nan of f8e4m3",
        "stage it by via=ld",
    ),
    "place of a box": (
        SLABS,
        SLICING.format("box=(1, 4, 8)"),
        f"{CANNOT} `A`: shared address: a tile begins at a multiple of 128 bytes, or of what its swizzle repeats after",
        "stage it by via=ld",
    ),
    "changed": (
        COPY,
        copying("box=(16, 32)", out="bind(As_0, block.x)"),
        "error[E0916]: the tensor memory accelerator runs the loop over `As_0`, which must stay as `stage` made it",
        "`box=` and `swizzle=` of `stage` shape such a copy",
    ),
    "memory": (
        COPY,
        copying("box=(16, 32)", out="resize(As.d1, 0, 1)"),
        "error[E0913]: the memory of `As` lies as the tensor memory accelerator copies it",
        "what `swizzle=` and `box=` of `stage` say shapes such memory",
    ),
    "chunk": (
        LINE,
        "split(i, 64) -> (b, t)  bind(b, grid.x)  stage(y, at=b, in=shared, via=tma) -> ys",
        "error[E0916]: a store writes 16 bytes at once, and a row of `y`, of n elements, may end within them",
        'add "where n % 4 == 0"',
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str) -> None:
    program, schedule, reason, help = CASES[name]
    target = {"target": "sm_80", "cpu": "cpu"}.get(name, "sm_90a")
    assert said(program, schedule, target) == (reason, help)


def test_words_of_tma_alone() -> None:
    reason, _ = said(COPY, copying("box=(16, 32)").replace("via=tma", "via=ld"))
    assert reason == "error[E0902]: `stage` has `box=` with `via=tma` or `via=im2col` alone"
    reason, _ = said(COPY, copying("box=(16)"))
    assert reason == "error[E0902]: `stage` takes a box with a size for each dimension of `A`, 2 in all"


def test_a_store_of_what_is_not_written_is_refused() -> None:
    """A box larger than what is computed would store what nobody wrote."""
    schedule = multiplying(out="stage(C, at=bj, in=shared, via=tma, box=(16, 64)) -> Cs")
    text = refusal(MATMUL, schedule)
    assert "an element of its box is read, or stored with it, that another iteration may write" in text


NORM = """
fn norm(x: f32[m, n] align(16)): f32[m, n]
    where n % 4 == 0, n <= 256
{
    new y: f32[m, n]
    par m |i| {
        new s: f32 = 0.0
        seq n |j| reduce(s) { s += x[i, j] }
        par n |k| { y[i, k] = x[i, k] + s }
    }
    return y
}"""


@pytest.mark.parametrize("words", ["ld", "cp_async", "tma", "tma, fill=zero"])
def test_a_box_is_as_large_as_its_extent_may_be(words: str) -> None:
    """`where n <= 256` makes a row of any length one box; at n = 0 the tensor is empty, and nothing of it is touched."""
    made = laid(NORM, f"split(i, 4) -> (b, t)  bind(b, grid.x)  stage(x, at=b, in=shared, via={words}) -> xs  bind(t, block.y)")
    assert "new xs: f32[4, 256]" in text.print_function(made.function)
    for m, n in ((5, 36), (0, 4), (3, 0), (9, 256)):
        assert wrong(made, {"x": integers(m, n)}, {"m": m, "n": n}, (None, 0)) is None


def test_without_a_promise_there_is_no_box() -> None:
    reason = refusal(NORM.replace(", n <= 256", ""), "split(i, 4) -> (b, t)  stage(x, at=b, in=shared, via=tma) -> xs")
    assert "its subscript 1 varies with `j`, whose extent is not a constant" in reason
    assert "split the loop, and stage at the outer part: `split(j, 16) -> (j_o, j_i)`" in reason


BELOW = {
    "the last line of a swizzle is not full": (
        "fill=zero, box=(3, 8), swizzle=32B",
        "cannot copy `A` so: 8 holes lie below the tile, where the engine never writes",
    ),
    "another tile begins in it": (
        "box=(3, 16), swizzle=64B",
        "cannot copy `A`: shared address: a tile begins at a multiple of 128 bytes, or of what its swizzle repeats after",
    ),
}


@pytest.mark.parametrize("name", BELOW)
def test_room_below_a_tile_is_refused(name: str) -> None:
    words, reason = BELOW[name]
    first, _ = said(COPY, copying(words, (3, 8 if "32B" in words else 32)))
    assert first == f"error[E0916]: the tensor memory accelerator {reason}"


def test_room_below_a_tile_that_nobody_reads_is_left_as_it_is() -> None:
    made = laid(COPY, copying("box=(3, 8), swizzle=32B", (3, 8)))
    assert "new As: f32[1, 4, 2, 4]" in text.print_function(made.function)
    assert wrong(made, {"A": integers(7, 44)}, {"M": 7, "K": 44}, (None, 0)) is None


def test_a_single_row_is_not_moved() -> None:
    """A swizzle goes by the address: boxes of one row, one behind the other, would each be moved otherwise."""
    made = laid(COPY, copying("fill=zero, box=(1, 32), swizzle=128B", (3, 32)))
    (kernel,) = k.kernels(made.plan.steps)
    assert [map.swizzle for map in kernel.maps] == [0]
    assert wrong(made, {"A": integers(7, 44)}, {"M": 7, "K": 44}, (None, 0)) is None
