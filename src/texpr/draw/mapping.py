"""Who owns which element: the arrays of a kernel, coloured by warp; and which sectors or banks one warp's requests meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from texpr.affine.expr import Sym
from texpr.draw.grid import Axis, Cell, grid
from texpr.draw.owners import Owner, Owners, owners
from texpr.draw.picture import Picture, captioned, document, legend, line, stacked
from texpr.draw.style import BUSY, OWNERS, STRIPS
from texpr.draw.text import CAPTION
from texpr.ir import kernel as k
from texpr.ir.value import Buffer
from texpr.isa.levels import Space
from texpr.isa.memories import SHARED
from texpr.isa.requests import busy, windows
from texpr.mapping.cost import LINE, SECTOR, WARP, Request, requests

WIDE, HIGH = 32, 24
"""Cells that are shown of an array, around the first element that the block touches."""

MOST_LINES = 12
"""Lines of 128 bytes that are shown of one request."""

_Elements = Mapping[tuple[int, ...], Owner]


def draw_mapping(name: str, kernels: tuple[k.Kernel, ...], sizes: dict[Sym, int]) -> str:
    """The mapping of each kernel of the function `name`, at `sizes`, as a document of SVG."""
    pictures = [captioned(f"{kernel.name}: block 0 of its grid", _kernel(kernel, sizes)) for kernel in kernels]
    words = " ".join(f"{kernel.name}: {_words(kernel)}" for kernel in kernels)
    return document(stacked(pictures), f"{name}: who touches what", words)


def _words(kernel: k.Kernel) -> str:
    return "; ".join(_said(request) for request in requests(kernel)) + "."


def _kernel(kernel: k.Kernel, sizes: dict[Sym, int]) -> Picture:
    found = owners(kernel, sizes)
    arrays = {array.buffer: array.space for array in kernel.arrays}
    shown = [b for b in found.of if arrays.get(b) not in (Space.LOCAL, Space.LANES) and b not in kernel.scalars]
    pictures = [_array(buffer, found) for buffer in shown]
    said = () if found.whole else (line("long loops are followed for their first iterations alone", CAPTION),)
    key = (_key(kernel),) if pictures else ()
    asked = tuple(_requests(kernel))
    banks = (legend(list(BUSY.items())),) if any(r.space is Space.SHARED and r.starts for r in requests(kernel)) else ()
    return stacked([*pictures, *key, *said, *asked, *banks], 18)


def _key(kernel: k.Kernel) -> Picture:
    """What colours say: the warp, and by the strip below, the lane."""
    warps = min(max(kernel.threads // WARP, 1), len(OWNERS))
    again = "; colours come again after warp 7" if kernel.threads > len(OWNERS) * WARP else ""
    lanes = [Cell(f"{at * WARP // len(STRIPS)}", "plain", strip) for at, strip in enumerate(STRIPS)]
    ramp = captioned(
        f"strips: from lane 0 to lane {WARP - 1}{again}", grid([lanes], Axis("", ("lane",)), Axis("", ("",) * len(lanes)))
    )
    return stacked((legend([(OWNERS[at], f"warp {at}") for at in range(warps)]), ramp), 8)


def _array(buffer: Buffer, found: Owners) -> Picture:
    """The elements of the two innermost dimensions, at the first index that the block touches of the others."""
    elements: _Elements = found.of[buffer]
    first = min(elements)
    outer = first[:-2]
    plane = {index[len(outer) :]: owner for index, owner in elements.items() if index[: len(outer)] == outer}
    rank = min(len(first), 2)
    columns, rows = _window(plane, rank - 1, WIDE), _window(plane, 0, HIGH) if rank == 2 else range(1)
    cells = [[_cell(plane.get((y, x) if rank == 2 else (x,) if rank else ())) for x in columns] for y in rows]
    where = f"[{', '.join([*map(str, outer), *('y', 'x')[2 - rank :]])}]" if rank else ""
    does = "written" if any(owner.writes for owner in plane.values()) else "read"
    down = Axis("y" if rank == 2 else "", tuple(map(str, rows)) if rank == 2 else ("",))
    heads = tuple(map(str, columns))
    caption = f"{buffer.name}{where}: warp.lane by which each element is {does} first"
    picture = grid(cells, down, Axis("x" if rank else "", heads))
    ends = [max(index[at] for index in plane) + 1 for at in range(rank)]
    if all(end <= shown.stop for end, shown in zip(ends, (rows, columns)[2 - rank :], strict=True)):
        return captioned(caption, picture)
    goes_on = line(f"the block's part goes on to {' × '.join(map(str, ends))}", CAPTION)
    return captioned(caption, stacked((picture, goes_on), 6))


def _window(plane: _Elements, at: int, most: int) -> range:
    if at < 0:
        return range(1)
    places = [index[at] for index in plane]
    return range(min(places), min(max(places) + 1, min(places) + most))


def _cell(owner: Owner | None) -> Cell:
    if owner is None:
        return Cell("", "plain")
    warp, lane = divmod(owner.thread, WARP)
    return Cell(f"{warp}.{lane}", OWNERS[warp % len(OWNERS)], f"lane{lane * len(STRIPS) // WARP}")


def _requests(kernel: k.Kernel) -> Iterator[Picture]:
    for request in requests(kernel):
        starts = request.starts
        if not starts:
            yield line(_said(request), CAPTION)
        elif request.space is Space.SHARED:
            yield captioned(_said(request), _banks(starts, request.width))
        else:
            yield captioned(_said(request), _sectors(starts, request.width))


def _said(request: Request) -> str:
    head = f"line {request.line}: warp 0's {request.kind} of {request.load.buffer.name}, {len(request.lanes)} lanes"
    starts = request.starts
    if starts is None:
        return f"{head}, where data say"
    if request.space is Space.SHARED:
        return f"{head}, in banks"
    moved, least = len(windows(starts, SECTOR, request.width)), -(-len(set(starts)) * request.width // SECTOR)
    return f"{head}: {moved} sectors, and {least} would hold as much"


def _sectors(starts: list[int], width: int) -> Picture:
    """Lines of memory, each of four sectors; a cell says how many lanes meet in it."""
    met = Counter(sector for start in starts for sector in windows([start], SECTOR, width))
    per = LINE // SECTOR
    lines = sorted({sector // per for sector in met})
    rows = [[met.get(number * per + at, 0) for at in range(per)] for number in lines[:MOST_LINES]]
    cells = [[Cell(str(count) if count else "", "owner0" if count else "plain") for count in row] for row in rows]
    down = Axis("byte", tuple(str(number * LINE) for number in lines[:MOST_LINES]))
    picture = grid(cells, down, Axis("sector", tuple(map(str, range(per)))))
    left = len(lines) - MOST_LINES
    return stacked((picture, line(f"{left} further lines", CAPTION)), 6) if left > 0 else picture


def _banks(starts: list[int], width: int) -> Picture:
    """How many words each bank gives to lanes that are served together, where these are most, in one row."""
    most = Counter[int]()
    for each in busy(starts, width):
        most |= each
    kinds, banks = ("plain", "owner2", "owner3"), range(SHARED.banks)
    cells = [[Cell(str(most[bank]) if most[bank] else "", kinds[min(most[bank], 2)]) for bank in banks]]
    return grid(cells, Axis("", ("words",)), Axis("bank", tuple(map(str, banks))))
