"""Rules that the copies of engines share: tiles in shared memory, and reductions."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from texpr.affine.expr import ZERO
from texpr.ir.value import Load
from texpr.isa.levels import Space
from texpr.tma.elements import ELEMENTS, Element
from texpr.tma.reduce import TYPES, Reduction

if TYPE_CHECKING:
    from texpr.ir.kernel.place import Place

REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def wrong_run(first: Load, size: int, align: int, at: Place, step: int | None = None) -> Iterator[str]:
    """Complaints about a tile of `size` bytes at `first`: its array is shared and aligned to `align` bytes, and the tile begins
    at a multiple of `step` bytes (default `align`) and lies within the array."""
    name, array = first.buffer.name, at.array(first.buffer)
    if array is None or array.space is not Space.SHARED or array.barrier:
        yield f"{name} is no shared array"
        return
    if array.align % align:
        yield f"{name} is aligned to {array.align} bytes, and a tile to {align}"
    if len(first.index) != first.buffer.rank:
        return
    offset, room = first.offset * first.dtype.bytes, prod(e.constant for e in array.buffer.shape) * first.dtype.bytes
    rest = offset % (step or align)
    if rest.is_constant and rest is not ZERO:
        yield f"a tile in {name} begins {rest} bytes behind a multiple of {step or align}"
    if size > room or (offset.is_constant and not 0 <= offset.constant <= room - size):
        yield f"{size} bytes do not lie in {name}, which has {room}"


def wrong_combination(op: str | None, source: Load, kind: Element) -> Iterator[str]:
    """Complaints about the reduction `op` of elements of `source`, transferred as elements of type `kind`."""
    if op is None:
        return
    if op not in REDUCTIONS:
        yield f"no tile is reduced by {op}"
    elif kind.name not in TYPES[Reduction(op)] or source.dtype.name in ("tf32", "bool"):
        yield f"no tile of {source.dtype} is reduced by {op}"


def travelling(name: str | None, usual: Element) -> Element:
    """The element type `name`, or `usual` where no name is given."""
    return usual if name is None else ELEMENTS[name]
