"""Pixels as a convolution reads them, copied in im2col mode by the tensor memory accelerator; sizes at run time, every rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from texpr.support.record import replace

Array = NDArray[Any]

CONV = """
fn conv(X: f32[B, 13, 11, C] align(16), K: f32[3, 3, C, F]): f32[B, 7, 5, F]
    where C % 4 == 0
{
    new Y: f32[B, 7, 5, F]
    let p = pad(X, (0, 1, 0, 0), (0, 1, 0, 0), 0.0)
    par B |b| { par 7 |y| { par 5 |x| { par F |f| {
        Y[b, y, x, f] = 0.0
        seq 3 |r| reduce(Y) { seq 3 |s| reduce(Y) { seq C |c| reduce(Y) {
            Y[b, y, x, f] += p[b, 2 * y + r, 2 * x + s, c] * K[r, s, c, f]
        } } }
    } } } }
    return Y
}"""
"""A convolution of stride 2, padded above and below alone."""

TILES = """
    merge(b, y) -> by  merge(by, x) -> m
    split(m, 32) -> (bm, tm)  split(f, 16) -> (bf, tf)  split(c, 16) -> (co, ci)
    reorder(bm, bf, r, s, co, tm, tf, ci)
    bind(bm, grid.y)  bind(bf, grid.x)
    stage(X, at=co, in=shared, via=im2col{}) -> Xs
    bind(tm, block.y)  bind(tf, block.x)"""


def conv_arrays(images: int, channels: int, filters: int) -> tuple[dict[str, Array], dict[str, int]]:
    arrays = {"X": integers(images, 13, 11, channels), "K": integers(3, 3, channels, filters, seed=1)}
    return arrays, {"B": images, "C": channels, "F": filters}


@pytest.mark.parametrize(
    "more",
    ["", ", fill=zero", ", fill=zero, swizzle=64B", ", fill=zero, box=(16, 8)", ", fill=zero, box=(32, 8), swizzle=32B"],
    ids=["weak", "zero", "swizzled", "boxes", "swizzled boxes"],
)
def test_convolution(more: str) -> None:
    made = laid(CONV, TILES.format(more))
    for images, channels, filters in ((2, 20, 17), (0, 4, 1), (1, 4, 3)):
        assert wrong(made, *conv_arrays(images, channels, filters), (None, 0)) is None
    (map,) = only(made).maps
    assert map.corners == ((0, -1), (-1, -1)) and map.steps == (1, 2, 2, 1)
    loads = [s for s in made.statements if isinstance(s, k.CopyTensor)]
    assert {tuple(str(e) for e in load.offsets) for load in loads} == {("s", "r")}


SHARED = TILES.replace("bind(bf, grid.x)", "bind(bf, grid.x)  cluster(bf, {})").replace("im2col{}", "im2col, multicast=bf{}")


@pytest.mark.parametrize("more", ["", ", fill=zero, swizzle=64B", ", fill=zero, box=(32, 8)", ", fill=zero, box=(32, 16)"])
@pytest.mark.parametrize("blocks", [2, 4])
def test_blocks_of_a_cluster_share_columns(blocks: int, more: str) -> None:
    """Filters of neighbours, the same pixels: each block brings a part of the column to all, or of the channels."""
    made = laid(CONV, SHARED.format(blocks, more))
    loads = [s for s in made.statements if isinstance(s, k.CopyTensor)]
    assert loads and all(load.peers == tuple(range(blocks)) and load.offsets for load in loads)
    for images, channels, filters in ((2, 20, 17), (0, 4, 1), (1, 4, 70)):
        assert wrong(made, *conv_arrays(images, channels, filters), (None, 0, 1)) is None


def test_planted_bugs_in_shared_columns_are_found() -> None:
    made = laid(CONV, SHARED.format(2, ", fill=zero"))
    arrays, sizes = conv_arrays(2, 16, 40)
    (load,) = (s for s in made.statements if isinstance(s, k.CopyTensor))
    for what, other in (
        ("to itself alone", replace(load, peers=(0,))),
        ("offsets swapped", replace(load, offsets=tuple(reversed(load.offsets)))),
        ("the other's part", replace(load, at=(load.at[0] + 4, *load.at[1:]))),
    ):
        bad = replace(made, plan=replace(made.plan, steps=(k.Launch(_with(only(made), load, other)),)))
        assert wrong(bad, arrays, sizes, (None,)) is not None, what


def test_blocks_that_read_other_pixels_share_none() -> None:
    text = refusal(CONV, SHARED.format(2, "").replace("cluster(bf", "cluster(bm").replace("multicast=bf", "multicast=bm"))
    assert "blocks of one cluster copy other parts of `X`" in text.splitlines()[0]


def test_columns_come_iterations_ahead() -> None:
    made = laid(CONV, TILES.format(", fill=zero, swizzle=64B") + "\npipeline(co, stages=3)")
    assert wrong(made, *conv_arrays(1, 40, 3), (None, 0)) is None


def only(made: Laid) -> k.Kernel:
    (kernel,) = k.kernels(made.plan.steps)
    return kernel


def test_the_kernel_form_means_the_program() -> None:
    """By a machine that shares no code with the emulator, and counts pixels otherwise."""
    made = laid(CONV, TILES.format(", fill=zero, box=(16, 8), swizzle=32B"))
    arrays, sizes = conv_arrays(1, 4, 2)
    got = machine.run(made.function, made.plan, arrays, sizes, 1)["Y"]
    assert np.array_equal(got, interpret(made.original, arrays, sizes)["Y"])


def unfold(seed: int) -> tuple[str, str, dict[str, Array], dict[str, int]]:
    """Windows cut out of images whose sizes are known at run time alone: steps, dilations and paddings by chance, 1 to 3-D."""
    random = Random(seed)
    dtype, numpy, chunk = random.choice(
        [("f32", "float32", 4), ("f16", "float16", 8), ("u8", "uint8", 16), ("i64", "int64", 2)]
    )
    rank = random.choice([1, 2, 2, 3])
    names = "DHW"[-rank:]
    size = {n: random.randint(3, 9) for n in names}
    step = {n: random.randint(1, 3) for n in names}
    dilation = {n: random.randint(1, 2) for n in names}
    before, after = ({n: random.randint(0, 2) for n in names} for _ in range(2))
    taps = {n: random.randint(1, 2) for n in names}
    channels = chunk * random.randint(1, 2)
    counts: dict[str, str] = {}
    where: list[str] = []
    head: list[str] = []
    for n in names:
        reach = dilation[n] * (taps[n] - 1)
        lost = reach + 1 - before[n] - after[n]
        counts[n] = f"({n} - {lost}) / {step[n]} + 1" if lost >= 0 else f"({n} + {-lost}) / {step[n]} + 1"
        where.append(f"{n} >= {max(1, lost)}")
        head.append(n)
    shape = ", ".join(("B", *head, str(channels)))
    windows = ", ".join(counts[n] for n in names)
    cut = ", ".join(str(taps[n]) for n in names)
    lows, highs = (", ".join(("0", *(str(p[n]) for n in names), "0")) for p in (before, after))
    low = [n.lower() for n in names]
    at = ", ".join(f"{step[n]} * {n.lower()} + {dilation[n]} * t{n.lower()}" for n in names)
    loops = [f"par {taps[n]} |t{n.lower()}|" for n in names] + ["par B |b|"] + [f"par {counts[n]} |{n.lower()}|" for n in names]
    opened = " { ".join((*loops, f"par {channels} |c|"))
    result = f"{dtype}[{cut}, B, {windows}, {channels}]"
    zero = "0.0" if dtype.startswith("f") else "0"
    target = ", ".join((*(f"t{n}" for n in low), "b", *low, "c"))
    text = f"""
