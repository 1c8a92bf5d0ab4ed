"""Pictures of boxes, tiles and banks say what the reference copies, and what its swizzles do."""

from __future__ import annotations

import numpy as np
import pytest
from tests.draw.graphs import texts

from texpr.draw.banks import chunk_places, column_conflicts, draw_banks
from texpr.draw.tensor import Seen, draw_tensor
from texpr.isa.engine import CHUNK
from texpr.tma.elements import ELEMENTS
from texpr.tma.reference import Address, Direction, Mode, tma
from texpr.tma.swizzle import Swizzle

COPIES = (
    Seen((12, 16), (6, 4), (1, 1), (8, 4), 14),
    Seen((12, 16), (6, 4), (1, 3), (8, 4), 14),
    Seen((7, 5), (4, 4), (1, 2), (-2, 3), 8),
    Seen((7, 5), (4, 4), (1, 1), (20, 1), 8),
    Seen((9,), (8,), (1,), (4,), 9),
    Seen((5, 4, 3), (4, 2, 1), (1, 1, 1), (3, 2, 2), 5),
    Seen((5, 4, 3), (4, 2, 1), (1, 1, 1), (3, 2, 3), 5),
)


@pytest.mark.parametrize("copy", COPIES, ids=range(len(COPIES)))
def test_a_cell_is_what_the_reference_does_with_it(copy: Seen) -> None:
    """Element (x, y) of the plane at the box's corner holds 1 + x + 100 y; the tile shows what was loaded."""
    mode = Mode(ELEMENTS["int32"])
    rank = len(copy.sizes)
    strides = [1, copy.pitch, copy.pitch * (copy.sizes[1] if rank > 1 else 1)][:rank]
    memory = np.full(4096, -7, np.int32)
    for index in np.ndindex(*copy.sizes):
        memory[sum(i * s for i, s in zip(index, strides, strict=True))] = 1 + index[0] + 100 * (index[1] if rank > 1 else 0)
    tile = np.full(int(np.prod(copy.tile)), -1, np.int32)
    shared = Address(tile.view(np.uint8))
    tma(copy.corner, shared, ga=Address(memory.view(np.uint8)), gs=copy.sizes, bs=copy.box, gr=strides, er=copy.steps,
        op=Direction.LOAD, mode=mode)  # fmt: skip
    loaded = tile.reshape(copy.tile[::-1])
    wide, high = (*copy.tile, 1)[:2]
    for i, j in np.ndindex(wide, high):
        x = copy.corner[0] + i * copy.steps[0]
        y = copy.corner[1] + j * copy.steps[1] if rank > 1 else 0
        value = loaded[(0,) * (rank - 2) + ((j, i) if rank > 1 else (i,))]
        assert copy.kind(x, y) == ("zero" if value == 0 else "loaded")
        assert value in (0, 1 + x + 100 * y)


def test_the_picture_shows_every_kind() -> None:
    svg = draw_tensor(COPIES[:2], "tiles")
    assert {"in global memory", "copied by the box", "in the box, stepped over", "filled with zero"} <= set(texts(svg))
    assert svg.count('class="frame"') == 2
    large = Seen((100000, 3000), (64, 32), (1, 1), (99968, 2976), 100000)
    assert len(draw_tensor((large,), "large")) < 1_000_000


@pytest.mark.parametrize("swizzle", list(Swizzle))
@pytest.mark.parametrize("row", [16, 32, 48, 64, 128])
def test_chunks_lie_where_the_engine_writes_them(row: int, swizzle: Swizzle) -> None:
    if swizzle is not Swizzle.NONE and row > swizzle.span:
        with pytest.raises(ValueError, match="longer than"):
            chunk_places(4, row, swizzle)
        return
    rows, size = 24, max(row, swizzle.span)
    data = np.arange(rows * row // 4, dtype=np.int32)
    memory = np.full(rows * size // 4, -1, np.int32)
    tma((0, 0), Address(memory.view(np.uint8)), ga=Address(data.view(np.uint8)), gs=(row // 4, rows), bs=(row // 4, rows),
        gr=(1, row // 4), er=(1, 1), op=Direction.LOAD, mode=Mode(ELEMENTS["int32"], swizzle))  # fmt: skip
    for (at, n), place in chunk_places(rows, row, swizzle).items():
        assert memory[place * CHUNK // 4] == data[(at * row + n * CHUNK) // 4]


def test_conflicts_of_a_column() -> None:
    assert column_conflicts(16, 128, Swizzle.NONE) == 7 and column_conflicts(16, 64, Swizzle.NONE) == 3
    assert column_conflicts(16, 144, Swizzle.NONE) == 0
    assert [column_conflicts(16, s.span, s) for s in (Swizzle.B32, Swizzle.B64, Swizzle.B128)] == [0, 0, 0]
    assert "a column of chunks, read by eight threads at once: 8 rounds instead of one" in texts(
        draw_banks(8, 128, Swizzle.NONE)
    )
    with pytest.raises(ValueError, match="no whole number of chunks"):
        draw_banks(8, 20, Swizzle.NONE)
