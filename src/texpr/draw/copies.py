"""The copies of boxes in a kernel: the graph of each with the roles of its IterDomains, a box on the tensor, its tile, the
contents of all tiles of a small tensor, and the tile in the banks of shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from texpr.affine.expr import Expr
from texpr.domain.visits import visits
from texpr.draw.allocation import Cells, allocation_picture
from texpr.draw.banks import CHUNKS, banks_picture
from texpr.draw.columns import columns_picture
from texpr.draw.corners import corners, most_telling
from texpr.draw.domain import Marks, describe, domain_picture
from texpr.draw.page.picture import Picture, captioned, document, line, stacked
from texpr.draw.page.text import CAPTION
from texpr.draw.staged import Written
from texpr.draw.tensor import Seen, tensor_pictures
from texpr.ir import kernel as k
from texpr.isa.engine import CHUNK
from texpr.support.record import Record
from texpr.tma.boxing import Role
from texpr.tma.correctness import Level, Lowering, Plain, Redirected, analysis
from texpr.tma.elements import Fill
from texpr.tma.execute import load
from texpr.tma.model import Copy
from texpr.tma.swizzle import Swizzle

_ORDER = (Role.TILE, Role.STRIDE, Role.BOX, Role.COORDINATE, Role.PARTITIONED)
"""The order of preference of roles, of which one is shown for an IterDomain."""

_LEVELS = {
    Level.FREE: "level 1: every hole is outside of the tensor, where the engine fills",
    Level.PREDICATED: "level 2: some tiles are holes alone, inside of the tensor: predicates find them",
    Level.UNACHIEVABLE: "level 3: some tiles are part items, part holes inside of the tensor: only weak correctness can be had",
}

MOST_LINES = 8
"""The lines of shared memory shown for a tile: the pattern of a swizzle repeats after them."""

MOST_LOADED = 384
"""The most elements of all tiles together that are shown with their contents."""


class Drawn(Record):
    """One tensor map: the copy's graph, as the schedule wrote it if known, and the corners of the kernel's copies."""

    map: k.TensorMap
    copy: Copy | None
    lowering: Lowering | None
    places: list[tuple[int, ...]]
    stores: bool

    @property
    def title(self) -> str:
        """Box, steps and swizzle in words."""
        map, dims = self.map, self.copy.dimensions if self.copy and not self.map.corners else ()
        box = _outermost_first(tuple(each.box.constant for each in dims) or map.box)
        swizzle = f", swizzle of {map.swizzle} bytes" if map.swizzle else ""
        steps = f", element strides {_outermost_first(map.steps)}" if any(step != 1 for step in map.steps) else ""
        if map.corners:
            box, steps = f"{map.box[1]} pixels of {map.box[0]} channels", ""
        return f"{map.name}: boxes of {box} of {map.buffer.name}{steps}{swizzle} (line {map.span.line})"


def draw_copies(
    name: str, kernels: tuple[k.Kernel, ...], copies: Mapping[str, Copy], written: Mapping[str, Written] | None = None
) -> str:
    """Every tensor map of the function `name` as an SVG document. `copies`: the copy of each; `written`: the same by its
    schedule."""
    found: list[Drawn] = []
    for kernel in kernels:
        stored = {moved.map for _, moved in k.moves(kernel) if moved.tile and moved.tile.buffer is moved.source}
        fixed = all(each.is_constant for map in kernel.maps for each in (*map.sizes, *map.strides))
        places = corners(kernel, dict.fromkeys(kernel.sizes, 0)) if kernel.maps and fixed else {}
        for map in kernel.maps:
            own = written.get(map.name) if written else None
            copy, lowering = (own.copy, own.lowering) if own else (copies.get(map.name), None)
            found.append(Drawn(map, copy, lowering, places.get(map.name, []), map.name in stored))
    pictures = [captioned(each.title, stacked(tuple(_parts(each)), 18)) for each in found]
    words = " ".join(f"{each.title}: {describe(each.copy.graph) if each.copy else ''}" for each in found)
    return document(stacked(pictures), f"{name}: its copies of boxes", words)


def _outermost_first(values: tuple[int, ...]) -> str:
    """Numbers in the order of a tensor's dimensions."""
    return " × ".join(map(str, reversed(values)))


