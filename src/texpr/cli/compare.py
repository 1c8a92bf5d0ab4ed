"""Comparison of two results of one program."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from texpr.interp.dtypes import Array, numpy_dtype
from texpr.ir.program import Function
from texpr.ir.value.types import BF16, F8E4M3, F8E5M2, F16, F32, F64, TF32, DType
from texpr.support.diagnostic import Diagnostic, Note
from texpr.support.record import Record

FRACTION = {F64: 52, F32: 23, TF32: 10, F16: 10, BF16: 7, F8E4M3: 3, F8E5M2: 2}
"""Mantissa bits of each floating type."""

ALLOWED = 64
"""The tolerance of floating results, in units in the last place of a result's largest element: sums may be in another order,
and mathematical functions of two machines differ in the last places."""


class Comparison(Record):
    """The difference of two arrays: bit-equal or not, and the first element (in row order) beyond the tolerance, if any.

    `nans`: the number of elements that are nan in both, which are not compared; `count`: the number of elements.
    """

    equal: bool
    at: tuple[int, ...] | None = None
    actual: str = ""
    expected: str = ""
    nans: int = 0
    count: int = 0

    @property
    def fits(self) -> bool:
        """Whether every element is within the tolerance."""
        return self.at is None


def compare(dtype: DType, actual: Array, expected: Array) -> Comparison:
    """Compares two arrays of one shape and type; integers and booleans must be equal, floats within `ALLOWED`."""
    nans = int(np.count_nonzero(_both_nan(actual, expected))) if dtype.is_float else 0
    same = _same_bits(dtype, actual, expected)
    if bool(np.all(same)):
        return Comparison(equal=True, nans=nans, count=same.size)
    far = ~same if not dtype.is_float else ~(same | _near(dtype, actual, expected))
    if not bool(np.any(far)):
        return Comparison(equal=False, nans=nans, count=same.size)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(far)), far.shape))
    return Comparison(False, at, str(actual[at]), str(expected[at]))


def _same_bits(dtype: DType, actual: Array, expected: Array) -> Array:
    """Bit equality; all nans are equal."""
    unsigned = np.dtype(f"u{numpy_dtype(dtype).itemsize}")
    bits = np.ascontiguousarray(actual).view(unsigned) == np.ascontiguousarray(expected).view(unsigned)
    bits = np.asarray(bits).reshape(np.shape(actual))
    if dtype.is_float:
        return bits | _both_nan(actual, expected)
    return bits


def _both_nan(actual: Array, expected: Array) -> Array:
    return np.asarray(np.isnan(actual.astype(np.float64)) & np.isnan(expected.astype(np.float64)))


def _near(dtype: DType, actual: Array, expected: Array) -> Array:
    got, wanted = actual.astype(np.float64), expected.astype(np.float64)
    finite = wanted[np.isfinite(wanted)]
    largest = float(np.max(np.abs(finite), initial=0.0))
    with np.errstate(invalid="ignore"):
        return np.abs(got - wanted) <= ALLOWED * largest * 2.0 ** -FRACTION[dtype]


def _told(outcome: Comparison) -> str:
    """The agreement of two results in words; nans are mentioned, as they are not compared."""
    if outcome.count and outcome.nans == outcome.count:
        return f"nothing was compared: all of {outcome.count} elements are nan in both (against interp)"
    how = "equal to the bit" if outcome.equal else "equal up to rounding"
    if not outcome.nans:
        return f"{how} (against interp)"
    return f"{how} (against interp), but for {outcome.nans} of {outcome.count} elements, which are nan in both: not compared"


def judge(
    function: Function, results: Mapping[str, Array], expected: Mapping[str, Array]
) -> tuple[tuple[str, ...], tuple[Diagnostic, ...]]:
    """Compares every output with the interpreter's: a line for each that agrees, a diagnostic for each that does not."""
    lines: list[str] = []
    found: list[Diagnostic] = []
    for buffer in (*function.results, *function.params):
        if buffer.name not in expected:
            continue
        outcome = compare(buffer.dtype, results[buffer.name], expected[buffer.name])
        if outcome.at is None:
            lines.append(f"{buffer.name}: {_told(outcome)}")
        else:
            element = f"{buffer.name}[{', '.join(map(str, outcome.at))}]" if outcome.at else buffer.name
            message = f"`{element}` is {outcome.actual}, but the interpreter gives {outcome.expected}"
            note = Note("this is the first such element; the interpreter's result is what the program means")
            found.append(Diagnostic("E0858", buffer.span, message, (note,)))
    return tuple(lines), tuple(found)
