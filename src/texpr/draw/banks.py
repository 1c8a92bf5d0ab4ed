"""The chunks of 16 bytes of a tile in shared memory, line by line of all banks, and the conflicts of a column read."""

from __future__ import annotations

from texpr.draw.page.grid import Axis, Cell, grid
from texpr.draw.page.picture import Picture, captioned, document, line, stacked
from texpr.draw.page.style import OWNERS
from texpr.draw.page.text import CAPTION
from texpr.isa.engine import CHUNK, LINE
from texpr.isa.memories import SHARED
from texpr.isa.requests import conflicts
from texpr.tma.swizzle import Swizzle

MOST_LINES = 64
"""The pattern repeats beyond: a swizzle has a period of at most eight lines."""

CHUNKS = LINE // CHUNK


def draw_banks(rows: int, row: int, swizzle: Swizzle) -> str:
    """The map of a tile of `rows` rows of `row` bytes as an SVG document. Raises ValueError as `banks_picture` does."""
    conflicts = column_conflicts(rows, row, swizzle)
    title = f"{rows} rows of {row} bytes, {_named(swizzle)}"
    return document(banks_picture(rows, row, swizzle), title, f"{title}: {_said(conflicts)}.")


def banks_picture(rows: int, row: int, swizzle: Swizzle) -> Picture:
    """A line of the picture is a line of memory; a cell shows the row and chunk that lies there, one colour a chunk.

    Raises ValueError for rows that are not a multiple of a chunk, or longer than the swizzle's span.
    """
    places = chunk_places(rows, row, swizzle)
    shown = min(max(places.values(), default=0) // CHUNKS + 1, MOST_LINES)
    cells = [[Cell("", "hole") for _ in range(CHUNKS)] for _ in range(shown)]
    for (at, chunk), place in places.items():
        if place // CHUNKS < shown:
            cells[place // CHUNKS][place % CHUNKS] = Cell(f"{at}.{chunk}", OWNERS[chunk % len(OWNERS)])
    words = CHUNK // SHARED.bank_width
    banks = tuple(f"{n * words}-{(n + 1) * words - 1}" for n in range(CHUNKS))
    picture = grid(cells, Axis("line", tuple(map(str, range(shown)))), Axis("banks", banks))
    said = (line(_said(column_conflicts(rows, row, swizzle)), CAPTION),) if rows > 1 else ()
    left = max(places.values(), default=0) // CHUNKS + 1 - shown
    more = (line(f"{left} further lines go on so", CAPTION),) if left else ()
    return captioned(f"row.chunk in shared memory: {_named(swizzle)}", stacked((picture, *said, *more), 10))


def chunk_places(rows: int, row: int, swizzle: Swizzle) -> dict[tuple[int, int], int]:
    """The place of each chunk in memory, in chunks, by its row and its number in the row."""
    if row % CHUNK or row <= 0:
        raise ValueError(f"a row of {row} bytes is no whole number of chunks of {CHUNK}")
    if swizzle is not Swizzle.NONE and row > swizzle.span:
        raise ValueError(f"a row of {row} bytes is longer than the {swizzle.span} of the swizzle")
    pitch = swizzle.pitch(row)
    return {(at, n): swizzle(at * pitch + n * CHUNK) // CHUNK for at in range(rows) for n in range(row // CHUNK)}


def column_conflicts(rows: int, row: int, swizzle: Swizzle) -> int:
    """The maximum of extra rounds due to bank conflicts, where eight threads read one chunk each of eight rows of a column."""
    places = chunk_places(rows, row, swizzle)
    columns = (
        [places[at, n] * CHUNK for at in range(first, min(first + CHUNKS, rows))]
        for first in range(0, rows, CHUNKS)
        for n in range(row // CHUNK)
    )
    return max((conflicts(column, CHUNK) for column in columns), default=0)


def _named(swizzle: Swizzle) -> str:
    return "no swizzle" if swizzle is Swizzle.NONE else f"swizzle of {swizzle.span} bytes"


def _said(conflicts: int) -> str:
    rounds = "no conflict" if conflicts == 0 else f"{conflicts + 1} rounds instead of one"
    return f"a column of chunks, read by eight threads at once: {rounds}"
