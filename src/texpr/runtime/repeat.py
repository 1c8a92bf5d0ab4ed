"""A fast path for a call on the host that differs from the previous one in scalars and array addresses only: other checks are
skipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard, cast

import numpy as np

from texpr.affine.expr import Sym
from texpr.backends.c.arguments import Argument
from texpr.interp.arguments import fitting
from texpr.interp.dtypes import Array
from texpr.ir.program import Function
from texpr.ir.value import Buffer
from texpr.ir.value.types import TF32
from texpr.runtime.call import Given, alignment, is_scalar
from texpr.runtime.memory import View, aligned_empty
from texpr.runtime.workspace import ALIGNMENT
from texpr.support.record import Record


class _Form(Record):
    """The layout by which an array is accepted without further checks: its type and shape, strides in bytes, alignment.

    `low`, `high`: offsets of the first byte that it occupies and of the one after the last.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    align: int
    low: int
    high: int
    written: bool

    @staticmethod
    def of(buffer: Buffer, view: View) -> _Form:
        """The form of an array that was passed without a copy."""
        low, high = view.extent()
        strides = tuple(stride * view.dtype.itemsize for stride in view.strides)
        ends = low - view.address, high - view.address
        return _Form(view.dtype, view.shape, strides, alignment(buffer), *ends, buffer.role != "input")

    def fits(self, given: object) -> TypeGuard[Array]:
        """Whether `given` is an array of this form, its address aside."""
        return (
            type(given) is np.ndarray
            and given.dtype == self.dtype
            and given.shape == self.shape
            and given.strides == self.strides
            and (not self.written or given.flags.writeable)
        )


class Repeated:
    """The state of a call, for calls of the same form. `workspace`: the bytes that it needs."""

    __slots__ = ("_arguments", "_forms", "_function", "_given", "_results", "workspace")

    def __init__(
        self, function: Function, arguments: Sequence[Argument], received: Given, outs: Sequence[View], workspace: int
    ):
        """`outs`: for each result that is not a parameter."""
        self._function, self.workspace = function, workspace
        self._results = received.fit.results
        made = {buffer.name: _Form.of(buffer, view) for (buffer, _, _), view in zip(self._results, outs, strict=True)}
        taken = {p.name: _Form.of(p, received.views[p.name]) for p in function.params if not is_scalar(p)}
        self._forms = taken | made
        self._arguments = tuple(received.sizes[a.key] if isinstance(a.key, Sym) else a.key for a in arguments)
        self._given = tuple(p.name for p in function.params)

    @staticmethod
    def may_follow(function: Function) -> bool:
        """Whether no check of a call reads elements of an array."""
        return not function.assumes and all(p.dtype != TF32 for p in function.params)

    def arguments(self, arrays: Sequence[object], out: object) -> tuple[list[object], dict[str, object]] | None:
        """The values of the arguments, and all arrays by name; None where this call has another form than the last."""
        if len(arrays) != len(self._given):
            return None
        named = dict(zip(self._given, arrays, strict=True))
        if out is None:
            for buffer, dtype, shape in self._results:
                named[buffer.name] = aligned_empty(dtype, shape, max(ALIGNMENT, alignment(buffer)))
        else:
            outs = list(cast("Sequence[object]", out)) if isinstance(out, tuple | list) else [out]
            if len(outs) != len(self._results):
                return None
            named |= {buffer.name: each for (buffer, _, _), each in zip(self._results, outs, strict=True)}
        places = self._places(named)
        if places is None:
            return None
        return [key if isinstance(key, int) else self._value(key, named, places) for key in self._arguments], named

    def _places(self, named: dict[str, object]) -> dict[str, int] | None:
        """The address of each array, if all have their former form and no written one overlaps another."""
        found: dict[str, int] = {}
        spans: list[tuple[int, int, bool]] = []
        for name, form in self._forms.items():
            given = named[name]
            if not form.fits(given):
                return None
            address = given.ctypes.data
            if form.low == form.high:
                found[name] = 0
                continue
            if address % form.align:
                return None
            found[name] = address
            spans.append((address + form.low, address + form.high, form.written))
        for at, (low, high, written) in enumerate(spans):
            if any((written or also) and low < end and start < high for start, end, also in spans[:at]):
                return None
        return found

    def _value(self, buffer: Buffer, named: dict[str, object], places: dict[str, int]) -> object:
        name = buffer.name
        return scalar(buffer, fitting(buffer, named[name])) if is_scalar(buffer) else places[name] or None


def scalar(param: Buffer, value: Array) -> object:
    """A number as C takes it: small floating-point types by their bits."""
    small = param.dtype.is_float and param.dtype.bits < 32
    return (value.view(f"u{value.itemsize}") if small else value).item()
