"""A built function, callable with arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from texpr.affine.expr import Sym
from texpr.backends.c.arguments import Argument, arguments, function_name
from texpr.backends.c.status import ASSUMPTION_FAILS, OK, STATUSES
from texpr.emulator.harness import IN_ORDER, Emulator
from texpr.emulator.report import parse_reports
from texpr.interp.dtypes import Array
from texpr.interp.facts import check_facts
from texpr.ir.kernel import Plan
from texpr.ir.program import Function
from texpr.ir.value import Buffer
from texpr.runtime.array import DeviceArray
from texpr.runtime.call import (
    Given,
    Receiver,
    alignment,
    as_array,
    bound_for_facts,
    is_scalar,
    laid_out,
    lies_right,
    refuse_overlap,
    view_of,
)  # fmt: skip
from texpr.runtime.library import handed, taker
from texpr.runtime.memory import HOST, DeviceMemory, Driver, View, aligned_empty, dense, on_host, strided
from texpr.runtime.repeat import Repeated, scalar
from texpr.runtime.workspace import ALIGNMENT, Workspaces
from texpr.support.diagnostic import TexprError, error
from texpr.support.record import Mutable, Record, field

_Call: TypeAlias = "Callable[[], int]"


class Kernel(Mutable):
    """A function built for `target`, with fixed sizes, if any. `driver`: of its device, None for a CPU.

    `emulator`: the device is emulated; `seed` then selects the thread schedule and `detect` enables the detection of faults.
    """

    function: Function
    plan: Plan
    target: str
    path: Path
    driver: Driver | None = None
    emulator: Emulator | None = None
    seed: int = IN_ORDER
    detect: bool = True
    _library: ctypes.CDLL = field(init=False)
    _arguments: tuple[Argument, ...] = field(init=False)
    _entries: _Entries = field(init=False)
    _receiver: Receiver = field(init=False)
    _workspaces: Workspaces = field(init=False)
    _repeated: Repeated | None = None
    _hidden: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        try:
            self._library = ctypes.CDLL(str(self.path))
        except OSError as reason:
            raise error("E0785", None, f"the library of `{self.function.name}` cannot be loaded: {reason}") from reason
        self._arguments = arguments(self.plan)
        self._entries = _Entries.of(self._library, function_name(self.plan), self._arguments)
        self._receiver = Receiver(self.function)
        self._hidden = frozenset(param.name for param in self.function.params) & {"out", "stream", "validate"}
        self._workspaces = Workspaces(self.driver)
        if self.driver is not None:
            self.driver.start()
            self.driver.enter()
            self._check(self._entries.load(self.driver.ordinal))

    def __repr__(self) -> str:
        """One line, as the whole function and plan would be too long."""
        where = "emulated " if self.emulator is not None else ""
        return f"<Kernel {self.function.name} for {where}{self.target}>"

    def __call__(
        self, *arrays: object, out: object = None, stream: object = None, validate: bool | None = None, **named: object
    ) -> Any:
        """Runs the function; returns its result, a tuple of several, or None where it has none.

        A result is an array of the library of the first array that is not NumPy's (PyTorch, CuPy, JAX, by its `from_dlpack`);
        else a NumPy array if all arguments are on the host, and a `DeviceArray` if not. An inout is returned as it was given.

        Parameters are positional or named; a name that is no parameter is a size. `out` takes one array for each result that
        is not a parameter. `stream`: a CUDA stream (a handle, or an object of PyTorch or CuPy) on which work is queued; the
        call waits for it only if a host array takes part. `validate` checks the text's assumptions about data: by default, if
        all arrays are on the host. Inputs with other strides or alignment are copied; an inout or `out` is refused then
        (E0773). A parameter that is named `out`, `stream` or `validate` takes precedence over the keyword.
        """
        if self._hidden:
            words: dict[str, object] = {"out": out, "stream": stream, "validate": validate}
            named |= {name: words[name] for name in self._hidden if words[name] is not None}
            out, stream = (None if name in self._hidden else words[name] for name in ("out", "stream"))
            validate = None if "validate" in self._hidden else validate
        last = self._repeated
        if last is not None and not named and stream is None and validate is None:
            found = last.arguments(arrays, out)
            if found is not None:
                values, given = found
                with self._workspaces.room(last.workspace, 0) as room:
                    self._check(self._entries.run(None, room, *values))
                return _returned([given[buffer.name] for buffer in self.function.results])
        given = self._name(arrays, named)
        handle = stream_handle(stream)
        names = {param.name for param in self.function.params}
        sizes = {name: cast(int, value) for name, value in named.items() if name not in names}
        received = self._receiver.receive(given, sizes, handle)
        outs = self._outs(received, out, handle)
        self._check_places(received, outs, validate)
        self._run(received, outs, handle, bool(validate))
        take = taker(received.objects[name] for name in received.views) if out is None else None
        made = (handed(one.result, take) for one in outs)
        return _returned(
            [
                received.objects[buffer.name] if buffer in self.function.params else next(made)
                for buffer in self.function.results
            ]
        )

    def _name(self, arrays: Sequence[object], named: Mapping[str, object]) -> dict[str, object]:
        params = self.function.params
        if len(arrays) > len(params):
            told = f"`{self.function.name}` takes {len(params)} arguments, {len(arrays)} are given"
            raise error("E0778", self.function.span, told, help=", ".join(repr(p) for p in params) or None)
        given = {param.name: array for param, array in zip(params, arrays, strict=False)}
        for param in params:
            if param.name in named and param.name in given:
                raise error("E0778", self.function.span, f"`{param.name}` of `{self.function.name}` is given twice")
            if param.name in named:
                given[param.name] = named[param.name]
        return given

    def _outs(self, received: Given, out: object, stream: int) -> list[_Out]:
        """The target of each result that is not a parameter: the caller's array, or a new one."""
        wanted = received.fit.results
        given = list(cast("Sequence[object]", out)) if isinstance(out, tuple | list) else [out] * (out is not None)
        if out is not None and len(given) != len(wanted):
            raise error("E0777", self.function.span, f"`out` must be {len(wanted)} arrays, not {len(given)}")
        if out is not None:
            return [_taken(b, dtype, shape, one, stream) for (b, dtype, shape), one in zip(wanted, given, strict=True)]
        on_device = self.driver is not None and any(view.device is not HOST for view in received.views.values())
        outs: list[_Out] = []
        for buffer, dtype, shape in wanted:
            if on_device and self.driver is not None:
                self.driver.enter()
                made = DeviceArray.empty(self.driver, dtype, shape)
                outs.append(_Out(buffer, made, made.view()))
            else:
                array = aligned_empty(dtype, shape, max(ALIGNMENT, alignment(buffer)))
                outs.append(_Out(buffer, array, on_host(array)))
        return outs

    def _check_places(self, received: Given, outs: Sequence[_Out], validate: bool | None) -> None:
        """Checks devices, aliasing, and on the host the facts that the text states."""
        read = {name: view for name, view in received.views.items() if not self._is_written(name)}
        written = {name: view for name, view in received.views.items() if self._is_written(name)}
        written |= {one.buffer.name: one.view for one in outs}
        here = HOST if self.driver is None else self.driver.ordinal
        for name, view in (*read.items(), *written.items()):
            if view.device is not HOST and view.device != here:
                place = "the host" if here is HOST else f"CUDA device {here}"
                told = f"`{name}` lies on CUDA device {view.device}; `{self.function.name}` was built for {place}"
                raise error("E0776", self.function.span, told)
            if name in written and not view.writable:
                raise error("E0775", self.function.span, f"`{name}` is written by `{self.function.name}`, and is read-only")
        refuse_overlap(self.function, written, read)
        if validate is not False and all(view.device is HOST for view in received.views.values()):
            check_facts(self.function, bound_for_facts(received))

    def _is_written(self, name: str) -> bool:
        return any(param.name == name and param.role == "inout" for param in self.function.params)

    @contextmanager
    def ready(
        self, arrays: Sequence[object], sizes: Mapping[str, int], out: object = None, stream: object = None
    ) -> Generator[Callable[[], None]]:
        """A call that is checked and laid out once, to be made many times: of the built function alone, on these arguments.

        `arrays`: one for each parameter. What the text assumes of data is checked once, and a call does not wait for a device.
        Raises `TexprError` as a call does.
        """
        handle = stream_handle(stream)
        received = self._receiver.receive(self._name(arrays, {}), sizes, handle)
        outs = self._outs(received, out, handle)
        self._check_places(received, outs, None)
        with _Places(self, received, outs, handle) as places, self._placed(received, places, handle) as (call, _):
            yield lambda: self._check(call())

    def _run(self, received: Given, outs: Sequence[_Out], stream: int, validate: bool) -> None:
        with (
            _Places(self, received, outs, stream) as places,
            self._placed(received, places, stream, validate) as (call, needed),
        ):
            if self.emulator is None:
                self._check(call())
            else:
                self._emulate(self.emulator, call)
            if self.driver is self.emulator is None and not places.moved and Repeated.may_follow(self.function):
                self._repeated = Repeated(self.function, self._arguments, received, [one.view for one in outs], needed)

    @contextmanager
    def _placed(self, received: Given, places: _Places, stream: int, validate: bool = False) -> Generator[tuple[_Call, int]]:
        """The function with its arguments at their addresses and its workspace, and how many bytes that has."""
        given = self._arguments
        values = [_value(argument, received, places.addresses) for argument in given]
        sizes = [value for argument, value in zip(given, values, strict=True) if isinstance(argument.key, Sym)]
        needed = self._workspace_bytes(sizes)
        with self._workspaces.room(needed, stream) as room:
            if validate and self.driver is not None:
                self._check(self._entries.validate(stream or None, room, *values))
            yield partial(self._entries.run, None if self.emulator else stream or None, room, *values), needed

    def _emulate(self, emulator: Emulator, call: _Call) -> None:
        """A call with this kernel's thread schedule and fault detection; faults are errors."""
        with emulator.lock:
            emulator.set("seed", self.seed)
            emulator.set("detect", self.detect)
            emulator.library.tx_emu_clear_reports()
            code = call()
            reports = parse_reports(emulator.text("tx_emu_reports"))
        if reports:
            raise TexprError([report.diagnostic(self.function.span.source) for report in reports])
        self._check(code)

    def _workspace_bytes(self, sizes: Sequence[object]) -> int:
        needed = ctypes.c_uint64(0)
        self._check(self._entries.workspace_bytes(*sizes, ctypes.byref(needed)))
        return needed.value

    def _check(self, code: int) -> None:
        """Raises `TexprError` for a status of the library other than 0."""
        if code == OK.code:
            return
        if code > 0 and self.driver is not None:
            raise error("E0783", None, f"the CUDA driver fails with {code}: {self.driver.explain(code)}")
        text = next((status.text for status in STATUSES if status.code == code), "an unknown status")
        number = "E0711" if code == ASSUMPTION_FAILS.code else "E0784"
        raise error(number, self.function.span, f"`{self.function.name}` does not run: {text} ({code})")


