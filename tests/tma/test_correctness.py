"""The arrays of the figures number by number; FTTC; Table 1; fills; stores; what the documents leave out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from docs.figures import tma as figures
from tests.domain.arrays import Ints

from texpr.affine.expr import Sym, expr, sym
from texpr.affine.facts import Fact, Known, multiple_of
from texpr.domain import DomainGraph
from texpr.domain.allocation import hole_mask
from texpr.domain.contiguity import Memory
from texpr.domain.correctness.holes import WEAK, Strong
from texpr.domain.transforms.swizzle import Shift, Xor
from texpr.domain.visits import visits
from texpr.presburger.formula import FALSE, Ge, between, conj
from texpr.presburger.isl.sets import Set
from texpr.tma.correctness import Guarded, Level, Lowering, Plain, Redirected, analysis, fttc, lower_load, lower_store
from texpr.tma.elements import ELEMENTS, Fill
from texpr.tma.execute import load
from texpr.tma.model import Copy, Refusal, plan

Bools = npt.NDArray[np.bool_]
ZERO = Strong(0)
FIVE = (
    DomainGraph.of(("I1", 8), ("I2", 2))
    .split("I1", 4, ("I3", "I4"))
    .split("I4", 5, ("I5", "I6"))
    .reorder("I3", "I6", "I5", "I2")
)
"""Figure 5 with the element stride 5."""

WEAK_LOADS = {
    "figure 2": (figures.WEAK, "I3", "0 1 2 3 4 5 6 7  4 5 6 7 8 9 10 11  8 9 10 11 Z Z Z Z"),
    "figure 3": (
        figures.STRONG,
        "I8",
        "0 1 2 3 6 7 8 9  4 5 Z Z 10 11 Z Z  12 13 14 15 18 19 20 21  16 17 Z Z 22 23 Z Z  24 25 26 27 30 31 32 33 "
        "28 29 Z Z 34 35 Z Z  Z Z Z Z Z Z Z Z  Z Z Z Z Z Z Z Z",
    ),
    "figure 6": (figures.NOT_STRONG, "I5 I2", "0 1 6 7  2 3 8 9  4 5 10 11  8 9 14 15  10 11 Z Z  12 13 Z Z"),
    "figure 5 with 5": (FIVE, "I5 I2", "0 1  2 3  4 5  6 7  8 9  8 9  10 11  12 13  14 15  Z Z"),
}
STRONG_LOADS = {
    "figure 2": (figures.WEAK, "I3", "0 1 2 3 Z Z Z Z  4 5 6 7 Z Z Z Z  8 9 10 11 Z Z Z Z"),
    "figure 3": WEAK_LOADS["figure 3"],
    "figure 5 with 5": (FIVE, "I5 I2", "0 1  2 3  4 5  6 7  Z Z  8 9  10 11  12 13  14 15  Z Z"),
}


def copied(graph: DomainGraph, bulk: str, element: str = "int32", known: Known | None = None) -> Copy:
    found = plan(Memory.dense(graph), bulk.split(), ELEMENTS[element], known or Known({}))
    assert isinstance(found, Copy), str(found)
    return found


def lowered(copy: Copy) -> Plain | Redirected:
    found = lower_load(copy, ZERO)
    assert not isinstance(found, Refusal), str(found)
    return found


def refused(copy: Copy, required: Strong = ZERO) -> str:
    found = lower_load(copy, required)
    assert isinstance(found, Refusal)
    return str(found)


def shown(copy: Copy, lowering: Lowering) -> list[str]:
    """What the allocation holds: numbers of items of the tensor, `Z` for zero."""
    count = int(np.prod([d.extent.constant for d in copy.graph.logical]))
    tensor = np.arange(1, count + 1, dtype=np.int32)
    return [str(value - 1) if value else "Z" for value in load(copy, lowering, tensor.view(np.uint8)).view(np.int32).tolist()]


@pytest.mark.parametrize("name", WEAK_LOADS)
def test_figures_unpredicated(name: str) -> None:
    graph, bulk, text = WEAK_LOADS[name]
    assert shown(copied(graph, bulk), Plain()) == text.split()


@pytest.mark.parametrize("name", STRONG_LOADS)
def test_figures_strong(name: str) -> None:
    graph, bulk, text = STRONG_LOADS[name]
    copy = copied(graph, bulk)
    assert shown(copy, lowered(copy)) == text.split()


def test_levels_predicates_and_protected() -> None:
    """In depth, figures 2 to 5, and figure 5 with 5; with figure 4's array in `test_figure_4`."""
    for graph, bulk, level, needed, protected in (
        (figures.WEAK, "I3", Level.PREDICATED, ["I7 < 2"], "I1 I2 I4"),
        (figures.STRONG, "I8", Level.FREE, [], "I1 I2 I3 I5 I7 I9"),
        (figures.STRONG_TOO, "I9", Level.FREE, [], "I1 I2 I3 I5 I7 I10 I11"),
        (figures.NOT_STRONG, "I5 I2", Level.UNACHIEVABLE, [], "I1 I2 I3"),
        (FIVE, "I5 I2", Level.PREDICATED, ["I6 < 4"], "I1 I2 I3"),
    ):
        found = analysis(copied(graph, bulk))
        assert found.level is level
        assert [str(each) for each in found.needed] == needed
        assert {d.sym.name for d in found.protected} == set(protected.split())


