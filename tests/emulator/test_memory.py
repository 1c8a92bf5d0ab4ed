"""Bounds, memory never written, and what a kernel must not touch; local arrays; atomics of every type."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from texpr.emulator import Emulated, Fault, Report

from .kernels import HEAD

BODIES = {
    "local_read": "TX_LOCAL(float, acc, 4);\n TX_AT(2) acc[0] = 1.0f; TX_AT(3) out[t] = acc[0] + acc[t == 5 ? 1 : 0];",
    "local_past": "TX_LOCAL(float, acc, 4);\n TX_AT(3) for (int i = 0; i < 5; ++i) acc[i] = 1.0f; out[t] = acc[3];",
    "local_below": "TX_LOCAL(float, acc, 4);\n acc[0] = 1.0f; TX_AT(3) out[t] = acc[-t];",
    "local_loop": "float v = 0; for (int i = 0; i < 2; ++i) { TX_LOCAL(float, acc, 1);\n"
    "TX_AT(3) if (i == 0) acc[0] = 1.0f; v += acc[0]; } out[t] = v;",
    "shared_read": "TX_SHARED(float, s, 64);\n TX_AT(2) if (t != 9) s[t] = 1.0f; TX_AT(3) out[t] = s[t];",
    "shared_past": "TX_SHARED(float, s, 31);\n TX_AT(3) s[t] = 1.0f; out[t] = s[0];",
    "updated": "TX_SHARED(int, s, 64);\n TX_AT(3) s[t] += 1; out[t] = 0.0f;",
    "counted": "TX_SHARED(int, s, 64);\n TX_AT(3) atomicAdd(&s[t], 1); out[t] = 0.0f;",
    "fresh": "TX_SHARED(float, s, 32);\n if (blockIdx.x == 0) s[t] = 1.0f; TX_AT(3) out[t] = s[t];",
    "far": "TX_AT(3) out[t + (t == 3 ? 1ll << 40 : 0)] = 1.0f;",
    "read_out": "TX_AT(3) out[t] = out[t] + 1.0f;",
}  # fmt: skip

EXPECTED = {
    "local_read": (Fault.UNINITIALISED, "acc", 1, (5,)),
    "local_past": (Fault.OUT_OF_BOUNDS, "acc", 4, (0,)),
    "local_below": (Fault.OUT_OF_BOUNDS, "acc", -1, (1,)),
    "local_loop": (Fault.UNINITIALISED, "acc", 0, (0,)),
    "shared_read": (Fault.UNINITIALISED, "s", 9, (9,)),
    "shared_past": (Fault.OUT_OF_BOUNDS, "s", 31, (31,)),
    "updated": (Fault.UNINITIALISED, "s", 0, (0,)),
    "counted": (Fault.UNINITIALISED, "s", 0, (0,)),
    "fresh": (Fault.UNINITIALISED, "s", 0, (0,)),
    "far": (Fault.OUT_OF_BOUNDS, "out", 3 + (1 << 40), (3,)),
    "read_out": (Fault.UNINITIALISED, "out", 0, (0,)),
}


def kernel(name: str, body: str) -> str:
    head = f'extern "C" __global__ void {name}_0(TX_GLOBAL(float) out) {{ int const t = threadIdx.x;'
    return f"{head}\n{body}\n}}\nTX_EXPORT({name}_0)\n"


TEXT = HEAD + "".join(kernel(name, body) for name, body in BODIES.items())


@pytest.mark.parametrize("name", BODIES)
def test_found_at_its_element_and_line(emulate: Callable[..., Emulated], name: str) -> None:
    fault, buffer, index, (thread,) = EXPECTED[name]
    found = emulate(TEXT).launch(f"{name}_0", 2, 32, [np.zeros(64, np.float32)], unwritten=["out"])
    reports = [report for report in found if report.fault is not Fault.RACE]
    assert [(report.fault, report.buffer, report.index) for report in reports] == [(fault, buffer, index)]
    assert reports[0].first.thread == (thread, 0, 0) and reports[0].lines == (3,)


def test_shared_memory_is_poison_until_written(emulate: Callable[..., Emulated]) -> None:
    text = HEAD + kernel("poison", "TX_SHARED(float, s, 32);\n out[blockIdx.x * 32 + t] = s[t]; s[t] = 0.0f;")
    for checked in (True, False):
        for seed in (None, *range(4)):
            out = np.zeros(96, np.float32)
            emulate(text, checked).launch("poison_0", 3, 32, [out], seed=seed, detect=False)
            assert not np.any(out == 0)


def test_memory_of_nobody(emulate: Callable[..., Emulated]) -> None:
    text = HEAD + (
        'extern "C" __global__ void wild_0(long long const where, TX_GLOBAL(int) out) {\n'
        "TX_AT(3) out[0] = *(int *)where;\n}\nTX_EXPORT(wild_0)\n"
    )
    emulated = emulate(text)
    found = emulated.launch("wild_0", 1, 32, [64, np.zeros(1, np.int32)])
    assert [(report.fault, report.lines) for report in found] == [(Fault.ILLEGAL_ADDRESS, (3,))]
    value = np.full(1, 7, np.int32)
    out = np.zeros(1, np.int32)
    assert emulated.launch("wild_0", 1, 1, [value.ctypes.data, out]) == [] and out[0] == 7


def test_a_stack_that_is_used_up(emulate: Callable[..., Emulated]) -> None:
    text = HEAD + (
        "static int deep(int n) {\n"
        "volatile char room[4096]; room[n] = 1; return n == 0 ? 0 : room[n] + deep(n - 1);\n}\n"
        'extern "C" __global__ void deep_0(int const n, TX_GLOBAL(int) out) {\n'
        "TX_AT(3) out[0] = deep(n);\n}\nTX_EXPORT(deep_0)\n"
    )
    emulated = emulate(text)
    out = np.zeros(1, np.int32)
    for seed in (None, 0):
        found = emulated.launch("deep_0", 1, 1, [500, out], seed=seed)
        assert [(report.fault, report.lines) for report in found] == [(Fault.STACK_OVERFLOW, (3,))]
        assert emulated.launch("deep_0", 1, 1, [20, out], seed=seed) == [] and out[0] == 20


def test_an_empty_array(emulate: Callable[..., Emulated]) -> None:
    text = HEAD + kernel("one", "TX_AT(3) if (t == 0) out[0] = 1.0f;")
    (found,) = emulate(text).launch("one_0", 1, 32, [np.zeros(0, np.float32)])
    assert (found.fault, found.index, found.count) == (Fault.OUT_OF_BOUNDS, 0, 0)


def test_addresses_past_two_to_the_31(emulate: Callable[..., Emulated]) -> None:
    text = HEAD + (
        'extern "C" __global__ void far_0(long long const n, TX_GLOBAL(uint8_t) out) {\n'
        "long long const i = n - 1 - (blockIdx.x * 32ll + threadIdx.x) * 70000000;\n"
        "TX_AT(3) out[i] = 3;\n}\nTX_EXPORT(far_0)\n"
    )
    n = (1 << 31) + 5
    out = np.zeros(n, np.uint8)
    assert emulate(text).launch("far_0", 1, 31, [n, out], seed=0) == []
    assert np.count_nonzero(out[n - 1 :: -70000000]) == 31
    (found,) = emulate(text).launch("far_0", 1, 32, [n, out])
    assert (found.fault, found.index, found.count) == (Fault.OUT_OF_BOUNDS, n - 1 - 31 * 70000000, n)


def test_two_names_of_one_array(emulate: Callable[..., Emulated]) -> None:
    text = HEAD + (
        'extern "C" __global__ void alias_0(TX_GLOBAL(int const) x, TX_GLOBAL(int) out) {\n'
        "TX_AT(3) out[threadIdx.x] = x[(threadIdx.x + 1) % 32];\n}\nTX_EXPORT(alias_0)\n"
    )
    both = np.arange(32, dtype=np.int32)
    found = emulate(text).launch("alias_0", 1, 32, [both, both])
    assert {report.fault for report in found} == {Fault.RACE}
    assert emulate(text).launch("alias_0", 1, 32, [both.copy(), both]) == []


TYPES = {
    "int8_t": np.int8, "int16_t": np.int16, "int": np.int32, "long long": np.int64, "uint8_t": np.uint8, "uint16_t": np.uint16,
    "unsigned": np.uint32, "unsigned long long": np.uint64, "float": np.float32, "double": np.float64, "tx_f16": np.float16,
    "tx_bf16": ml_dtypes.bfloat16,
}  # fmt: skip
OPERATIONS = {"atomicAdd": np.add, "atomicMin": np.minimum, "atomicMax": np.maximum}


def atomics() -> str:
    text = HEAD
    for at, name in enumerate(TYPES):
        for operation in OPERATIONS:
            text += (
                f'extern "C" __global__ void {operation}_{at}(TX_GLOBAL({name} const) x, TX_GLOBAL({name}) out) {{\n'
                f"TX_AT(3) {operation}(&out[threadIdx.x % 4], x[blockIdx.x * 32 + threadIdx.x]);\n}}\n"
                f"TX_EXPORT({operation}_{at})\n"
            )
    return text


@pytest.mark.parametrize("operation", OPERATIONS)
def test_atomics_of_every_type(emulate: Callable[..., Emulated], operation: str) -> None:
    for at, dtype in enumerate(TYPES.values()):
        x = np.random.default_rng(at).integers(1, 7, 64).astype(dtype)
        expected = np.full(4, 3).astype(dtype)
        for element, value in zip(np.arange(64) % 4, x, strict=True):
            expected[element] = OPERATIONS[operation](expected[element], value)
        for checked in (True, False):
            out = np.full(4, 3).astype(dtype)
            found: list[Report] = emulate(atomics(), checked).launch(f"{operation}_{at}", 2, 32, [x, out], seed=at)
            assert found == []
            np.testing.assert_array_equal(out, expected)


def test_an_atomic_on_a_pointer_of_another_type(emulate: Callable[..., Emulated]) -> None:
    text = HEAD + (
        'extern "C" __global__ void cast_0(TX_GLOBAL(long long) out) {\n'
        "TX_AT(2) atomicAdd((unsigned long long *)&out[1], 2ull);\n"
        "TX_AT(3) if (threadIdx.x == 99) out[1] = 5;\n}\nTX_EXPORT(cast_0)\n"
        'extern "C" __global__ void cast_1(TX_GLOBAL(long long) out) {\n'
        "TX_AT(2) atomicAdd((unsigned long long *)&out[1], 2ull);\n"
        "TX_AT(3) if (threadIdx.x == 3) out[1] = 5;\n}\nTX_EXPORT(cast_1)\n"
    )
    out = np.zeros(2, np.int64)
    assert emulate(text).launch("cast_0", 1, 32, [out]) == []
    assert out.tolist() == [0, 64]
    assert {report.fault for report in emulate(text).launch("cast_1", 1, 32, [out])} == {Fault.RACE}
