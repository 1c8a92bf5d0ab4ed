"""Random copies of tiles, of every rank and swizzle, against the reference function of `texpr.tma`, byte by byte."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from random import Random

import numpy as np
import pytest
from tests.emulator.tensors import encode, registered

from texpr.emulator import LOCKSTEP, Emulated
from texpr.support.record import Record
from texpr.tma.elements import ELEMENTS, Fill
from texpr.tma.reduce import TYPES, Reduction
from texpr.tma.reference import Address, Direction, Mode, Op, interleaved, tma
from texpr.tma.swizzle import Swizzle

ROOM = 1 << 15
"""Bytes of shared memory in each kernel."""

_HEAD = """\
#include "texpr_device.h"
TX_SOURCE("copies")
"""

_KERNEL = """
extern "C" __global__ void
load_{t}_{rank}(TX_GLOBAL({t}_t) room, const __grid_constant__ tx_tensor_map map, int at, int bytes{params}) {{
    TX_SHARED_ALIGNED({t}_t, tile, {count}, 1024);
    TX_BARRIERS(full, 1);
    for (int i = threadIdx.x; i < {count}; i += 32) tile[i] = room[i];
    tx_fence_async();
    if (threadIdx.x == 0) {{ tx_barrier_init(full, 0, 1); tx_fence_init(); }}
    __syncthreads();
    if (threadIdx.x == 0) {{ tx_barrier_expect(full, 0, bytes); tx_load_tensor(tile, at, map, full, 0{given}); }}
    tx_barrier_wait(full, 0, 0);
    for (int i = threadIdx.x; i < {count}; i += 32) room[i] = tile[i];
}}
TX_EXPORT(load_{t}_{rank})
extern "C" __global__ void
store_{t}_{rank}(TX_GLOBAL({t}_t) room, const __grid_constant__ tx_tensor_map map, int at, int how{params}) {{
    TX_SHARED_ALIGNED({t}_t, tile, {count}, 1024);
    for (int i = threadIdx.x; i < {count}; i += 32) tile[i] = room[i];
    tx_fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {{
        switch (how) {{
{cases}        }}
        tx_commit_bulk();
        tx_wait_bulk<0>();
    }}
}}
TX_EXPORT(store_{t}_{rank})
"""

_REDUCTIONS = (None, Reduction.ADD, Reduction.MIN, Reduction.MAX, Reduction.AND, Reduction.OR, Reduction.XOR,
               Reduction.INC, Reduction.DEC)  # fmt: skip

_ALL = ("add", "min", "max", "and", "or", "xor")
_OPS = {1: (), 2: _ALL[:3], 4: (*_ALL, "inc", "dec"), 8: _ALL}
"""What elements of so many bytes can be combined by."""


def _kernels() -> str:
    texts = [_HEAD]
    for size in (1, 2, 4, 8):
        for rank in range(1, 6):
            params = "".join(f", int c{at}" for at in range(rank))
            given = "".join(f", c{at}" for at in range(rank))
            stores = ["store", *(f"reduce_{op}" for op in _OPS[size])]
            cases = "".join(
                f"        case {how}: tx_{verb}_tensor(map, tile, at{given}); break;\n" for how, verb in enumerate(stores)
            )
            texts.append(
                _KERNEL.format(t=f"uint{8 * size}", rank=rank, count=ROOM // size, params=params, given=given, cases=cases)
            )
    return "".join(texts)


KERNELS = _kernels()


class Copy(Record, dict=True):
    """A copy, in numbers; strides in bytes. `base`, `place`: bytes of memory before the tensor, and before the tile."""

    element: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: Swizzle
    fill: Fill
    slice_bytes: int
    at: tuple[int, ...]
    place: int
    base: int
    reduction: int | None
    """The number of a reduction, 0 for a store, or None for a load."""

    @property
    def bytes(self) -> int:
        """Bytes of the tile."""
        if self.slice_bytes:
            size = ELEMENTS[self.element].size
            slices = -(-(self.box[0] * size // self.slice_bytes) // self.steps[0])
            return slices * self.slice_bytes * prod(-(-b // e) for b, e in zip(self.box[1:], self.steps[1:], strict=True))
        return prod(-(-b // e) for b, e in zip(self.box, self.steps, strict=True)) * ELEMENTS[self.element].size

    @property
    def room(self) -> int:
        """Bytes of shared memory that the tile takes."""
        row = self.slice_bytes or self.box[0] * ELEMENTS[self.element].size
        return self.bytes // row * self.swizzle.pitch(row)

    @property
    def bounds(self) -> tuple[int, ...]:
        """The sizes within which elements are copied: a store ends a row with a whole chunk of 16 bytes."""
        chunk = 1 if self.reduction is None else 16 // ELEMENTS[self.element].size
        return -(-self.sizes[0] // chunk) * chunk, *self.sizes[1:]

    @property
    def slice_stride(self) -> int:
        """Bytes from a slice of channels to the next: behind all of space."""
        return self.strides[-2] * self.sizes[-2]


def _copy(random: Random) -> Copy:
    """One that the shared memory has room for."""
    while (copy := _any_copy(random)).place + copy.room > ROOM:
        pass
    return copy


def _any_copy(random: Random) -> Copy:
    element = random.choice(list(ELEMENTS.values()))
    swizzle = random.choice(list(Swizzle))
    slice_bytes = random.choice([0, 0, 0, 16, 32])
    if slice_bytes == 32:
        swizzle = Swizzle.B32
    rank = random.randint(3 if slice_bytes else 1, 5)
    grain = slice_bytes or 16
    most = 128 if slice_bytes or swizzle is Swizzle.NONE else swizzle.span
    row = grain * random.randint(1, most // grain) // element.size
    box = (row, *(random.randint(1, 5) for _ in range(rank - 1)))
    steps = (random.randint(1, 3) if slice_bytes else 1, *(random.choice([1, 1, 2, 3]) for _ in range(rank - 1)))
    whole = slice_bytes // element.size if slice_bytes else 1
    sizes = (random.randint(1, 40 if not slice_bytes else 3) * whole, *(random.randint(1, 7) for _ in range(rank - 1)))
    strides, reach = list[int](), slice_bytes or sizes[0] * element.size
    align = 32 if slice_bytes == 32 else 16
    for at in range(1, rank):
        if slice_bytes and at == rank - 1:
            reach = strides[-1] * sizes[-2] * -(-sizes[0] // whole)
        strides.append(-(-reach // align) * align + align * random.randint(0, 2))
        reach = strides[-1] * sizes[at]
    reduction = random.choice([None, None, 0, 1, 2, 3, 4, 5, 6])
    if reduction is not None and element.name == "uint32":
        reduction = random.choice([7, 8, 8])
    if reduction and element.name not in TYPES[_REDUCTIONS[reduction] or Reduction.ADD]:
        reduction = 0
    fill = random.choice(list(Fill)) if element.is_float else Fill.ZERO
    channels = slice_bytes // element.size if slice_bytes else 1
    chunk = 16 // element.size
    inner = random.randint(-2, 3) * channels if slice_bytes else random.randint(-row // chunk, sizes[0] // chunk) * chunk
    at = (inner, *(random.randint(-b, s) for b, s in zip(box[1:], sizes[1:], strict=True)))
    if reduction is not None:  # a store begins nowhere before the tensor
        at = tuple(max(each, 0) for each in at)
    place = random.randint(0, 3) * max(128, swizzle.period)
    return Copy(element.name, sizes, tuple(strides), box, steps, swizzle, fill, slice_bytes, at, place,
                align * random.randint(0, 5), reduction)  # fmt: skip


def _content(copy: Copy, count: int, seed: int) -> np.ndarray:
    """Bytes that are small whole numbers, as the copy's elements."""
    storage = ELEMENTS[copy.element].storage
    numbers = np.random.default_rng(seed).integers(0, 9, count // storage.itemsize).astype(storage)
    return numbers.view(np.uint8).copy()


def _reference(copy: Copy, shared: np.ndarray, tensor: np.ndarray) -> None:
    element = ELEMENTS[copy.element]
    op: Op = Direction.LOAD if copy.reduction is None else _REDUCTIONS[copy.reduction] or Direction.STORE
    arguments = {
        "ga": Address(tensor, copy.base), "gs": copy.bounds, "bs": copy.box, "er": copy.steps, "op": op,
        "gr": (1, *(stride // element.size for stride in copy.strides)), "mode": Mode(element, copy.swizzle, copy.fill),
    }  # fmt: skip
    if copy.slice_bytes:
        slices = {"slice_bytes": copy.slice_bytes, "slice_stride": copy.slice_stride // element.size}
        interleaved(copy.at, Address(shared, copy.place), **arguments, **slices)
    else:
        tma(copy.at, Address(shared, copy.place), **arguments)


def _same(copy: Copy, found: np.ndarray, wanted: np.ndarray) -> None:
    """Equal bytes; any nan for a nan, which the hardware fills with bits that are nowhere told."""
    storage = ELEMENTS[copy.element].storage
    if copy.fill is Fill.NAN:
        a, b = found.view(storage), wanted.view(storage)
        assert ((a == b) | (np.isnan(a) & np.isnan(b))).all(), copy
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=str(copy))


def _compare(emulated: Emulated, copy: Copy, seed: int) -> None:
    element = ELEMENTS[copy.element]
    reach = copy.strides[-1] * copy.sizes[-1] if copy.strides else copy.sizes[0] * element.size
    memory = np.zeros(copy.base + reach + 256 + 32, np.uint8)
    skipped = -memory.ctypes.data % 32
    tensor = memory[skipped : skipped + copy.base + (reach + 127) // 128 * 128]
    tensor[:] = _content(copy, tensor.size, seed)
    room = _content(copy, ROOM, seed + 1)
    wanted_room, wanted_tensor = room.copy(), tensor.copy()
    _reference(copy, wanted_room, wanted_tensor)
    map = encode(
        emulated.emulator.library, list(ELEMENTS).index(copy.element), tensor.ctypes.data + copy.base, copy.sizes, copy.strides,
        copy.box, copy.steps, copy.slice_bytes // 16, list(Swizzle).index(copy.swizzle), 0, list(Fill).index(copy.fill),
    )  # fmt: skip
    assert not isinstance(map, str), (map, copy)
    typed = room.view(f"u{element.size}")
    kind = "load" if copy.reduction is None else "store"
    args = [typed, map, copy.place // element.size, copy.bytes if copy.reduction is None else copy.reduction, *copy.at]
    name = f"{kind}_uint{8 * element.size}_{len(copy.sizes)}"
    with registered(emulated, tensor, "tensor"):
        assert emulated.launch(name, 1, 32, args, seed=(None, LOCKSTEP, seed)[seed % 3]) == [], copy
    _same(copy, room, wanted_room)
    _same(copy, tensor, wanted_tensor)


@pytest.mark.parametrize("part", range(6))
def test_copies_move_the_reference_s_bytes(emulate: Callable[..., Emulated], part: int) -> None:
    for seed in range(10 * part, 10 * part + 10):
        _compare(emulate(KERNELS), _copy(Random(seed)), seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_many_copies_move_the_reference_s_bytes(emulate: Callable[..., Emulated], part: int) -> None:
    for seed in range(1000 + 50 * part, 1000 + 50 * part + 50):
        _compare(emulate(KERNELS), _copy(Random(seed)), seed)


def test_the_random_copies_are_of_every_kind() -> None:
    copies = [_copy(Random(seed)) for seed in range(60)]
    assert {len(copy.sizes) for copy in copies} == {1, 2, 3, 4, 5}
    assert {copy.swizzle for copy in copies} == set(Swizzle) and {copy.slice_bytes for copy in copies} == {0, 16, 32}
    assert {copy.fill for copy in copies} == set(Fill) and {copy.element for copy in copies} == set(ELEMENTS)
    assert {copy.reduction for copy in copies} == {None, *range(9)} and any(max(copy.steps) > 1 for copy in copies)
