"""The tile and the box of a copy in a graph: roles of IterDomains, inferred from the user's splits.

The hardware runs some leaves, the *bulk* ones; loops run the others. Going up from the bulk leaves:

    O, I = Split(X, B), I bulk, O not      a boxing split: X partitioned, O coordinate, I box
    O, I = Split(X, e), O bulk, I not      a striding split: X box, O tile, I stride
    a transform all of whose outputs are   is inside the tile

Going down from the tensor, whose IterDomains have strides: views, by divisible splits and merges, to the TMA domain.
Source: "Introduction to TMA Support in NVFuser" (NVIDIA).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from texpr.affine.expr import ONE, ZERO, Expr, expr
from texpr.affine.facts import Known
from texpr.domain.context import Context
from texpr.domain.contiguity import Memory
from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transform import Transform
from texpr.domain.transforms.split import Split
from texpr.support.record import Mutable, Record, field, replace

MOST_BOX = 256
"""The greatest extent of a box in one dimension."""

MOST_ELEMENT_STRIDE = 8
"""The greatest element stride."""


class Role(Enum):
    """What an IterDomain is in a copy."""

    PARTITIONED = "partitioned"
    COORDINATE = "coordinate"
    BOX = "box"
    TILE = "tile"
    STRIDE = "stride"


class Refused(Exception):
    """The graph is not a copy that the engine can do."""

    def __init__(self, domain: IterDomain | None, reason: str, helps: str):
        super().__init__(reason)
        self.domain, self.reason, self.helps = domain, reason, helps


class Part(Record):
    """An IterDomain of the TMA domain: a dimension that the engine walks and bounds-checks.

    `size`: in elements; `stride`: elements of memory between neighbours; `skipped`: memory before the first one.
    `coordinate`: over the leaves. `root`: the IterDomain of its box, or None for a box of one element. `first`: the
    coordinate of the first box, which the others follow where the index of `counted` is not negative.
    """

    domain: IterDomain
    size: Expr
    stride: Expr
    box: Expr = ONE
    element_stride: Expr = ONE
    coordinate: Expr = ZERO
    skipped: Expr = ZERO
    root: IterDomain | None = None
    first: Expr = ZERO
    counted: IterDomain | None = None


class Stride(Record):
    """A striding split of a box: `outer` is in the tile, and the index of `inner` is the offset of the tile in the box."""

    outer: IterDomain
    inner: IterDomain


class Boxed(Mutable):
    """The contents of boxes, as transforms propagate them. `inside`: IterDomains of the tile, and strided boxes; `strided`:
    strided boxes with their splits.

    `above`: IterDomains that are `inside`, or have one such below them. `merged`: parts of a strided merge, with that merge;
    `parts`: the inputs of each merge inside. `factors`: IterDomains whose extent was chosen.
    """

    inside: set[IterDomain]
    above: set[IterDomain]
    factors: frozenset[IterDomain]
    strided: dict[IterDomain, Stride] = field(default_factory=dict[IterDomain, Stride])
    merged: dict[IterDomain, IterDomain] = field(default_factory=dict[IterDomain, IterDomain])
    parts: dict[IterDomain, tuple[IterDomain, ...]] = field(default_factory=dict[IterDomain, tuple[IterDomain, ...]])

    def whole(self, *domains: IterDomain) -> bool:
        """Whether all of `domains` lie within the tile, with no index skipped."""
        return all(d in self.inside and d not in self.strided and d not in self.merged for d in domains)

    def is_factor(self, domain: IterDomain) -> bool:
        """Whether `domain` may be the box that a split cut."""
        return domain in self.factors

    def enclose(self, *domains: IterDomain) -> None:
        """Marks them as within the tile."""
        self.inside |= set(domains)

    def enclose_parts(self, merged: IterDomain, *domains: IterDomain) -> None:
        """Marks them as within the tile where `merged` is, and as strided where that is."""
        if merged not in self.inside:
            return
        self.inside |= set(domains)
        self.parts[merged] = domains
        strided = merged if merged in self.strided else self.merged.get(merged)
        if strided is not None:
            self.merged |= dict.fromkeys(domains, strided)

    def enclose_every(self, whole: IterDomain, outer: IterDomain, inner: IterDomain) -> bool:
        """Records a striding split, if the hardware supports it; False where it has another form."""
        if not self.whole(outer) or inner in self.above:
            return False
        if _may_stride(whole, inner):
            self.strided[whole] = Stride(outer, inner)
            self.inside.add(whole)
        return True

    def in_order(self, whole: IterDomain) -> list[IterDomain]:
        """`whole` and its inputs, recursively, the outermost first."""
        if whole not in self.parts:
            return [whole]
        first, *rest = self.parts[whole]
        return [*self.in_order(first), whole, *(domain for each in rest for domain in self.in_order(each))]


def boxed(graph: DomainGraph, bulk: Iterable[IterDomain]) -> Boxed:
    """The IterDomains that have only bulk leaves below them, striding splits aside."""
    leaves = set(bulk)
    found = Boxed(leaves, set(leaves), frozenset(d for t in graph.transforms for d in t.factors))
    for transform in reversed(graph.transforms):
        transform.enclosed(found)
        if any(output in found.above for output in transform.outputs):
            found.above |= set(transform.inputs)
    return found


def _may_stride(box: IterDomain, stride: IterDomain) -> bool:
    """Whether the hardware supports the stride; if not, the split may still be a view."""
    numbers = box.extent.is_constant and stride.extent.is_constant
    return numbers and stride.extent.constant <= MOST_ELEMENT_STRIDE and box.extent.constant <= MOST_BOX


class Views(Mutable):
    """Walks from the tensor down to the TMA domain: `open` are the IterDomains reached, with what is known of their memory."""

    graph: DomainGraph
    context: Context
    boxes: Boxed
    open: dict[IterDomain, Part]
    roles: dict[str, set[Role]] = field(default_factory=dict[str, "set[Role]"])

    @classmethod
    def of(cls, memory: Memory, boxes: Boxed, known: Known) -> Views:
        """The start: the tensor's own IterDomains. Raises Refused where a stride is unknown."""
        found: dict[IterDomain, Part] = {}
        for domain, stride in zip(memory.graph.logical, memory.strides, strict=True):
            if stride is None:
                raise Refused(domain, "its stride is not known", "give the stride of each dimension")
            found[domain] = Part(domain, domain.extent, stride)
        return cls(memory.graph, Context(memory.graph, known), boxes, found)

    def parts(self) -> tuple[Part, ...]:
        """The TMA domain, in the order of the tensor, outermost first. Raises Refused."""
        for transform in self.graph.transforms:
            if not any(domain in self.open for domain in transform.inputs):
                continue
            if any(d in self.boxes.inside for d in transform.inputs):
                continue  # a box
            if not any(d in self.boxes.above for d in transform.inputs):
                continue  # only coordinates
            transform.viewed(self)
        self._finish()
        return tuple(self.open.values())

    def refuse(self, domain: IterDomain, reason: str, helps: str) -> None:
        """Raises Refused."""
        raise Refused(domain, reason, helps)

    def divide(self, transform: Transform, whole: IterDomain, outer: IterDomain, inner: IterDomain) -> None:
        """A boxing split, or a view by a divisor. Raises Refused."""
        part = self.open[whole]
        if inner in self.boxes.inside and outer not in self.boxes.above:
            self._partition(part, outer, inner)
        elif part.size is not whole.extent:
            raise Refused(whole, "a view of what has room around it", "box it by one split")
        elif not self.context.divides(inner.extent, whole.extent):
            raise Refused(
                whole, f"a view needs a split that divides: {whole.extent} by {inner.extent}", "choose a divisor, or box here"
            )
        elif any(transform.holes(self.context)):
            reason = f"a view needs a split that covers: {outer.extent} times {inner.extent} is not seen to be {whole.extent}"
            raise Refused(whole, reason, f"let the split count {whole.extent} and no more, or box here")
        else:
            factor = inner.extent
            first = Part(outer, outer.extent, part.stride * factor, skipped=part.skipped)
            self._replace(whole, first, Part(inner, inner.extent, part.stride))

    def _partition(self, part: Part, outer: IterDomain, inner: IterDomain) -> None:
        """A boxing split. `part.coordinate` is the offset from the index of the whole to that of the tensor."""
        self._note(part.domain, Role.PARTITIONED)
        self._note(outer, Role.COORDINATE)
        self._box(part, inner, self.context.index(outer.sym) * inner.extent + part.coordinate, outer)

    def _box(self, part: Part, box: IterDomain, coordinate: Expr, counted: IterDomain | None = None) -> None:
        """`coordinate`: of the box; in a strided box the tile is offset by the index of the stride."""
        split = self.boxes.strided.get(box)
        self._note(box, Role.BOX)
        if split is not None:
            moved = -((-box.extent) // split.inner.extent)
            if not self.context.is_zero(split.outer.extent - moved):
                reason = f"the engine moves {moved} elements of the box {box}, and the tile has room for {split.outer.extent}"
                raise Refused(split.outer, reason, f"let the split of {box} have {moved} steps of {split.inner.extent}")
            self._note(split.outer, Role.TILE)
            self._note(split.inner, Role.STRIDE)
        self.open[part.domain] = replace(
            part,
            box=box.extent,
            element_stride=ONE if split is None else split.inner.extent,
            coordinate=coordinate + (ZERO if split is None else self.context.index(split.inner.sym)),
            root=box,
            first=part.coordinate,
            counted=counted,
        )

    def join(self, outer: IterDomain, inner: IterDomain, merged: IterDomain) -> None:
        """Joins them to one dimension where they are contiguous, or to a box over both. Raises Refused."""
        context = self.context
        first, second = self.open[outer], self.open[inner]
        if first.size is not outer.extent or second.size is not inner.extent:
            raise Refused(merged, "a view of what has room around it", "box before the merge")
        skipped = first.skipped + second.skipped
        if context.simple(first.stride - second.stride * inner.extent) is ZERO or _is_one(outer, context):
            self._replace(outer, Part(merged, merged.extent, second.stride, skipped=skipped))
            del self.open[inner]
        elif _is_one(inner, context):
            self._replace(outer, Part(merged, merged.extent, first.stride, skipped=skipped))
            del self.open[inner]
        else:
            self._box_over_merge(first, second, merged)

    def _box_over_merge(self, first: Part, second: Part, merged: IterDomain) -> None:
        """A box over discontiguous IterDomains: where the factor divides the inner extent, it is a box of the inner one."""
        cut = next((t for t in self.graph.transforms if isinstance(t, Split) and t.input == merged), None)
        context, inner = self.context, second.domain
        apart = f"{first.domain} and {inner} are not contiguous"
        if cut is None or cut.inner not in self.boxes.inside or cut.outer in self.boxes.above:
            raise Refused(merged, f"{apart}, and no split boxes their merge", "leave them apart, or make the tensor contiguous")
        if not context.divides(cut.inner.extent, inner.extent):
            reason = f"{apart}, and the box {cut.inner} is not seen to divide {inner}"
            raise Refused(merged, reason, f"choose a box that divides {inner.extent}")
        start = context.index(cut.outer.sym) * cut.inner.extent
        self._note(first.domain, Role.PARTITIONED)
        self._note(inner, Role.PARTITIONED)
        self._note(cut.outer, Role.COORDINATE)
        self.open[first.domain] = replace(first, coordinate=context.simple(start // inner.extent))
        self._box(second, cut.inner, context.simple(start % inner.extent))

    def shift(self, before: IterDomain, left: Expr, right: Expr, after: IterDomain) -> None:
        """Room around the tensor moves the coordinates; indices dropped by a negative expand are dropped from the tensor."""
        part = self.open[before]
        if part.size is not before.extent:
            raise Refused(before, "room around what has room around it", "resize once")
        known = self.context.known
        cut: list[Expr] = []
        for expand in (left, right):
            if not known.nonnegative(expand) and not known.nonnegative(-expand):
                raise Refused(before, f"whether {expand} makes room or cuts is not known", "give its sign")
            cut.append(ZERO if known.nonnegative(expand) else -expand)
        size, moved = part.size - cut[0] - cut[1], -(left + cut[0])
        skipped = part.skipped + part.stride * cut[0]
        self._replace(before, Part(after, size, part.stride, coordinate=moved, skipped=skipped))

    def _finish(self) -> None:
        """An IterDomain that is still open is a box as a whole, partitioned already, or a coordinate."""
        for domain, part in tuple(self.open.items()):
            if domain in self.boxes.inside:
                self._note(domain, Role.PARTITIONED)
                self._box(part, domain, part.coordinate)
            elif domain not in self.boxes.above:
                self._note(domain, Role.COORDINATE)
                self.open[domain] = replace(
                    part, coordinate=self.context.index(domain.sym) + part.coordinate, first=part.coordinate
                )

    def _replace(self, domain: IterDomain, *parts: Part) -> None:
        """Replaces an IterDomain by `parts`, in the order of the tensor."""
        self.open = {
            key: value
            for old, part in self.open.items()
            for key, value in ([(p.domain, p) for p in parts] if old == domain else [(old, part)])
        }

    def _note(self, domain: IterDomain, role: Role) -> None:
        self.roles.setdefault(domain.sym.name, set()).add(role)


def _is_one(domain: IterDomain, context: Context) -> bool:
    return context.known.nonnegative(expr(1) - domain.extent)
