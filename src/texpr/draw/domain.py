"""A graph of IterDomains: boxes for these, ellipses for transforms, the logical domain on top, the leaves below in order.

Left and right of a transform are outer and inner. A leaf that is a logical IterDomain, or is also transformed, is repeated
among the leaves, dashed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import sqrt

from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import Bound, IterDomain, Side
from texpr.domain.predicates.needed import Predicates
from texpr.domain.transform import Transform
from texpr.draw.page.labels import bound_text, label
from texpr.draw.page.layers import Edge, Layered, Node, Station, layered
from texpr.draw.page.picture import Picture, area, document, head, legend, line, stacked
from texpr.draw.page.style import ROLES
from texpr.draw.page.svg import Element, element, group, number, words
from texpr.draw.page.text import CAPTION, KEPT, NAME, REASON, REMOVED, TITLE, Font, fit, width
from texpr.support.record import Record, field

LONGEST = 40
"""The most characters of a label; longer ones are abbreviated in the middle, with the full text as tooltip."""

_BOX = 30.0  # height
_OVAL = 30.0
_PAD = 12.0
_HEAD = 6.0  # of an arrowhead, slightly less so that the line ends inside it
_ASIDE = 8.0  # between a box and its annotations
_ROW = 16.0  # of an annotation
_PORT = 0.4  # the offset of the two edges of a side on an ellipse, as a fraction of its half width
_ROWS = ("logical", "leaves")
NO_LOWER = "No index is below 0, by theorem; comparisons with 0 are not shown."


class Line(Record):
    """An annotation beside a box."""

    text: str
    font: Font
    struck: bool = False


class _Shape(Record):
    """A box or an ellipse: its label, its area, its annotations."""

    kind: str
    label: str
    half: float
    layer: int
    beside: tuple[Line, ...] = ()

    @property
    def node(self) -> Node:
        """The area that it occupies, outline included; the space before annotations is part of the gap to the next."""
        aside = max((width(each.text, each.font) for each in self.beside), default=0.0)
        height = max(_OVAL if self.kind == "transform" else _BOX, len(self.beside) * _ROW)
        return Node(self.layer, self.half + 1, self.half + 1 + aside, height)


class Marks(Record):
    """The annotations of a graph's picture.

    `predicates` are beside their IterDomains: kept ones bold, removed ones struck out above the theorem that implies them.
    `roles` gives IterDomains, by name, a class of `texpr.draw.page.style.ROLES`; a legend explains each. `notes` are texts
    beside IterDomains, by name.
    """

    predicates: Predicates | None = None
    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    notes: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def hides_lower(self) -> bool:
        """Whether comparisons with 0 are omitted: if no index can be negative they are all removed, for the same simple
        reasons."""
        if self.predicates is None or any(kept.bound.side is Side.LOW for kept in self.predicates.kept):
            return False
        return any(removed.bound.side is Side.LOW for removed in self.predicates.removed)

    def kind(self, domain: IterDomain) -> str:
        """The class of a box. Raises KeyError for an unknown role."""
        role = self.roles.get(domain.sym.name, "domain")
        if role not in ROLES and role != "domain":
            raise KeyError(f"there is no role `{role}`; there are {', '.join(ROLES)}")
        return role

    def beside(self) -> dict[str, list[Line]]:
        """The annotations of each IterDomain."""
        found = {name: [Line(fit(note, LONGEST), REASON)] for name, note in self.notes.items()}
        shows_lower = not self.hides_lower
        kept, removed = (self.predicates.kept, self.predicates.removed) if self.predicates else ((), ())
        for bound in sorted((each.bound for each in kept), key=_is_high):
            found.setdefault(bound.domain.sym.name, []).append(Line(fit(bound_text(bound), LONGEST), KEPT))
        for each in sorted(removed, key=lambda each: _is_high(each.bound)):
            if shows_lower or _is_high(each.bound):
                struck = Line(fit(bound_text(each.bound), LONGEST), REMOVED, struck=True)
                found.setdefault(each.bound.domain.sym.name, []).extend((struck, Line(fit(each.theorem, LONGEST), REASON)))
        return found


def _is_high(bound: Bound) -> bool:
    return bound.side is Side.HIGH


PLAIN = Marks()


def draw_domain(graph: DomainGraph, marks: Marks = PLAIN, *, title: str = "IterDomain graph") -> str:
    """The graph as an SVG document. Raises KeyError for an unknown role."""
    return document(domain_picture(graph, marks), title, describe(graph, marks.predicates))


def domain_picture(graph: DomainGraph, marks: Marks = PLAIN, *, explained: bool = True) -> Picture:
    """The graph and, where `explained`, a legend below it. Raises KeyError as `draw_domain`."""
    shapes, edges = _shapes(graph, marks)
    last = max(shape.layer for shape in shapes) if shapes else 0
    placed = layered([shape.node for shape in shapes], edges, frozenset((0, last)))
    body = [element for way in placed.ways for element in _way(way)]
    body += [_drawn(shape, x, y) for shape, (x, y) in zip(shapes, placed.anchors, strict=True)]
    picture = Picture(placed.width, placed.height, tuple(body))
    if last:
        picture = _with_rows(picture, placed, shapes)
    if not explained:
        return picture
    below: list[Picture] = []
    if shown := [(role, ROLES[role]) for role in ROLES if role in marks.roles.values()]:
        below.append(legend(shown))
    if marks.hides_lower:
        below.append(line(NO_LOWER, CAPTION))
    return stacked((picture, stacked(below, 8))) if below else picture


def describe(graph: DomainGraph, predicates: Predicates | None = None) -> str:
    """The graph in words, for screen readers."""
    parts = [f"Logical domain: {_listed(graph.logical)}."]
    parts += [f"{t.title} of {_listed(t.inputs)} gives {_listed(t.outputs)}." for t in graph.transforms]
    parts.append(f"Leaves: {_listed(graph.leaves)}.")
    if predicates:
        places = {domain: place for place, domain in enumerate(graph.domains())}
        said = [(kept.bound, "Kept") for kept in predicates.kept]
        said += [(removed.bound, f"Removed by {removed.theorem}") for removed in predicates.removed]
        said.sort(key=lambda each: (places[each[0].domain], _is_high(each[0])))
        parts += [f"{fate}: {bound_text(bound)}." for bound, fate in said]
    return " ".join(parts)


def _listed(domains: Sequence[IterDomain]) -> str:
    return ", ".join(label(domain) for domain in domains) or "nothing"


def _shapes(graph: DomainGraph, marks: Marks) -> tuple[list[_Shape], list[Edge]]:
    """Every box and ellipse with its layer, top-down, and the edges between them."""
    shapes: list[_Shape] = []
    edges: list[Edge] = []
    at: dict[IterDomain, int] = {}
    beside = marks.beside()
    used = {d for t in graph.transforms for d in t.inputs}
    ends = frozenset(graph.leaves) - used - frozenset(graph.logical)
    depth = _depths(graph)
    last = max(depth.values(), default=0)

    def box(domain: IterDomain, kind: str, layer: int) -> int:
        text = label(domain)
        lines = () if kind.endswith("same") else tuple(beside.get(domain.sym.name, ()))
        shapes.append(_Shape(kind, text, width(fit(text, LONGEST), NAME) / 2 + _PAD, layer, lines))
        return len(shapes) - 1

    for domain in graph.domains():
        if domain not in ends:
            at[domain] = box(domain, marks.kind(domain), depth[domain])
    for leaf in graph.leaves:
        if leaf in ends:
            at[leaf] = box(leaf, marks.kind(leaf), last)
        elif last:
            edges.append(Edge(at[leaf], box(leaf, f"{marks.kind(leaf)} same", last), (0, _BOX / 2), (0, -_BOX / 2)))
    for transform in graph.transforms:
        half = width(fit(transform.title, LONGEST), TITLE) / 2 + 2 * _PAD
        shapes.append(_Shape("transform", transform.title, half, depth[transform.outputs[0]] - 1))
        edges += _edges(transform, len(shapes) - 1, half, at)
    return shapes, edges


def _depths(graph: DomainGraph) -> dict[IterDomain, int]:
    """The layer of each IterDomain: even numbers; transforms have odd ones."""
    depth = dict.fromkeys(graph.logical, 0)
    for transform in graph.transforms:
        below = 2 + max(depth[d] for d in transform.inputs)
        depth.update(dict.fromkeys(transform.outputs, below))
    return depth


def _edges(transform: Transform, oval: int, half: float, at: Mapping[IterDomain, int]) -> list[Edge]:
    """Edges from the inputs to the ellipse `oval` and from it to the outputs, the first of two on the left."""
    entering = zip(transform.inputs, _ports(len(transform.inputs)), strict=True)
    leaving = zip(transform.outputs, _ports(len(transform.outputs)), strict=True)
    edges = [Edge(at[d], oval, (0, _BOX / 2), (share * half, -_rim(share))) for d, share in entering]
    return edges + [Edge(oval, at[d], (share * half, _rim(share)), (0, -_BOX / 2)) for d, share in leaving]


def _ports(count: int) -> tuple[float, ...]:
    """The attachment points of `count` edges on one side of an ellipse, as fractions of its half width."""
    return (0.0,) if count == 1 else tuple(_PORT * (2 * i / (count - 1) - 1) for i in range(count))


def _rim(share: float) -> float:
    """The height of an ellipse's rim above its centre, at that fraction of its half width."""
    return _OVAL / 2 * sqrt(1 - share * share)