class _Entries(Record):
    """The functions of a library through ctypes; each returns a status."""

    run: Callable[..., int]
    validate: Callable[..., int]
    workspace_bytes: Callable[..., int]
    load: Callable[..., int]

    @staticmethod
    def of(library: ctypes.CDLL, name: str, given: Sequence[Argument]) -> _Entries:
        """The entries of the function `name`, with the argument types of `given`."""
        types = (ctypes.c_void_p, ctypes.c_void_p, *map(_ctype, given))
        sizes = (*(_ctype(a) for a in given if isinstance(a.key, Sym)), ctypes.c_void_p)
        signatures = {"": types, "_validate": types, "_workspace_bytes": sizes, "_load": (ctypes.c_int,)}
        return _Entries(*(_typed(library, name + suffix, types) for suffix, types in signatures.items()))


def _typed(library: ctypes.CDLL, name: str, types: Sequence[type[Any]]) -> Callable[..., int]:
    function = getattr(library, name)
    function.argtypes, function.restype = types, ctypes.c_int
    return function


class _Out(Record):
    """The target of a result: the object for the caller, and its view."""

    buffer: Buffer
    result: object
    view: View


def _returned(results: Sequence[object]) -> Any:
    """The return value of a call: None, the only result, or all."""
    if not results:
        return None
    return results[0] if len(results) == 1 else tuple(results)


