"""A copy from a schedule, from splits made by hand, and from a layout with basis strides: one map, one tile, one coordinate."""

from __future__ import annotations

import pytest
from tests.lowering.test_strided_tiles import EVERY, only_map, tiles
from tests.lowering.tiled import COPY, copying
from tests.schedule.laid import laid

from texpr.affine.expr import Expr, Sym, expr, sym
from texpr.affine.facts import Known, multiple_of
from texpr.domain import DomainGraph
from texpr.domain.contiguity import Memory
from texpr.domain.transforms.swizzle import Xor
from texpr.ir import kernel as k
from texpr.ir.operation.tensor_map import element
from texpr.ir.value.types import DTYPES
from texpr.layout import E, Layout
from texpr.layout.inttuple import flatten
from texpr.support.record import Record
from texpr.tma.model import Copy, plan

SIZES = {"M": 37, "K": 68}


def split(strided: bool = False, swizzled: bool = False) -> DomainGraph:
    """Rows by 16 (or every other one of 32), columns by 32; roles are read off what the hardware is to run."""
    graph = DomainGraph.of(("y", sym("M")), ("x", sym("K")))
    graph = graph.split("y", 32 if strided else 16, ("bi", "t")).split("x", 32, ("bk", "a"))
    if strided:
        graph = graph.split("t", 2, ("tile", "phase"))
    if swizzled:
        graph = graph.split("a", 4, ("chunk", "item")).swizzle("t", "chunk", Xor(3), ("line", "place"))
    leaves = [leaf.sym.name for leaf in graph.leaves]
    loops = [name for name in ("bi", "phase", "bk") if name in leaves]
    bulk = [name for name in ("tile", "t", "line", "place", "item", "a") if name in leaves]
    return graph.reorder(*loops, *bulk)


class Ways(Record, dict=True):
    """The same copy, said in three ways. `loops`: indices of the schedule's loops, by the names in the graph."""

    text: str
    schedule: str
    graph: DomainGraph
    bulk: str
    layout: Layout
    """From the loops' indices to the coordinate."""
    dtype: str = "f32"


ROWS = Layout((sym("bi's"), sym("bk's")), (16 * E(0), 32 * E(1)))
WAYS = {
    "plain": Ways(COPY, copying("fill=zero, box=(16, 32)"), split(), "t a", ROWS),
    "swizzled": Ways(COPY, copying("fill=zero, box=(16, 32), swizzle=128B"), split(swizzled=True), "line place item", ROWS),
    "strided": Ways(
        EVERY,
        tiles(", fill=zero, box=(32, 32), stride=(2, 1)"),
        split(strided=True),
        "tile a",
        Layout((sym("bi's"), sym("bk's")), (32 * E(0), 32 * E(1))),
    ),
}


def by_hand(way: Ways) -> Copy:
    known = Known({Sym("M"): (1, None), Sym("K"): (1, None)}, [multiple_of(sym("K"), 4)])
    found = plan(Memory.dense(way.graph), way.bulk.split(), element(DTYPES[way.dtype]), known)
    assert isinstance(found, Copy), str(found)
    return found


def numbers(values: tuple[Expr, ...], at: dict[Sym, int]) -> list[int]:
    return [value.evaluate(at) for value in values]


@pytest.mark.parametrize("name", WAYS)
def test_all_three_agree(name: str) -> None:
    way = WAYS[name]
    made, copy = laid(way.text, way.schedule), by_hand(way)
    map, sizes = only_map(made), {Sym(name): value for name, value in SIZES.items()}
    dims = copy.dimensions
    assert numbers(map.sizes, sizes) == numbers(tuple(d.size for d in dims), sizes)
    assert numbers(map.strides, sizes) == numbers(tuple(4 * d.stride for d in dims[1:]), sizes)
    assert map.box == tuple(d.box.constant for d in dims)
    assert map.steps == tuple(d.element_stride.constant for d in dims)
    assert map.swizzle == copy.tile.swizzle.span and copy.tile.holes == 0
    loads = [s for s in made.statements if isinstance(s, k.CopyTensor)]
    assert loads
    for load in loads:
        for bi in range(3):
            for bk in range(3):
                index = {Sym("bi"): bi, Sym("bk"): bk, Sym("phase"): 0} | sizes
                row, column = flatten(way.layout((bi, bk)))
                wanted = [expr(column).constant, expr(row).constant]
                assert numbers(load.at, index) == numbers(copy.coordinates, index) == wanted
