"""The bound for rows that begin anywhere: never above what a box costs, counted row by row, and met where it should be."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import pytest
from tests.mapping.programs import PROGRAMS
from tests.mapping.test_table import found

from texpr.affine.expr import Sym
from texpr.mapping.cost.least import least
from texpr.mapping.cost.rows import least_of_rows
from texpr.mapping.cost.streams import Band, Stream
from texpr.mapping.cost.warps import Warps
from texpr.mapping.cost.weights import WEIGHTS
from texpr.mapping.solve import solve
from texpr.support.record import replace


def boxes(loops: int, lanes: int) -> Iterator[tuple[int, ...]]:
    """Every 2^a × 2^b × … of so many lanes."""
    if loops == 1:
        yield (lanes,)
        return
    side = 1
    while side <= lanes:
        yield from ((side, *rest) for rest in boxes(loops - 1, lanes // side))
        side *= 2


def test_a_row_on_the_average() -> None:
    """By counting: columns of any kind, shifted by each unit of a window."""
    chooser = random.Random(3)
    for _ in range(200):
        q = chooser.choice([2, 4, 8, 32])
        columns = chooser.sample(range(80), chooser.randint(1, 20))
        windows = sum(len({(each + shift) // q for each in columns}) for shift in range(q))
        assert Fraction(windows, q) >= Fraction(len(columns) + q - 1, q)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_box_is_below(name: str) -> None:
    """Nor any with more of the loops open, or rows of other lengths."""
    band = found(PROGRAMS[name]).band
    if len(band.loops) > 5:
        return
    checked = 0
    for each in (band, *(open_at(band, at) for at in range(len(band.loops)))):
        bound, warps = least_of_rows(each), Warps(each)
        for box in boxes(len(each.loops), each.request.lanes):
            digits = tuple((loop, radix) for loop, radix in enumerate(box) if radix > 1)
            cost = warps.cost(digits)
            assert cost.weighted - WEIGHTS[3] * cost.conflicts >= bound, (digits, each.extents)
            checked += 1
    assert checked


def tile(chooser: random.Random) -> Band:
    """A tile of an array, or two: rows of any length, at any place."""
    extents = tuple(chooser.choice((2, 4, 8, 16, 32, 64, 96)) for _ in range(chooser.randint(2, 3)))
    streams: list[Stream] = []
    for number in range(chooser.randint(1, 2)):
        width = chooser.choice((2, 4, 8))
        rows = [width * (4099 + chooser.choice((0, 1, 2, 4, 8, 28))) * 64**n for n in range(len(extents) - 1)]
        steps = [*rows, chooser.choice((width, width, 2 * width))]
        chooser.shuffle(steps)
        outer = ((0, 3),) if chooser.random() < 0.5 else ((width * 40, None), (0, 2))
        streams.append(Stream(f"x{number}", width, tuple(steps), width * chooser.randint(0, 9), outer))
    return Band(tuple(Sym(f"i{n}") for n in range(len(extents))), extents, extents, tuple(streams))


def test_no_box_of_a_tile_is_below() -> None:
    """Loops of known extent, whose rows begin at each place equally often or do not."""
    chooser, tight, looser = random.Random(7), 0, 0
    for _ in range(150):
        band = tile(chooser)
        bound, warps = least_of_rows(band), Warps(band)
        costs: list[Fraction] = []
        for box in boxes(len(band.loops), band.request.lanes):
            digits = tuple((loop, radix) for loop, radix in enumerate(box) if radix > 1)
            costs.append(warps.cost(digits).weighted)
        assert min(costs) >= bound, band
        tight += min(costs) == bound
        looser += bound > least(band).weighted
    assert tight > 20 and looser > 20


def test_a_tile_s_rows_are_proved_best() -> None:
    """A tile of 32 × 32 that begins where sectors do, of rows of any length."""
    rows = Stream("A", 4, (4 * 4099, 4), 0, ((128, None), (4 * 4099 * 32, None)))
    band = Band((Sym("i"), Sym("j")), (32, 32), (32, 32), (rows,), entered=1)
    solution = solve(band, 256, ((1, 32), (0, 8)), False)
    assert solution.certificate == "no box is better, as rows begin anywhere"
    assert solution.cost.sectors / solution.cost.requests == Fraction(39, 8)
    short = replace(band, extents=(4, 32), spans=(4, 32))
    assert "box" not in solve(short, 32, ((1, 32),), False).certificate


def open_at(band: Band, at: int) -> Band:
    """The same band with one more loop open."""
    extents = tuple(None if n == at else e for n, e in enumerate(band.extents))
    spans = tuple(4099 if n == at else s for n, s in enumerate(band.spans))
    return replace(band, extents=extents, spans=spans)


@pytest.mark.parametrize(
    ("name", "sectors"), [("copy, rows of any length", Fraction(39, 4)), ("transpose, any size", Fraction(37, 2))]
)
def test_what_was_found_is_the_bound(name: str, sectors: Fraction) -> None:
    solution = found(PROGRAMS[name]).solution
    assert solution.certificate == "no box is better, as rows begin anywhere"
    assert solution.cost.weighted == solution.of_rows
    warps = Fraction(solution.cost.requests, 2)
    assert solution.cost.sectors / warps == sectors


def test_sectors_of_a_transpose_by_counting() -> None:
    """Both arrays row by row, of rows of 67 and 71 elements: no box of 32 lanes moves fewer than 18.5 on the average."""
    rows, columns = 64, 64
    best = Fraction(1000)
    for p, q in boxes(2, 32):
        total = Fraction(0)
        for i0, j0 in product(range(0, rows, p), range(0, columns, q)):
            lanes = [(i0 + i, j0 + j) for i in range(p) for j in range(q)]
            total += len({(i * 67 + j) // 8 for i, j in lanes}) + len({(j * 71 + i) // 8 for i, j in lanes})
        best = min(best, total / (rows * columns // 32))
    assert best == Fraction(37, 2)
