"""Random copies in im2col mode, and of four rows, against the reference functions of `texpr.tma`, byte by byte; their rules."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.emulator.tensors import encode, registered

from texpr.affine.expr import expr
from texpr.affine.facts import Known
from texpr.emulator import LOCKSTEP, Emulated, Fault, build_core
from texpr.tma.descriptor import Im2col, TensorMap, exprs
from texpr.tma.elements import ELEMENTS
from texpr.tma.im2col import im2col
from texpr.tma.reference import Address, Direction, Mode, four_rows
from texpr.tma.rules import findings
from texpr.tma.swizzle import Swizzle

ROOM = 1 << 14

_KERNEL = """
extern "C" __global__ void
{name}_{t}(TX_GLOBAL({t}_t) room, const __grid_constant__ tx_tensor_map map, int bytes{params}) {{
    TX_SHARED_ALIGNED({t}_t, tile, {count}, 1024);
    TX_BARRIERS(full, 1);
    for (int i = threadIdx.x; i < {count}; i += 32) tile[i] = room[i];
    tx_fence_async();
    if (threadIdx.x == 0) {{ tx_barrier_init(full, 0, 1); tx_fence_init(); }}
    __syncthreads();
    if (threadIdx.x == 0) {{ tx_barrier_expect(full, 0, bytes); {call}(tile, 0, map, full, 0{given}); }}
    tx_barrier_wait(full, 0, 0);
    for (int i = threadIdx.x; i < {count}; i += 32) room[i] = tile[i];
}}
TX_EXPORT({name}_{t})
"""


def _kernels() -> str:
    texts = ['#include "texpr_device.h"\nTX_SOURCE("columns")\n']
    for size in (1, 2, 4, 8):
        for name, call, count in (
            *((f"columns{r}", "tx_load_columns", 2 * r - 2) for r in (3, 4, 5)),
            ("rows", "tx_load_rows", 5),
        ):
            params = "".join(f", int c{at}" for at in range(count))
            given = "".join(f", c{at}" for at in range(count))
            texts.append(
                _KERNEL.format(name=name, call=call, t=f"uint{8 * size}", count=ROOM // size, params=params, given=given)
            )
    return "".join(texts)


_STORED = """
extern "C" __global__ void
stored_{t}(TX_GLOBAL({t}_t) room, const __grid_constant__ tx_tensor_map map{params}) {{
    TX_SHARED_ALIGNED({t}_t, tile, {count}, 1024);
    for (int i = threadIdx.x; i < {count}; i += 32) tile[i] = room[i];
    tx_fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {{ tx_store_rows(map, tile, 0{given}); tx_commit_bulk(); tx_wait_bulk<0>(); }}
}}
TX_EXPORT(stored_{t})
"""


def _stores() -> str:
    params, given = ("".join(f", {word}c{at}" for at in range(5)) for word in ("int ", ""))
    kernels = (_STORED.format(t=f"uint{8 * size}", count=ROOM // size, params=params, given=given) for size in (1, 2, 4, 8))
    return "".join(kernels)


KERNELS = _kernels() + _stores()


def _memory(count: int, seed: int, storage: np.dtype[Any]) -> np.ndarray:
    """Bytes of small numbers, at a multiple of 16."""
    memory = np.zeros(count + 32, np.uint8)
    found = memory[-memory.ctypes.data % 16 :][:count]
    found[:] = np.random.default_rng(seed).integers(1, 9, count // storage.itemsize).astype(storage).view(np.uint8)
    return found


def _ran(
    emulated: Emulated, name: str, map: np.void, tensor: np.ndarray, numbers: list[int], size: int, seed: int
) -> np.ndarray:
    room = np.full(ROOM, 0xCD, np.uint8)
    with registered(emulated, tensor, "tensor"):
        args = [room.view(f"u{size}"), map, *numbers]
        assert emulated.launch(f"{name}_uint{8 * size}", 1, 32, args, seed=(None, LOCKSTEP, seed)[seed % 3]) == [], numbers
    return room


def _columns(emulated: Emulated, seed: int) -> None:
    random = Random(seed)
    element = random.choice(list(ELEMENTS.values()))
    swizzle = random.choice(list(Swizzle))
    rank = random.choice([3, 4, 4, 5])
    most = swizzle.span or 128
    channels = 16 * random.randint(1, most // 16) // element.size
    pixels = random.randint(1, ROOM // max(channels * element.size, swizzle.span) // 4)
    per = 16 // element.size
    sizes = (per * random.randint(1, 5), *(random.randint(1, 6) for _ in range(rank - 2)), random.randint(1, 3))
    strides = [sizes[0]]
    for each in sizes[1:-1]:
        strides.append(strides[-1] * each)
    corners: list[tuple[int, int]] = []
    for each in sizes[1:-1]:
        lower = random.randint(-3, 2)
        corners.append((lower, random.randint(max(-4, lower - each + 1), 3)))
    steps = (1, *(random.randint(1, 3) for _ in range(rank - 2)), 1)
    spaces = zip(sizes[1:-1], corners, steps[1:-1], strict=True)
    start = [low + e * random.randint(0, (s - 1 + high - low) // e) for s, (low, high), e in spaces]
    at = [per * random.randint(-1, sizes[0] // per), *start, random.randint(0, sizes[-1])]
    offsets = [random.randint(0, 4) for _ in corners]
    tensor = _memory(strides[-1] * sizes[-1] * element.size, seed, element.storage)
    map = encode(
        emulated.emulator.library, list(ELEMENTS).index(element.name), tensor.ctypes.data, sizes,
        [s * element.size for s in strides], (channels, pixels), steps, 0, list(Swizzle).index(swizzle), corners=corners,
    )  # fmt: skip
    assert isinstance(map, np.void), map
    numbers = [channels * pixels * element.size, *at, *offsets]
    found = _ran(emulated, f"columns{rank}", map, tensor, numbers, element.size, seed)
    wanted = np.full(ROOM, 0xCD, np.uint8)
    lower, upper = ([corner[end] for corner in corners] for end in (0, 1))
    im2col(
        at, offsets, Address(wanted), ga=Address(tensor), gs=sizes, gr=(1, *strides), lower=lower, upper=upper,
        channels=channels, pixels=pixels, er=steps, op=Direction.LOAD, mode=Mode(element, swizzle),
    )  # fmt: skip
    np.testing.assert_array_equal(found, wanted, err_msg=f"{sizes} {corners} {steps} {at} {offsets}")


def _rows(emulated: Emulated, seed: int) -> None:
    random = Random(seed)
    element = random.choice(list(ELEMENTS.values()))
    swizzle = random.choice(list(Swizzle))
    box = 16 * random.randint(1, (swizzle.span or 128) // 16) // element.size
    sizes = (16 // element.size * random.randint(1, 12), random.randint(1, 9))
    tensor = _memory(sizes[0] * sizes[1] * element.size, seed, element.storage)
    map = encode(
        emulated.emulator.library, list(ELEMENTS).index(element.name), tensor.ctypes.data, sizes, [sizes[0] * element.size],
        (box, 1), (1, 1), 0, list(Swizzle).index(swizzle),
    )  # fmt: skip
    assert isinstance(map, np.void), map
    per = 16 // element.size
    column, rows = per * random.randint(-1, sizes[0] // per), [random.randint(-1, sizes[1]) for _ in range(4)]
    mode = Mode(element, swizzle)
    found = _ran(emulated, "rows", map, tensor, [4 * box * element.size, column, *rows], element.size, seed)
    wanted = np.full(ROOM, 0xCD, np.uint8)
    four_rows(
        column, rows, Address(wanted), ga=Address(tensor), gs=sizes, box=box, pitch=sizes[0], op=Direction.LOAD, mode=mode,
    )  # fmt: skip
    np.testing.assert_array_equal(found, wanted)
    apart = random.sample([*range(sizes[1]), -1, -1, sizes[1], 2**31 - 1, -(2**31)], 4)
    column = max(column, 0)
    room, there = _memory(ROOM, seed + 1, element.storage), tensor.copy()
    with registered(emulated, tensor, "tensor"):
        args = [room.view(f"u{element.size}"), map, column, *apart]
        assert emulated.launch(f"stored_uint{8 * element.size}", 1, 32, args, seed=(None, LOCKSTEP, seed)[seed % 3]) == []
    four_rows(
        column, apart, Address(room), ga=Address(there), gs=sizes, box=box, pitch=sizes[0], op=Direction.STORE, mode=mode,
    )  # fmt: skip
    np.testing.assert_array_equal(tensor, there)


@pytest.mark.parametrize("part", range(4))
def test_columns_are_the_reference_s(emulate: Callable[..., Emulated], part: int) -> None:
    for seed in range(12 * part, 12 * part + 12):
        _columns(emulate(KERNELS), seed)


def test_rows_are_the_reference_s(emulate: Callable[..., Emulated]) -> None:
    for seed in range(24):
        _rows(emulate(KERNELS), seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_many(emulate: Callable[..., Emulated], part: int) -> None:
    for seed in range(1000 + 50 * part, 1000 + 50 * part + 50):
        _columns(emulate(KERNELS), seed)
        _rows(emulate(KERNELS), seed)


@pytest.mark.parametrize(
    ("at", "offsets", "what"),
    [
        ([0, -2, 0, 0], [0, 0], "began a column outside of its bounding box"),
        ([0, 8, 0, 0], [0, 0], "began a column outside of its bounding box"),
        ([0, 0, 0, 0], [256, 0], "gave an offset beyond the range of its rank"),
        ([0, 0, 0, 0], [0, -1], "gave an offset beyond the range of its rank"),
    ],
)
def test_bad_columns_are_found(emulate: Callable[..., Emulated], at: list[int], offsets: list[int], what: str) -> None:
    emulated = emulate(KERNELS)
    tensor = _memory(4 * 8 * 5 * 4, 0, np.dtype(np.float32))
    map = encode(
        emulated.emulator.library, 7, tensor.ctypes.data, [4, 8, 5, 1], [16, 128, 640], (4, 16), [1] * 4, corners=[(-1, -1)] * 2
    )
    room = np.zeros(ROOM // 4, np.uint32)
    assert isinstance(map, np.void)
    with registered(emulated, tensor, "tensor"):
        reports = emulated.launch("columns4_uint32", 1, 32, [room, map, 256, *at, *offsets])
    assert any(report.fault is Fault.BAD_TENSOR and what in str(report) for report in reports), reports


@pytest.fixture(scope="module")
def library(work: Path) -> ctypes.CDLL:
    found = ctypes.CDLL(str(build_core(work)))
    assert found.cuInit(0) == 0
    return found


def test_the_driver_and_the_table_of_rules_agree(library: ctypes.CDLL) -> None:
    """On random maps in im2col mode, most of which break some rule."""
    verdicts: list[bool] = []
    for seed in range(400):
        random = Random(seed)
        rank = random.choice([2, 3, 4, 5, 5])
        element, swizzle = random.choice(list(ELEMENTS.values())), random.choice(list(Swizzle))
        sizes = [random.choice([1, 7, 64]) for _ in range(rank)]
        strides = [random.choice([16, 48, 8]) if random.random() < 0.1 else 32 for _ in sizes[1:]]
        far = {2: 9, 3: 40000, 4: 140, 5: 20}[rank] if random.random() < 0.2 else 6
        corners = [(random.randint(-far, far), random.randint(-far, far)) for _ in sizes[1:-1]]
        box = (random.choice([16, 4, 256, 300]) if random.random() < 0.3 else 16, random.choice([1, 64, 1024, 1025]))
        steps = [1, *(random.choice([1, 2, 8, 9]) if random.random() < 0.2 else 1 for _ in sizes[1:])]
        found = encode(
            library, list(ELEMENTS).index(element.name), 4096, sizes, strides, box, steps, 0, list(Swizzle).index(swizzle),
            corners=corners or [(0, 0)],
        )  # fmt: skip
        lower, upper = ([corner[end] for corner in corners] for end in (0, 1))
        traversal = Im2col(exprs(*lower), exprs(*upper), *exprs(*box))
        map = TensorMap(element, expr(4096), exprs(*sizes), exprs(*strides), traversal, exprs(*steps), swizzle=swizzle)
        judged = findings(map, Known({}))
        assert not judged.checked
        assert isinstance(found, str) == bool(judged.violated), (found, [str(each) for each in judged.violated])
        verdicts.append(not judged.violated)
    assert 40 < sum(verdicts) < 360
