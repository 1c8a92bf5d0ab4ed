"""`make_tma_copy` moves what the graph of IterDomains of the same tensor and box moves, byte by byte."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import texpr.tma as room
from texpr.affine.expr import Sym, expr, sym
from texpr.affine.facts import Known, multiple_of
from texpr.domain import DomainGraph
from texpr.domain.contiguity import Memory
from texpr.layout import Layout, LayoutError
from texpr.layout.text import parse_layout
from texpr.tma import ELEMENTS, Address, Copy, Direction, Mode, Swizzle, TensorMap, TmaCopy, make_tma_copy, plan, tma
from texpr.tma.correctness import Plain
from texpr.tma.execute import load

INT = ELEMENTS["int32"]


def numbers(values: object) -> tuple[int, ...]:
    return tuple(int(str(value)) for value in values)  # type: ignore[attr-defined]


def moved(copy: TmaCopy, tensor: np.ndarray, tile: tuple[int, ...]) -> np.ndarray:
    """The tile, by the reference of one copy."""
    count = int(str(copy.map.bytes)) // 4
    shared, box = np.full(count, -1, np.int32), copy.map.tile
    tma(
        numbers(copy.at(tile)),
        Address(shared.view(np.uint8)),
        ga=Address(tensor.view(np.uint8)),
        gs=numbers(copy.map.sizes),
        bs=numbers(box),
        gr=(1, *(each // 4 for each in numbers(copy.map.strides))),
        er=(1,) * copy.map.rank,
        op=Direction.LOAD,
        mode=Mode(INT, copy.map.swizzle),
    )
    return shared


def case(seed: int) -> tuple[Layout, tuple[int, ...], DomainGraph, int]:
    """A tensor, a box, and the graph whose loops count the tiles and whose bulk leaves lie as the engine writes them."""
    random = Random(seed)
    rank = random.randint(1, 4)
    sizes = [random.randint(1, 9) for _ in range(rank)]
    strides, step = [0] * rank, 1
    order = random.sample(range(rank), rank)
    for at in order:
        strides[at], step = step, step * sizes[at] + random.choice((0, 0, 3))
    box = tuple(random.randint(1, size) for size in sizes)
    graph = DomainGraph.of(*((f"x{at}", size) for at, size in enumerate(sizes)))
    for at, size in enumerate(box):
        graph = graph.split(f"x{at}", size, (f"t{at}", f"b{at}"))
    graph = graph.reorder(*(f"t{at}" for at in range(rank)), *(f"b{at}" for at in reversed(order)))
    return Layout(tuple(sizes), tuple(strides)), box, graph, step


def check(seed: int) -> bool:
    layout, box, graph, extent = case(seed)
    memory = Memory(graph, tuple(expr(leaf.step) for leaf in layout.flat))
    found = plan(memory, [f"b{at}" for at in range(len(box))], INT)
    if not isinstance(found, Copy):
        return False
    tensor = np.arange(1, extent + 1, dtype=np.int32)
    whole = load(found, Plain(), tensor.view(np.uint8)).view(np.int32).reshape(-1, int(np.prod(box)))
    copy = make_tma_copy(layout, box, INT)
    counts = [int(str(leaf.size)) for leaf in copy.tiles.layout.modes[1].flat]
    sizes, steps = [int(str(m.size)) for m in layout.flat], [int(str(m.step)) for m in layout.flat]
    for number, tile in enumerate(np.ndindex(*counts)):
        got = moved(copy, tensor, tuple(map(int, tile)))
        assert (got == whole[number]).all(), seed
        for inside in np.ndindex(*box):  # and where `shared` says, by the tensor's own layout
            at = [t * b + i for t, b, i in zip(tile, box, inside, strict=True)]
            there = all(a < s for a, s in zip(at, sizes, strict=True))
            want = tensor[sum(a * d for a, d in zip(at, steps, strict=True))] if there else 0
            assert got[copy.shared.offset(tuple(map(int, inside)))] == want, seed
    return True


def test_the_same_bytes_as_the_graph() -> None:
    assert sum(map(check, range(150))) > 100


@pytest.mark.long
def test_the_same_bytes_as_many_graphs() -> None:
    assert sum(map(check, range(1000, 5000))) > 2500


def test_a_matrix() -> None:
    known = Known({}, [multiple_of(Sym("n"), 4)])
    copy = make_tma_copy(parse_layout("(m,n):(n,1)"), (64, 32), "float32", base=sym("p"), swizzle=Swizzle.B128, known=known)
    assert isinstance(copy.map, TensorMap) and [str(size) for size in copy.map.sizes] == ["n", "m"]
    assert [str(stride) for stride in copy.map.strides] == ["4 * n"] and str(copy.map.bytes) == "8192"
    assert str(copy.tiles.layout) == "((64,32),(((m + 63) / 64),((n + 31) / 32))):((1@1,1@0),(64@1,32@0))"
    assert [str(at) for at in copy.at((sym("i"), sym("j")))] == ["32 * j", "64 * i"]
    assert str(copy.shared) == "(64,32):(32,1)"


@pytest.mark.parametrize(
    ("layout", "box", "message"),
    [
        ("(4,8):(1@0,1@1)", (4, 8), "gives coordinates"),
        ("(4,8):(1,4)", (4,), "no box of the 2 leaves"),
        ("(4,8):(1,4)", (0, 8), "no box of the 2 leaves"),
        ("(4,8):(2,8)", (4, 8), "no leaf of (4,8):(2,8) has the stride 1"),
        ("(4,8):(1,0)", (4, 8), "the stride of 8:0 in (4,8):(1,0) is 0 or negative"),
        ("(2,2,2,2,2,2):(1,2,4,8,16,32)", (2,) * 6, "6 leaves, and a copy 5 dimensions"),
    ],
)
def test_refusals(layout: str, box: tuple[int, ...], message: str) -> None:
    with pytest.raises(LayoutError) as refused:
        make_tma_copy(parse_layout(layout), box, INT)
    assert message in str(refused.value)


def test_what_the_room_exports() -> None:
    assert {"tma", "TensorMap", "make_tma_copy", "plan"} <= set(dir(room))
    assert all(getattr(room, name) is not None for name in dir(room))
