"""`texpr draw` of the programs in `examples`: every picture as it is committed, and the seeds' figures from their programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest
from docs.figures import tma as figures
from tests.draw.graphs import classed
from tests.lowering.test_tensor import EXAMPLES as COPIES

from texpr.domain.graph import DomainGraph
from texpr.draw.copies import loaded, marks
from texpr.draw.kinds import KINDS, draw_instruction
from texpr.draw.staged import Written, is_same, part_of, trimmed, written
from texpr.driver import fix, fix_schedule, lower, parse
from texpr.ir import program as ir
from texpr.ir.kernel import CopyTensor, kernels, walk
from texpr.isa.registry import resolve
from texpr.planner.plan import plan
from texpr.relation.facts import known
from texpr.schedule.apply import followed
from texpr.schedule.rewrite.materialise import given
from texpr.support.record import replace
from texpr.tma.correctness import Plain, Redirected

ROOT = Path(__file__).parents[2]
TARGET = resolve("sm_90a")
OPEN = {"figure_both"}
"""Examples that are drawn with sizes that are open."""

KERNELS = {
    "matmul": {"M": 256, "N": 256, "K": 64},
    "transpose": {"M": 64, "N": 64},
    "conv2d": {"B": 1, "H": 34, "W": 34, "C": 16, "R": 3, "S": 3, "F": 64},
    "jacobi": {"H": 66, "W": 66, "T": 2},
}
"""What is drawn as the compiler schedules it, and at which sizes."""


def function_of(path: Path, sizes: Mapping[str, int] | None = None) -> ir.Function:
    text = path.read_text(encoding="utf-8")
    consts = {name: value for name, value in (sizes or {}).items() if f"const {name}:" in text}
    (function,) = parse(text, consts).functions
    return function


def drawn(function: ir.Function, what: str, sizes: Mapping[str, int], own: bool) -> str:
    """The picture, with the function's `own` schedule or the one that is found."""
    written = function.schedules[0] if own else None
    function, fixed = fix(function, sizes)
    schedule = fix_schedule(written, fixed) if written else plan(function, TARGET).schedule
    return KINDS[what](function, schedule, TARGET)


@pytest.mark.parametrize("name", COPIES)
def test_copies_of_an_example(name: str, golden: Callable[[Path, str], None]) -> None:
    svg = drawn(function_of(ROOT / f"examples/tma/{name}.te"), "tma", {} if name in OPEN else COPIES[name][1], own=True)
    ElementTree.fromstring(svg)
    golden(ROOT / f"docs/gallery/tma/{name}.svg", svg)


def test_the_page_shows_each_program_and_picture_once() -> None:
    page = (ROOT / "docs/gallery/tma/README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"!\[[^\]]+\]\(([\w-]+)\.svg\)", page)) == sorted(COPIES)
    assert sorted(re.findall(r"\(../../../examples/tma/([\w-]+)\.te\)", page)) == sorted(COPIES)
    assert {path.stem for path in (ROOT / "docs/gallery/tma").glob("*.svg")} == set(COPIES)


@pytest.mark.parametrize("what", ["mapping", "timeline"])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_as_the_compiler_schedules_them(name: str, what: str, golden: Callable[[Path, str], None]) -> None:
    sizes = KERNELS[name]
    function = function_of(ROOT / f"examples/{name}.te", sizes)
    svg = drawn(function, what, {size.name: sizes[size.name] for size in function.sizes}, own=False)
    ElementTree.fromstring(svg)
    golden(ROOT / f"docs/gallery/kernels/{name}-{what}.svg", svg)


FRAGMENTS = {
    "mma": lambda: draw_instruction(function_of(ROOT / "examples/matmul.te"), "mma_m16n8k16_f32_bf16"),
    "wgmma": lambda: drawn(function_of(ROOT / "examples/hopper/matmul.te"), "fragment", {}, own=True),
}
"""One instruction of a warp, by its name, and one of a warpgroup, as a plan uses it."""


@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragments(name: str, golden: Callable[[Path, str], None]) -> None:
    svg = FRAGMENTS[name]()
    ElementTree.fromstring(svg)
    golden(ROOT / f"docs/gallery/kernels/{name}-fragment.svg", svg)


def test_the_page_of_kernels_shows_each_once() -> None:
    page = (ROOT / "docs/gallery/kernels/README.md").read_text(encoding="utf-8")
    wanted = [f"{name}-{what}" for name in KERNELS for what in ("mapping", "timeline")]
    wanted = sorted([*wanted, *(f"{name}-fragment" for name in FRAGMENTS)])
    assert sorted(re.findall(r"!\[[^\]]+\]\(([\w-]+)\.svg\)", page)) == wanted
    assert sorted(path.stem for path in (ROOT / "docs/gallery/kernels").glob("*.svg")) == wanted


WEAK, STRONG, PLAIN = "weak", "strong", "no holes"
FIGURES: dict[str, tuple[DomainGraph, str, str]] = {
    "figure_partitioning": (figures.BY_PARTITIONING.reorder("I3", "I5", "I4", "I6"), "I4 I6", PLAIN),
    "figure_compositing": (DomainGraph.of(("I1", 1024), ("I2", 2), ("I3", 4), ("I4", 8)), "I3 I4", PLAIN),
    "figure_strided": (figures.STRIDED.reorder("I3", "I5", "I8", "I7", "I6"), "I7 I6", PLAIN),
    "figure_weak": (figures.WEAK, "I3", WEAK),
    "figure_strong": (figures.STRONG, "I8", STRONG),
    "figure_strong_too": (figures.STRONG_TOO, "I9", STRONG),
    "figure_not_strong": (figures.NOT_STRONG, "I5 I2", WEAK),
}
"""The seeds' figures: graph, the leaves that the hardware runs, and whether what is loaded is a figure, too."""


