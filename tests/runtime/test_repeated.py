"""Calls after the first: what is kept from call to call is never taken for a call that it does not fit."""

from __future__ import annotations

import threading
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from texpr.delivery import compile as built
from texpr.driver import parse
from texpr.runtime import Kernel
from texpr.runtime.memory import Driver
from texpr.runtime.workspace import ALIGNMENT, Workspaces
from texpr.support.diagnostic import TexprError

SCALE = """
fn scale(a: f32, x: f32[m, n] stride(ld, 1), T: i32[k]): f32[m, n] {
    new y: f32[m, n]
    par m |i| { par n |j| { y[i, j] = a * x[i, j] } }
    return y
}"""
TWICE = """
fn twice(x: f32[n]): f32[n] {
    new y: f32[n]
    new z: f32[n]
    par n |i| { y[i] = 2.0 * x[i] }
    par n |i| { z[i] = 2.0 * y[n - 1 - i] }
    return z
}"""
CALLS: dict[str, tuple[object, ...]] = {
    "plain": (2.0, np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(2, np.int32)),
    "turned": (2.0, np.arange(12, dtype=np.float32).reshape(4, 3).T, np.zeros(2, np.int32)),
    "wider": (3.0, np.arange(24, dtype=np.float32).reshape(3, 8)[:, :4], np.zeros(2, np.int32)),
    "other number": (5, np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(2, np.int32)),
    "no number": ("2", np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(2, np.int32)),
    "too exact": (2**53 + 1, np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(2, np.int32)),
    "other type": (2.0, np.arange(12, dtype=np.float64).reshape(3, 4), np.zeros(2, np.int32)),
    "other rank": (2.0, np.arange(12, dtype=np.float32), np.zeros(2, np.int32)),
    "too few": (2.0, np.arange(12, dtype=np.float32).reshape(3, 4)),
}
SIZES: tuple[dict[str, Any], ...] = ({}, {"m": 3}, {"m": 4}, {"m": True}, {"q": 3}, {"m": "3"}, {"m": 3.0})


def outcome(kernel: Kernel, arrays: tuple[object, ...], sizes: dict[str, Any]) -> object:
    """The result, or the code of the refusal."""
    try:
        return kernel(*arrays, **sizes).tolist()
    except TexprError as refused:
        return refused.diagnostics[0].code


@pytest.fixture(scope="module")
def scale() -> Kernel:
    return built(parse(SCALE).functions[0])


def test_a_call_gives_the_same_after_any_other(scale: Kernel) -> None:
    alone = {name: outcome(built(parse(SCALE).functions[0]), arrays, {}) for name, arrays in CALLS.items()}
    assert {found for found in alone.values() if isinstance(found, str)} >= {"E0703", "E0704", "E0705", "E0702"}
    for first, second in permutations(CALLS, 2):
        outcome(scale, CALLS[first], {})
        assert outcome(scale, CALLS[second], {}) == alone[second], (first, second)


def test_sizes_are_looked_at_in_each_call(scale: Kernel) -> None:
    alone = [outcome(built(parse(SCALE).functions[0]), CALLS["plain"], sizes) for sizes in SIZES]
    assert [found if isinstance(found, str) else "" for found in alone] == ["", "", "E0709", "E0709", "E0706", "E0707", "E0707"]
    for first, second in permutations(range(len(SIZES)), 2):
        outcome(scale, CALLS["plain"], SIZES[first])
        assert outcome(scale, CALLS["plain"], SIZES[second]) == alone[second], (first, second)


def test_a_workspace_is_kept_and_belongs_to_one_call() -> None:
    rooms = Workspaces(None)
    with rooms.room(1000, 0) as first, rooms.room(10, 0) as second:
        assert first is not None and second is not None
        assert abs(first - second) >= 10 and first % ALIGNMENT == second % ALIGNMENT == 0
    with rooms.room(0, 0) as none:
        assert none is None
    with rooms.room(10, 0) as again, rooms.room(10, 0) as beside:
        assert {again, beside} == {first, second}


class Ledger(Driver):
    """A driver that only says what it gave."""

    def allocate(self, size: int) -> object:  # pyright: ignore[reportIncompatibleMethodOverride]
        return type("Memory", (), {"address": 4096 * size, "size": size})()


def test_a_device_has_a_workspace_for_each_stream() -> None:
    rooms = Workspaces(Ledger(None))  # pyright: ignore[reportArgumentType]
    found: list[int | None] = []
    for size, stream in ((10, 0), (5, 0), (5, 1), (20, 0), (10, 0)):
        with rooms.room(size, stream) as address:
            found.append(address)
    assert found == [40960, 40960, 20480, 81920, 81920]


def test_calls_at_once_do_not_meet() -> None:
    kernel = built(parse(TWICE).functions[0])
    wrong: list[int] = []

    def work(number: int) -> None:
        for turn in range(200):
            x = np.full(1000 + 37 * number, number + turn, np.float32)
            if not np.array_equal(kernel(x), 4 * x):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_repeated_call_looks_at_where_arrays_lie(scale: Kernel) -> None:
    """After a call that was taken as it lay: what may not be taken so is refused, or copied, as in a first call."""
    room = np.arange(25, dtype=np.float32)
    x, table = room[:12].reshape(3, 4), np.zeros(2, np.int32)
    bytes_ = np.zeros(12 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(3, 4)
    fixed = np.zeros((3, 4), np.float32)
    fixed.flags.writeable = False
    outs: dict[str, tuple[object, str]] = {
        "itself": (x, "E0779"),
        "a part": (room[4:16].reshape(3, 4), "E0779"),
        "odd bytes": (bytes_, "E0774"),
        "read only": (fixed, "E0775"),
        "other strides": (np.zeros((4, 3), np.float32).T, "E0773"),
        "other type": (np.zeros((3, 4), np.float64), "E0777"),
        "two": ((fixed, fixed), "E0777"),
        "none": ((), "E0777"),
        "no array": ("y", "E0772"),
    }
    for out, code in outs.values():
        mine = np.zeros((3, 4), np.float32)
        assert scale(2.0, x, table, out=mine) is mine and scale(2.0, x, table, out=[mine]) is mine
        with pytest.raises(TexprError) as refused:
            scale(2.0, x, table, out=out)
        assert refused.value.diagnostics[0].code == code
    np.testing.assert_array_equal(scale(2.0, np.asfortranarray(x), table), 2 * x)
    np.testing.assert_array_equal(scale(2.0, x, table), 2 * x)
    assert scale(3.0, x, table) is not scale(3.0, x, table)