class _Places:
    """The address of each array during a call: its own, that of a copy with the right layout, or of a copy on the device."""

    def __init__(self, kernel: Kernel, received: Given, outs: Sequence[_Out], stream: int):
        self.addresses: dict[str, int] = {}
        self._kernel, self._stream = kernel, stream
        self._owners: list[object] = []
        self._back: list[tuple[Array, DeviceMemory]] = []
        if kernel.driver is not None:
            kernel.driver.enter()
        for param in kernel.function.params:
            if not is_scalar(param):
                view, strides = received.views[param.name], received.fit.strides[param.name]
                self._put(param, view, strides, copies=param.role == "input")
        for one in outs:
            self._put(one.buffer, one.view, received.fit.strides[one.buffer.name], copies=False)

    @property
    def moved(self) -> bool:
        """Whether an array was copied for the call."""
        return bool(self._owners)

    def __enter__(self) -> _Places:
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        """Copies results back to the host; waits if memory of this call would be freed while in use."""
        driver = self._kernel.driver
        if driver is None or value is not None:
            return
        for array, memory in self._back:
            driver.download(array, memory.address, self._stream)
        if self._owners:
            driver.wait(self._stream)

    def _put(self, buffer: Buffer, view: View, strides: Sequence[int], *, copies: bool) -> None:
        align = alignment(buffer)
        if not lies_right(view, strides, 1 if view.device is HOST and self._kernel.driver is not None else align):
            if not copies or view.device is not HOST:
                raise _misplaced(self._kernel.function, buffer, view, strides, align)
            view = laid_out(view, strides, align)
            self._owners.append(view)
        driver = self._kernel.driver
        if driver is None or view.device is not HOST or view.empty:
            self.addresses[buffer.name] = 0 if view.empty else view.address
            return
        flat = _flat(view)
        memory = driver.allocate(flat.nbytes)
        if buffer.role != "result":
            driver.upload(memory.address, flat, self._stream)
        if buffer.role != "input":
            self._back.append((flat, memory))
        self._owners.append(memory)
        self.addresses[buffer.name] = memory.address


