"""What the gallery's programs must give, written a second time in NumPy, with inputs to try them on.

Each `Example` names its program, makes arrays for given sizes, and computes every output from them, in float64 where rounding
matters. Inputs are small integers: where a program's operations are exact on them, results must be equal to the bit (`ulp` is
0). Elsewhere `inexact` names the operations at fault and `ulp` bounds the distance, counted in units of the last place of the
result's type, at the larger of the reference and `floor` (below it, cancellation makes the relative error meaningless).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = dict[str, Array]
Sizes: TypeAlias = Mapping[str, int]

FOLDER = Path(__file__).parent
BF16 = np.dtype(ml_dtypes.bfloat16)

# Bits of the fraction, and the least exponent of a normal number.
_PRECISION: dict[np.dtype[Any], tuple[int, int]] = {
    np.dtype(np.float64): (52, -1022),
    np.dtype(np.float32): (23, -126),
    np.dtype(np.float16): (10, -14),
    BF16: (7, -126),
}


@dataclass(frozen=True, slots=True)
class Example:
    """One program of the gallery: how to feed it, what it gives, at which sizes to try it, and how exact it is.

    `consts` are the sizes that a build fixes. `reference` maps each output (results and inouts) to its value.
    """

    name: str
    function: str
    make: Callable[[np.random.Generator, Sizes], Arrays]
    reference: Callable[[Arrays, Sizes], Arrays]
    small: tuple[dict[str, int], ...]
    large: tuple[dict[str, int], ...]
    consts: tuple[str, ...] = ()
    inexact: tuple[str, ...] = ()
    ulp: int = 0
    floor: float = 0.0

    def split(self, sizes: Sizes) -> tuple[dict[str, int], dict[str, int]]:
        """The consts, which the program is read with, and the sizes, which it may be run with."""
        consts = {name: value for name, value in sizes.items() if name in self.consts}
        return consts, {name: value for name, value in sizes.items() if name not in self.consts}

    @property
    def path(self) -> Path:
        """Where the program's text is."""
        return FOLDER / f"{self.name}.te"


