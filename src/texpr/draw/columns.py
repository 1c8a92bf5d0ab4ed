"""A column of pixels in im2col mode: planes of images, the bounding box, and the pixels of one copy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from texpr.draw.page.grid import Axis, Cell, grid
from texpr.draw.page.picture import Picture, captioned, legend, line, stacked
from texpr.draw.page.style import PIXELS
from texpr.draw.page.text import CAPTION
from texpr.ir import kernel as k
from texpr.support.record import Record
from texpr.tma.im2col import pixel_list

MOST = 40
"""The most pixels shown along a dimension."""

MOST_IMAGES = 2
"""The most images shown."""


class _Column(Record):
    """The pixels of one copy, each with its number in it. `sizes`: spatial ones, W first, and the number of images."""

    order: dict[tuple[int, ...], int]
    first: tuple[int, ...]
    sizes: tuple[int, ...]

    def cell(self, x: int, y: int, image: int) -> Cell:
        """The pixel (x, y) of an image; at index 0 of further spatial dimensions."""
        pixel = (x, *((y, *self.first[2:-1]) if len(self.sizes) > 2 else ()), image)
        place = self.order.get(pixel)
        inside = all(0 <= i < size for i, size in zip(pixel, self.sizes, strict=True))
        if place is None:
            return Cell("", "value" if inside else "gap")
        return Cell(str(place), "loaded" if inside else "zero")


def columns_picture(map: k.TensorMap, sizes: tuple[int, ...], places: Sequence[tuple[int, ...]]) -> Picture:
    """The first copy: its pixels on the planes of its images, before the filter's offset is added."""
    if not places:
        return line("where copies begin depends on data", CAPTION)
    lower, upper = ([corner[end] for corner in map.corners] for end in (0, 1))
    pixels = [tuple(each) for each in pixel_list(places[0], sizes, lower, upper, map.box[1], map.steps).tolist()]
    column = _Column({pixel: at for at, pixel in enumerate(pixels)}, pixels[0], sizes[1:])
    ends = [size - 1 + high for size, high in zip(sizes[1:-1], upper, strict=True)]
    spaces = [range(min(0, low), min(max(s, end + 1), MOST)) for low, s, end in zip(lower, sizes[1:-1], ends, strict=True)]
    across, down = spaces[0], spaces[1] if len(spaces) > 1 else range(1)
    images = list(dict.fromkeys(pixel[-1] for pixel in pixels))
    planes = {image: [[column.cell(x, y, image) for x in across] for y in down] for image in images[:MOST_IMAGES]}
    axes = Axis("h" if len(spaces) > 1 else "", tuple(_texts(down))), Axis("w", tuple(_texts(across)))
    shown = [captioned(f"image {image}", grid(cells, *axes)) for image, cells in planes.items()]
    used = {cell.kind for cells in planes.values() for row in cells for cell in row}
    said = f"bounding box from {_tuple(lower)} to {_tuple(ends)}, W first; pixels {_tuple(map.steps[1:-1])} apart"
    key = legend([(kind, PIXELS[kind]) for kind in PIXELS if kind in used])
    return stacked((*shown, line(said, CAPTION), key), 12)


def _texts(values: Iterable[int]) -> Iterable[str]:
    return (str(value) for value in values)


def _tuple(values: Iterable[int]) -> str:
    return f"({', '.join(_texts(values))})"