def test_figure_4() -> None:
    """The text gives the graph: the array is that of its items and holes, which are all zero."""
    copy = copied(figures.STRONG_TOO, "I9")
    got = shown(copy, Plain())
    holes = hole_mask(figures.STRONG_TOO).reshape(-1)
    assert [value for value, hole in zip(got, holes, strict=True) if hole] == ["Z"] * 60
    assert sorted(int(value) for value, hole in zip(got, holes, strict=True) if not hole) == list(range(36))


def test_the_else_of_the_documents() -> None:
    weak, five = copied(figures.WEAK, "I3"), copied(FIVE, "I5 I2")
    for copy, coordinates in ((weak, (-2,)), (five, (-2, -4))):
        found = lowered(copy)
        assert isinstance(found, Redirected)
        assert tuple(each.constant for each in found.coordinates) == coordinates
    optional = lower_load(weak, WEAK)
    assert isinstance(optional, Plain)
    assert [str(each) for each in optional.optional] == ["I7 < 2"]


def test_the_refusal_names_dimension_and_numbers() -> None:
    assert refused(copied(figures.NOT_STRONG, "I5 I2")) == (
        "I4{4}: in dimension 1, the element stride 3 is less than the box 4 and does not divide it, and the size 8 is not seen "
        "to be at most 4; choose a box that 3 divides, a box as large as the tensor, or an element stride of at least 4"
    )


def test_what_helps_does() -> None:
    """The three ways out of Theorem 6 that the documents give."""
    for size, box, step in ((8, 4, 2), (4, 4, 3), (8, 4, 5)):
        graph = DomainGraph.of(("y", size), ("x", 2)).split("y", box, ("c", "b")).split("b", step, ("t", "s"))
        copy = copied(graph.reorder("c", "s", "t", "x"), "t x")
        assert {"Z"} >= {v for v, h in zip(shown(copy, lowered(copy)), hole_mask(copy.graph).reshape(-1), strict=True) if h}


# Theorem 6