def _parts(drawn: Drawn) -> Iterator[Picture]:
    if drawn.copy is not None:
        found = analysis(drawn.copy)
        yield domain_picture(drawn.copy.graph, marks(drawn.copy))
        if found.has_holes and not drawn.stores:
            yield line(_LEVELS[found.level], CAPTION)
    sizes, strides = _numbers(drawn.map.sizes), _numbers(drawn.map.strides)
    if sizes is None or strides is None:
        yield line("sizes are open: give them (--size) to see a box on the tensor", CAPTION)
    elif drawn.map.corners:
        yield columns_picture(drawn.map, sizes, drawn.places)
    else:
        yield from _on_tensor(drawn, sizes, strides)
    yield from _banks(drawn.map)


def _on_tensor(drawn: Drawn, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Iterator[Picture]:
    """A box on the tensor with its tile and, for few elements, the contents of every tile."""
    map = drawn.map
    pitch = strides[0] // map.buffer.dtype.bytes if strides else sizes[0]
    boxes = tuple(each.box.constant for each in drawn.copy.dimensions) if drawn.copy else map.box
    seen = most_telling(Seen(sizes, boxes, map.steps, (0,) * map.rank, max(pitch, sizes[0]), drawn.stores), drawn.places)
    if seen is not None:
        yield tensor_pictures((seen,))
    if drawn.copy is not None and drawn.lowering is not None:
        cells = loaded(drawn.copy, drawn.lowering)
        if cells is not None and set(cells.kinds.flat) != {"value"}:
            caption = f"what is loaded, in every iteration of the loops: the place in {map.buffer.name}, or Z for zero"
            yield captioned(caption, allocation_picture(drawn.copy.graph, cells))


def loaded(copy: Copy, lowering: Lowering) -> Cells | None:
    """The contents of the tiles of all iterations after loads, an axis a leaf: the element of the tensor in each place.

    `Z` is a fill with zero. None for open sizes, a tensor with gaps, other fills, too many elements, and where the engine
    leaves parts of the tile unwritten.
    """
    if not all(domain.extent.is_constant for domain in copy.graph.domains()):
        return None
    count, room = (prod(d.extent.constant for d in domains) for domains in (copy.graph.logical, copy.graph.leaves))
    fills_with_zero = isinstance(lowering, Plain | Redirected) and lowering.fill is Fill.ZERO
    size = copy.element.size
    if room > MOST_LOADED or count >= 1 << 8 * size or copy.tile.holes or not fills_with_zero or not _is_dense(copy, count):
        return None
    number = np.dtype(f"<u{size}")
    tensor = np.arange(1, count + 1).astype(number)
    place = load(copy, lowering, tensor.view(np.uint8)).view(number).astype(np.int64) - 1
    texts = np.where(place >= 0, place.astype(np.str_), "Z")
    kinds = np.where(visits(copy.graph).visited, "value", np.where(place >= 0, "filled", "zero"))
    shape = tuple(leaf.extent.constant for leaf in copy.graph.leaves)
    return Cells(texts.reshape(shape), kinds.reshape(shape))


def _is_dense(copy: Copy, count: int) -> bool:
    """Whether the `count` elements of the tensor are contiguous."""
    ends = [(each.size - 1) * each.stride for each in copy.dimensions]
    return all(end.is_constant for end in ends) and sum(end.constant for end in ends) == count - 1


def _banks(map: k.TensorMap) -> Iterator[Picture]:
    wide, *others = map.tile
    row = wide * map.buffer.dtype.bytes
    if row % CHUNK == 0:
        swizzle = Swizzle(map.swizzle)
        rows = min(prod(others), max(1, MOST_LINES * CHUNKS * CHUNK // swizzle.pitch(row)))
        yield banks_picture(rows, row, swizzle)
        if rows < prod(others):
            yield line(f"the first {rows} rows of {prod(others)}", CAPTION)


def marks(copy: Copy) -> Marks:
    """The roles of the IterDomains of a copy, and the TMA-protected ones."""
    roles = {name: next(role for role in _ORDER if role in found).value for name, found in copy.roles.items() if found}
    return Marks(roles=roles, notes={domain.sym.name: "TMA-protected" for domain in analysis(copy).protected})


def _numbers(values: tuple[Expr, ...]) -> tuple[int, ...] | None:
    return tuple(value.constant for value in values) if all(value.is_constant for value in values) else None
