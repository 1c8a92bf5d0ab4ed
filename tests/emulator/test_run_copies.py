"""Random copies of runs, without a map: loads, stores, combinations, of every type, against the function of `texpr.tma`.

How many elements go is known when the kernel runs, and how many bytes their barrier waits for.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from texpr.backends.cuda import headers
from texpr.emulator import LOCKSTEP, Emulated, Fault
from texpr.support.diagnostic import TexprError
from texpr.support.record import Record
from texpr.tma.elements import ELEMENTS, Element
from texpr.tma.reduce import TYPES, Reduction
from texpr.tma.reference import Address, bulk
from texpr.toolchain import this_machine
from texpr.toolchain.cuda import compile_cuda, find_nvcc

ROOM = 1 << 12
"""Bytes of shared memory, and of global memory."""

TYPES_OF_C = {
    "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "int32": "int32_t", "uint64": "uint64_t",
    "int64": "int64_t", "float16": "tx_f16", "bfloat16": "tx_bf16", "float32": "float", "float64": "double",
}  # fmt: skip
"""What the driver's types are called in kernels."""

VERBS = (None, *Reduction)
"""A store, and what combines."""

_KERNEL = """
extern "C" __global__ void
load_{name}(TX_GLOBAL({t}) room, TX_GLOBAL({t}) far, int place, int from, int count, int bytes) {{
    TX_SHARED_ALIGNED({t}, tile, {size}, 128);
    TX_BARRIERS(full, 1);
    for (int i = threadIdx.x; i < {size}; i += 32) tile[i] = room[i];
    tx_fence_async();
    if (threadIdx.x == 0) {{ tx_barrier_init(full, 0, 1); tx_fence_init(); }}
    __syncthreads();
    if (threadIdx.x == 0) {{ tx_barrier_expect(full, 0, bytes); tx_load_bulk(tile, place, far, from, full, 0, count); }}
    tx_barrier_wait(full, 0, 0);
    for (int i = threadIdx.x; i < {size}; i += 32) room[i] = tile[i];
}}
TX_EXPORT(load_{name})
extern "C" __global__ void
store_{name}(TX_GLOBAL({t}) room, TX_GLOBAL({t}) far, int place, int from, int count, int how) {{
    TX_SHARED_ALIGNED({t}, tile, {size}, 128);
    for (int i = threadIdx.x; i < {size}; i += 32) tile[i] = room[i];
    tx_fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {{
        switch (how) {{
{cases}        }}
        tx_commit_bulk();
        tx_wait_bulk<0>();
    }}
}}
TX_EXPORT(store_{name})
"""


def _takes(element: str, op: Reduction) -> bool:
    """Sums of signed words of 64 bits are those of unsigned ones."""
    return element in TYPES[op] or (element, op) == ("int64", Reduction.ADD)


def _kernels() -> str:
    texts = ['#include "texpr_device.h"\nTX_SOURCE("runs")\n']
    for element, t in TYPES_OF_C.items():
        verbs = {n: f"reduce_{op.value}" if op else "store" for n, op in enumerate(VERBS) if op is None or _takes(element, op)}
        cases = "".join(
            f"        case {n}: tx_{verb}_bulk(far, from, tile, place, count); break;\n" for n, verb in verbs.items()
        )
        size = ROOM // ELEMENTS[element].size
        texts.append(_KERNEL.format(name=element, t=t, size=size, cases=cases))
    return "".join(texts)


KERNELS = _kernels()


class Run(Record, dict=True):
    """A copy: bytes before it in shared and in global memory, and how many it moves. `verb`: None for a load, or of `VERBS`."""

    element: str
    place: int
    start: int
    size: int
    verb: int | None


