"""Ownership of elements: the arrays of a kernel, coloured by warp; and the sectors or banks of one warp's requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from texpr.affine.expr import Sym
from texpr.draw.owners import Owner, Owners, owners
from texpr.draw.page.grid import Axis, Cell, grid
from texpr.draw.page.picture import Picture, captioned, document, legend, line, stacked
from texpr.draw.page.style import BUSY, OWNERS, STRIPS
from texpr.draw.page.text import CAPTION
from texpr.ir import kernel as k
from texpr.ir.value import Buffer
from texpr.isa.levels import Space
from texpr.isa.memories import Coalescing
from texpr.isa.requests import busy, windows
from texpr.mapping.cost.access import Request, requests

WIDE, HIGH = 32, 24
"""The cells shown of an array, around the first element that the block accesses."""

MOST_LINES = 12
"""The lines shown of one request."""

_Elements = Mapping[tuple[int, ...], Owner]


def draw_mapping(name: str, kernels: tuple[k.Kernel, ...], sizes: dict[Sym, int], machine: Coalescing) -> str:
    """The mapping of each kernel of the function `name`, at `sizes`, as an SVG document."""
    pictures = [captioned(f"{kernel.name}: block 0 of its grid", _kernel(kernel, sizes, machine)) for kernel in kernels]
    words = " ".join(f"{kernel.name}: {_words(kernel, machine)}" for kernel in kernels)
    return document(stacked(pictures), f"{name}: who touches what", words)


def _words(kernel: k.Kernel, machine: Coalescing) -> str:
    return "; ".join(_said(request, machine) for request in requests(kernel)) + "."


def _kernel(kernel: k.Kernel, sizes: dict[Sym, int], machine: Coalescing) -> Picture:
    found = owners(kernel, sizes)
    arrays = {array.buffer: array.space for array in kernel.arrays}
    shown = [b for b in found.of if arrays.get(b) not in (Space.LOCAL, Space.LANES) and b not in kernel.scalars]
    pictures = [_array(buffer, found, kernel.warp) for buffer in shown]
    said = () if found.whole else (line("long loops are followed for their first iterations alone", CAPTION),)
    key = (_key(kernel),) if pictures else ()
    asked = tuple(_requests(kernel, machine))
    banks = (legend(list(BUSY.items())),) if any(r.space is Space.SHARED and r.starts for r in requests(kernel)) else ()
    return stacked([*pictures, *key, *said, *asked, *banks], 18)


def _key(kernel: k.Kernel) -> Picture:
    """The legend: colours for warps, strips for lanes."""
    warps = min(max(kernel.threads // kernel.warp, 1), len(OWNERS))
    again = "; colours come again after warp 7" if kernel.threads > len(OWNERS) * kernel.warp else ""
    lanes = [Cell(f"{at * kernel.warp // len(STRIPS)}", "plain", strip) for at, strip in enumerate(STRIPS)]
    strips = f"strips: from lane 0 to lane {kernel.warp - 1}{again}"
    ramp = captioned(strips, grid([lanes], Axis("", ("lane",)), Axis("", ("",) * len(lanes))))
    return stacked((legend([(OWNERS[at], f"warp {at}") for at in range(warps)]), ramp), 8)


def _array(buffer: Buffer, found: Owners, lanes: int) -> Picture:
    """The elements of the two innermost dimensions, at the first index that the block accesses in the others."""
    elements: _Elements = found.of[buffer]
    first = min(elements)
    outer = first[:-2]
    plane = {index[len(outer) :]: owner for index, owner in elements.items() if index[: len(outer)] == outer}
    rank = min(len(first), 2)
    columns, rows = _window(plane, rank - 1, WIDE), _window(plane, 0, HIGH) if rank == 2 else range(1)
    cells = [[_cell(plane.get((y, x) if rank == 2 else (x,) if rank else ()), lanes) for x in columns] for y in rows]
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


def _cell(owner: Owner | None, lanes: int) -> Cell:
    if owner is None:
        return Cell("", "plain")
    warp, lane = divmod(owner.thread, lanes)
    return Cell(f"{warp}.{lane}", OWNERS[warp % len(OWNERS)], f"lane{lane * len(STRIPS) // lanes}")


def _requests(kernel: k.Kernel, machine: Coalescing) -> Iterator[Picture]:
    for request in requests(kernel):
        starts = request.starts
        if not starts:
            yield line(_said(request, machine), CAPTION)
        elif request.space is Space.SHARED:
            yield captioned(_said(request, machine), _banks(starts, request.width, machine))
        else:
            yield captioned(_said(request, machine), _sectors(starts, request.width, machine))


def _said(request: Request, machine: Coalescing) -> str:
    head = f"line {request.line}: warp 0's {request.kind} of {request.load.buffer.name}, {len(request.lanes)} lanes"
    starts = request.starts
    if starts is None:
        return f"{head}, where data say"
    if request.space is Space.SHARED:
        return f"{head}, in banks"
    moved, least = len(windows(starts, machine.sector, request.width)), -(-len(set(starts)) * request.width // machine.sector)
    return f"{head}: {moved} sectors, and {least} would hold as much"


def _sectors(starts: list[int], width: int, machine: Coalescing) -> Picture:
    """Lines of memory, by sectors; a cell shows the number of lanes that access it."""
    met = Counter(sector for start in starts for sector in windows([start], machine.sector, width))
    per = machine.line // machine.sector
    lines = sorted({sector // per for sector in met})
    rows = [[met.get(number * per + at, 0) for at in range(per)] for number in lines[:MOST_LINES]]
    cells = [[Cell(str(count) if count else "", "owner0" if count else "plain") for count in row] for row in rows]
    down = Axis("byte", tuple(str(number * machine.line) for number in lines[:MOST_LINES]))
    picture = grid(cells, down, Axis("sector", tuple(map(str, range(per)))))
    left = len(lines) - MOST_LINES
    return stacked((picture, line(f"{left} further lines", CAPTION)), 6) if left > 0 else picture


def _banks(starts: list[int], width: int, machine: Coalescing) -> Picture:
    """The number of words that each bank gives to lanes served together, in the part with most, in one row."""
    most = Counter[int]()
    for each in busy(starts, width, machine.banks, machine.word):
        most |= each
    kinds, banks = ("plain", "owner2", "owner3"), range(machine.banks)
    cells = [[Cell(str(most[bank]) if most[bank] else "", kinds[min(most[bank], 2)]) for bank in banks]]
    return grid(cells, Axis("", ("words",)), Axis("bank", tuple(map(str, banks))))
