"""From a graph over a tensor's dimensions, and the leaves that the hardware runs, to one copy of the engine, or a refusal.

    tensor ─ views ─▶ TMA domain ─ boxing splits ─▶ coordinates, boxes ─ striding splits ─▶ tiles ─▶ leaves

A dimension of the copy is an IterDomain of the TMA domain, or several that nest (*compositing*): the inner one is whole in
the box, or its coordinates never leave its bounds, or the limit of five dimensions requires it. Source: "Introduction to TMA
Support in NVFuser" (NVIDIA). The theory is docs/theory/tma.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import pairwise

from texpr.affine.expr import ONE, ZERO, Expr
from texpr.affine.facts import Known
from texpr.domain.context import Context
from texpr.domain.contiguity import Memory
from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import IterDomain
from texpr.domain.validity import NOTHING
from texpr.support.record import Record
from texpr.tma.boxing import MOST_BOX, Boxed, Part, Refused, Role, Views, boxed
from texpr.tma.descriptor import TensorMap, Tiled, Use
from texpr.tma.elements import Element, Fill
from texpr.tma.swizzle import Swizzle
from texpr.tma.tile import Tile, tile

MOST_RANK = 5


class Dimension(Record):
    """A dimension of the copy: `parts` of the TMA domain, outermost first; of several, the engine bounds-checks only the
    first.

    `size`, `box`, `element_stride`, `coordinate` in elements of this dimension; `stride` in elements of memory.
    """

    parts: tuple[Part, ...]
    size: Expr
    stride: Expr
    box: Expr
    element_stride: Expr
    coordinate: Expr

    @property
    def tested(self) -> IterDomain:
        """The IterDomain that the engine bounds-checks."""
        return self.parts[0].domain


class Copy(Record):
    """One copy: its dimensions, dimension 0 first, the tile in shared memory, and the roles of the IterDomains.

    `domain`: the TMA domain. `skipped`: elements of the tensor before the first one that the descriptor covers. `bulk`: the
    leaves that the hardware runs.
    """

    graph: DomainGraph
    known: Known
    element: Element
    bulk: frozenset[IterDomain]
    domain: tuple[IterDomain, ...]
    dimensions: tuple[Dimension, ...]
    tile: Tile
    boxes: Boxed
    skipped: Expr
    roles: Mapping[str, frozenset[Role]]

    @property
    def coordinates(self) -> tuple[Expr, ...]:
        """The coordinates that are operands of the instruction, over the symbols of the leaves."""
        return tuple(each.coordinate for each in self.dimensions)

    def tensor_map(self, base: Expr, fill: Fill = Fill.ZERO) -> TensorMap:
        """The descriptor, for a tensor at the address `base`."""
        size = self.element.size
        return TensorMap(
            self.element,
            base + self.skipped * size,
            tuple(each.size for each in self.dimensions),
            tuple(each.stride * size for each in self.dimensions[1:]),
            Tiled(tuple(each.box for each in self.dimensions)),
            tuple(each.element_stride for each in self.dimensions),
            swizzle=self.tile.swizzle,
            fill=fill,
        )

    def use(self, base: Expr, shared: Expr, fill: Fill = Fill.ZERO, stores: bool = False) -> Use:
        """The instruction, with the buffer at the shared address `shared`: the subject of the rules."""
        place = shared + self.tile.place * self.element.size
        return Use(self.tensor_map(base, fill), self.coordinates, place, stores=stores)

    @property
    def inside(self) -> Known:
        """What is known where the copy runs: of sizes and loop indices."""
        return Context(self.graph, self.known).known


class Refusal(Record):
    """Why a graph is no copy: the IterDomain at fault, the reason, and helps."""

    domain: IterDomain | None
    reason: str
    helps: str

    def __str__(self) -> str:
        return (f"{self.domain}: " if self.domain is not None else "") + f"{self.reason}; {self.helps}"


def plan(
    memory: Memory,
    bulk: Collection[str],
    element: Element,
    known: Known = NOTHING,
    allocated: Collection[str] | None = None,
) -> Copy | Refusal:
    """The copy in which the hardware runs the leaves `bulk`, and loops the others.

    `memory`: a graph whose logical IterDomains are the tensor's dimensions, with their strides in elements; its leaves are in
    the order of the allocation in shared memory. `allocated`: the leaves that are allocated, all by default.
    """
    graph = memory.graph
    try:
        chosen = [leaf for leaf in graph.leaves if leaf.sym.name in bulk]
        boxes = boxed(graph, chosen)
        views = Views.of(memory, boxes, known)
        parts = views.parts()
        outer = _outer(graph, chosen, allocated)
        roots = [part.root for part in parts if part.root is not None and part.root not in boxes.merged]
        whole = dict.fromkeys(boxes.merged.values())
        laid = tile(graph, (*roots, *(d for d in whole if d in boxes.strided)), chosen, outer, boxes, element.size)
        dimensions = _Dimensions(parts, boxes, laid, Context(graph, known), element).chosen()
    except Refused as refused:
        return Refusal(refused.domain, refused.reason, refused.helps)
    skipped = sum((part.skipped for part in parts), ZERO)
    roles = {name: frozenset(found) for name, found in views.roles.items()}
    return Copy(
        graph, known, element, frozenset(chosen), tuple(part.domain for part in parts), dimensions, laid, boxes, skipped, roles
    )


def _outer(graph: DomainGraph, bulk: list[IterDomain], allocated: Collection[str] | None) -> list[IterDomain]:
    """The leaves of the allocation that loops run. Raises Refused where one lies inside the tile."""
    kept = [leaf for leaf in graph.leaves if leaf in bulk or allocated is None or leaf.sym.name in allocated]
    seen = False
    for leaf in kept:
        if leaf in bulk:
            seen = seen or leaf.extent is not ONE
        elif seen and leaf.extent is not ONE:
            raise Refused(leaf, "a loop within the tile", "put the bulk leaves behind all others in the allocation")
    return [leaf for leaf in kept if leaf not in bulk]


class _Dimensions:
    """Chooses the dimensions: in the order of the tile, those without a box outermost; neighbours that composite become one."""

    def __init__(self, parts: tuple[Part, ...], boxes: Boxed, laid: Tile, context: Context, element: Element):
        self._boxes, self._context = boxes, context
        self._most_inner = MOST_BOX if laid.swizzle is Swizzle.NONE else laid.swizzle.span // element.size
        order = {top: at for at, top in enumerate(laid.order)}
        found = [self._single(part) for part in reversed(parts) if part.root not in boxes.merged]
        for whole in boxes.strided:
            place = {domain: at for at, domain in enumerate(boxes.in_order(whole))}
            members = [part for part in parts if part.root is not None and boxes.merged.get(part.root) == whole]
            members.sort(key=lambda part: place[part.root or whole])
            found += [self._strided(whole, members)] if members else []
        self._found = sorted(found, key=lambda each: self._rank(each, order))

    def chosen(self) -> tuple[Dimension, ...]:
        """At most five, the first contiguous. Raises Refused."""
        while self._fuse(self._stays_inside):
            pass
        while len(self._found) > MOST_RANK and self._fuse(lambda _: True):
            pass
        found = [each for each in self._found if not (each.size is each.box is ONE and each.coordinate is ZERO)]
        found = found or self._found[:1]
        if len(found) > MOST_RANK:
            reason = f"{len(found)} dimensions, where there may be {MOST_RANK}"
            raise Refused(found[-1].tested, reason, "merge neighbours that are contiguous")
        if found[0].stride is not ONE:
            reason = f"the innermost dimension of the box has the stride {found[0].stride}"
            raise Refused(found[0].tested, reason, "let the tile be innermost where the tensor is contiguous")
        return tuple(found)

    def _single(self, part: Part) -> Dimension:
        return Dimension((part,), part.size, part.stride, part.box, part.element_stride, self._context.simple(part.coordinate))

    def _strided(self, whole: IterDomain, members: list[Part]) -> Dimension:
        """The parts of a strided merge, in its order: one dimension, or the copy is refused."""
        outermost = members[0]
        size, box = outermost.size, outermost.box
        coordinate = outermost.coordinate
        for outer, inner in pairwise(members):
            whole_inside = inner.box is inner.size and inner.coordinate is ZERO
            if not self._adjoin(outer.stride, inner.stride * inner.size) or not whole_inside:
                raise Refused(whole, f"{outer.domain} and {inner.domain} are not contiguous", "stride each of them")
            size, box, coordinate = size * inner.size, box * inner.box, coordinate * inner.size
        step = self._boxes.strided[whole].inner
        coordinate = self._context.simple(coordinate + self._context.index(step.sym))
        return Dimension(tuple(members), size, members[-1].stride, box, step.extent, coordinate)

    def _rank(self, each: Dimension, order: Mapping[IterDomain, int]) -> tuple[int, int]:
        """Sort key of dimensions: one contiguous element first, then in the order of the tile, coordinates last."""
        root = each.parts[-1].root
        if root is not None:
            root = self._boxes.merged.get(root, root)
            top = self._boxes.strided[root].outer if root in self._boxes.strided else root
            if top.extent is not ONE:
                return (1, order[top])
        return (0 if each.stride is ONE and each.size is not ONE else 2, 0)

    def _fuse(self, may: Callable[[Dimension], bool]) -> bool:
        """Composites one pair of dimensions, if there is one."""
        for at, inner in enumerate(self._found):
            for outer in self._found:
                if outer is not inner and self._composite(at, inner, outer, may):
                    parts = (*outer.parts, *inner.parts)
                    coordinate = self._context.simple(outer.coordinate * inner.size + inner.coordinate)
                    size, box = self._context.simple(outer.size * inner.size), outer.box * inner.box
                    self._found[at] = Dimension(parts, size, inner.stride, box, ONE, coordinate)
                    self._found.remove(outer)
                    return True
        return False

    def _composite(self, at: int, inner: Dimension, outer: Dimension, may: Callable[[Dimension], bool]) -> bool:
        if not (inner.element_stride is outer.element_stride is ONE and self._adjoin(outer.stride, inner.stride * inner.size)):
            return False
        if inner.box is inner.size and inner.coordinate is ZERO:
            most = self._most_inner if at == 0 else MOST_BOX
            is_next = outer.box is ONE or self._found[at + 1 : at + 2] == [outer]
            return is_next and self._context.known.nonnegative(most - inner.box * outer.box)
        return outer.box is ONE and self._context.divides(inner.box, inner.size) and may(inner)

    def _stays_inside(self, inner: Dimension) -> bool:
        """Whether the box of `inner` is in bounds for every index of the leaves: then it needs no check."""
        last = self._context.simple(inner.size - inner.box - inner.coordinate)
        return self._context.known.nonnegative(inner.coordinate) and self._context.known.nonnegative(last)

    def _adjoin(self, outer: Expr, inner: Expr) -> bool:
        return self._context.simple(outer - inner) is ZERO
