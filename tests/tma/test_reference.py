"""The reference function against slow loops, NumPy, and the tables and figures of the documents."""

from __future__ import annotations

import operator
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.tma import slow
from tests.tma.slow import Case

from texpr.tma import reference
from texpr.tma.elements import ELEMENTS, Element, Fill, fill_bytes
from texpr.tma.im2col import im2col
from texpr.tma.reduce import TYPES, Reduction
from texpr.tma.reference import Address, Bytes, Direction, Mode, Op, bulk, four_rows, interleaved, tma
from texpr.tma.swizzle import Swizzle

LOAD, STORE = Direction.LOAD, Direction.STORE
FLOAT = Mode(ELEMENTS["float32"])


def run(case: Case, op: Op, mode: Mode, tensor: Bytes, shared: Bytes) -> None:
    tma(
        case.x,
        Address(shared, case.sa),
        ga=Address(tensor, case.ga),
        gs=case.gs,
        bs=case.bs,
        gr=case.gr,
        er=case.er,
        op=op,
        mode=mode,
    )


def random_case(random: Random, element: Element, swizzle: Swizzle, fill: Fill) -> tuple[Case, int, int]:
    """A case, and how many bytes of tensor and of shared memory it needs. Corners may be far outside."""
    rank = random.randint(1, 5)
    gs = [random.randint(1, 9 if rank < 4 else 4) for _ in range(rank)]
    bs = [random.randint(1, 7 if rank < 4 else 4) for _ in range(rank)]
    if swizzle is not Swizzle.NONE:
        bs[0] = random.randint(1, swizzle.span // element.size)
    er = [1, *(random.choice((1, 1, 2, 3, 5)) for _ in range(rank - 1))]
    gr = [1]
    for size in gs[:-1]:
        gr.append(gr[-1] * size + random.randint(0, 3))
    x = [random.randint(-b - 1, s + 1) for b, s in zip(bs, gs, strict=True)]
    sa, ga = random.randrange(4) * 128, random.randrange(5) * element.size
    extent = ga + element.size * (1 + sum((s - 1) * r for s, r in zip(gs, gr, strict=True)))
    case = Case(x, gs, bs, gr, er, element.size, ga, sa, swizzle.span, fill_bytes(element, fill))
    room = max(slow.swizzled(here, swizzle.span) for here, _ in slow.places(case)) + element.size
    return case, extent, room + 64


def modes() -> list[Mode]:
    return [
        Mode(element, swizzle, fill)
        for element in ELEMENTS.values()
        for swizzle in Swizzle
        for fill in (Fill if element.is_float else (Fill.ZERO,))
    ]


@pytest.mark.parametrize("mode", modes(), ids=lambda m: f"{m.element}-{m.swizzle.name}-{m.fill.value}")
def test_random_copies(mode: Mode) -> None:
    random = Random(str(mode))
    for _ in range(12):
        case, extent, room = random_case(random, mode.element, mode.swizzle, mode.fill)
        tensor, shared = (np.frombuffer(random.randbytes(n), np.uint8).copy() for n in (extent, room))
        expected, loaded = bytearray(shared.tobytes()), shared.copy()
        slow.load(case, tensor.tobytes(), expected)
        run(case, LOAD, mode, tensor, loaded)
        assert loaded.tobytes() == bytes(expected), case
        expected, stored = bytearray(tensor.tobytes()), tensor.copy()
        slow.store(case, expected, shared.tobytes())
        run(case, STORE, mode, stored, shared)
        assert stored.tobytes() == bytes(expected), case


def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `0 <= index`, a corner below 0 reads before the tensor, as the CodeBlock of the document would."""

    def upper_only(index: list[reference.Ints], sizes: list[int]) -> reference.Bools:
        return np.logical_and.reduce([at < size for at, size in zip(index, sizes, strict=True)])

    monkeypatch.setattr(reference, "in_bounds", upper_only)
    with pytest.raises((AssertionError, IndexError)):
        test_random_copies(FLOAT)


def test_a_planted_swizzle_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Swizzle, "__call__", lambda self, address: address)
    with pytest.raises(AssertionError):
        test_random_copies(Mode(ELEMENTS["float32"], Swizzle.B64))


def test_dense_and_strided_tile() -> None:
    """Introduction, figure 1: size (12, 16), pitch 14, box (6, 4) at (8, 4); element stride 1, and 3 in y."""
    tensor = np.arange(1, 14 * 16 + 1, dtype=np.float32)
    rows = tensor.reshape(16, 14)
    for step, chosen in ((1, [4, 5, 6, 7]), (3, [4, 7])):
        shared = np.full(24, -1, np.float32)
        case = Case((8, 4), (12, 16), (6, 4), (1, 14), (1, step), 4)
        run(case, LOAD, FLOAT, tensor.view(np.uint8), shared.view(np.uint8))
        tile = shared[: 6 * len(chosen)].reshape(-1, 6)
        np.testing.assert_array_equal(tile[:, :4], rows[chosen, 8:12])
        assert (tile[:, 4:] == 0).all()  # x = 12 and 13, with memory behind them
        assert (shared[6 * len(chosen) :] == -1).all()


@pytest.mark.parametrize("swizzle", Swizzle)
def test_swizzles_are_those_of_the_tables(swizzle: Swizzle) -> None:
    address = np.arange(4096)
    np.testing.assert_array_equal(swizzle(address), [slow.swizzled(at, swizzle.span) for at in range(4096)])
    moved = swizzle(address) - address
    period = swizzle.period
    assert (moved[period:] == moved[:-period]).all()
    assert swizzle is Swizzle.NONE or not (moved[period // 2 :] == moved[: -period // 2]).all()


NUMPY: dict[Reduction, Callable[[Any, Any], Any]] = {
    Reduction.ADD: operator.add,
    Reduction.MIN: min,
    Reduction.MAX: max,
    Reduction.INC: lambda old, new: 0 if old >= new else old + 1,
    Reduction.DEC: lambda old, new: new if old == 0 or old > new else old - 1,
    Reduction.AND: operator.and_,
    Reduction.OR: operator.or_,
    Reduction.XOR: operator.xor,
}


@pytest.mark.parametrize(("op", "name"), [(op, name) for op, names in TYPES.items() for name in names])
def test_reductions(op: Reduction, name: str) -> None:
    """Of small integers, so that floats are exact; outside of the tensor nothing is combined."""
    element = ELEMENTS[name]
    random = Random(f"{op}{name}")

    def combine(old: bytes, new: bytes) -> bytes:
        a, b = (np.frombuffer(each, element.storage)[0].item() for each in (old, new))
        return np.array([NUMPY[op](a, b)]).astype(element.storage).tobytes()

    for _ in range(20):
        case, extent, room = random_case(random, element, random.choice(list(Swizzle)), Fill.ZERO)
        case.ga = 0
        count = -(-extent // element.size)
        tensor = np.array([random.randint(0, 9) for _ in range(count)]).astype(element.storage).view(np.uint8)
        shared = (
            np.array([random.randint(0, 9) for _ in range(-(-room // element.size))]).astype(element.storage).view(np.uint8)
        )
        expected = bytearray(tensor.tobytes())
        slow.store(case, expected, shared.tobytes(), combine)
        run(case, op, Mode(element, Swizzle(case.span)), tensor, shared)
        assert tensor.tobytes() == bytes(expected), case


def test_reductions_know_their_types() -> None:
    wrong = [(op, name) for op in Reduction for name in ELEMENTS if name not in TYPES[op]]
    assert len(wrong) > 40
    byte = np.zeros(64, np.uint8)
    for op, name in wrong:
        with pytest.raises(ValueError, match="no "):
            run(Case((0,), (4,), (4,), (1,), (1,), 1), op, Mode(ELEMENTS[name]), byte, byte)


def test_nan_fill_is_nan() -> None:
    for element in ELEMENTS.values():
        if element.is_float:
            assert np.isnan(np.frombuffer(fill_bytes(element, Fill.NAN), element.storage).astype(np.float64)).all()
        else:
            with pytest.raises(ValueError, match="nan"):
                fill_bytes(element, Fill.NAN)


def test_bulk_copies_and_reductions() -> None:
    source, target = np.arange(64, dtype=np.int32), np.full(64, 5, np.int32)
    bulk(Address(target.view(np.uint8), 16), Address(source.view(np.uint8), 32), 48)
    expected = np.full(64, 5, np.int32)
    expected[4:16] = source[8:20]
    np.testing.assert_array_equal(target, expected)
    bulk(Address(target.view(np.uint8), 0), Address(source.view(np.uint8), 0), 64, (Reduction.ADD, ELEMENTS["int32"]))
    expected[:16] += source[:16]
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("swizzle", Swizzle)
def test_gather_and_scatter_of_four_rows(swizzle: Swizzle) -> None:
    tensor = np.arange(1, 12 * 20 + 1, dtype=np.float32).reshape(12, 20)
    chosen, box = (2, 11, -1, 12), min(8, swizzle.span // 4 or 8)
    mode = Mode(ELEMENTS["float32"], swizzle)
    shared = np.full(1024, 0xCD, np.uint8)
    four_rows(
        14,
        chosen,
        Address(shared),
        ga=Address(tensor.view(np.uint8).reshape(-1)),
        gs=(18, 12),
        box=box,
        pitch=20,
        op=LOAD,
        mode=mode,
    )
    here = np.array(
        [[slow.swizzled(r * max(4 * box, swizzle.span) + b, swizzle.span) for b in range(4 * box)] for r in range(4)]
    )
    got = np.ascontiguousarray(shared[here]).view(np.float32)
    for row, at in zip(got, chosen, strict=True):
        inside = tensor[at, 14:18] if 0 <= at < 12 else np.zeros(4)
        np.testing.assert_array_equal(row, np.concatenate([inside, np.zeros(max(0, box - 4))])[:box])
    back = np.zeros_like(tensor)
    four_rows(
        14,
        chosen,
        Address(shared),
        ga=Address(back.view(np.uint8).reshape(-1)),
        gs=(18, 12),
        box=box,
        pitch=20,
        op=STORE,
        mode=mode,
    )
    expected = np.zeros_like(tensor)
    for at in (2, 11):
        expected[at, 14:18] = tensor[at, 14:18]
    np.testing.assert_array_equal(back, expected)


@pytest.mark.parametrize(("slice_bytes", "swizzle"), [(16, Swizzle.NONE), (16, Swizzle.B128), (32, Swizzle.B32)])
def test_interleaved(slice_bytes: int, swizzle: Swizzle) -> None:
    """N[C/8]HW[8], from the same tensor as N, C, H, W."""
    count = slice_bytes // 2
    n, c, h, w = 2, 3 * count, 5, 6
    tensor = np.arange(n * c * h * w, dtype=np.uint16).reshape(n, c // count, h, w, count)
    x, bs = (count, 4, -1, 1), (2 * count, 4, 3, 2)
    mode = Mode(ELEMENTS["uint16"], swizzle)
    shared = np.full(8192, 0xCD, np.uint8)
    interleaved(
        x,
        Address(shared),
        ga=Address(tensor.reshape(-1).view(np.uint8)),
        gs=(c, w, h, n),
        bs=bs,
        gr=(1, count, w * count, c * h * w),
        er=(1, 1, 2, 1),
        op=LOAD,
        mode=mode,
        slice_bytes=slice_bytes,
        slice_stride=h * w * count,
    )
    channels = tensor.transpose(0, 2, 3, 1, 4).reshape(n, h, w, c)
    pitch = max(slice_bytes, swizzle.span)
    for at, (image, part, row, col) in enumerate(np.ndindex(2, 2, 2, 4)):
        here = [slow.swizzled(at * pitch + b, swizzle.span) for b in range(slice_bytes)]
        got = np.ascontiguousarray(shared[here]).view(np.uint16)
        i, y, z = 1 + image, -1 + 2 * row, 4 + col
        first = count * (1 + part)
        inside = i < n and 0 <= y < h and z < w
        np.testing.assert_array_equal(got, channels[i, y, z, first : first + count] if inside else 0)


@pytest.mark.parametrize("spaces", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2])
def test_im2col_is_the_matrix_of_a_convolution(spaces: int, stride: int) -> None:
    """Columns over all of a filter's offsets, with padding, against windows cut out of a padded tensor by NumPy."""
    channels, pad, dilation, taps, images = 8, 1, 2, 2, 2
    extents = (7, 6, 5)[:spaces]
    tensor = np.arange(1, images * channels * int(np.prod(extents)) + 1, dtype=np.float32).reshape(images, *extents, channels)
    padded = np.pad(tensor, [(0, 0), *[(pad, pad)] * spaces, (0, 0)])
    reach = dilation * (taps - 1)
    outs = [(n + 2 * pad - reach - 1) // stride + 1 for n in extents]
    pixels = images * int(np.prod(outs))
    gs = (channels, *reversed(extents), images)
    gr = [1]
    for size in gs[:-1]:
        gr.append(gr[-1] * size)
    for tap in np.ndindex(*[taps] * spaces):
        shared = np.full(pixels * channels + 8 * channels, -1, np.float32)
        im2col(
            (0, *[-pad] * spaces, 0),
            [dilation * t for t in reversed(tap)],
            Address(shared.view(np.uint8)),
            ga=Address(tensor.view(np.uint8).reshape(-1)),
            gs=gs,
            gr=gr,
            lower=[-pad] * spaces,
            upper=[pad - reach] * spaces,
            channels=channels,
            pixels=pixels + 8,
            er=(1, *[stride] * spaces, 1),
            op=LOAD,
            mode=FLOAT,
        )
        cut = tuple(slice(dilation * t, dilation * t + stride * (o - 1) + 1, stride) for t, o in zip(tap, outs, strict=True))
        column = padded[(slice(None), *cut, slice(None))].reshape(pixels, channels)
        np.testing.assert_array_equal(shared.reshape(-1, channels)[:pixels], column)
        assert (shared.reshape(-1, channels)[pixels:] == 0).all()  # behind the last image


@pytest.mark.parametrize("rank", [3, 4, 5])
@pytest.mark.parametrize("op", [LOAD, STORE])
def test_random_columns(rank: int, op: Direction) -> None:
    """Corners, offsets, strides, channels behind the last, images behind the last; against loops over space."""
    random = Random(f"{rank}{op}")
    for _ in range(40):
        spaces = rank - 2
        gs = [random.choice((4, 8, 12)), *(random.randint(1, 5) for _ in range(spaces)), random.randint(1, 2)]
        gr = [1]
        for size in gs[:-1]:
            gr.append(gr[-1] * size + random.choice((0, 4)))
        lower = [random.randint(-2, 1) for _ in range(spaces)]
        upper = [low - n + random.randint(1, 5) for low, n in zip(lower, gs[1:-1], strict=True)]
        last = [n - 1 + up for n, up in zip(gs[1:-1], upper, strict=True)]
        x = [random.choice((0, 4)), *map(random.randint, lower, last), random.randint(0, 2)]
        offsets = [random.randint(0, 3) for _ in range(spaces)]
        er = [1, *(random.randint(1, 3) for _ in range(spaces)), 1]
        channels, pixels, swizzle = random.choice((4, 8)), random.randint(1, 20), random.choice(list(Swizzle))
        tensor = np.arange(1, 2 + sum((n - 1) * r for n, r in zip(gs, gr, strict=True)), dtype=np.float32)
        shared = np.arange(-4096, 0, dtype=np.float32)
        old, pitch = shared.copy(), max(4 * channels, swizzle.span)
        expected = (shared if op is LOAD else tensor).copy()
        for row, (*space, image) in enumerate(slow.column(x, gs, lower, upper, er, pixels)):
            for c in range(channels):
                here = slow.swizzled(row * pitch + 4 * c, swizzle.span) // 4
                at = [x[0] + c, *(p + o for p, o in zip(space, offsets, strict=True)), image]
                there = sum(a * r for a, r in zip(at, gr, strict=True))
                inside = all(0 <= a < n for a, n in zip(at, gs, strict=True))
                if op is LOAD:
                    expected[here] = tensor[there] if inside else 0
                elif inside:
                    expected[there] = old[here]
        im2col(
            x,
            offsets,
            Address(shared.view(np.uint8)),
            ga=Address(tensor.view(np.uint8)),
            gs=gs,
            gr=gr,
            lower=lower,
            upper=upper,
            channels=channels,
            pixels=pixels,
            er=er,
            op=op,
            mode=Mode(ELEMENTS["float32"], swizzle),
        )
        np.testing.assert_array_equal(shared if op is LOAD else tensor, expected)


def test_im2col_from_within_the_box() -> None:
    """PTX ISA, "im2col mode", example 1: sizes 64, 9, 14, 64, corners -1; 64 pixels from (7, 7, 4, 0)."""
    tensor = np.arange(1, 8 * 9 * 14 * 2 + 1, dtype=np.float32).reshape(2, 14, 9, 8)
    shared = np.zeros(64 * 8, np.float32)
    im2col(
        (0, 7, 4, 0),
        (0, 0),
        Address(shared.view(np.uint8)),
        ga=Address(tensor.view(np.uint8).reshape(-1)),
        gs=(8, 9, 14, 2),
        gr=(1, 8, 72, 1008),
        lower=(-1, -1),
        upper=(-1, -1),
        channels=8,
        pixels=64,
        er=(1, 1, 1, 1),
        op=LOAD,
        mode=FLOAT,
    )
    order = [(h, w) for h in range(-1, 13) for w in range(-1, 8)]
    start = order.index((4, 7))
    for row, (h, w) in zip(shared.reshape(-1, 8), order[start : start + 64], strict=True):
        np.testing.assert_array_equal(row, tensor[0, h, w] if h >= 0 and w >= 0 else 0)
