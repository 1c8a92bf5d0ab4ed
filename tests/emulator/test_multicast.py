"""One load for several blocks of a cluster, against the reference function: blocks of the mask get the tile, and no others."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from tests.emulator.tensors import encode, registered

from texpr.emulator import LOCKSTEP, Emulated
from texpr.tma.elements import ELEMENTS, Fill
from texpr.tma.reference import Address, Mode, multicast
from texpr.tma.swizzle import Swizzle

ROOM = 1 << 13
"""Bytes of shared memory in each block."""

KERNELS = '#include "texpr_device.h"\nTX_SOURCE("multicast")\n' + "".join(
    f"""
extern "C" __global__ void __cluster_dims__({blocks}, 1, 1) __launch_bounds__(32)
to_{blocks}(TX_GLOBAL(uint32_t) room, const __grid_constant__ tx_tensor_map map,
    int from, int mask, int bytes, int c0, int c1) {{
    TX_SHARED_ALIGNED(uint32_t, tile, {ROOM // 4}, 1024);
    TX_BARRIERS(full, 1);
    int rank = (int)tx_cluster_rank(), meant = mask >> rank & 1;
    for (int i = threadIdx.x; i < {ROOM // 4}; i += 32) tile[i] = 0xCDCDCDCDu;
    tx_fence_async();
    if (threadIdx.x == 0) {{ tx_barrier_init(full, 0, 1); tx_fence_init(); }}
    tx_cluster_sync();
    if (threadIdx.x == 0 && meant) tx_barrier_expect(full, 0, bytes);
    tx_cluster_sync();
    if (threadIdx.x == 0 && rank == from) tx_load_tensor_multicast(tile, 0, map, full, 0, (unsigned)mask, c0, c1);
    if (meant) tx_barrier_wait(full, 0, 0);
    for (int i = threadIdx.x; i < {ROOM // 4}; i += 32) room[rank * {ROOM // 4} + i] = tile[i];
    tx_cluster_sync();
}}
TX_EXPORT(to_{blocks})
"""
    for blocks in (2, 3, 8)
)


def _compare(emulated: Emulated, seed: int, planted: int = 0) -> bool:
    """Whether the blocks hold what the reference gives them; `planted`: bits of the mask that the kernel has otherwise."""
    random = Random(seed)
    blocks = random.choice((2, 3, 8))
    mask = random.randrange(1, 1 << blocks)
    swizzle, fill = random.choice(list(Swizzle)), random.choice(list(Fill))
    row = 4 * random.randint(1, (swizzle.span or 128) // 16)
    box, sizes, step = (row, random.randint(1, 8)), (4 * random.randint(1, 12), random.randint(1, 12)), random.randint(1, 3)
    at = [4 * random.randint(-row // 4, sizes[0] // 4), random.randint(-box[1], sizes[1])]
    tensor = np.random.default_rng(seed).integers(0, 9, sizes).astype(np.float32).reshape(-1).view(np.uint8)
    memory = np.zeros(tensor.size + 256, np.uint8)
    first = -memory.ctypes.data % 128
    memory = memory[first : first + tensor.size]
    memory[:] = tensor
    map = encode(
        emulated.emulator.library, list(ELEMENTS).index("float32"), memory.ctypes.data, sizes, [4 * sizes[0]], box, (1, step),
        0, list(Swizzle).index(swizzle), 0, list(Fill).index(fill),
    )  # fmt: skip
    assert isinstance(map, np.void), map
    wanted = np.full((blocks, ROOM), 0xCD, np.uint8)
    multicast(
        at, [Address(each) for each in wanted], mask, ga=Address(memory), gs=sizes, bs=box, gr=(1, sizes[0]), er=(1, step),
        mode=Mode(ELEMENTS["float32"], swizzle, fill),
    )  # fmt: skip
    found = np.zeros(blocks * ROOM // 4, np.uint32)
    count = 4 * row * -(-box[1] // step)
    with registered(emulated, memory, "tensor"):
        args = [found, map, random.randrange(blocks), mask ^ planted or 1, count, *at]
        assert emulated.launch(f"to_{blocks}", blocks, 32, args, seed=(None, LOCKSTEP, seed)[seed % 3]) == [], seed
    got, want = found.view(np.float32), wanted.reshape(-1).view(np.float32)
    return bool(((got == want) | (np.isnan(got) & np.isnan(want))).all())


def test_blocks_get_the_reference_s_bytes(emulate: Callable[..., Emulated]) -> None:
    assert all(_compare(emulate(KERNELS), seed) for seed in range(30))


def test_another_mask_is_seen(emulate: Callable[..., Emulated]) -> None:
    assert not any(_compare(emulate(KERNELS), seed, planted=2) for seed in range(12))


def test_masks_of_nobody() -> None:
    places = [Address(np.zeros(128, np.uint8))] * 2
    for mask in (0, 4, 7, -1):
        with pytest.raises(ValueError, match="in a cluster of 2 blocks"):
            multicast(
                (0,), places, mask, ga=Address(np.zeros(64, np.uint8)), gs=(4,), bs=(4,), gr=(1,), er=(1,),
                mode=Mode(ELEMENTS["int32"]),
            )  # fmt: skip
