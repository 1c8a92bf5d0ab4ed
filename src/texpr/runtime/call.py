"""The arguments of one call, converted to what the built function takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from texpr.affine.expr import Expr, Sym
from texpr.interp.arguments import Bound, bind, fitting, shape_of
from texpr.interp.dtypes import Array, numpy_dtype
from texpr.ir.program import Function
from texpr.ir.value import Buffer
from texpr.runtime.array import DeviceArray
from texpr.runtime.dlpack import Exporter, take
from texpr.runtime.memory import HOST, View, aligned_empty, dense, on_host, strided
from texpr.support.diagnostic import error
from texpr.support.record import Record, replace


class Fit(Record):
    """The part of a call that depends on types, shapes and sizes only.

    Every size; for each result that is not a parameter: buffer, element type, shape; the strides passed, by buffer name.
    """

    sizes: Mapping[Sym, int]
    results: tuple[tuple[Buffer, np.dtype[Any], tuple[int, ...]], ...]
    strides: Mapping[str, tuple[int, ...]]


class Given(Record):
    """Matching arguments: a view of each array (with the object it came from), a NumPy scalar of each scalar."""

    views: Mapping[str, View]
    objects: Mapping[str, object]
    scalars: Mapping[str, Array]
    fit: Fit

    @property
    def sizes(self) -> Mapping[Sym, int]:
        """Every size."""
        return self.fit.sizes


class Receiver:
    """Matches arguments with the parameters of `function`. What follows from the last call's shapes is cached."""

    def __init__(self, function: Function):
        self._function = function
        self._last: tuple[object, Fit] | None = None

    def receive(self, arguments: Mapping[str, object], sizes: Mapping[str, int], stream: int) -> Given:
        """The arguments by name, and sizes given by name, converted for a call.

        Raises `TexprError`: not an array (E0772), on another device than the rest (E0776), or an error of `bind`.
        """
        params = self._function.params
        views = {p.name: view_of(p.name, arguments[p.name], stream) for p in params if not is_scalar(p) and p.name in arguments}
        numbers = {p.name: _number(p, arguments[p.name]) for p in params if is_scalar(p) and p.name in arguments}
        key = _key(views, sizes)
        last = self._last
        if last is not None and key == last[0] and len(arguments) == len(views) + len(numbers) == len(params):
            scalars = {p.name: fitting(p, numbers[p.name]) for p in params if is_scalar(p)}
            return Given(views, arguments, scalars, last[1])
        # Unknown names are passed on: `bind` reports them.
        standing = {**arguments, **{name: stand_in(view) for name, view in views.items()}, **numbers}
        found = {**_from_strides(self._function, views), **sizes}
        bound = bind(self._function, cast("dict[str, Array]", standing), found)
        fit = _fit(self._function, views, bound.sizes)
        if key is not None:
            self._last = (key, fit)
        return Given(views, arguments, {p.name: bound.arrays[p.name] for p in params if is_scalar(p)}, fit)


def _key(views: Mapping[str, View], sizes: Mapping[str, int]) -> object:
    """Equal for two calls with the same `Fit`; None where a size is not a plain integer, and must be checked."""
    if any(type(value) is not int for value in sizes.values()):
        return None
    return dict(sizes), [(name, view.dtype, view.shape, view.strides) for name, view in views.items()]


def _fit(function: Function, views: Mapping[str, View], sizes: Mapping[Sym, int]) -> Fit:
    results = tuple(result_shapes(function, sizes))
    shapes = {**{p: views[p.name].shape for p in function.params if p.name in views}, **{b: shape for b, _, shape in results}}
    return Fit(sizes, results, {b.name: wanted_strides(b, shape, sizes) for b, shape in shapes.items()})


def is_scalar(param: Buffer) -> bool:
    """Whether it is passed by value."""
    return param.rank == 0 and param.role == "input"


def view_of(name: str, given: object, stream: int) -> View:
    """A view of the memory of an array of any library. Raises `TexprError` E0772 if it is no array, or has swapped bytes."""
    if isinstance(given, np.ndarray):
        array = cast(Array, given)
        if not array.dtype.isnative or any(stride % max(array.itemsize, 1) for stride in array.strides):
            raise error("E0772", None, f"`{name}` has elements that no code can read as they lie", help="pass a copy of it")
        return on_host(array)
    if isinstance(given, DeviceArray):
        return given.view()
    if isinstance(given, Exporter):
        return take(given, name, stream)
    kind = type(given).__name__
    help = "pass a NumPy array, or what gives DLPack (PyTorch, CuPy, JAX)"
    raise error("E0772", None, f"`{name}` is a {kind}, which is no array", help=help)


def stand_in(view: View) -> Array:
    """An array of the same type and shape, for checks that read no element."""
    return np.broadcast_to(np.empty((), view.dtype), view.shape)