def _drawn(shape: _Shape, x: float, y: float) -> Element:
    """The shape at its anchor (x, y)."""
    short = fit(shape.label, LONGEST)
    if shape.kind == "transform":
        outline = element("ellipse", kind="transform", cx=x, cy=y, rx=shape.half, ry=_OVAL / 2)
        parts = [outline, words(short, x, y, TITLE, anchor="middle", limit=LONGEST)]
    else:
        parts = [*area(shape.kind, x - shape.half, y - _BOX / 2, 2 * shape.half, _BOX, rx=4)]
        parts.append(words(short, x, y, NAME, anchor="middle", limit=LONGEST))
    left = x + shape.half + _ASIDE
    for row, each in enumerate(shape.beside):
        middle = y + (row - (len(shape.beside) - 1) / 2) * _ROW
        parts.append(words(each.text, left, middle, each.font))
        if each.struck:
            end = left + width(each.text, each.font)
            parts.append(element("path", kind="strike", d=f"M{number(left - 2)} {number(middle)}H{number(end + 2)}"))
    return group(*parts, title=None if short == shape.label else shape.label)


def _way(way: Sequence[Station]) -> tuple[Element, Element]:
    """An edge, straight where it passes a layer and curved between layers, and its arrowhead."""
    first, last = way[0], way[-1]
    steps = [f"M{number(first.x)} {number(first.top)}"]
    for before, after in pairwise(way):
        bottom = after.bottom - (_HEAD if after is last else 0)
        top = min(after.top, bottom)
        if before.x != after.x:
            steps.append(f"V{number(before.bottom)}")
            middle = number((before.bottom + top) / 2)
            steps.append(f"C{number(before.x)} {middle} {number(after.x)} {middle} {number(after.x)} {number(top)}")
        if before.x == after.x or top < bottom:
            steps.append(f"V{number(bottom)}")
    return element("path", kind="edge", d="".join(steps)), head(way[-1].x, way[-1].bottom)


def _with_rows(picture: Picture, placed: Layered, shapes: Sequence[_Shape]) -> Picture:
    """The picture with labels of its first and last row to their left."""
    aside = max(width(row, CAPTION) for row in _ROWS) + 18
    ends = min(y for _, y in placed.anchors), max(y for _, y in placed.anchors)
    names = [words(row, 0, y, CAPTION) for row, y in zip(_ROWS, ends, strict=True)]
    return Picture(picture.width + aside, picture.height, (*names, group(*picture.body, x=aside)))
