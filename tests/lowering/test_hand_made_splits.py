"""Boxes that hand-made splits and merges of loops make: the same bytes from the schedule, from the graph, and from the layout.

No `box=` and no `stride=` is given: what is partitioned, coordinate, box, tile and stride is read off the loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering.test_strided_tiles import only_map
from tests.schedule.laid import Laid, integers, laid, refusal, wrong
from tests.tma.test_same_bytes import arithmetic_tuple

from texpr.affine.expr import Sym
from texpr.domain import DomainGraph
from texpr.domain.contiguity import Memory
from texpr.ir import kernel as k
from texpr.layout import LayoutError
from texpr.support.record import Mutable, field
from texpr.tma.boxing import Role
from texpr.tma.bridge import coordinates_of
from texpr.tma.correctness import Plain
from texpr.tma.elements import ELEMENTS
from texpr.tma.execute import load
from texpr.tma.model import Copy, plan
from texpr.tma.reference import Address, Direction, Mode, tma
from texpr.tma.swizzle import Swizzle

FLOAT = ELEMENTS["float32"]
Array = NDArray[Any]

COPY = """
fn copy(A: f32[{shape}] align(16)): f32[{shape}]
    where {last} % 4 == 0{more}
{{
    new C: f32[{shape}]
    {loops} C[{index}] = A[{index}] {close}
    return C
}}"""


def program(rank: int, more: str = "") -> str:
    """A copy of `rank` dimensions, whose sizes are known at run time."""
    sizes, names = [f"N{d}" for d in range(rank)], [f"i{d}" for d in range(rank)]
    loops = " ".join(f"par {size} |{name}| {{" for size, name in zip(sizes, names, strict=True))
    return COPY.format(shape=", ".join(sizes), last=sizes[-1], more=more, loops=loops, index=", ".join(names), close="}" * rank)


class Hand(Mutable, dict=True):
    """Splits and merges of the loops of a copy, as directives and as a graph. `bulk`: what the hardware is to run."""

    sizes: tuple[int, ...]
    graph: DomainGraph
    words: list[str] = field(default_factory=list[str])
    loops: list[str] = field(default_factory=list[str])
    bulk: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, *sizes: int) -> Hand:
        return cls(sizes, DomainGraph.of(*((f"i{d}", n) for d, n in enumerate(sizes))))

    def split(self, name: str, factor: int, names: tuple[str, str]) -> None:
        self.words.append(f"split({name}, {factor}) -> ({', '.join(names)})")
        self.graph = self.graph.split(name, factor, names)

    def merge(self, outer: str, inner: str, name: str) -> None:
        self.words.append(f"merge({outer}, {inner}) -> {name}")
        self.graph = self.graph.merge(outer, inner, name)

    def finish(self, more: str = "") -> None:
        order = (*self.loops, *self.bulk)
        if len(order) > 1:
            self.words.append(f"reorder({', '.join(order)})")
        self.graph = self.graph.reorder(*order)
        self.words.append(f"stage(A, at={self.loops[-1]}, in=shared, via=tma{more}) -> As")

    @property
    def schedule(self) -> str:
        return "\n".join(self.words)


def by_chance(seed: int) -> Hand:
    """Merges of neighbours, a split into coordinate and box, and of that into tile and stride, each or none."""
    random = Random(seed)
    rank = random.choice((1, 2, 2, 3, 4))
    hand = Hand.of(*(random.randint(1, 7) for _ in range(rank - 1)), 4 * random.randint(1, 4))
    leaves = [f"i{d}" for d in range(rank)]
    while len(leaves) > 1 and random.random() < 0.35:
        at = random.randrange(len(leaves) - 1)
        name = "m" + "".join(leaves[at : at + 2])
        hand.merge(leaves[at], leaves[at + 1], name)
        leaves[at : at + 2] = [name]
    for number, leaf in enumerate(leaves):
        _box(hand, random, leaf, number == len(leaves) - 1)
    random.shuffle(hand.loops)
    hand.finish()
    return hand


def _box(hand: Hand, random: Random, leaf: str, is_last: bool) -> None:
    kind = random.random()
    if not is_last and kind < 0.3:
        hand.loops.append(leaf)
        return
    factor = 4 * random.randint(1, 3) if is_last else random.randint(1, 6)
    outer, box = f"{leaf}o", f"{leaf}b"
    hand.split(leaf, factor, (outer, box))
    hand.loops.append(outer)
    if not is_last and kind > 0.55:
        tile, stride = f"{leaf}t", f"{leaf}s"
        hand.split(box, random.randint(1, 4), (tile, stride))
        hand.loops.append(stride)
        box = tile
    hand.bulk.append(box)


def planned(hand: Hand) -> Copy:
    copy = plan(Memory.dense(hand.graph), hand.bulk, FLOAT)
    assert isinstance(copy, Copy), (hand.schedule, str(copy))
    return copy


def tiles(made: Laid, hand: Hand, tensor: Array) -> Array:
    """What the maps and coordinates of the emitted kernel move, by the reference function: a tile for each iteration."""
    map = only_map(made)
    sizes = {Sym(f"N{d}"): n for d, n in enumerate(hand.sizes)}
    (copy,) = (s for s in made.statements if isinstance(s, k.CopyTensor))
    found: list[Array] = []
    for at in iterations(hand):
        shared = np.full(map.room, 0xCD, np.uint8)
        tma(
            [e.evaluate({**sizes, **at}) for e in copy.at],
            Address(shared),
            ga=Address(tensor.view(np.uint8)),
            gs=[e.evaluate(sizes) for e in map.sizes],
            bs=map.box,
            gr=[1, *(e.evaluate(sizes) // 4 for e in map.strides)],
            er=map.steps,
            op=Direction.LOAD,
            mode=Mode(FLOAT, Swizzle(map.swizzle)),
        )
        found.append(shared.view(np.float32))
    return np.stack(found)


def iterations(hand: Hand) -> Iterator[dict[Sym, int]]:
    extents = [hand.graph[name].extent.constant for name in hand.loops]
    for index in np.ndindex(*extents):
        yield dict(zip(map(Sym, hand.loops), map(int, index), strict=True))


def check(seed: int) -> None:
    """Every byte of every tile, holes too: by the schedule's map, by the graph's, and from the layout's coordinates."""
    hand = by_chance(seed)
    made, copy = laid(program(len(hand.sizes)), hand.schedule), planned(hand)
    tensor = np.arange(1, prod(hand.sizes) + 1, dtype=np.float32)
    own = tiles(made, hand, tensor)
    graphs = load(copy, Plain(), tensor.view(np.uint8)).view(np.float32).reshape(own.shape)
    assert np.array_equal(own, graphs), (seed, hand.schedule, hand.sizes)
    try:
        coordinates = coordinates_of(hand.graph)
    except LayoutError:
        return  # a merge of dimensions is no layout
    strides = [prod(hand.sizes[d + 1 :]) for d in range(len(hand.sizes))]
    flat = own.reshape([hand.graph[name].extent.constant for name in (*hand.loops, *hand.bulk)])
    for index in np.ndindex(*flat.shape):
        at = arithmetic_tuple(coordinates, tuple(map(int, index)))
        inside = all(0 <= i < n for i, n in zip(at, hand.sizes, strict=True))
        wanted = tensor[sum(i * s for i, s in zip(at, strides, strict=True))] if inside else 0
        assert flat[index] == wanted, (seed, hand.schedule, index)