fn unfold(X: {dtype}[{shape}] align(16)): {result}
    where {", ".join(where)}
{{
    new Y: {result}
    let p = pad(X, ({lows}), ({highs}), {zero})
    {opened} {{ Y[{target}] = p[b, {at}, c] {"}" * (2 * rank + 2)}
    return Y
}}"""
    schedule: list[str] = []
    last = "b"
    for n in low:
        schedule.append(f"merge({last}, {n}) -> {'m' * (len(schedule) + 1)}")
        last = "m" * len(schedule)
    pixels = random.choice([24, 32, 40])  # of which warps have more than one: those of a warp share no memory with others
    schedule.append(f"split({last}, {pixels}) -> (bm, tm)")
    fill = random.choice(["", ", fill=zero"])
    schedule.append(f"stage(X, at=bm, in=shared, via=im2col{fill}) -> Xs")
    sizes = {"B": random.randint(0, 3)} | size
    return text, "\n".join(schedule), {"X": integers(sizes["B"], *size.values(), channels, seed=seed, dtype=numpy)}, sizes


def check_unfold(seed: int) -> None:
    text, schedule, arrays, sizes = unfold(seed)
    made = laid(text, schedule)
    assert any(map.corners for map in only(made).maps), text
    assert wrong(made, arrays, sizes, (None, seed)) is None, (text, schedule, sizes)
    want = interpret(made.original, arrays, sizes)["Y"]
    assert np.array_equal(machine.run(made.function, made.plan, arrays, sizes, seed)["Y"], want)


@pytest.mark.parametrize("seed", range(5))
def test_sizes_at_run_time(seed: int) -> None:
    check_unfold(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 150))
def test_many(seed: int) -> None:
    check_unfold(seed)


def bugs(kernel: k.Kernel) -> Iterator[tuple[str, k.Kernel]]:
    """The kernel with one field of its map, one coordinate or one offset wrong."""
    (map,) = kernel.maps
    for d, (low, high) in enumerate(map.corners):
        for corner in ((low - 1, high), (low, high - 2), (low, high + 2)):
            corners = (*map.corners[:d], corner, *map.corners[d + 1 :])
            yield f"corner {d} is {corner}", replace(kernel, maps=(replace(map, corners=corners),))
        steps = (*map.steps[: d + 1], 1, *map.steps[d + 2 :])
        yield f"step {d} is 1", replace(kernel, maps=(replace(map, steps=steps),))
    yield "a pixel less", replace(kernel, maps=(replace(map, box=(map.box[0], map.box[1] - 1)),))
    (load,) = (s for s in k.walk(kernel.body) if isinstance(s, k.CopyTensor))
    swapped = replace(load, offsets=tuple(reversed(load.offsets)))
    for what, other in (
        ("offsets swapped", swapped),
        ("an offset more", replace(load, offsets=(load.offsets[0] + 1, load.offsets[1]))),
        ("another image", replace(load, at=(*load.at[:-1], load.at[-1] + 1))),
        ("other channels", replace(load, at=(load.at[0] + 4, *load.at[1:]))),
        ("the first column", replace(load, at=(load.at[0], expr(0), *load.at[2:]))),
    ):
        yield what, _with(kernel, load, other)


def _with(kernel: k.Kernel, victim: k.Stmt, instead: k.Stmt) -> k.Kernel:
    def block(body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
        return tuple(inside(stmt) for stmt in body)

    def inside(stmt: k.Stmt) -> k.Stmt:
        match stmt:
            case k.For():
                return replace(stmt, body=block(stmt.body))
            case k.If():
                return replace(stmt, then=block(stmt.then), orelse=block(stmt.orelse))
            case _:
                return instead if stmt is victim else stmt

    return replace(kernel, body=block(kernel.body))


def test_planted_bugs_are_found() -> None:
    """A fault, or another result."""
    made = laid(CONV, TILES.format(", fill=zero"))
    arrays, sizes = conv_arrays(3, 16, 3)
    arrays = {name: array + 5 for name, array in arrays.items()}
    for what, planted in bugs(only(made)):
        bad = replace(made, plan=replace(made.plan, steps=(k.Launch(planted),)))
        assert wrong(bad, arrays, sizes, (None,)) is not None, what


APART = """
    split(c, 16) -> (co, ci)  reorder(b, y, r, s, co, x, f, ci)  bind(b, grid.y)  bind(y, grid.x)
    stage(X, at=co, in=shared, via=im2col, fill=zero) -> Xs"""


def test_a_row_of_pixels() -> None:
    """Loops that are not merged: pixels of one row of the image, which the offset names."""
    made = laid(CONV, APART)
    assert only(made).maps[0].box == (16, 5) and only(made).maps[0].corners == ((0, -1), (-1, -13))
    for images, channels, filters in ((2, 20, 17), (0, 4, 1)):
        assert wrong(made, *conv_arrays(images, channels, filters), (None, 0)) is None


SLICES = """
fn conv(X: f16[N, 3, H, W, 8] align(16), K: f16[3, 3, 3, 8, F]): f32[N, H - 2, W - 2, F]
    where H >= 3, W >= 3
{
    new Y: f32[N, H - 2, W - 2, F]
    par N |n| { par H - 2 |y| { par W - 2 |x| { par F |f| {
        Y[n, y, x, f] = 0.0
        seq 3 |g| reduce(Y) { seq 3 |r| reduce(Y) { seq 3 |s| reduce(Y) { seq 8 |c| reduce(Y) {
            Y[n, y, x, f] += f32(X[n, g, y + r, x + s, c]) * f32(K[g, r, s, c, f])
        } } } }
    } } } }
    return Y
}"""
"""Channels in slices of 8 (NC/8HWC8): five dimensions, of which the slice is one of space."""


def test_slices_of_channels_need_no_interleave() -> None:
    schedule = """
    merge(n, y) -> ny  merge(ny, x) -> m  split(m, 32) -> (bm, tm)  split(f, 16) -> (bf, tf)
    reorder(bm, bf, g, r, s, tm, tf, c)  bind(bm, grid.y)  bind(bf, grid.x)
    stage(X, at=s, in=shared, via=im2col, fill=zero) -> Xs"""
    made = laid(SLICES, schedule)
    (load, *_) = (s for s in made.statements if isinstance(s, k.CopyTensor))
    assert [str(e) for e in load.offsets] == ["s", "r", "g"] and only(made).maps[0].corners[2] == (0, -2)
    for images, height, width, filters in ((2, 5, 7, 17), (1, 3, 3, 1), (0, 4, 4, 2)):
        arrays = {
            "X": integers(images, 3, height, width, 8, dtype="float16"),
            "K": integers(3, 3, 3, 8, filters, seed=1, dtype="float16"),
        }
        assert wrong(made, arrays, {"N": images, "H": height, "W": width, "F": filters}, (None, 0)) is None


PLAIN = CONV.replace("align(16)", "")
REFUSED: Mapping[str, tuple[str, str, str]] = {
    "alignment": (PLAIN, TILES.format(""), "base: the tensor begins at a multiple of 16 bytes"),
    "stride": (
        CONV.replace("where C % 4 == 0", ""),
        TILES.format(""),
        "stride 1: every stride but the innermost is a multiple",
    ),
    "fill": (CONV, TILES.format(", fill=1.0"), "the tensor memory accelerator fills with zero or nan, not 1.0"),
    "span": (CONV, TILES.format(", swizzle=128B"), "with `swizzle=128B` the channels of a box have 128 bytes, and here 64"),
    "box": (CONV, TILES.format(", box=(12, 16)"), "boxes of 12 pixels do not divide the 32 of the region"),
    "words": (CONV, TILES.format(", stride=(1, 2)"), "`stage` has `stride=` with `via=tma` alone"),
    "row": (CONV, TILES.format(", box=(32, 2)"), "the innermost row of a box is a multiple of 16 bytes"),
    "window": (
        CONV.replace("par 5 |x|", "par 4 |x|").replace("f32[B, 7, 5", "f32[B, 7, 4"),
        TILES.format(""),
        "",
    ),
    "not merged": (
        CONV.replace("f32[B, 13,", "f32[B, H,").replace("C % 4 == 0", "C % 4 == 0, H >= 15"),
        APART,
        "there are 1 pixels along a dimension of H, which no bounding box has at every size",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, schedule, reason = REFUSED[name]
    if name == "window":  # fewer pixels than there are windows are another bounding box
        assert only(laid(text, schedule)).maps[0].corners == ((0, -3), (-1, -1))
    else:
        assert reason in refusal(text, schedule).splitlines()[0]


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_nvcc_makes_columns(target: str) -> None:
    made = laid(CONV, TILES.format(", fill=zero"), target)
    assert "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier" in binary(made, target).ptx.decode()
    shared = binary(laid(CONV, SHARED.format(2, ""), target), target).ptx.decode()
    assert "global.im2col.mbarrier::complete_tx::bytes.multicast::cluster" in shared