def _flat(view: View) -> Array:
    """All elements between a host array's first and last, in memory order."""
    last = sum((extent - 1) * stride for extent, stride in zip(view.shape, view.strides, strict=True))
    return strided(as_array(view), (last + 1,), (1,))


def _taken(buffer: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...], given: object, stream: int) -> _Out:
    """The caller's array for a result."""
    view = view_of("out", given, stream)
    if view.dtype != dtype or view.shape != shape:
        told = f"`out` must have the type {dtype} and the shape {shape} for `{buffer!r}`, not {view.dtype} and {view.shape}"
        raise error("E0777", buffer.span, told)
    return _Out(buffer, given, view)


def _misplaced(function: Function, buffer: Buffer, view: View, strides: Sequence[int], align: int) -> TexprError:
    if view.address % align != 0:
        told = f"`{buffer.name}` of `{function.name}` must begin at a multiple of {align} bytes"
        return error("E0774", buffer.span, told, help="pass a copy of it")
    contiguous = tuple(strides) == dense(view.shape)
    kind = "be contiguous" if contiguous else f"have the strides {tuple(strides)}"
    told = f"`{buffer.name}` of `{function.name}` must {kind}, its strides are {view.strides}, in elements"
    help = f"pass {'a contiguous copy' if contiguous else 'memory that lies so'}, and copy back what was written"
    return error("E0773", buffer.span, told, help=help)


def stream_handle(stream: object) -> int:
    """The handle of a stream: a number, or the attribute of PyTorch (`cuda_stream`) and CuPy (`ptr`). Raises `TexprError`
    E0786."""
    for found in (stream or 0, getattr(stream, "cuda_stream", None), getattr(stream, "ptr", None)):
        if isinstance(found, int):
            return found
    raise error("E0786", None, f"a {type(stream).__name__} is no CUDA stream", help="pass its handle, an integer")


_SCALARS: Mapping[str, type[Any]] = {
    "f64": ctypes.c_double, "f32": ctypes.c_float, "tf32": ctypes.c_float, "f16": ctypes.c_uint16, "bf16": ctypes.c_uint16,
    "f8e4m3": ctypes.c_uint8, "f8e5m2": ctypes.c_uint8, "f8e8m0": ctypes.c_uint8, "bool": ctypes.c_bool,
    **{f"i{bits}": getattr(ctypes, f"c_int{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": getattr(ctypes, f"c_uint{bits}") for bits in (8, 16, 32, 64)},
}  # fmt: skip


def _ctype(argument: Argument) -> type[Any]:
    if isinstance(argument.key, Sym):
        return ctypes.c_int64
    return ctypes.c_void_p if argument.is_pointer else _SCALARS[argument.key.dtype.name]


def _value(argument: Argument, received: Given, addresses: Mapping[str, int]) -> object:
    if isinstance(argument.key, Sym):
        return received.sizes[argument.key]
    name = argument.key.name
    if argument.is_pointer:
        return addresses[name] or None
    return scalar(argument.key, received.scalars[name])