@pytest.mark.parametrize("seed", range(12))
def test_three_roads_move_the_same_bytes(seed: int) -> None:
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 220))
def test_many_move_the_same_bytes(seed: int) -> None:
    check(seed)


SIZES = ((3, 19, 36), (1, 1, 4), (2, 0, 8), (0, 5, 4), (5, 16, 68))
MERGED = "split(i2, 32) -> (bk, tk)  merge(i0, i1) -> m  split(m, 16) -> (b, t)  reorder(b, bk, t, tk)\n"
STAGED = {
    "loaded": "stage(A, at=bk, in=shared, via=tma, fill=zero) -> As",
    "swizzled": "stage(A, at=bk, in=shared, via=tma, fill=zero, swizzle=128B) -> As",
    "stored": "stage(C, at=bk, in=shared, via=tma) -> Cs",
}


@pytest.mark.parametrize("name", STAGED)
def test_merged_rows_are_copied_as_one_dimension(name: str) -> None:
    """Sizes at run time; where one of them is 0 there is nothing to copy."""
    made = laid(program(3), MERGED + STAGED[name])
    map = only_map(made)
    assert [str(e) for e in map.sizes] == ["max(N2, 1)", "max(N0 * N1, 1)"] and map.box == (32, 16)
    for shape in SIZES:
        assert wrong(made, {"A": integers(*shape)}, sizes_of(shape), (None, 0)) is None, shape


