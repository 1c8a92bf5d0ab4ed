"""The model against counting: boxes, bytes and conflicts of small nests, element by element, and that the checks can fail."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from tests.planner.programs import CONV, JACOBI, MATMUL, VALID, function

from texpr.affine.expr import Sym
from texpr.ir.value import Buffer
from texpr.isa.registry import resolve
from texpr.isa.requests import conflicts
from texpr.planner.budget import budget
from texpr.planner.model import Form, accesses, form, warp_bytes
from texpr.planner.nest import Nest, nests
from texpr.planner.search import Search
from texpr.support.record import replace

STRIDED = """
fn strided(x: f32[n], z: f32[m]): f32[m] where n >= 3 * m + 8 {
    new y: f32[m]
    par m |i| { y[i] = z[i]  seq 3 |r| { y[i] += x[3 * i + 2 * r] + x[3 * i + 2 * r + 4] } }
    return y
}
"""


def nest_of(text: str) -> Nest:
    """The last nest of a program that has a plan."""
    return [nest for _, nest in nests(function(text)) if isinstance(nest, Nest)][-1]


def touched(nest: Nest, buffer: Buffer, tile: dict[Sym, int]) -> tuple[set[tuple[int, ...]], int]:
    """Every element of `buffer` that a tile at the origin touches, and how many accesses it makes."""
    found: set[tuple[int, ...]] = set()
    count = 0
    for touch in nest.of(buffer):
        assert touch.index is not None
        around = sorted(touch.around, key=str)
        for point in product(*(range(tile[s]) for s in around)):
            at = dict(zip(around, point, strict=True))
            found.add(tuple(p.base.constant + sum(c * at[s] for s, c in p.steps.items()) for p in touch.index))
            count += 1
    return found, count


CASES = [(MATMUL, "A"), (MATMUL, "B"), (CONV, "X"), (CONV, "K"), (VALID, "X"), (JACOBI, "next"), (STRIDED, "x")]


@pytest.mark.parametrize(("text", "name"), CASES)
@pytest.mark.parametrize("seed", range(6))
def test_boxes_hold_what_is_touched_and_no_more(text: str, name: str, seed: int) -> None:
    """The box is the smallest one; where steps are one it is full, or lacks corners alone."""
    nest = nest_of(text)
    buffer = next(t.buffer for t in nest.touches if t.buffer.name == name)
    shape = found_form(nest, buffer)
    tile = {sym: 1 + (seed * 7 + n * 3) % 5 for n, sym in enumerate(nest.trips)}
    elements, count = touched(nest, buffer, tile)
    assert shape.box(tile) == tuple(max(d) - min(d) + 1 for d in zip(*elements, strict=True))
    seqs = {s.sym for s in nest.seqs}
    again = prod(tile[s] for s in seqs if all(not t.along(s) for t in nest.of(buffer)))
    assert accesses(nest, buffer, tile) * again == count


def found_form(nest: Nest, buffer: Buffer) -> Form:
    found = form(nest.of(buffer))
    assert found is not None
    return found


def test_the_box_can_be_wrong() -> None:
    """A spread forgotten, a step too small: the comparison above would see it."""
    nest = nest_of(JACOBI)
    buffer = next(t.buffer for t in nest.touches if t.buffer.name == "next")
    right = found_form(nest, buffer)
    tile = dict.fromkeys(nest.trips, 4)
    elements, _ = touched(nest, buffer, tile)
    box = tuple(max(d) - min(d) + 1 for d in zip(*elements, strict=True))
    assert right.box(tile) == box
    assert replace(right, spread=(0, 0)).box(tile) != box
    assert replace(right, dims=((), right.dims[1])).box(tile) != box


@pytest.mark.parametrize(("rows", "width"), [(1, 8), (16, 128), (66, 66), (18, 18), (5, 3)])
def test_bytes_are_those_of_whole_sectors(rows: int, width: int) -> None:
    """Of rows that begin at sectors: as counted. Of others: between the bytes asked for and two more sectors a row."""
    nest = nest_of(MATMUL)
    i, j, k = nest.trips
    buffer = next(t.buffer for t in nest.touches if t.buffer.name == "B")
    counted = rows * len({4 * at // 32 for at in range(width)}) * 32
    moved = found_form(nest, buffer).bytes_moved({i: 1, j: width, k: rows}, 32)
    assert rows * width * 4 <= moved <= rows * (width * 4 + 64)
    if width % 8 == 0:
        assert moved == counted


def test_a_warp_is_counted_lane_by_lane() -> None:
    nest = nest_of(MATMUL)
    i, j, k = nest.trips
    (a,) = (t for t in nest.touches if t.buffer.name == "A")
    (b,) = (t for t in nest.touches if t.buffer.name == "B")
    assert warp_bytes(b, [{j: lane} for lane in range(32)], 32) == 128
    assert warp_bytes(a, [{j: lane} for lane in range(32)], 32) == 32
    assert warp_bytes(a, [{i: lane} for lane in range(32)], 32) == 32 * 32
    assert warp_bytes(a, [{k: lane} for lane in range(32)], 32) == 128


def test_conflicts_of_banks() -> None:
    assert conflicts([4 * lane for lane in range(32)], 4) == 0
    assert conflicts([128 * lane for lane in range(32)], 4) == 31
    assert conflicts([132 * lane for lane in range(32)], 4) == 0
    assert conflicts([0] * 32, 4) == 0


@pytest.mark.parametrize("text", [MATMUL, CONV, JACOBI])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_no_neighbour_is_cheaper(text: str, target: str) -> None:
    """The descent ends where no step of a factor of two, nor two steps at once, gains more than it asks for."""
    nest = nest_of(text)
    search = Search(nest, budget(resolve(target), len(nest.loops)))
    best = search.best()
    place = tuple(best.tile[sym] for sym in search.moving)
    costs = [found.cost for near in search.near(place) if (found := search.at(place=near)) is not None]
    assert len(costs) >= 4
    assert min(costs) > 0.97 * best.cost


def test_less_memory_gives_smaller_tiles() -> None:
    nest = nest_of(MATMUL)
    full = budget(resolve("sm_90a"), 3)
    large = Search(nest, full).best()
    small = Search(nest, replace(full, shared=large.shared // 4)).best()
    assert small.shared <= large.shared // 4
    assert small.cost > large.cost
    few = Search(nest, replace(full, registers=24)).best()
    assert few.registers <= 24
