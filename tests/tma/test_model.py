"""Copies that graphs ask for: the introduction's figures, views, ways of boxing, roles; what is refused, with its reason."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from docs.figures import tma as figures

from texpr.affine.expr import IntoExpr, expr, sym
from texpr.affine.facts import Fact, Known, multiple_of
from texpr.domain import DomainGraph
from texpr.domain.contiguity import Memory
from texpr.domain.transforms.swizzle import Shift
from texpr.support.record import replace
from texpr.tma.boxing import Role
from texpr.tma.elements import ELEMENTS
from texpr.tma.model import Copy, Refusal, plan
from texpr.tma.rules import findings

FLOAT = ELEMENTS["float32"]
NOTHING = Known({})


def ordered(graph: DomainGraph, *names: str) -> DomainGraph:
    """The leaves in this order: loops, then what the hardware runs."""
    return replace(graph, leaves=tuple(graph[name] for name in names))


def planned(graph: DomainGraph, bulk: str, strides: Sequence[IntoExpr] | None = None, known: Known = NOTHING) -> Copy | Refusal:
    memory = Memory.dense(graph) if strides is None else Memory(graph, tuple(map(expr, strides)))
    return plan(memory, bulk.split(), FLOAT, known)


def copied(graph: DomainGraph, bulk: str, strides: Sequence[IntoExpr] | None = None, known: Known = NOTHING) -> Copy:
    found = planned(graph, bulk, strides, known)
    assert isinstance(found, Copy), str(found)
    return found


def dims(copy: Copy) -> list[str]:
    """Each dimension as `size:stride box/element stride @ coordinate`."""
    return [f"{d.size}:{d.stride} {d.box}/{d.element_stride} @ {d.coordinate}" for d in copy.dimensions]


def roles(copy: Copy) -> dict[str, str]:
    """The names of the IterDomains in each role."""
    return {
        role.value: " ".join(sorted((name for name, found in copy.roles.items() if role in found), key=lambda n: (len(n), n)))
        for role in Role
    }


def test_figure_4() -> None:
    copy = copied(figures.BY_PARTITIONING.reorder("I3", "I5", "I4", "I6"), "I4 I6")
    assert dims(copy) == ["12:1 6/1 @ 6 * I5", "16:12 4/1 @ 4 * I3"]
    assert roles(copy) == {"partitioned": "I1 I2", "coordinate": "I3 I5", "box": "I4 I6", "tile": "", "stride": ""}
    assert str(copy.tile.place) == "48 * I3 + 24 * I5"


def test_figure_1_has_a_pitch() -> None:
    """Introduction, figure 1, as figures 4 and 7 schedule it: the row pitch is 14, and the size 12."""
    dense = copied(figures.BY_PARTITIONING.reorder("I3", "I5", "I4", "I6"), "I4 I6", (14, 1))
    strided = copied(figures.STRIDED.reorder("I3", "I8", "I5", "I7", "I6"), "I7 I6", (14, 1))
    assert dims(dense) == ["12:1 6/1 @ 6 * I5", "16:14 4/1 @ 4 * I3"]
    assert dims(strided) == ["12:1 6/1 @ 6 * I5", "16:14 4/3 @ 4 * I3 + I8"]
    assert roles(strided)["tile"] == "I7"
    assert roles(strided)["stride"] == "I8"
    assert [str(size) for size in dense.tensor_map(expr(0)).tile] == ["6", "4"]
    assert [str(size) for size in strided.tensor_map(expr(0)).tile] == ["6", "2"]


@pytest.mark.parametrize("real", [True, False])
def test_figure_5(real: bool) -> None:
    """Boxing by compositing: the imaginary merge and split of the figure, and the four IterDomains alone, are one copy."""
    if real:
        copy, names = copied(figures.BY_COMPOSITING, "I3′ I4′"), ("I1′", "I2′")
    else:
        copy, names = copied(DomainGraph.of(("I1", 1024), ("I2", 2), ("I3", 4), ("I4", 8)), "I3 I4"), ("I1", "I2")
        assert roles(copy)["box"] == "I3 I4"
        assert roles(copy)["coordinate"] == "I1 I2"
    assert dims(copy) == [f"65536:1 32/1 @ 64 * {names[0]} + 32 * {names[1]}"]


def test_figure_6() -> None:
    """Nine IterDomains, five dimensions: one by partitioning, the others by compositing; no stride goes through I4 and I5."""
    extents = (3, 4, 20, 5, 2, 3, 7, 4, 2)
    strides = [1]
    for at in range(8, 0, -1):
        gap = 8 if figures.CONTIGUITY[at - 1] == "F" else 0
        strides.insert(0, strides[0] * extents[at] + gap)
    graph = DomainGraph.of(*((f"I{at}", n) for at, n in enumerate(extents, 1))).split("I3", 8, ("I10", "I11"))
    copy = copied(ordered(graph, "I1", "I10", "I4", "I7", "I2", "I11", "I5", "I6", "I8", "I9"), "I2 I11 I5 I6 I8 I9", strides)
    members = [[part.domain.sym.name for part in d.parts] for d in copy.dimensions]
    assert members == [["I7", "I8", "I9"], ["I5", "I6"], ["I3"], ["I1", "I2"], ["I4"]]
    assert dims(copy) == [
        "56:1 8/1 @ 8 * I7", "6:56 6/1 @ 0", "20:1720 8/1 @ 8 * I10", "12:34400 4/1 @ 4 * I1", "5:344 1/1 @ I4",
    ]  # fmt: skip
    assert roles(copy)["box"] == "I2 I5 I6 I8 I9 I11"
    assert roles(copy)["coordinate"] == "I1 I4 I7 I10"


def test_figure_3_matmul_is_two_dimensional() -> None:
    """[M1, M2, K1, K2, K3] as [M1·M2, K1·K2·K3], for every size."""
    names = [sym(n) for n in ("m1", "m2", "k1", "k2", "k3")]
    graph = (
        DomainGraph.of(*((str(n).upper(), n) for n in names))
        .merge("M1", "M2", "M")
        .merge("K1", "K2", "k")
        .merge("k", "K3", "K")
    )
    graph = graph.split("M", 64, ("mo", "mi")).split("K", 32, ("ko", "ki"))
    copy = copied(ordered(graph, "mo", "ko", "mi", "ki"), "mi ki")
    assert dims(copy) == ["k1 * k2 * k3:1 32/1 @ 32 * ko", "m1 * m2:k1 * k2 * k3 64/1 @ 64 * mo"]
    assert {str(f.asked.condition.expr) for f in findings(copy.tensor_map(sym("base")), NOTHING).checked} >= {
        "4 * ((k1 * k2 * k3) % 4)", "m1 * m2 - 1", "(base % 16)",
    }  # fmt: skip


def test_a_pointwise_problem_is_one_dimensional() -> None:
    graph = (
        DomainGraph.of(("a", 6), ("b", 10), ("c", 12))
        .merge("a", "b", "ab")
        .merge("ab", "c", "all")
        .split("all", 128, ("o", "i"))
    )
    assert dims(copied(graph, "i")) == ["720:1 128/1 @ 128 * o"]


def test_views_by_divisible_splits() -> None:
    graph = DomainGraph.of(("y", 24), ("x", 40)).split("x", 8, ("xo", "xi")).split("y", 4, ("o", "i"))
    copy = copied(ordered(graph, "o", "xo", "i", "xi"), "i xi")
    assert dims(copy) == ["40:1 8/1 @ 8 * xo", "24:40 4/1 @ 4 * o"]
    deep = DomainGraph.of(("x", 48)).split("x", 12, ("a", "b")).split("b", 4, ("c", "d"))
    assert dims(copied(ordered(deep, "c", "a", "d"), "a d")) == ["12:1 4/1 @ 4 * c", "4:12 4/1 @ 0"]


def test_a_symbolic_view_needs_to_know_that_it_divides() -> None:
    n = sym("N")
    graph = ordered(DomainGraph.of(("x", n)).split("x", 12, ("a", "b")).split("b", 4, ("c", "d")), "a", "c", "d")
    found = planned(graph, "d")
    assert isinstance(found, Refusal)
    assert found.reason == "a view needs a split that divides: N by 12"
    known = Known({}, [multiple_of(n, 12)])
    assert dims(copied(graph, "d", known=known)) == ["N:1 4/1 @ 12 * a + 4 * c"]


@pytest.mark.parametrize(("box", "fine"), [(2, True), (3, True), (6, True), (4, False), (12, False)])
def test_boxes_over_discontiguous_merges(box: int, fine: bool) -> None:
    """Iff the split divides: equivalence.md, "Box"."""
    graph = DomainGraph.of(("y", 5), ("x", 6)).merge("y", "x", "m").split("m", box, ("o", "i"))
    found = planned(graph, "i", (8, 1))
    assert isinstance(found, Copy) == fine
    if isinstance(found, Copy):
        assert [str(d.size) for d in found.dimensions] == ["6", "5"]
        assert found.dimensions[0].box is expr(box)
    else:
        assert str(found) == (
            f"m{{30}}: y{{5}} and x{{6}} are not contiguous, and the box i{{{box}}} is not seen to divide x{{6}}; "
            "choose a box that divides 6"
        )
    assert isinstance(planned(graph, "i", (6, 1)), Copy)


def test_one_row_is_contiguous_with_anything() -> None:
    graph = DomainGraph.of(("y", 1), ("x", 6)).merge("y", "x", "m").split("m", 4, ("o", "i"))
    assert dims(copied(graph, "i", (77, 1))) == ["6:1 4/1 @ 4 * o"]


def test_room_around_the_tensor_moves_coordinates() -> None:
    """A halo: the box begins before the tensor; a cut leaves elements out of the descriptor."""
    halo = DomainGraph.of(("x", 30)).resize("x", 2, 3, "r").split("r", 8, ("o", "i"))
    assert dims(copied(halo, "i")) == ["30:1 8/1 @ 8 * o - 2"]
    cut = DomainGraph.of(("x", 30)).resize("x", -4, -3, "r").split("r", 8, ("o", "i"))
    copy = copied(cut, "i")
    assert dims(copy) == ["23:1 8/1 @ 8 * o"]
    assert str(copy.skipped) == "4"
    assert str(copy.tensor_map(sym("base")).base) == "base + 16"


def test_a_merged_box_may_be_strided_as_a_whole() -> None:
    graph = DomainGraph.of(("o", 5), ("a", 4), ("b", 6), ("x", 8)).merge("a", "b", "m").split("m", 5, ("t", "s"))
    copy = copied(ordered(graph, "o", "s", "t", "x"), "t x")
    assert dims(copy) == ["8:1 8/1 @ 0", "24:8 24/5 @ s", "5:192 1/1 @ o"]


def test_more_than_five_dimensions_composite() -> None:
    graph = DomainGraph.of(*((name, 3) for name in "abcdef"), ("x", 8)).split("x", 4, ("o", "i"))
    copy = copied(graph, "i")
    assert len(copy.dimensions) == 1  # all of them lie one in the other
    padded = [10 ** (6 - at) * 8 for at in range(6)]
    found = planned(graph, "i", (*padded, 1))
    assert isinstance(found, Refusal)
    assert found.reason == "7 dimensions, where there may be 5"


REFUSED: dict[str, tuple[DomainGraph, str, Sequence[int] | None, str]] = {
    "column major": (
        ordered(DomainGraph.of(("y", 8), ("x", 8)).split("y", 4, ("o", "i")), "o", "x", "i"), "x i", None,
        "y{8}: the innermost dimension of the box has the stride 8; let the tile be innermost where the tensor is contiguous",
    ),
    "a loop within the tile": (
        ordered(DomainGraph.of(("y", 8), ("x", 8)).split("y", 4, ("o", "i")), "i", "o", "x"), "i x", None,
        "o{2}: a loop within the tile; put the bulk leaves behind all others in the allocation",
    ),
    "a split that does not divide above the box": (
        ordered(DomainGraph.of(("x", 10)).split("x", 4, ("a", "b")).split("b", 2, ("c", "d")), "a", "c", "d"), "d", None,
        "x{10}: a view needs a split that divides: 10 by 4; choose a divisor, or box here",
    ),
    "a swizzle above the box": (
        ordered(
            DomainGraph.of(("y", 8), ("x", 8)).swizzle("y", "x", Shift(), ("p", "q")).split("q", 4, ("o", "i")), "p", "o", "i"
        ), "i", None,
        "y{8}: a swizzle between the tensor and the box; swizzle the tile, or its coordinates",
    ),
    "strides of discontiguous boxes": (
        ordered(DomainGraph.of(("a", 4), ("b", 6), ("x", 8)).merge("a", "b", "m").split("m", 5, ("t", "s")), "s", "t", "x"),
        "t x", (50, 8, 1), "m{24}: a{4} and b{6} are not contiguous; stride each of them",
    ),
    "a box that is no number": (
        DomainGraph.of(("x", sym("N"))), "x", None, "x{N}: the extent of a box is no number; fix it when building",
    ),
    "room around room": (
        DomainGraph.of(("x", 9)).resize("x", 1, 1, "r").resize("r", 1, 0, "q").split("q", 4, ("o", "i")), "i", None,
        "r{11}: room around what has room around it; resize once",
    ),
    "a merge without a box": (
        DomainGraph.of(("y", 4), ("x", 6)).merge("y", "x", "m").split("m", 6, ("o", "i")).split("i", 2, ("p", "q")),
        "q", (9, 1),
        "m{24}: y{4} and x{6} are not contiguous, and no split boxes their merge; "
        "leave them apart, or make the tensor contiguous",
    ),
    "a cut within the tile": (
        DomainGraph.of(("x", 12)).split("x", 4, ("o", "i")).resize("i", 0, -1, "j"), "j", None,
        "i{4}: the allocation has no place for some of the tile; cut the tensor before it is boxed",
    ),
    "too large a tile": (
        DomainGraph.of(("y", 4096), ("x", 4096)), "y x", None,
        "y{4096}: the tile is larger than any shared memory; split the box",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    graph, bulk, strides, message = REFUSED[name]
    found = planned(graph, bulk, strides)
    assert isinstance(found, Refusal), found
    assert str(found) == message


def test_unknown_strides_and_signs_are_refused() -> None:
    graph = DomainGraph.of(("y", 4), ("x", 8))
    found = plan(Memory(graph, (None, expr(1))), ["x"], FLOAT)
    assert str(found) == "y{4}: its stride is not known; give the stride of each dimension"
    moved = DomainGraph.of(("x", 8)).resize("x", sym("L"), 0, "r").split("r", 4, ("o", "i"))
    assert str(planned(moved, "i")) == "x{8}: whether L makes room or cuts is not known; give its sign"
    assert dims(copied(moved, "i", known=Known({}, [Fact(0, sym("L"), None)]))) == ["8:1 4/1 @ -L + 4 * o"]


def test_loops_that_are_not_allocated() -> None:
    """Grid loops move coordinates, and not the tile."""
    graph = ordered(figures.BY_PARTITIONING, "I3", "I5", "I4", "I6")
    found = plan(Memory.dense(graph), ["I4", "I6"], FLOAT, allocated=["I5", "I4", "I6"])
    assert isinstance(found, Copy)
    assert str(found.tile.place) == "24 * I5"


def test_the_rules_are_asked_where_the_copy_runs() -> None:
    """Tiles of 4 KiB begin where they must, tiles of 96 bytes do not; coordinates keep to 32 bits as sizes do."""
    n = sym("N")
    known = Known({}, [Fact(1, n, 2**16), multiple_of(n, 4), multiple_of(sym("base"), 16), multiple_of(sym("shared"), 1024)])
    graph = DomainGraph.of(("y", n), ("x", n)).split("y", 32, ("yo", "yi")).split("x", 32, ("xo", "xi"))
    copy = copied(ordered(graph, "yo", "xo", "yi", "xi"), "yi xi", known=known)
    found = findings(copy.use(sym("base"), sym("shared")), copy.inside)
    assert not found.violated
    assert not found.checked
    small = copied(figures.BY_PARTITIONING.reorder("I3", "I5", "I4", "I6"), "I4 I6")
    wrong = findings(small.use(expr(0), expr(0)), small.inside)
    assert [each.rule.name for each in wrong.violated] == ["inner box alignment"]
    assert [each.rule.name for each in wrong.checked] == ["coordinate alignment", "shared address"]