def _run(random: Random) -> Run:
    element = random.choice(list(TYPES_OF_C))
    verbs = [n for n, op in enumerate(VERBS) if op is None or _takes(element, op)]
    size = 16 * random.choice([1, 1, 2, 3, 7, random.randint(1, 100)])
    place, start = (16 * random.randint(0, (ROOM - size) // 16) for _ in range(2))
    return Run(element, place, start, size, random.choice([None, *verbs]))


def _numbers(element: Element, random: np.random.Generator) -> np.ndarray:
    """Small whole numbers, half of them negative where there are such; for f32 some are not whole, and next to nothing."""
    count = ROOM // element.size
    low = 0 if element.storage.kind == "u" else -9
    found = random.integers(low, 10, count)
    if element.name == "float32":
        small = random.random(count) < 0.2
        return np.where(small, found * np.float32(2.0**-127), found).astype(np.float32)
    return found.astype(element.storage)


def _compare(emulated: Emulated, run: Run, seed: int) -> None:
    element, random = ELEMENTS[run.element], np.random.default_rng(seed)
    (room, _), (far, _) = ends = [_aligned(_numbers(element, random)) for _ in range(2)]
    near, tensor = (end.view(np.uint8).copy() for end, _ in ends)
    if run.verb is None:
        bulk(Address(near, run.place), Address(tensor, run.start), run.size)
    else:
        op = VERBS[run.verb]
        signed = "uint64" if (run.element, op) == ("int64", Reduction.ADD) else run.element
        bulk(Address(tensor, run.start), Address(near, run.place), run.size, None if op is None else (op, ELEMENTS[signed]))
    last = run.size if run.verb is None else run.verb
    args = [room, far, run.place // element.size, run.start // element.size, run.size // element.size, last]
    name = f"{'load' if run.verb is None else 'store'}_{run.element}"
    assert emulated.launch(name, 1, 32, args, seed=(None, LOCKSTEP, seed)[seed % 3]) == [], run
    np.testing.assert_array_equal(room.view(np.uint8), near, err_msg=str(run))
    np.testing.assert_array_equal(far.view(np.uint8), tensor, err_msg=str(run))


def _aligned(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same at a multiple of 16 bytes, and what it lies in."""
    memory = np.zeros(numbers.nbytes + 16, np.uint8)
    found = memory[-memory.ctypes.data % 16 :][: numbers.nbytes].view(numbers.dtype)
    found[:] = numbers
    return found, memory


@pytest.mark.parametrize("part", range(4))
def test_runs_move_the_reference_s_bytes(emulate: Callable[..., Emulated], part: int) -> None:
    for seed in range(60 * part, 60 * part + 60):
        _compare(emulate(KERNELS), _run(Random(seed)), seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(5))
def test_many_runs_move_the_reference_s_bytes(emulate: Callable[..., Emulated], part: int) -> None:
    for seed in range(1000 + 200 * part, 1200 + 200 * part):
        _compare(emulate(KERNELS), _run(Random(seed)), seed)


def test_the_random_runs_are_of_every_kind() -> None:
    runs = [_run(Random(seed)) for seed in range(240)]
    assert {run.element for run in runs} == set(TYPES_OF_C) and {run.verb for run in runs} == {None, *range(len(VERBS))}
    assert min(run.size for run in runs) == 16 and max(run.size for run in runs) > 1000


@pytest.mark.parametrize("element", list(TYPES_OF_C))
def test_every_combination_of_every_type(emulate: Callable[..., Emulated], element: str) -> None:
    for verb, op in enumerate(VERBS):
        if op is None or _takes(element, op):
            _compare(emulate(KERNELS), Run(element, 32, 64, 256, verb), verb)


def test_subnormal_sums_are_zero() -> None:
    """PTX ISA, "cp.reduce.async.bulk", of `.add.f32`; other types keep them."""
    tiny = np.array([2.0**-127, -(2.0**-127), 1.5 * 2.0**-126, 1.0], np.float32)
    there = np.array([2.0**-126, 0.0, -(2.0**-126), 2.0**-127], np.float32)
    far = there.view(np.uint8).copy()
    bulk(Address(far), Address(tiny.view(np.uint8).copy()), 16, (Reduction.ADD, ELEMENTS["float32"]))
    wanted = np.array([2.0**-126, 0.0, 0.0, 1.0], np.float32)
    assert np.array_equal(far.view(np.float32), wanted)


def test_nvcc_takes_every_combination() -> None:
    machine = this_machine()
    try:
        nvcc = find_nvcc(machine)
    except TexprError as reason:
        pytest.skip(str(reason))
    ptx = compile_cuda(machine, nvcc, KERNELS, headers(), "sm_90a").ptx.decode()
    prefix = "cp.reduce.async.bulk.global.shared::cta.bulk_group."
    sums = {"u32", "s32", "u64", "f32", "f64", "noftz.f16", "noftz.bf16"}
    wanted = {f"add.{t}" for t in sums} | {"inc.u32", "dec.u32"}
    wanted |= {f"{op}.{t}" for op in ("min", "max") for t in ("u32", "s32", "u64", "s64", "f16", "bf16")}
    wanted |= {f"{op}.{t}" for op in ("and", "or", "xor") for t in ("b32", "b64")}
    assert {line.split(prefix)[1].split()[0] for line in ptx.splitlines() if prefix in line} == wanted


FAULTS = {
    "bytes too few": ("load", 0, 0, 16, 32, Fault.UNFINISHED_COPY),
    "bytes too many": ("load", 0, 0, 16, 128, Fault.DEADLOCK),
    "beside a chunk": ("load", 0, 1, 16, 64, Fault.MISALIGNED),
    "beside a chunk of the tile": ("store", 1, 0, 16, 0, Fault.MISALIGNED),
    "part of a chunk": ("store", 0, 0, 3, 0, Fault.BAD_TENSOR),
    "nothing": ("store", 0, 0, 0, 0, Fault.BAD_TENSOR),
    "past the end": ("store", 0, ROOM // 4 - 4, 8, 0, Fault.OUT_OF_BOUNDS),
    "past the end of the tile": ("store", ROOM // 4 - 4, 0, 8, 1, Fault.OUT_OF_BOUNDS),
}
"""Place, start and count in elements of f32, and bytes or verb."""


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named(emulate: Callable[..., Emulated], name: str) -> None:
    verb, place, start, count, last, fault = FAULTS[name]
    (room, _), (far, _) = (_aligned(np.zeros(ROOM // 4, np.float32)) for _ in range(2))
    found = emulate(KERNELS).launch(f"{verb}_float32", 1, 32, [room, far, place, start, count, last])
    assert fault in [report.fault for report in found], [str(report) for report in found]
