"""Tensor maps for emulated kernels, encoded by the emulator's driver."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.backends.tiles import Tiled

from texpr.affine.expr import Expr, Sym
from texpr.backends.cuda.tensors import ELEMENTS, FILLS, INTERLEAVES, SWIZZLES
from texpr.emulator import Emulated, Report
from texpr.ir.kernel import Kernel, TensorMap
from texpr.ir.operation.tensor_map import element_of


def encode(
    library: ctypes.CDLL,
    element: int,
    base: int,
    sizes: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    steps: Sequence[int],
    interleave: int = 0,
    swizzle: int = 0,
    promotion: int = 0,
    fill: int = 0,
    rank: int | None = None,
    corners: Sequence[tuple[int, int]] = (),
) -> np.void | str:
    """The 128 bytes of a map, or the rule for which it is refused. Numbers are those of cuda.h.

    With `corners` it is one in im2col mode, whose box is channels and pixels.
    """
    room = ctypes.create_string_buffer(256)
    place = ctypes.addressof(room) + -ctypes.addressof(room) % 64
    words, halves = ctypes.c_uint64 * 8, ctypes.c_uint32 * 8
    dimensions = len(sizes) if rank is None else rank
    begin = (ctypes.c_void_p(place), element, dimensions, ctypes.c_void_p(base), words(*sizes), words(*strides))
    rest = (halves(*steps), interleave, swizzle, promotion, fill)
    if corners:
        lower, upper = ((ctypes.c_int * 3)(*(corner[end] for corner in corners)) for end in (0, 1))
        code = library.cuTensorMapEncodeIm2col(*begin, lower, upper, *box, *rest)
    else:
        code = library.cuTensorMapEncodeTiled(*begin, halves(*box), *rest)
    if code == 0:
        return np.void(ctypes.string_at(place, 128))
    text = ctypes.create_string_buffer(256)
    library.tx_emu_refused(text, ctypes.c_size_t(256))
    return text.value.decode()


def encoded(emulated: Emulated, map: TensorMap, args: Mapping[str, Any]) -> np.void:
    """A kernel's map, with the arrays and sizes of a launch."""
    sizes = {Sym(name): value for name, value in args.items() if isinstance(value, int)}

    def number(value: Expr) -> int:
        return value.substitute(sizes).constant

    found = encode(
        emulated.emulator.library,
        ELEMENTS[element_of(map).name],
        args[map.buffer.name].ctypes.data + number(map.offset) * map.buffer.dtype.bytes,
        [number(e) for e in map.sizes],
        [number(e) for e in map.strides],
        map.box,
        map.steps,
        INTERLEAVES[map.interleave],
        SWIZZLES[map.swizzle],
        0,
        FILLS[map.fill],
        corners=map.corners,
    )
    assert isinstance(found, np.void), found
    return found


@contextmanager
def registered(emulated: Emulated, array: NDArray[Any], name: str, *, written: bool = True) -> Generator[None]:
    """An array that kernels know through maps alone."""
    library = emulated.emulator.library
    register = library.tx_emu_register if written else library.tx_emu_register_unwritten
    register(ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes), name.encode())
    try:
        yield
    finally:
        library.tx_emu_unregister(ctypes.c_void_p(array.ctypes.data))


def launch(
    emulated: Emulated, case: Tiled, kernel: Kernel, args: Mapping[str, Any], *, unwritten: Collection[str] = (), **options: Any
) -> list[Report]:
    """Run the kernel of a case on arrays, each by the name of its buffer."""
    given: list[Any] = [args[buffer.name] for buffer in (*kernel.scalars, *kernel.buffers)]
    given += [args[size.name] for size in kernel.sizes]
    given += [encoded(emulated, map, args) for map in kernel.maps]
    hidden = {map.buffer.name for map in kernel.maps} - {buffer.name for buffer in kernel.buffers}
    with ExitStack() as stack:
        for name in hidden:
            stack.enter_context(registered(emulated, args[name], name, written=name not in unwritten))
        return emulated.launch(kernel.name, case.grid, case.block, given, unwritten=unwritten, **options)