def _number(param: Buffer, given: object) -> object:
    """A scalar, which may be an array of rank 0, also of another library."""
    if not isinstance(given, np.ndarray | np.generic) and isinstance(given, Exporter):
        view = take(given, param.name, 0)
        if view.device is HOST and view.shape == ():
            return as_array(view)[()]
    return cast(object, given)


def as_array(view: View) -> Array:
    """A view of host memory as a NumPy array."""
    owner: object = view.owner
    if isinstance(owner, np.ndarray):
        return cast(Array, owner)
    item = view.dtype.itemsize
    interface: dict[str, Any] = {
        "data": (view.address, not view.writable),
        "shape": view.shape,
        "strides": tuple(stride * item for stride in view.strides),
        "typestr": f"|V{item}",
        "version": 3,
    }
    holder = _Interface(interface, owner)
    return np.asarray(holder).view(view.dtype)


class _Interface:
    def __init__(self, interface: dict[str, Any], owner: object):
        self.__array_interface__ = interface
        self.owner = owner


def _from_strides(function: Function, views: Mapping[str, View]) -> dict[str, int]:
    """Sizes that equal a stride of an array: from the first array that has it.

    If the other strides do not match, the array will be copied, and the dense copy's stride is used.
    """
    found: dict[str, int] = {}
    for param in function.params:
        view = views.get(param.name)
        if param.strides is None or view is None or len(view.strides) != len(param.strides):
            continue
        wanted = list(zip(param.strides, view.strides, view.shape, strict=True))
        fits = all(b >= 0 and (not a.is_constant or extent == 1 or a.constant == b) for a, b, extent in wanted)
        strides = view.strides if fits else dense(view.shape)
        for expression, stride in zip(param.strides, strides, strict=True):
            sym = expression.as_sym
            if sym is not None and sym in function.sizes:
                found.setdefault(sym.name, stride)
    return found


def wanted_strides(buffer: Buffer, shape: Sequence[int], sizes: Mapping[Sym, int]) -> tuple[int, ...]:
    """The strides that the built function requires for `buffer`."""
    return dense(shape) if buffer.strides is None else tuple(_value(stride, sizes) for stride in buffer.strides)


def lies_right(view: View, strides: Sequence[int], align: int) -> bool:
    """Whether strides and alignment are as required. The stride of an axis with one element is ignored."""
    if view.empty:
        return True
    same = all(n == 1 or a == b for n, a, b in zip(view.shape, view.strides, strides, strict=True))
    return same and view.address % align == 0


def alignment(buffer: Buffer) -> int:
    """The alignment in bytes that the function requires of a pointer."""
    return max(buffer.align or 1, buffer.dtype.bytes)


def laid_out(view: View, strides: Sequence[int], align: int) -> View:
    """A copy of a host array with the given strides and alignment."""
    last = sum((extent - 1) * stride for extent, stride in zip(view.shape, strides, strict=True))
    room = aligned_empty(view.dtype, (last + 1,), align)
    copy = strided(room, view.shape, strides)
    copy[...] = as_array(view)
    return replace(on_host(copy), owner=(room, copy))


def refuse_overlap(function: Function, written: Mapping[str, View], read: Mapping[str, View]) -> None:
    """Raises `TexprError` E0779 where written memory overlaps another argument's: parameters do not alias."""
    every = [(name, view.device, *view.extent()) for name, view in (*written.items(), *read.items())]
    for at, (name, device, low, high) in enumerate(every[: len(written)]):
        for other, place, start, end in every[at + 1 :]:
            if device == place and low < end and start < high:
                told = f"`{name}` and `{other}` of `{function.name}` share memory, and `{name}` is written"
                raise error("E0779", function.span, told, help="pass a copy of one")


def result_shapes(function: Function, sizes: Mapping[Sym, int]) -> Iterator[tuple[Buffer, np.dtype[Any], tuple[int, ...]]]:
    """For each result that is not a parameter: buffer, element type, shape. Raises `TexprError` E0726 for a negative extent."""
    for buffer in function.results:
        if buffer in function.params:
            continue
        shape = shape_of(buffer, sizes)
        if any(extent < 0 for extent in shape):
            raise error("E0726", buffer.span, f"`{buffer!r}` would have the shape {shape} at these sizes")
        yield buffer, numpy_dtype(buffer.dtype), shape


def bound_for_facts(given: Given) -> Bound:
    """The arguments on the host, for the checks of `where` and `assume`."""
    arrays = {name: as_array(view) for name, view in given.views.items()}
    return Bound(dict(given.sizes), {**arrays, **given.scalars})


def _value(value: Expr, sizes: Mapping[Sym, int]) -> int:
    return value.evaluate(sizes)
