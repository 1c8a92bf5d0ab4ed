"""The copies of boxes that a kernel makes: the graph of each with the roles of its IterDomains, a box at the tensor's end, its
tile, and the tile in the banks of shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from texpr.affine.expr import Expr
from texpr.draw.banks import banks_picture
from texpr.draw.domain import Marks, describe, domain_picture
from texpr.draw.picture import Picture, captioned, document, line, stacked
from texpr.draw.tensor import Seen, tensor_pictures
from texpr.draw.text import CAPTION
from texpr.ir import kernel as k
from texpr.tma.boxing import Role
from texpr.tma.correctness import analysis
from texpr.tma.model import Copy
from texpr.tma.swizzle import CHUNK, Swizzle

_ORDER = (Role.TILE, Role.STRIDE, Role.BOX, Role.COORDINATE, Role.PARTITIONED)
"""Of an IterDomain with several roles, the one that is shown."""

MOST_ROWS = 32
"""Rows of a tile that are shown in banks."""


def draw_copies(name: str, kernels: tuple[k.Kernel, ...], copies: Mapping[str, Copy]) -> str:
    """Every map of the function `name`, with the copy that it was made for, as a document of SVG."""
    maps = [map for kernel in kernels for map in kernel.maps]
    pictures = [captioned(_title(map), stacked(tuple(_map(map, copies.get(map.name))), 18)) for map in maps]
    words = " ".join(f"{_title(map)}: {_words(copies.get(map.name))}" for map in maps)
    return document(stacked(pictures), f"{name}: its copies of boxes", words)


def _title(map: k.TensorMap) -> str:
    box, steps = " × ".join(map_text(map.box)), " × ".join(map_text(map.steps))
    swizzle = f", swizzle of {map.swizzle} bytes" if map.swizzle else ""
    return f"{map.name}: boxes of {box} of {map.buffer.name}, element strides {steps}{swizzle} (line {map.span.line})"


def map_text(values: tuple[int, ...]) -> list[str]:
    """Numbers as text, outermost first, as a tensor's dimensions are written."""
    return [str(value) for value in reversed(values)]


def _words(copy: Copy | None) -> str:
    return "" if copy is None else describe(copy.graph)


def _map(map: k.TensorMap, copy: Copy | None) -> Iterator[Picture]:
    if copy is not None:
        yield domain_picture(copy.graph, marks(copy))
    seen = at_the_end(map)
    if seen is None:
        yield line("sizes are open: give them (--size) to see a box on the tensor", CAPTION)
    else:
        yield tensor_pictures((seen,))
    size = map.buffer.dtype.bytes
    wide, *others = (-(-b // e) for b, e in zip(map.box, map.steps, strict=True))
    rows = 1
    for each in others:
        rows *= each
    if wide * size % CHUNK == 0:
        yield banks_picture(min(rows, MOST_ROWS), wide * size, Swizzle(map.swizzle))


def marks(copy: Copy) -> Marks:
    """The roles of the IterDomains of a copy, and which of them are TMA-protected."""
    roles = {name: next(role for role in _ORDER if role in found).value for name, found in copy.roles.items() if found}
    return Marks(roles=roles, notes={domain.sym.name: "TMA-protected" for domain in analysis(copy).protected})


def at_the_end(map: k.TensorMap) -> Seen | None:
    """The last box along each dimension of those that follow each other from 0 on; None where sizes are not fixed."""
    sizes = _numbers(map.sizes)
    strides = _numbers(map.strides)
    if sizes is None or strides is None:
        return None
    corner = tuple((size - 1) // box * box for size, box in zip(sizes, map.box, strict=True))
    pitch = strides[0] // map.buffer.dtype.bytes if strides else sizes[0]
    return Seen(sizes, map.box, map.steps, corner, max(pitch, sizes[0]))


def _numbers(values: tuple[Expr, ...]) -> tuple[int, ...] | None:
    return tuple(value.constant for value in values) if all(value.is_constant for value in values) else None
