"""Running emitted kernels on NumPy arrays.

    build(text, headers, directory) -> Emulated;  Emulated.launch(kernel, grid, block, args, seed=…) -> reports

One thread of the host runs a whole grid; launches of one core never run concurrently.
"""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from texpr.emulator.compile import COMPILER, build_core, build_kernels, image
from texpr.emulator.counts import Counts, parse_counts
from texpr.emulator.report import Report, parse_reports
from texpr.emulator.signature import cluster_shape, parameter_names
from texpr.isa.memories import COALESCING, Coalescing
from texpr.support.diagnostic import CompilerBug, error
from texpr.support.lazy import Module
from texpr.support.record import Mutable, Record, field

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:  # an artifact ships the headers, and runs no kernel
    np = Module("numpy")

Argument: TypeAlias = "NDArray[Any] | np.generic | int | float"
"""An array for a pointer, a number for anything else."""

Shape: TypeAlias = int | tuple[int, ...]
"""One to three extents, x first, as in CUDA."""

IN_ORDER, LOCKSTEP = -1, -2
"""Schedules by seed: each thread to its next barrier, in order; or one access each (lockstep), the threads that are behind
first."""

LAUNCH_FAULTS = (700, 719)
"""The codes of a launch in which a fault was found."""


class Emulator(Mutable):
    """The loaded core. `functions` of modules are found by `kernel`."""

    library: ctypes.CDLL
    lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, name: str, *args: object) -> int:
        """Calls a function of the driver or the core; returns its code."""
        return int(getattr(self.library, name)(*args))

    def check(self, name: str, *args: object) -> None:
        """The same; any code but 0 is an error."""
        code = self.call(name, *args)
        if code != 0:
            raise CompilerBug(f"the emulator's {name} failed with code {code}")

    def text(self, name: str, *args: object) -> str:
        """A text that the core returns."""
        give: Callable[..., int] = getattr(self.library, name)
        size = give(*args, None, ctypes.c_size_t(0))
        buffer = ctypes.create_string_buffer(size)
        give(*args, buffer, ctypes.c_size_t(size))
        return buffer.value.decode()

    def set(self, option: str, value: int) -> None:
        """Sets an option of later launches."""
        self.check("tx_emu_set", option.encode(), ctypes.c_longlong(value))


@cache
def load_core(path: Path) -> Emulator:
    """The core at `path`, loaded once per process, with a context current on this thread."""
    library = ctypes.CDLL(str(path))
    for name in ("tx_emu_reports", "tx_emu_counts", "tx_emu_signature"):
        getattr(library, name).restype = ctypes.c_size_t
    emulator = Emulator(library)
    emulator.check("cuInit", 0)
    return emulator


class _Kernel(Record):
    handle: ctypes.c_void_p
    kinds: tuple[tuple[str, int], ...]
    names: tuple[str, ...]
    cluster: tuple[int, int, int]


class Emulated(Mutable):
    """The kernels of one `.cu`, ready to run."""

    text: str
    library: Path
    emulator: Emulator
    _module: ctypes.c_void_p
    _kernels: dict[str, _Kernel] = field(default_factory=dict[str, _Kernel])

    def launch(
        self,
        kernel: str,
        grid: Shape,
        block: Shape,
        args: Sequence[Argument],
        *,
        seed: int | None = None,
        detect: bool = True,
        count: bool = False,
        unwritten: Collection[str] = (),
        cluster: Shape | None = None,
    ) -> list[Report]:
        """Runs `kernel` to its end, writing to the arrays of `args`; returns the faults found, none for a correct run.

        `seed`: None in order, ≥ 0 a pseudo-random schedule (the same for the same seed), or `LOCKSTEP`. Without `detect` only
        bounds and deadlocks are checked. `unwritten` names parameters whose elements are undefined until a kernel writes
        them. `count` adds to `counts()`. Raises `TexprError` E0572 for a grid that no device could run, `ValueError` where
        `args` do not match the kernel.
        """
        known = self._kernel(kernel)
        shape = (ctypes.c_uint * 9)(*_three(grid), *_three(block), *(_three(cluster) if cluster else known.cluster))
        given = _Arguments(kernel, known.kinds, args)
        with self.emulator.lock, _registered(self.emulator, given.arrays, known.names, unwritten):
            _enter(self.emulator)
            self.emulator.set("seed", IN_ORDER if seed is None else seed)
            self.emulator.set("detect", detect)
            self.emulator.set("count", count)
            self.emulator.library.tx_emu_clear_reports()
            code = self.emulator.call("tx_emu_launch", known.handle, shape, given.pointers)
            reports = parse_reports(self.emulator.text("tx_emu_reports"))
        if code != 0 and not (code in LAUNCH_FAULTS and reports):
            raise _not_launched(kernel, code, tuple(shape))
        return reports

    def counts(self) -> dict[str, Counts]:
        """The counters of launches with `count`, by kernel, since `clear_counts`."""
        return parse_counts(self.emulator.text("tx_emu_counts"))

    def clear_counts(self) -> None:
        """Resets the counters."""
        self.emulator.library.tx_emu_clear_counts()

    def _kernel(self, name: str) -> _Kernel:
        if name not in self._kernels:
            handle = ctypes.c_void_p()
            with self.emulator.lock:
                _enter(self.emulator)
                code = self.emulator.call("cuModuleGetFunction", ctypes.byref(handle), self._module, name.encode())
            if code != 0:
                raise CompilerBug(f"no kernel {name} in {self.library}: is TX_EXPORT({name}) there?")
            raw: dict[str, Any] = json.loads(self.emulator.text("tx_emu_signature", handle))
            names = parameter_names(self.text, name)
            for at, each in enumerate(names):
                self.emulator.check("tx_emu_name_argument", handle, ctypes.c_uint(at), each.encode())
            kinds = tuple((str(kind), int(size)) for kind, size in raw["parameters"])
            self._kernels[name] = _Kernel(handle, kinds, names, cluster_shape(self.text, name))
        return self._kernels[name]


