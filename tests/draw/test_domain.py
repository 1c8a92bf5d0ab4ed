"""Pictures of graphs: everything is there, once, legible, and the same each time."""

from __future__ import annotations

import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from tests.draw.graphs import SVG, classed, random_graph, texts
from tests.steps import growth, pairs

from texpr.affine.expr import Expr, expr, sym
from texpr.domain.graph import DomainGraph
from texpr.domain.predicates.needed import predicates
from texpr.domain.transforms.swizzle import Xor
from texpr.draw.domain import LONGEST, NO_LOWER, Marks, draw_domain
from texpr.draw.page.labels import extent_text, label
from texpr.draw.page.text import fit

THREE = DomainGraph.of(("I0", 15)).split("I0", 6, ("I1", "I2")).split("I1", 2, ("I3", "I4")).split("I2", 4, ("I5", "I6"))


@pytest.mark.parametrize("seed", range(40))
def test_everything_is_there(seed: int) -> None:
    graph = random_graph(seed, seed % 20)
    svg = draw_domain(graph)
    written = texts(svg)
    again = [leaf for leaf in graph.leaves if leaf in graph.logical] if graph.transforms else []
    ends = ["logical", "leaves"] if graph.transforms else []
    wanted = [
        *(fit(label(domain), LONGEST) for domain in (*graph.domains(), *again)),
        *(t.title for t in graph.transforms),
        *ends,
    ]
    assert sorted(written) == sorted(wanted)
    assert len(classed(svg, "transform")) == len(graph.transforms)
    assert len(classed(svg, "same")) == len(again)
    edges = sum(len(t.inputs) + len(t.outputs) for t in graph.transforms) + len(again)
    assert len(classed(svg, "edge")) == len(classed(svg, "head")) == edges


@pytest.mark.parametrize("seed", range(40))
def test_areas_do_not_meet_and_hold_their_text(seed: int) -> None:
    """The rectangles and ellipses of the document itself; at random, with predicates at their sides."""
    graph = random_graph(seed, 12)
    svg = draw_domain(graph, Marks(notes={d.sym.name: "a note" for d in graph.domains()[::2]}))
    areas = [(float(e.get("x", 0)), float(e.get("y", 0)), float(e.get("width", 0)), 30.0) for e in classed(svg, "domain")]
    for oval in classed(svg, "transform"):
        cx, cy, rx, ry = (float(oval.get(name, 0)) for name in ("cx", "cy", "rx", "ry"))
        areas.append((cx - rx, cy - ry, 2 * rx, 2 * ry))
    notes = [(float(e.get("x", 0)), float(e.get("y", 0)) - 8, 30.0, 8.0) for e in classed(svg, "reason")]
    assert len(notes) == (len(graph.domains()) + 1) // 2
    found = areas + notes
    for at, (x, y, wide, high) in enumerate(found):
        for u, v, broad, tall in found[at + 1 :]:
            assert x + wide <= u or u + broad <= x or y + high <= v or v + tall <= y
    page = ElementTree.fromstring(svg)
    assert all(x + wide < float(page.get("width", 0)) for x, _, wide, _ in found)


def test_leaves_stand_below_in_order() -> None:
    graph = THREE.reorder("I6", "I4", "I3", "I5")
    places = {"".join(e.itertext()): (float(e.get("x", 0)), float(e.get("y", 0))) for e in classed(draw_domain(graph), "name")}
    row = [places[label(leaf)] for leaf in graph.leaves]
    assert row == sorted(row)
    assert len({y for _, y in row}) == 1
    assert all(y <= row[0][1] for _, y in places.values())


def test_a_leaf_that_is_transformed_too_comes_twice() -> None:
    graph = THREE.above((THREE["I1"].sym, THREE["I2"].sym))
    both = DomainGraph(graph.logical, THREE.transforms, (*graph.leaves, *THREE.leaves))
    svg = draw_domain(both)
    assert len(classed(svg, "same")) == 2
    assert texts(svg).count("I1{3}") == texts(svg).count("I2{6}") == 2
    row = [float(e.get("x", 0)) for e in classed(svg, "name") if e.get("y") == classed(svg, "name")[-1].get("y")]
    assert len(row) == 6


def test_predicates_of_the_seed() -> None:
    svg = draw_domain(THREE, Marks(predicates(THREE)))
    assert sorted("".join(e.itertext()) for e in classed(svg, "kept")) == ["I0 < 15", "I2 < 6"]
    assert ["".join(e.itertext()) for e in classed(svg, "removed")] == ["I1 < 3"]
    assert ["".join(e.itertext()) for e in classed(svg, "reason")] == ["Theorem 1"]
    assert len(classed(svg, "strike")) == 1
    assert NO_LOWER in texts(svg)
    assert "Kept: I0 < 15." in (ElementTree.fromstring(svg).findtext(f"{SVG}desc") or "")


