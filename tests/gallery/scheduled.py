"""The programs of `examples/scheduled`, what each computes written again in NumPy, and the sizes to try them at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from references import FOLDER
from texpr.cli.arrays import make_arrays
from texpr.driver import Compiled, load, lower
from texpr.ir.program import Function
from texpr.support.record import Record

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Sizes = Mapping[str, int]


TARGETS = ("sm_80", "sm_90a", "sm_100a")
CLUSTERS = TARGETS[1:]


class Scheduled(Record, eq=False, dict=True):
    """A function of a file under some of its schedules. `reference`: its only result. `small`, `large`: sizes to try.

    `large` gives three blocks or more along each axis of the grid. `fixed`: its schedules need their sizes at build.
    `ulp`, `floor`: how near results must be, as in `references`; 0: equal to the bit. `targets`: those that they are for.
    """

    file: str
    function: str
    schedules: tuple[str | None, ...]
    reference: Callable[[Arrays, Sizes], Array]
    small: tuple[dict[str, int], ...]
    large: tuple[dict[str, int], ...]
    fixed: bool = False
    ulp: int = 0
    floor: float = 0.0
    targets: tuple[str, ...] = TARGETS

    @property
    def program(self) -> Function:
        """The function."""
        return _load(self.file)[self.function]

    def arrays(self, sizes: Sizes) -> dict[str, Array]:
        """Small integers for every parameter, such that sums and products of them are exact."""
        made, _ = make_arrays(self.program, {p.name: "random" for p in self.program.params}, sizes, seed=1)
        if self.function == "jacobi":
            made["A"] = made["A"] * np.float32(4**4)  # each sweep divides by 4, and must stay among integers
        return made

    def lowered(self, schedule: str | None, fixed: tuple[tuple[str, int], ...] = (), target: str = "sm_90a") -> Compiled:
        """The function for `target` as that schedule lays it out."""
        return _lowered(self, schedule, fixed, target)


@cache
def _load(file: str) -> Mapping[str, Function]:
    return {f.name: f for f in load(FOLDER / "scheduled" / f"{file}.te").functions}


@cache
def _lowered(case: Scheduled, schedule: str | None, fixed: tuple[tuple[str, int], ...], target: str) -> Compiled:
    (chosen,) = (s for s in case.program.schedules if s.name == schedule)
    return lower(case.program, target, dict(fixed), schedule=chosen)


def unscheduled(case: Scheduled, fixed: tuple[tuple[str, int], ...] = ()) -> Compiled:
    """The function as the compiler lays it out itself."""
    return lower(case.program, "sm_90a", dict(fixed))


def _matmul(a: Arrays, s: Sizes) -> Array:
    return a["A"] @ a["B"]


def _product(a: Arrays, s: Sizes) -> Array:
    return a["A"].astype(np.float32) @ a["B"].astype(np.float32)


def _linear(a: Arrays, s: Sizes) -> Array:
    return np.maximum(_product(a, s) + a["bias"], np.float32(0)).astype(ml_dtypes.bfloat16)


def _transpose(a: Arrays, s: Sizes) -> Array:
    return np.ascontiguousarray(a["A"].T)


def _jacobi(a: Arrays, s: Sizes) -> Array:
    now = a["A"].astype(np.float64)
    for _ in range(4):
        following = now.copy()
        following[1:-1, 1:-1] = 0.25 * (now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:])
        now = following
    return now.astype(np.float32)


def _conv2d(a: Arrays, s: Sizes) -> Array:
    image = np.pad(a["X"], ((0, 0), (1, 1), (1, 1), (0, 0)))
    total = np.zeros((s["B"], s["H"], s["W"], s["F"]), np.float32)
    for r in range(3):
        for c in range(3):
            total += image[:, r : r + s["H"], c : c + s["W"]] @ a["K"][r, c]
    return total


def _softmax(a: Arrays, s: Sizes) -> Array:
    x = a["X"].astype(np.float64)
    powers = np.exp(x - np.max(x, axis=1, keepdims=True, initial=-np.inf))
    return (powers / np.sum(powers, axis=1, keepdims=True)).astype(np.float32)


def _rmsnorm(a: Arrays, s: Sizes) -> Array:
    x = a["X"].astype(np.float64)
    square = np.sum(x**2, axis=1, keepdims=True) / max(s["N"], 1)
    return (x / np.sqrt(square + a["eps"]) * a["gain"].astype(np.float64)).astype(ml_dtypes.bfloat16)


def _attention(a: Arrays, s: Sizes) -> Array:
    q, k, v = (a[name].astype(np.float64) for name in "QKV")
    scores = np.einsum("hid,hjd->hij", q, k) * a["scale"]
    weights = np.exp(scores - scores.max(axis=2, keepdims=True, initial=-np.inf))
    return (np.einsum("hij,hjd->hid", weights, v) / weights.sum(axis=2, keepdims=True)).astype(ml_dtypes.bfloat16)


def _each(names: str, *values: tuple[int, ...]) -> tuple[dict[str, int], ...]:
    return tuple(dict(zip(names.split(), row, strict=True)) for row in values)


CASES = (
    Scheduled(
        "saxpy", "saxpy", (None,), lambda a, s: a["a"] * a["x"] + a["y"],
        _each("n", (0,), (1,), (4,), (1027,)), _each("n", (4096,), (5003,)),
    ),
    Scheduled(
        "sum", "sum", (None,), lambda a, s: np.asarray(np.sum(a["x"], dtype=np.float64), np.float32),
        _each("n", (0,), (1,), (4096,), (4099,)), _each("n", (20_011,)),
    ),
    Scheduled(
        "transpose", "transpose2d", ("padded", "swizzled"), _transpose,
        _each("M N", (0, 3), (3, 0), (1, 1), (5, 7), (32, 32), (33, 31)), _each("M N", (67, 101), (96, 96)),
    ),
    Scheduled(
        "transpose", "wide", ("vectors",), _transpose,
        _each("M N", (0, 4), (4, 4), (32, 32), (36, 28)), _each("M N", (68, 100), (96, 96)),
    ),
    Scheduled(
        "matmul", "matmul", ("tiles",), _matmul,
        _each("M N K", (0, 2, 3), (2, 3, 0), (1, 1, 1), (13, 11, 17), (64, 64, 16)),
        _each("M N K", (131, 137, 19), (192, 192, 32)),
    ),
    Scheduled(
        "matmul", "whole", ("loads", "copies"), _matmul,
        _each("M N K", (0, 128, 16), (128, 128, 0), (128, 128, 16)), _each("M N K", (384, 384, 32)),
    ),
    Scheduled(
        "matmul_ring", "matmul_ring", ("ring",), _matmul,
        _each("M N K", (0, 4, 4), (2, 4, 0), (1, 4, 4), (13, 12, 20), (64, 64, 16), (5, 8, 32), (9, 8, 100)),
        _each("M N K", (131, 140, 36), (192, 192, 80)),
    ),
    Scheduled(
        "matmul_ring", "whole_ring", ("ring",), _matmul,
        _each("M N K", (0, 128, 16), (128, 128, 0), (128, 128, 16), (128, 128, 80)), _each("M N K", (384, 384, 32)),
    ),
    Scheduled(
        "matmul_bf16", "product", ("tiles",), _product,
        _each("M N K", (0, 2, 3), (2, 3, 0), (1, 1, 1), (13, 11, 17), (128, 128, 32)), _each("M N K", (257, 261, 67)),
    ),
    Scheduled(
        "matmul_bf16", "linear", ("ring",), _linear,
        _each("M N K", (0, 8, 8), (2, 8, 0), (1, 8, 8), (13, 16, 24), (128, 128, 96)), _each("M N K", (257, 264, 72)),
    ),
    Scheduled(
        "attention", "attention", (None,), _attention,
        _each("H L", (0, 3), (2, 0), (1, 1), (2, 70)), _each("H L", (3, 130)), ulp=2, floor=1.0,
    ),
    Scheduled(
        "jacobi", "jacobi", (None,), _jacobi,
        _each("H W", (0, 0), (1, 1), (2, 5), (7, 5), (18, 34)), _each("H W", (37, 71), (50, 98)),
    ),
    Scheduled(
        "conv2d", "conv2d", (None,), _conv2d,
        _each("B H W C F", (0, 3, 3, 1, 1), (1, 1, 1, 1, 1), (1, 3, 5, 0, 2), (1, 5, 17, 3, 7), (1, 4, 16, 8, 64)),
        _each("B H W C F", (2, 9, 33, 9, 131)),
    ),
    Scheduled(
        "softmax", "softmax", (None,), _softmax,
        _each("M N", (0, 4), (3, 0), (1, 4), (5, 12)), _each("M N", (3, 1028),), ulp=128,
    ),
    Scheduled(
        "softmax", "softmax", ("kept",), _softmax,
        _each("M N", (0, 4), (1, 4), (5, 12)), _each("M N", (3, 1028),), fixed=True, ulp=128,
    ),
    Scheduled(
        "softmax_long", "softmax_long", (None,), _softmax,
        _each("M N", (0, 16), (1, 16), (5, 48)), _each("M N", (3, 2064),), fixed=True, ulp=128, targets=CLUSTERS,
    ),
    Scheduled(
        "rmsnorm", "rmsnorm", (None,), _rmsnorm,
        _each("M N", (0, 8), (3, 0), (1, 8), (5, 24)), _each("M N", (13, 2056),), ulp=1,
    ),
    Scheduled(
        "scan", "scan", ("lanes", "shared"), lambda a, s: np.cumsum(a["x"], axis=1, dtype=np.int32),
        _each("m n", (0, 4), (3, 0), (1, 1), (3, 31), (5, 33), (4, 96)), _each("m n", (13, 131), (9, 64)),
    ),
    Scheduled(
        "permute5d", "permute5d", (None,), lambda a, s: np.ascontiguousarray(a["X"].transpose(2, 4, 0, 3, 1)),
        _each("A B C D E", (1, 2, 0, 3, 2), (1, 1, 1, 1, 1), (2, 3, 5, 7, 3)), _each("A B C D E", (2, 67, 2, 1, 71)),
    ),
)  # fmt: skip
"""Every scheduled function; a file with several of them, or with schedules of several needs, comes several times."""