def build(
    text: str, headers: Mapping[str, str], work_dir: Path, compiler: Sequence[str] = COMPILER, *, checked: bool = True,
    machine: Coalescing = COALESCING,
) -> Emulated:  # fmt: skip
    """Compiles a `.cu` with the emulator's headers and those given (`texpr_device.h`, …), and loads it.

    Libraries are cached in `work_dir` by content. `checked`: with detectors; else as fast as possible, without any.
    `machine`: the emulated machine. Raises `Limitation` E0571 where `compiler` is not usable, `CompilerBug` where the text
    does not compile.
    """
    emulator = load_core(build_core(work_dir, compiler, machine).resolve())
    library = build_kernels(text, headers, work_dir, compiler, checked=checked)
    module = ctypes.c_void_p()
    with emulator.lock:
        _enter(emulator)
        emulator.check("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(image(library)))
    return Emulated(text, library, emulator, module)


class _Arguments:
    """Arguments as a launch takes them: an array of pointers to their values."""

    def __init__(self, kernel: str, kinds: Sequence[tuple[str, int]], args: Sequence[Argument]):
        if len(args) != len(kinds):
            raise ValueError(f"{kernel} takes {len(kinds)} arguments, not {len(args)}")
        self.arrays: dict[int, NDArray[Any]] = {}
        self._values = [self._value(at, *kind, arg) for at, (kind, arg) in enumerate(zip(kinds, args, strict=True))]
        addresses = [ctypes.addressof(value) for value in self._values]
        self.pointers = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)

    def _value(self, at: int, kind: str, size: int, arg: Argument) -> ctypes.Array[ctypes.c_char]:
        if kind in "gc":
            if not isinstance(arg, np.ndarray) or arg.itemsize != size or not arg.flags.c_contiguous:
                raise ValueError(f"argument {at} must be a contiguous array with elements of {size} bytes")
            self.arrays[at] = arg
            data = arg.ctypes.data.to_bytes(8, "little")
        elif kind == "x":
            data = np.asarray(arg).tobytes()
        else:
            data = np.asarray(arg).astype(np.dtype(f"{kind}{size}")).tobytes()
        if isinstance(arg, np.ndarray) != (kind in "gc") or len(data) != (8 if kind in "gc" else size):
            raise ValueError(f"argument {at} must be a number of {size} bytes")
        return ctypes.create_string_buffer(data, len(data))


@contextmanager
def _registered(
    emulator: Emulator, arrays: Mapping[int, NDArray[Any]], names: Sequence[str], unwritten: Collection[str]
) -> Generator[None]:
    done: list[ctypes.c_void_p] = []
    try:
        for at, array in arrays.items():
            name = names[at] if at < len(names) else ""
            pointer = ctypes.c_void_p(array.ctypes.data)
            register = "tx_emu_register_unwritten" if name in unwritten else "tx_emu_register"
            emulator.check(register, pointer, ctypes.c_size_t(array.nbytes), name.encode())
            done.append(pointer)
        yield
    finally:
        for pointer in done:
            emulator.call("tx_emu_unregister", pointer)


def _enter(emulator: Emulator) -> None:
    """Makes the emulator's context current on this thread."""
    context = ctypes.c_void_p()
    emulator.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    emulator.check("cuCtxSetCurrent", context)


def _three(shape: Shape) -> tuple[int, int, int]:
    extents = (shape,) if isinstance(shape, int) else shape
    x, y, z = (*extents, 1, 1, 1)[:3]
    return x, y, z


def _not_launched(kernel: str, code: int, shape: Sequence[int]) -> Exception:
    grid, block, cluster = shape[:3], shape[3:6], shape[6:]
    shown = f"grid {grid}, block {block}, cluster {cluster}"
    if code == 2:
        return error("E0572", None, f"no memory to emulate {kernel} with {shown}")
    return error("E0572", None, f"no device can run {kernel} with {shown}", help="1 to 1024 threads, a grid of whole clusters")