def sizes_of(shape: tuple[int, ...]) -> dict[str, int]:
    return {f"N{d}": n for d, n in enumerate(shape)}


def test_a_merge_of_what_the_box_divides_stays_apart() -> None:
    made = laid(program(3, ", N1 % 16 == 0"), MERGED + STAGED["loaded"])
    map = only_map(made)
    assert map.box == (32, 16, 1) and [str(e) for e in map.sizes] == ["max(N2, 1)", "max(N1, 1)", "max(N0, 1)"]
    for shape in ((3, 32, 36), (2, 0, 8), (0, 16, 4)):
        assert wrong(made, {"A": integers(*shape)}, sizes_of(shape), (None, 0)) is None, shape


def apart(more: str = "") -> str:
    """The same of a tensor whose dimensions are not contiguous."""
    text = program(3, f", a % 4 == 0, b % 4 == 0{more}")
    return text.replace("A: f32[N0, N1, N2]", "A: f32[N0, N1, N2] stride(a, b, 1)")


def test_discontiguous_merges_are_boxed_if_and_only_if_the_box_divides() -> None:
    schedule = (MERGED + STAGED["loaded"]).replace("(b, ", "(c, ")
    made = laid(apart(", N1 % 16 == 0"), schedule)
    assert [str(e) for e in only_map(made).strides] == ["4 * b", "4 * a"]
    text = refusal(apart(), schedule)
    assert "`i0` and `i1` are merged, are not contiguous in memory, and 16 is not seen to divide N1" in text
    assert 'help: promise it: "where N1 % 16 == 0"' in text


@pytest.mark.unproved("tiles whose strides are quotients of sizes")
def test_a_far_stride_is_a_dimension_of_its_own() -> None:
    """Every 16th row: no element stride goes so far, but rows are 16 neighbours where 16 divides them."""
    words = "split(i1, 16) -> (o, s)  split(o, 4) -> (oo, t)  split(i2, 32) -> (bk, tk)  reorder(i0, oo, s, bk, t, tk)\n"
    made = laid(program(3, ", N1 % 16 == 0"), words + STAGED["loaded"])
    map = only_map(made)
    assert map.box == (32, 4, 1, 1) and map.steps == (1, 1, 1, 1)
    assert [str(e) for e in map.sizes[1:3]] == ["max((N1 / 16), 1)", "16"]
    for shape in ((2, 80, 36), (1, 0, 4), (1, 16, 8)):
        assert wrong(made, {"A": integers(*shape)}, sizes_of(shape), (None, 0)) is None, shape
    ragged = laid(program(3), words + STAGED["loaded"])
    assert only_map(ragged).steps == (1, 8, 1)  # a divisor of 16: every other row is not read


def test_rows_that_are_too_long_are_boxed_by_the_splits_inside() -> None:
    words = "split(i1, 512) -> (bk, tk)  split(tk, 128) -> (u, v)  reorder(i0, bk, u, v)\n"
    made = laid(program(2), words + STAGED["loaded"])
    assert only_map(made).box == (128, 1)
    assert wrong(made, {"A": integers(3, 600)}, sizes_of((3, 600)), (None, 0)) is None
    words = "split(i0, 8) -> (bi, ti)  split(i1, 64) -> (bk, tk)  split(tk, 32) -> (u, v)  reorder(bi, bk, u, ti, v)\n"
    made = laid(program(2), words + STAGED["swizzled"])
    assert only_map(made).box == (32, 8)
    assert wrong(made, {"A": integers(19, 100)}, sizes_of((19, 100)), (None, 0)) is None


def test_roles_are_those_of_the_splits() -> None:
    """Names as in "TMA Modeling In Depth": partitioned, coordinate, box, tile, stride."""
    hand = Hand.of(19, 36)
    hand.split("i0", 8, ("c", "b"))
    hand.split("b", 2, ("t", "s"))
    hand.split("i1", 16, ("d", "a"))
    hand.loops, hand.bulk = ["c", "s", "d"], ["t", "a"]
    hand.finish()
    assert planned(hand).roles == {
        "i0": {Role.PARTITIONED}, "c": {Role.COORDINATE}, "b": {Role.BOX}, "t": {Role.TILE}, "s": {Role.STRIDE},
        "i1": {Role.PARTITIONED}, "d": {Role.COORDINATE}, "a": {Role.BOX},
    }  # fmt: skip
    map = only_map(laid(program(2), hand.schedule))
    assert map.box == (16, 8) and map.steps == (1, 2)
