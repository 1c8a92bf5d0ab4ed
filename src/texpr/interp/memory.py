"""The memory of a buffer: a flat array, and for locals a mask of the written elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from texpr.interp.dtypes import Array, numpy_dtype
from texpr.interp.facts import element
from texpr.interp.lanes import Column
from texpr.ir.value import Buffer
from texpr.support.diagnostic import TexprError, error
from texpr.support.span import Span

Locate = Callable[[int], str]
"""Describes in words the iteration of lane k."""


class Memory:
    """`rows` copies of a buffer, one after the other, each dense and row-major with the extents `dims`.

    `written` is None for memory that a caller filled. Where lanes declare a local of different shapes, `dims` is their
    maximum.
    """

    __slots__ = ("buffer", "data", "dims", "size", "strides", "written")

    def __init__(self, buffer: Buffer, dims: tuple[int, ...], data: Array, written: Array | None):
        self.buffer = buffer
        self.dims = dims
        self.size = prod(dims)
        self.strides = tuple(prod(dims[at + 1 :]) for at in range(len(dims)))
        self.data = data
        self.written = written

    @staticmethod
    def fresh(buffer: Buffer, dims: tuple[int, ...], rows: int) -> Memory:
        """Undefined memory, to be written before it is read."""
        total = rows * prod(dims)
        return Memory(buffer, dims, np.zeros(total, numpy_dtype(buffer.dtype)), np.zeros(total, np.bool_))

    @staticmethod
    def filled(buffer: Buffer, array: Array) -> Memory:
        """The caller's array, copied if the function may write it."""
        data = np.ascontiguousarray(array) if buffer.role == "input" else np.array(array, order="C", copy=True)
        return Memory(buffer, array.shape, data.reshape(-1), None)

    def offset(self, row: Column, index: Sequence[Column], dims: Sequence[Column], span: Span, locate: Locate) -> Column:
        """The offset of the element `index` in each lane's copy. Raises `TexprError` E0720 unless 0 ≤ index < dims."""
        place: Column = row * self.size if self.size else 0
        for at, (entry, dim, stride) in enumerate(zip(index, dims, self.strides, strict=True)):
            outside = (entry < 0) | (entry >= dim)
            if outside if isinstance(outside, bool) else bool(outside.any()):
                raise self._outside(at, entry, dim, outside, span, locate)
            place = place + entry * stride
        return place

    def _outside(self, at: int, entry: Column, dim: Column, outside: Column, span: Span, locate: Locate) -> TexprError:
        lane = int(np.flatnonzero(outside)[0])
        found, most = (x if isinstance(x, int) else int(x[lane]) for x in (entry, dim))
        what = f"index {found} of `{self.buffer!r}` is out of bounds: dimension {at} has {most} elements"
        return error("E0720", span, what + locate(lane))

    def read(self, place: Column, span: Span, locate: Locate) -> Array:
        """The elements at `place`. Raises `TexprError` E0721 if one was never written."""
        if self.written is not None:
            known = self.written[place]
            if not known.all():
                lane = int(np.flatnonzero(~known)[0])
                name = self.name_of(place if isinstance(place, int) else int(place[lane]))
                raise error("E0721", span, f"{name} is read before it is written" + locate(lane))
        return self.data[place]

    def write(self, place: Column, values: Array) -> None:
        """Stores `values` at `place`; where places repeat, the last lane wins, as in the sequential program."""
        self.data[place] = values if not isinstance(place, int) or values.ndim == 0 else values[-1]
        if self.written is not None:
            self.written[place] = True

    def name_of(self, place: int) -> str:
        """The element at `place`, in the language's syntax."""
        return element(self.buffer.name, tuple(int(i) for i in np.unravel_index(place % max(self.size, 1), self.dims)))


def dims_of(shape: Sequence[Column]) -> tuple[int, ...]:
    """The maximum of the shape over the lanes, dimension by dimension."""
    return tuple(dim if isinstance(dim, int) else int(dim.max(initial=0)) for dim in shape)