def distance(actual: Array, expected: Array, floor: float = 0.0) -> float:
    """The largest distance of two arrays of one type in units of the last place of `expected` (see the module's text)."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        raise ValueError(f"{actual.dtype}{actual.shape} against {expected.dtype}{expected.shape}")
    if np.array_equal(actual, expected):
        return 0.0
    if expected.dtype not in _PRECISION:
        return float("inf")
    fraction, least = _PRECISION[expected.dtype]
    got, wanted = actual.astype(np.float64), expected.astype(np.float64)
    exponent = np.floor(np.log2(np.maximum(np.abs(wanted), max(floor, 2.0**least))))
    with np.errstate(invalid="ignore"):
        error = np.abs(got - wanted) / np.exp2(exponent - fraction)
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    return float(np.max(np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))))


def small(generator: np.random.Generator, *shape: int, dtype: Any = np.float32, low: int = -4, high: int = 5) -> Array:
    """Small integers in `low..high`, so that sums and products of them are exact."""
    return generator.integers(low, high, shape).astype(dtype)


def _matmul_flat(generator: np.random.Generator, s: Sizes) -> Arrays:
    return {
        "A": small(generator, s["M"] * s["K"]),
        "B": small(generator, s["K"] * s["N"]),
        "C": small(generator, s["M"] * s["N"]),
    }


def _matmul_flat_reference(a: Arrays, s: Sizes) -> Arrays:
    product = a["A"].reshape(s["M"], s["K"]) @ a["B"].reshape(s["K"], s["N"])
    return {"C": a["C"] + product.ravel()}


def _matmul(generator: np.random.Generator, s: Sizes) -> Arrays:
    return {"A": small(generator, s["M"], s["K"], dtype=BF16), "B": small(generator, s["K"], s["N"], dtype=BF16)}


def _matmul_reference(a: Arrays, s: Sizes) -> Arrays:
    return {"C": a["A"].astype(np.float32) @ a["B"].astype(np.float32)}


def _saxpy(generator: np.random.Generator, s: Sizes) -> Arrays:
    return {"a": np.asarray(3, np.float32), "x": small(generator, s["n"]), "y": small(generator, s["n"])}


def _saxpy_reference(a: Arrays, s: Sizes) -> Arrays:
    return {"z": a["a"] * a["x"] + a["y"]}


def _vector(generator: np.random.Generator, s: Sizes) -> Arrays:
    return {"x": small(generator, s["n"])}


def _sum_reference(a: Arrays, s: Sizes) -> Arrays:
    return {"total": np.asarray(np.sum(a["x"], dtype=np.float64), np.float32)}


def _argmax_reference(a: Arrays, s: Sizes) -> Arrays:
    x = a["x"]
    at = int(np.argmax(x)) if x.size else 0
    return {"top": np.asarray(x[at] if x.size else -np.inf, np.float32), "at": np.asarray(at, np.int32)}


def _transpose(generator: np.random.Generator, s: Sizes) -> Arrays:
    return {"A": small(generator, s["M"], s["N"], low=-1000, high=1000)}


def _transpose_reference(a: Arrays, s: Sizes) -> Arrays:
    return {"B": np.ascontiguousarray(a["A"].T)}


def _jacobi(generator: np.random.Generator, s: Sizes) -> Arrays:
    # Each sweep divides by 4: with this factor every sweep stays among the integers.
    return {"A": small(generator, s["H"], s["W"]) * np.float32(4.0 ** (2 * s["T"]))}


def _jacobi_reference(a: Arrays, s: Sizes) -> Arrays:
    now = a["A"].astype(np.float64)
    for _ in range(2 * s["T"]):
        following = now.copy()
        following[1:-1, 1:-1] = 0.25 * (now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:])
        now = following
    return {"now": now.astype(np.float32)}


def _rows(generator: np.random.Generator, s: Sizes) -> Arrays:
    return {"X": small(generator, s["M"], s["N"])}


def _softmax_reference(a: Arrays, s: Sizes) -> Arrays:
    x = a["X"].astype(np.float64)
    powers = np.exp(x - np.max(x, axis=1, keepdims=True, initial=-np.inf))
    return {"Y": (powers / np.sum(powers, axis=1, keepdims=True)).astype(np.float32)}


def _layernorm(generator: np.random.Generator, s: Sizes) -> Arrays:
    return {
        **_rows(generator, s),
        "gain": small(generator, s["N"]),
        "bias": small(generator, s["N"]),
        "eps": np.asarray(2.0**-10, np.float32),
    }


def _layernorm_reference(a: Arrays, s: Sizes) -> Arrays:
    x = a["X"].astype(np.float64)
    centred = x - np.sum(x, axis=1, keepdims=True) / max(s["N"], 1)
    variance = np.sum(centred**2, axis=1, keepdims=True) / max(s["N"], 1)
    return {"Y": (centred / np.sqrt(variance + a["eps"]) * a["gain"] + a["bias"]).astype(np.float32)}


def _rmsnorm(generator: np.random.Generator, s: Sizes) -> Arrays:
    return {
        "X": small(generator, s["M"], s["N"], dtype=BF16),
        "gain": small(generator, s["N"], dtype=BF16),
        "eps": np.asarray(2.0**-10, np.float32),
    }


def _rmsnorm_reference(a: Arrays, s: Sizes) -> Arrays:
    x = a["X"].astype(np.float64)
    square = np.sum(x**2, axis=1, keepdims=True) / max(s["N"], 1)
    return {"Y": (x / np.sqrt(square + a["eps"]) * a["gain"].astype(np.float64)).astype(BF16)}


def _conv2d(generator: np.random.Generator, s: Sizes) -> Arrays:
    return {
        "X": small(generator, s["B"], s["H"], s["W"], s["C"]),
        "K": small(generator, s["R"], s["S"], s["C"], s["F"]),
    }


def _conv2d_reference(a: Arrays, s: Sizes) -> Arrays:
    stride, dilation, padding = s["stride"], s["dilation"], s["padding"]
    around = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    image = np.pad(a["X"].astype(np.float64), around)
    rows = (s["H"] + 2 * padding - dilation * (s["R"] - 1) - 1) // stride + 1
    columns = (s["W"] + 2 * padding - dilation * (s["S"] - 1) - 1) // stride + 1
    total = np.zeros((s["B"], rows, columns, s["F"]))
    for r in range(s["R"]):
        for c in range(s["S"]):
            top, left = r * dilation, c * dilation
            window = image[:, top : top + (rows - 1) * stride + 1 : stride, left : left + (columns - 1) * stride + 1 : stride]
            total += window @ a["K"][r, c].astype(np.float64)
    return {"Y": total.astype(np.float32)}


def _attention(generator: np.random.Generator, s: Sizes) -> Arrays:
    shape = s["H"], s["L"], s["D"]
    return {
        "Q": small(generator, *shape),
        "K": small(generator, *shape),
        "V": small(generator, *shape),
        "scale": np.asarray(0.125, np.float32),
    }


def _attention_reference(a: Arrays, s: Sizes) -> Arrays:
    queries, keys, values = (a[name].astype(np.float64) for name in "QKV")
    scores = queries @ keys.transpose(0, 2, 1) * float(a["scale"])
    later = np.arange(s["L"])[:, None] < np.arange(s["L"])[None, :]
    scores = np.where(later, -np.inf, scores)
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True, initial=-np.inf))
    return {"O": (weights @ values / np.sum(weights, axis=-1, keepdims=True)).astype(np.float32)}


def _gather(generator: np.random.Generator, s: Sizes) -> Arrays:
    return {
        "table": small(generator, s["V"], s["D"]),
        "I": small(generator, s["n"], dtype=np.int32, low=0, high=max(s["V"], 1)),
    }


def _gather_reference(a: Arrays, s: Sizes) -> Arrays:
    return {"out": a["table"][a["I"]]}


def _histogram(generator: np.random.Generator, s: Sizes) -> Arrays:
    return {"x": small(generator, s["n"], dtype=np.int32, low=0, high=s["bins"])}


def _histogram_reference(a: Arrays, s: Sizes) -> Arrays:
    return {"count": np.bincount(a["x"], minlength=s["bins"]).astype(np.int32)}


def _prefix_sum(generator: np.random.Generator, s: Sizes) -> Arrays:
    return {"x": small(generator, s["n"], dtype=np.int32, low=-100, high=101)}


def _prefix_sum_reference(a: Arrays, s: Sizes) -> Arrays:
    return {"z": np.cumsum(a["x"], dtype=np.int32)}


def _cholesky(generator: np.random.Generator, s: Sizes) -> Arrays:
    # From an integer factor whose diagonal is a power of two, so that roots and quotients are exact.
    n = s["n"]
    factor = np.tril(small(generator, s["batch"], n, n, dtype=np.float64, low=-2, high=3), -1)
    diagonal = np.exp2(generator.integers(0, 3, (s["batch"], n)))
    factor[:, np.arange(n), np.arange(n)] = diagonal
    return {"A": (factor @ factor.transpose(0, 2, 1)).astype(np.float32)}


def _cholesky_reference(a: Arrays, s: Sizes) -> Arrays:
    return {"L": np.linalg.cholesky(a["A"].astype(np.float64)).round().astype(np.float32)}


def _permute5d(generator: np.random.Generator, s: Sizes) -> Arrays:
    return {"X": small(generator, *(s[d] for d in "ABCDE"), dtype=np.float16, low=-1000, high=1000)}


def _permute5d_reference(a: Arrays, s: Sizes) -> Arrays:
    return {"Y": np.ascontiguousarray(a["X"].transpose(2, 4, 0, 3, 1))}


def _each(names: str, *values: tuple[int, ...]) -> tuple[dict[str, int], ...]:
    """Sizes, one tuple of values for the names in `names`, each."""
    return tuple(dict(zip(names.split(), row, strict=True)) for row in values)


_MATRIX = ((0, 3), (3, 0), (1, 1), (5, 7), (13, 31))
_PRODUCT = ((0, 2, 3), (2, 0, 3), (2, 3, 0), (1, 1, 1), (3, 5, 7), (13, 11, 17))
_LENGTHS = ((0,), (1,), (3,), (127,), (1025,))

EXAMPLES: tuple[Example, ...] = (
    Example(
        "matmul_flat", "matmul", _matmul_flat, _matmul_flat_reference,
        _each("M N K", *_PRODUCT), _each("M N K", (97, 139, 64), (256, 256, 32)),
    ),
    Example(
        "matmul", "matmul", _matmul, _matmul_reference,
        _each("M N K", *_PRODUCT), _each("M N K", (97, 139, 64), (256, 256, 32)),
    ),
    Example("saxpy", "saxpy", _saxpy, _saxpy_reference, _each("n", *_LENGTHS), _each("n", (1_000_003,))),
    Example("sum", "sum", _vector, _sum_reference, _each("n", *_LENGTHS), _each("n", (1_000_000,))),
    Example(
        "transpose", "transpose2d", _transpose, _transpose_reference,
        _each("M N", *_MATRIX), _each("M N", (211, 307), (512, 96)),
    ),
    Example(
        "jacobi", "jacobi", _jacobi, _jacobi_reference,
        _each("H W T", (0, 0, 1), (1, 1, 1), (2, 5, 1), (3, 3, 0), (7, 5, 2), (13, 17, 2)), _each("H W T", (101, 131, 2)),
        consts=("T",),
    ),
    Example(
        "softmax", "softmax", _rows, _softmax_reference,
        _each("M N", *_MATRIX), _each("M N", (67, 1031)), inexact=("exp", "+="), ulp=128,
    ),
    Example(
        "layernorm", "layernorm", _layernorm, _layernorm_reference,
        _each("M N", *_MATRIX), _each("M N", (67, 1031)), inexact=("/", "rsqrt", "+="), ulp=256, floor=4.0,
    ),
    Example(
        "rmsnorm", "rmsnorm", _rmsnorm, _rmsnorm_reference,
        _each("M N", *_MATRIX), _each("M N", (67, 1031)), inexact=("/", "rsqrt"), ulp=1,
    ),
    Example(
        "conv2d", "conv2d", _conv2d, _conv2d_reference,
        _each(
            "B H W C R S F stride dilation padding",
            (0, 3, 3, 1, 3, 3, 1, 1, 1, 0), (1, 3, 3, 0, 3, 3, 2, 1, 1, 0), (1, 1, 1, 1, 1, 1, 1, 1, 1, 0),
            (2, 5, 7, 3, 3, 3, 2, 1, 1, 1), (1, 9, 7, 2, 3, 2, 3, 2, 1, 1), (1, 9, 9, 2, 3, 3, 1, 1, 2, 2),
            (1, 11, 8, 1, 2, 3, 2, 3, 2, 1),
        ),
        _each("B H W C R S F stride dilation padding", (2, 33, 31, 4, 3, 3, 130, 2, 1, 1)),
        consts=("stride", "dilation", "padding"),
    ),
    Example(
        "attention", "attention", _attention, _attention_reference,
        _each("H L D", (0, 2, 3), (1, 0, 4), (1, 1, 1), (2, 5, 3), (1, 17, 8)), _each("H L D", (3, 67, 16)),
        inexact=("exp", "/", "*", "+="), ulp=128, floor=1.0,
    ),
    Example(
        "gather", "gather", _gather, _gather_reference,
        _each("V D n", (0, 3, 0), (1, 1, 1), (5, 0, 3), (7, 3, 11), (31, 13, 5)), _each("V D n", (997, 80, 1009)),
    ),
    Example(
        "histogram", "histogram", _histogram, _histogram_reference,
        _each("n bins", (0, 4), (1, 1), (3, 5), (127, 7), (1025, 256)), _each("n bins", (1_000_000, 1000)),
        consts=("bins",),
    ),
    Example(
        "prefix_sum", "prefix_sum", _prefix_sum, _prefix_sum_reference,
        _each("n", *_LENGTHS, (1024,), (2049,)), _each("n", (1_000_000,)),
    ),
    Example(
        "cholesky", "cholesky", _cholesky, _cholesky_reference,
        _each("batch n", (0, 3), (2, 0), (1, 1), (3, 2), (2, 5), (3, 11)), _each("batch n", (257, 13)),
    ),
    Example("argmax", "argmax", _vector, _argmax_reference, _each("n", *_LENGTHS), _each("n", (1_000_000,))),
    Example(
        "permute5d", "permute5d", _permute5d, _permute5d_reference,
        _each("A B C D E", (1, 2, 0, 3, 2), (1, 1, 1, 1, 1), (2, 3, 5, 7, 3), (3, 2, 4, 1, 5)),
        _each("A B C D E", (3, 67, 3, 19, 5)),
    ),
)  # fmt: skip
"""The gallery, in the order in which its pages are read."""

BY_NAME: dict[str, Example] = {example.name: example for example in EXAMPLES}
