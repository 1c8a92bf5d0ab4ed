"""Comparison of two results of one program."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from texpr.cli.bounds import Bound
from texpr.interp.dtypes import Array, numpy_dtype
from texpr.interp.shadow import FRACTION
from texpr.ir.program import Function
from texpr.ir.value import Buffer
from texpr.ir.value.types import DType
from texpr.support.diagnostic import Diagnostic, Note
from texpr.support.record import Record

ALLOWED = 64
"""The tolerance of floating results, in units in the last place of a result's largest element: sums may be in another order,
and mathematical functions of two machines differ in the last places."""


class Comparison(Record):
    """The difference of two arrays: bit-equal or not, and the first element (in row order) beyond the tolerance, if any.

    `nans`: the number of elements that are nan in both, which are not compared; `count`: the number of elements; `used`: the
    greatest part of a given tolerance that is taken.
    """

    equal: bool
    at: tuple[int, ...] | None = None
    actual: str = ""
    expected: str = ""
    nans: int = 0
    count: int = 0
    used: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether every element is within the tolerance."""
        return self.at is None


def compare(dtype: DType, actual: Array, expected: Array, allowed: Array | None = None) -> Comparison:
    """Compares two arrays of one shape and type; integers and booleans must be equal, floats within `allowed`, or where that is
    not given within `ALLOWED`."""
    nans = int(np.count_nonzero(_both_nan(actual, expected))) if dtype.is_float else 0
    same = _same_bits(dtype, actual, expected)
    if bool(np.all(same)):
        return Comparison(equal=True, nans=nans, count=same.size)
    far = ~same if not dtype.is_float else ~(same | _near(dtype, actual, expected, allowed))
    if not bool(np.any(far)):
        return Comparison(equal=False, nans=nans, count=same.size, used=_used(actual, expected, allowed, same))
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


def _near(dtype: DType, actual: Array, expected: Array, allowed: Array | None) -> Array:
    got, wanted = actual.astype(np.float64), expected.astype(np.float64)
    if allowed is None:
        allowed = _part(ALLOWED * 2.0 ** -FRACTION[dtype], expected)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(got - wanted) <= allowed)


def _part(tolerance: float, expected: Array) -> Array:
    """The allowed difference, for a part of the largest element."""
    wide = expected.astype(np.float64)
    return np.asarray(tolerance * float(np.max(np.abs(wide[np.isfinite(wide)]), initial=0.0)))


def _used(actual: Array, expected: Array, allowed: Array | None, same: Array) -> float:
    """The greatest difference, relative to what is allowed there."""
    if allowed is None:
        return 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        part = np.abs(actual.astype(np.float64) - expected.astype(np.float64)) / allowed
    return float(np.max(np.where(same, 0.0, part), initial=0.0))


def _bounded(bound: Bound | None, outcome: Comparison) -> str:
    """What is known of instructions that a result comes from."""
    if bound is None:
        return ""
    names = " and ".join(bound.instrs)
    if bound.allowed is None:
        return f"; how {names} rounds is not followed through {bound.reason}: compared like any other sum"
    return f"; within the bound of {names}, {bound.relative:.2g} of Σ |terms|, {outcome.used:.2g} of it taken"


def _told(outcome: Comparison, against: str) -> str:
    """The agreement of two results in words; nans are mentioned, as they are not compared."""
    if outcome.count and outcome.nans == outcome.count:
        return f"nothing was compared: all of {outcome.count} elements are nan in both (against {against})"
    how = "equal to the bit" if outcome.equal else "equal up to rounding"
    if not outcome.nans:
        return f"{how} (against {against})"
    return f"{how} (against {against}), but for {outcome.nans} of {outcome.count} elements, which are nan in both: not compared"


INTERP = "interp"
"""The reference that is the meaning of a program."""


def judge(
    function: Function,
    results: Mapping[str, Array],
    expected: Mapping[str, Array],
    bounds: Mapping[str, Bound],
    against: str = INTERP,
    tolerance: float | None = None,
) -> tuple[tuple[str, ...], tuple[Diagnostic, ...]]:
    """Compares every output with that of the interpreter, or of another reference: a line for each that agrees, a diagnostic
    for each that does not.

    `bounds`: of those that come from instructions with an arithmetic of their own. `tolerance`: how far the others may be, as a
    part of the largest element.
    """
    lines: list[str] = []
    found: list[Diagnostic] = []
    for buffer in (*function.results, *function.params):
        if buffer.name not in expected:
            continue
        bound = bounds.get(buffer.name)
        allowed = None if bound is None else bound.allowed
        if bound is None and tolerance is not None:
            allowed = _part(tolerance, expected[buffer.name])
        outcome = compare(buffer.dtype, results[buffer.name], expected[buffer.name], allowed)
        if outcome.at is None:
            lines.append(f"{buffer.name}: {_told(outcome, against)}{_bounded(bound, outcome)}")
        else:
            found.append(_differs(buffer, outcome, bound, against))
    return tuple(lines), tuple(found)


def _differs(buffer: Buffer, outcome: Comparison, bound: Bound | None, against: str) -> Diagnostic:
    """The first element that is not what it should be."""
    assert outcome.at is not None
    element = f"{buffer.name}[{', '.join(map(str, outcome.at))}]" if outcome.at else buffer.name
    meant = "the interpreter's result is what the program means"
    who, note = ("the interpreter", meant) if against == INTERP else (f"`{against}`", f"{meant}: `texpr run --against interp`")
    message = f"`{element}` is {outcome.actual}, but {who} gives {outcome.expected}"
    if bound is not None and bound.allowed is not None:
        message += f", and the bound of {' and '.join(bound.instrs)} allows {float(bound.allowed[outcome.at]):.3g}"
    return Diagnostic("E0858", buffer.span, message, (Note(f"this is the first such element; {note}"),))