def unachievable(sizes: Ints, box: int, step: int) -> Bools:
    """For each size, whether some tile has an item, and a hole that lies in the tensor: all elements of all tiles are tried."""
    first = np.arange(-(-int(sizes.max()) // box)) * box  # [coordinate]
    inside = np.arange(step)[:, None] + np.arange(-(-box // step)) * step  # [stride, tile]: the index in the box
    size = sizes[:, None, None, None]
    tested = (first[:, None, None] + inside < size) & (first[:, None, None] < size)
    return ((tested & (inside < box)).any(axis=3) & (tested & (inside >= box)).any(axis=3)).any(axis=(1, 2))


def test_fttc_is_brute_force_up_to_64() -> None:
    sizes = np.arange(1, 65)
    for box in range(1, 65):
        for step in range(1, 65):
            assert unachievable(sizes, box, step).tolist() == [fttc(int(size), box, step) for size in sizes], (box, step)


def exists_bad_tile(box: int, step: int) -> Set:
    """{ S : a tile has an item, and a hole inside of the tensor }: (eq 1) of the proof, for every size."""
    size, stride, coordinate, good, bad = (sym(name) for name in ("S", "s", "c", "t1", "t2"))
    tiles = -(-box // step)
    item, hole = good * step + stride, bad * step + stride
    ranges = [between(0, stride, step), between(0, good, tiles), between(0, bad, tiles), Ge(coordinate)]
    tested = [between(0, coordinate * box + at, size) for at in (item, hole)]
    kinds = [between(0, item, box), Ge(hole - box)]
    unknown = [next(iter(each.syms())) for each in (stride, coordinate, good, bad)]
    return Set.of([Sym("S")], conj((*ranges, *tested, *kinds)), exists=unknown)


def test_fttc_is_proved_for_every_box_of_the_hardware_and_every_size() -> None:
    size = sym("S")
    for box in range(1, 257):
        for step in range(1, 9):
            bound = Ge(size - box - 1) if step < box and box % step else FALSE
            assert exists_bad_tile(box, step).is_equal(Set.of([Sym("S")], bound)), (box, step)


def test_levels_are_theorem_6() -> None:
    """One dimension, partitioned: the analysis of the graph refuses exactly where the theorem does."""
    for size in range(1, 13):
        for box in range(1, 9):
            for step in range(1, 9):
                graph = DomainGraph.of(("x", size)).split("x", box, ("c", "b")).split("b", step, ("t", "s"))
                found = analysis(copied(graph.reorder("c", "s", "t"), "t"))
                assert (found.level is Level.UNACHIEVABLE) == fttc(size, box, step), (size, box, step)


def test_symbolic_sizes() -> None:
    """What is not known of a size is not used: a box as large as the tensor helps only where that is proved."""
    n = sym("N")
    graph = DomainGraph.of(("y", n), ("x", 4)).split("y", 4, ("c", "b")).split("b", 3, ("t", "s")).reorder("c", "s", "t", "x")
    assert analysis(copied(graph, "t x")).level is Level.UNACHIEVABLE
    assert analysis(copied(graph, "t x", known=Known({}, [Fact(1, n, 5)]))).level is Level.FREE
    dense = DomainGraph.of(("y", n), ("x", 4)).split("y", 4, ("c", "b")).split("c", 2, ("o", "i")).reorder("o", "i", "b", "x")
    found = analysis(copied(dense, "b x"))
    assert found.level is Level.FREE
    assert found.has_holes
    assert not analysis(copied(dense, "b x", known=Known({}, [multiple_of(n, 8)]))).has_holes


def test_predicates_that_follow_from_others_are_dropped() -> None:
    """Theorem 1 of splits: q < 2 keeps out what p, its outer part, could only reach with it."""
    graph = DomainGraph.of(("x", 12)).split("x", 2, ("c", "b")).split("c", 2, ("o", "q")).split("q", 4, ("p", "r"))
    graph = graph.split("p", 3, ("s", "t")).reorder("o", "s", "t", "r", "b")
    copy = copied(graph, "b")
    assert [str(each) for each in analysis(copy).needed] == ["r + 4 * t < 2"]
    assert {v for v, h in zip(shown(copy, lowered(copy)), hole_mask(copy.graph).reshape(-1), strict=True) if h} == {"Z"}


# Fills


def test_fills() -> None:
    """Zero, and nan of floats; where there is no hole, any."""
    assert isinstance(lower_load(copied(figures.STRONG, "I8"), Strong(0.0)), Plain)
    for element, fill in (("int32", 1), ("int32", float("nan")), ("float32", -0.0), ("float32", float("-inf"))):
        assert "holes must hold" in refused(copied(figures.STRONG, "I8", element), Strong(fill))
    assert lower_load(copied(figures.STRONG, "I8", "float32"), Strong(float("nan"))) == Plain(Fill.NAN)
    redirected = lower_load(copied(figures.WEAK, "I3", "float32"), Strong(float("nan")))
    assert isinstance(redirected, Redirected)
    assert redirected.fill is Fill.NAN
    whole = DomainGraph.of(("x", 12)).split("x", 4, ("c", "b"))
    assert lower_load(copied(whole, "b"), Strong(1)) == Plain()
    halo = DomainGraph.of(("x", 10)).resize("x", 1, 1, "r").split("r", 4, ("c", "b"))
    assert lower_load(copied(halo, "b", "float32"), Strong(float("nan"))) == Plain(Fill.NAN)
    assert isinstance(lower_load(copied(halo, "b"), Strong(1)), Refusal)


# What the documents leave out


def test_a_box_as_large_as_the_tensor_is_protected() -> None:
    graph = DomainGraph.of(("x", 3)).split("x", 4, ("c", "b")).split("b", 3, ("t", "s")).reorder("c", "s", "t")
    copy = copied(graph, "t")
    assert {"c", "x", "b"} <= {d.sym.name for d in analysis(copy).protected}
    assert shown(copy, lowered(copy)) == ["0", "Z", "1", "Z", "2", "Z"]


def test_unless_its_coordinate_is_negative() -> None:
    """Room before the only box: there is another box, at -4, whose holes at 4 and 5 are data."""
    graph = DomainGraph.of(("x", 4)).split("x", 4, ("c", "b")).split("b", 3, ("t", "s")).resize("c", 1, 0, "r")
    copy = copied(graph.reorder("r", "s", "t"), "t")
    assert [str(each) for each in analysis(copy).needed] == ["0 <= r - 1"]
    plain = shown(copy, Plain())
    assert "1" in plain[: len(plain) // 2]
    assert shown(copy, lowered(copy))[: len(plain) // 2] == ["Z"] * 6


def composite(outer: int, inner: int, box: int, by: int) -> Copy:
    """Six dimensions, so that y and z, coordinates both, have to be one; z is split by `by`, perhaps with holes."""
    graph = DomainGraph.of(("a", 2), ("b", 2), ("c", 2), ("y", outer), ("z", inner), ("x", box)).split("z", by, ("p", "q"))
    memory = Memory(graph, tuple(map(expr, (1100, 500, 240, inner * 2 * box, 2 * box, 1))))
    found = plan(memory, ["x"], ELEMENTS["int32"])
    assert isinstance(found, Copy), str(found)
    return found


def test_in_a_composited_dimension_only_the_outermost_is_protected() -> None:
    """Where z runs out of its bounds, the engine finds the next row of y: data, and not zero."""
    copy = composite(3, 5, 4, 2)
    (both,) = [each for each in copy.dimensions if len(each.parts) > 1]
    assert [part.domain.sym.name for part in both.parts] == ["y", "z"]
    found = analysis(copy)
    assert found.level is Level.PREDICATED
    assert [str(each) for each in found.needed] == ["2 * p + q < 5"]
    assert {"z", "p"}.isdisjoint(d.sym.name for d in found.protected)
    tensor = np.arange(1, 2001, dtype=np.int32)
    holes = hole_mask(copy.graph).reshape(-1)
    plain = load(copy, Plain(), tensor.view(np.uint8)).view(np.int32)
    assert (plain[holes] != 0).any()
    assert (load(copy, lowered(copy), tensor.view(np.uint8)).view(np.int32)[holes] == 0).all()


def test_holes_below_the_tile_are_never_written() -> None:
    graph = DomainGraph.of(("y", 8), ("x", 6)).split("y", 3, ("c", "b")).split("b", 2, ("u", "v")).reorder("c", "u", "v", "x")
    copy = copied(graph, "u v x")
    assert copy.tile.holes == 6
    assert "6 holes lie below the tile, where the engine never writes" in refused(copy)
    assert isinstance(lower_load(copy, WEAK), Plain)
    got = load(copy, Plain(), np.arange(48, dtype=np.int32).view(np.uint8)).reshape(3, 24, 4)
    assert (got[:, 18:] == 0xCD).all()


SWIZZLED = [("int32", 1, 32), ("int32", 2, 64), ("int32", 3, 128), ("float16", 3, 128)]


def swizzled(element: str, bits: int, span: int, lines: int, size: tuple[int, int]) -> Copy | Refusal:
    """Tiles of so many lines of 128 bytes, whose chunks of 16 bytes are crossed with the line; `size` counts tiles."""
    chunk = 16 // ELEMENTS[element].size
    rows, row = lines * 128 // span, span // 16 * chunk
    graph = (
        DomainGraph.of(("y", size[0] * rows), ("x", size[1] * row)).split("y", rows, ("cy", "b")).split("x", row, ("cx", "r"))
    )
    graph = graph.split("b", 128 // span, ("l", "k")).split("r", chunk, ("h", "i")).swizzle("l", "h", Xor(bits), ("m", "g"))
    order = ("m", "k", "g", "i")
    return plan(Memory.dense(graph.reorder("cy", "cx", *order)), order, ELEMENTS[element])


@pytest.mark.parametrize(("element", "bits", "span"), SWIZZLED)
@pytest.mark.parametrize(("lines", "size"), [(8, (3, 2)), (5, (1, 1)), (16, (2, 1))])
def test_swizzled_tiles(element: str, bits: int, span: int, lines: int, size: tuple[int, int]) -> None:
    """The allocation's permutation is found to be the hardware's; one tile may have fewer lines than the pattern."""
    copy = swizzled(element, bits, span, lines, size)
    assert isinstance(copy, Copy)
    assert copy.tile.swizzle.span == span
    assert copy.tile.holes == 0
    storage = ELEMENTS[element].storage
    shape = [d.extent.constant for d in copy.graph.logical]
    tensor = (1 + np.arange(shape[0] * shape[1]) % 2000).astype(storage)
    got = load(copy, lowered(copy), tensor.view(np.uint8)).view(storage)
    found = visits(copy.graph)
    np.testing.assert_array_equal(got, tensor.reshape(shape)[tuple(found.logical)])


@pytest.mark.parametrize(("element", "bits", "span"), SWIZZLED)
def test_swizzles_go_by_address(element: str, bits: int, span: int) -> None:
    """A tile that is no multiple of the pattern would shift the pattern of the next."""
    found = swizzled(element, bits, span, 5, (2, 1))
    assert isinstance(found, Refusal)
    assert "640 bytes" in found.reason


def test_another_permutation_of_the_tile_is_refused() -> None:
    graph = DomainGraph.of(("y", 16), ("x", 8)).split("y", 8, ("c", "b")).swizzle("b", "x", Shift(), ("m", "g"))
    found = plan(Memory.dense(graph), ["m", "g"], ELEMENTS["int32"])
    assert isinstance(found, Refusal)
    assert found.reason == "the tile does not lie in shared memory as the engine writes it"


# Stores


def test_stores_guard_holes_that_are_items_elsewhere() -> None:
    found = lower_store(copied(figures.WEAK, "I3"))
    assert not isinstance(found, Refusal)
    assert isinstance(found.lowering, Guarded)
    assert [str(each) for each in found.lowering.predicates] == ["I7 < 2"]
    assert isinstance(lower_store(copied(figures.NOT_STRONG, "I5 I2")), Refusal)
    assert isinstance(lower_store(copied(figures.STRONG, "I8")), type(found))


def test_stores_owe_a_proof_that_rows_end_with_a_chunk() -> None:
    """The innermost extent in bytes is a multiple of 16: proved, refuted, or to be checked."""
    n = sym("N")
    graph = DomainGraph.of(("y", 8), ("x", n)).split("x", 8, ("c", "b")).reorder("y", "c", "b")
    found = lower_store(copied(graph, "b", "float16"))
    assert not isinstance(found, Refusal)
    assert [str(each.expr) for each in found.obligations] == ["2 * (N % 8)"]
    proved = lower_store(copied(graph, "b", "float16", Known({}, [multiple_of(n, 8)])))
    assert not isinstance(proved, Refusal)
    assert proved.obligations == ()