def by_schedule(name: str, schedule: ir.Schedule | None = None) -> Mapping[str, Written]:
    """What the schedule of an example wrote, by the map's name."""
    function = function_of(ROOT / f"examples/tma/{name}.te")
    chosen = schedule or function.schedules[0]
    every = tuple(kernels(lower(function, TARGET.name, schedule=chosen).plan.steps))
    return written(followed(function, chosen, TARGET), function, every, known(given(function)))


def plainly(graph: DomainGraph) -> tuple[list[str], list[str], list[str]]:
    """A graph with names as the programs have them."""
    every = graph.logical, graph.transforms, graph.leaves
    logical, transforms, leaves = ([str(each).replace("I", "i") for each in part] for part in every)
    return logical, transforms, leaves


@pytest.mark.parametrize("name", FIGURES)
def test_a_program_has_the_graph_and_the_data_of_its_figure(name: str) -> None:
    """The graph of the figure and its roles, which tests/tma compares with the document, and every number of its array."""
    graph, bulk, data = FIGURES[name]
    (found,) = by_schedule(name).values()
    wanted = figures.copied(graph, bulk)
    assert plainly(found.copy.graph) == plainly(graph)
    assert {n: kind for n, kind in marks(found.copy).roles.items()} == {
        n.replace("I", "i"): kind for n, kind in marks(wanted).roles.items()
    }
    if data != PLAIN:
        assert found.lowering is not None
        cells, expected = loaded(found.copy, found.lowering), figures.loaded(wanted)
        assert cells is not None
        assert cells.texts.tolist() == expected.texts.tolist() and cells.kinds.tolist() == expected.kinds.tolist()


def test_boxes_in_both_ways() -> None:
    """Figure 6 of the introduction: five dimensions, of which the second is partitioned."""
    (found,) = by_schedule("figure_both").values()
    roles = marks(found.copy).roles
    assert {n for n, kind in roles.items() if kind == "box"} == {"i2", "i5", "i6", "i8", "i9", "i11"}
    assert {n for n, kind in roles.items() if kind == "coordinate"} == {"i1", "i4", "i7", "i10"}
    assert roles["i3"] == "partitioned"
    parts = {tuple(part.domain.sym.name for part in each.parts): each.box.constant for each in found.copy.dimensions}
    assert parts == {("i1", "i2"): 2, ("i3",): 4, ("i4",): 1, ("i5", "i6"): 6, ("i7", "i8", "i9"): 8}


def test_a_graph_is_taken_only_if_it_plans_the_kernel_s_copy() -> None:
    function = function_of(ROOT / "examples/tma/figure_strided.te")
    (kernel,) = kernels(lower(function, TARGET.name, schedule=function.schedules[0]).plan.steps)
    (map,), (found,) = kernel.maps, by_schedule("figure_strided").values()
    assert is_same(found.copy, map) and map.box == (6, 6)
    assert found.copy.dimensions[1].box.constant == 4  # the same tile
    others = {"box": (6, 7), "steps": (1, 2), "sizes": (map.sizes[1], map.sizes[0]), "strides": (map.strides[0] + 16,)}
    for field, value in others.items():
        assert not is_same(found.copy, replace(map, **{field: value})), field


def test_what_is_joined_to_other_dimensions_is_no_part() -> None:
    graph = DomainGraph.of(("i", 8), ("j", 6), ("k", 4)).split("i", 2, ("a", "b")).merge("j", "k", "m")
    i, j, k = (domain.sym for domain in graph.logical)
    part = part_of(graph, (i,))
    assert part is not None and [str(t) for t in part.transforms] == [str(graph.transforms[0])]
    assert part_of(graph, (i, j)) is None and part_of(graph, (k, j)) is not None
    inside = {graph["a"].sym, graph["b"].sym}
    assert trimmed(graph, inside) == (DomainGraph(graph.logical, graph.transforms[1:], (graph["m"], graph["i"])), ("i",))


def test_stores_leave_out_what_loads_fill() -> None:
    svg = drawn(function_of(ROOT / "examples/tma/copy.te"), "tma", {"M": 37, "K": 68}, own=True)
    assert classed(svg, "zero") and classed(svg, "left")


@pytest.mark.parametrize(("name", "boxes"), [("figure_strong", 1), ("figure_weak", 2), ("figure_not_strong", 1)])
def test_what_is_drawn_as_strong_is_what_the_kernel_asks(name: str, boxes: int) -> None:
    """With `fill=zero`: nothing is asked at level 1, whole tiles at level 2; of level 3 no data are drawn, as holes stay."""
    text = (ROOT / f"examples/tma/{name}.te").read_text(encoding="utf-8")
    (function,) = parse(text.replace("via=tma)", "via=tma, fill=zero)")).functions
    schedule = function.schedules[0]
    (kernel,) = kernels(lower(function, TARGET.name, schedule=schedule).plan.steps)
    (found,) = written(followed(function, schedule, TARGET), function, (kernel,), known(given(function))).values()
    copies = [stmt for stmt in walk(kernel.body) if isinstance(stmt, CopyTensor)]
    assert len(copies) == boxes
    if name == "figure_not_strong":
        assert found.lowering is None
        return
    assert found.lowering is not None
    cells = loaded(found.copy, found.lowering)
    assert cells is not None and set(cells.kinds.flat) == {"value", "zero"}
    assert isinstance(found.lowering, Redirected if boxes == 2 else Plain)