def test_a_lower_bound_that_is_kept_is_shown() -> None:
    graph = DomainGraph.of(("i", 6)).resize("i", 1, 1, "r")
    svg = draw_domain(graph, Marks(predicates(graph)))
    assert sorted("".join(e.itertext()) for e in classed(svg, "kept")) == ["0 <= i", "i < 6"]
    assert NO_LOWER not in texts(svg)


def test_it_is_said_that_lower_bounds_are_left_out() -> None:
    graph = DomainGraph.of(("i", 10)).split("i", 4, ("o", "j"))
    found = predicates(graph)
    assert [str(each.bound) for each in found.removed] == ["0 <= i"]
    assert NO_LOWER in texts(draw_domain(graph, Marks(found)))
    assert NO_LOWER not in texts(draw_domain(DomainGraph.of(("i", 10)), Marks(predicates(DomainGraph.of(("i", 10))))))


def test_roles_have_a_legend() -> None:
    svg = draw_domain(THREE, Marks(roles={"I0": "partitioned", "I2": "box"}))
    assert len(classed(svg, "partitioned")) == len(classed(svg, "box")) == 2
    assert texts(svg)[-2:] == ["partitioned IterDomain", "box IterDomain"]
    with pytest.raises(KeyError, match="there is no role `lid`; there are partitioned,"):
        draw_domain(THREE, Marks(roles={"I0": "lid"}))


def test_the_figures_words() -> None:
    graph = DomainGraph.of(("a", 8), ("b", 16)).resize("a", 0, 2, "r").resize("r", 0, 6, "s").swizzle("s", "b", Xor(3))
    assert {"Resize(0, 2)", "Swizzle(xor 8)", "s_s{16}"} <= set(texts(draw_domain(graph)))


@pytest.mark.parametrize("name", ['<i> & "j"', "]]>", "a\x00b\x1b[31m", "\u202etxet", "名前", "e\u0301", "I" * 500, "", " "])
def test_odd_names_are_escaped(name: str) -> None:
    graph = DomainGraph.of((name, 6)).split(name, 4, (f"{name}o", f"{name}i"))
    svg = draw_domain(graph, Marks(predicates(graph), notes={name: name}), title=name)
    ElementTree.fromstring(svg)
    assert all(c.isprintable() or c == "\n" for c in svg)
    assert float(ElementTree.fromstring(svg).get("width", 0)) < 2000


def test_a_long_label_shows_whole_under_a_pointer() -> None:
    graph = DomainGraph.of(("long" * 30, 6))
    titles = [e.text for e in ElementTree.fromstring(draw_domain(graph)).iter(f"{SVG}title")]
    assert f"{'long' * 30}{{6}}" in titles


N, M = sym("n"), sym("m")


@pytest.mark.parametrize(
    ("extent", "text"),
    [
        (expr(7), "7"),
        (-((-N) // 6), "⌈n/6⌉"),
        ((N + 5) // 6, "⌈n/6⌉"),
        (-((-N) // M), "⌈n/m⌉"),
        ((N * M + 5) // 6, "⌈(m * n)/6⌉"),
        (-(((-N) // 5) // 2), "⌈⌈n/5⌉/2⌉"),
        (N // 6, "⌊n/6⌋"),
        (((M + 127) // 128) * ((N + 63) // 64), "⌈m/128⌉ * ⌈n/64⌉"),
        (((-M) // 128) * ((-N) // 64) * 3, "3 * ⌈m/128⌉ * ⌈n/64⌉"),
        (-(N // 6), "-(n / 6)"),
        (-((-((N // 6) * (M // 6))) // 4), "⌈(⌊m/6⌋ * ⌊n/6⌋)/4⌉"),
        (N + 1, "n + 1"),
    ],
)
def test_division_that_rounds_up(extent: Expr, text: str) -> None:
    assert extent_text(extent) == text


def test_bytes_are_the_same_in_another_process() -> None:
    code = (
        "from tests.draw.graphs import random_graph as g; from texpr.draw import draw_domain as d; print(d(g(3, 15)), end='')"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {draw_domain(random_graph(3, 15)).encode()}


def drawn(seed: int, transforms: int) -> None:
    draw_domain(random_graph(seed, transforms))


def comparing(seed: int, transforms: int) -> None:
    """As if each transform were compared with each other."""
    drawn(seed, transforms)
    pairs(transforms, 150)


TWICE = 2.6
"""Of a picture twice as large, whose rows are wider, too."""


@pytest.mark.parametrize("seed", range(5))
def test_twice_as_many_transforms_take_twice_the_steps(seed: int) -> None:
    """`bench/parts.py` measures how long 40 take."""
    assert growth(drawn, seed, length=40) < TWICE


def test_what_compares_each_transform_with_each_other_is_found() -> None:
    assert growth(comparing, 0, length=40) > TWICE
