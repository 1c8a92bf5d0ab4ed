"""Kernels that copy tiles of tensors with their arrays, and what NumPy makes of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.backends.tile_texts import BULK, LARGE, LED, LOAD, MET, REDUCE, RING, ROWS, SHARED, STORE, STRIDED, TRANSPOSE, WARPS

from texpr.ir.kernel import Kernel, Plan, kernels
from texpr.ir.kernel.parse import parse_plan
from texpr.support.record import Record, replace


class Tiled(Record, dict=True):
    """A plan of one kernel, its grid, its arrays and sizes by name, and what the last array must become."""

    text: str
    grid: tuple[int, ...]
    block: int
    args: Callable[[], dict[str, Any]]
    expected: Callable[[dict[str, Any]], NDArray[Any]]
    result: str = "z"
    targets: tuple[str, ...] = ("sm_90a", "sm_100a")

    @property
    def plan(self) -> Plan:
        return parse_plan(self.text)

    @property
    def kernel(self) -> Kernel:
        (kernel,) = kernels(self.plan.steps)
        return kernel


def numbers(*shape: int) -> NDArray[Any]:
    """Small whole numbers, as f32."""
    return np.random.default_rng(5).integers(1, 9, shape).astype(np.float32)


def _blank(*shape: int) -> NDArray[Any]:
    return np.full(shape, -1, np.float32)


def _load() -> Tiled:
    def args() -> dict[str, Any]:
        return {"x": numbers(37, 68), "z": _blank(48, 96), "m": 37, "n": 68, "a": 3, "b": 3}

    def expected(args: dict[str, Any]) -> NDArray[Any]:
        return np.pad(args["x"], ((1, 10), (4, 24)))

    return Tiled(LOAD, (3, 3), 64, args, expected)


def _strided() -> Tiled:
    def args() -> dict[str, Any]:
        return {**_load().args(), "z": _blank(24, 96)}

    return Tiled(STRIDED, (3, 3), 64, args, lambda args: _load().expected(args)[::2])


def _store() -> Tiled:
    def args() -> dict[str, Any]:
        return {"x": numbers(19, 44), "z": _blank(19, 44), "m": 19, "n": 44}

    return Tiled(STORE, (2, 3), 64, args, lambda args: args["x"] + 1)


def _reduce() -> Tiled:
    def args() -> dict[str, Any]:
        return {"x": numbers(6, 64), "z": np.arange(64, dtype=np.float32), "c": 6}

    return Tiled(REDUCE, (6,), 64, args, lambda args: np.arange(64) + args["x"].sum(0))


def _transpose() -> Tiled:
    def args() -> dict[str, Any]:
        return {"x": numbers(45, 52), "z": _blank(52, 45), "m": 45, "n": 52}

    return Tiled(TRANSPOSE, (2, 2), 64, args, lambda args: args["x"].T)


def ring(text: str = RING, rows: int = 11) -> Tiled:
    """`RING`, or a text like it, on so many rows."""

    def args() -> dict[str, Any]:
        return {"x": numbers(rows, 256), "z": _blank(256), "c": rows}

    return Tiled(text, (1,), 64, args, lambda args: args["x"].sum(0))


def _bulk() -> Tiled:
    def args() -> dict[str, Any]:
        return {"x": numbers(256), "z": _blank(256), "c": 4}

    return Tiled(BULK, (4,), 64, args, lambda args: args["x"].reshape(4, 64)[:, ::-1].ravel())


def _shared(text: str) -> Tiled:
    def args() -> dict[str, Any]:
        return {"x": numbers(70, 76), "z": _blank(4, 96), "m": 70, "n": 76, "a": 3, "b": 2}

    def expected(args: dict[str, Any]) -> NDArray[Any]:
        return np.pad(args["x"].sum(1), (0, 26)) + np.arange(4)[:, None]

    return Tiled(text, (4, 3), 32, args, expected)


def _rows() -> Tiled:
    def args() -> dict[str, Any]:
        x, z = numbers(13, 68), _blank(17, 68)
        table = np.array([[3, 12, 3, 0], [7, -1, 13, 5], [2**31 - 1, 1, 9, -(2**31)]], np.int32)
        places = np.array([[16, 0, 4, 9], [2, 3, -1, 17], [11, -1, -1, 8]], np.int32)
        return {"x": x, "I": table, "J": places, "z": z, "m": 13, "n": 68, "g": 3, "k": 17}

    def expected(args: dict[str, Any]) -> NDArray[Any]:
        z = _blank(17, 68)
        for group, places in zip(args["I"].tolist(), args["J"].tolist(), strict=True):
            for r, (row, place) in enumerate(zip(group, places, strict=True)):
                if 0 <= place < 17:
                    z[place] = r + (args["x"][row] if 0 <= row < 13 else 0)
        return z

    return Tiled(ROWS, (3, 3), 32, args, expected, targets=("sm_100a",))


TILED: dict[str, Tiled] = {
    "load": _load(),
    "strided": _strided(),
    "met": replace(_load(), text=MET),
    "warps": replace(_load(), text=WARPS),
    "store": _store(),
    "reduce": _reduce(),
    "transpose": _transpose(),
    "ring": ring(),
    "short": ring(RING.replace("ring", "short"), 2),
    "bulk": _bulk(),
    "large": ring(LARGE),
    "shared": _shared(SHARED),
    "led": _shared(LED),
    "rows": _rows(),
}
"""Each by its name, which its kernel has too."""
