"""Copies that the tensor memory accelerator makes: what is a step marked `#tma`, who starts it, who waits, and for which phase.

    par 128 |a| #tma(128, 64, 64) { par 64 |b| { As[…] = A[128 * bi + a, 64 * ko + b] } }

    if (thread == 0) { expect full[0], 16384;  copy As[0, …] = map[64 * ko, 128 * bi], full[0];  copy As[1, …] = … }
    wait full[0], ko % 2                                  before the first step that touches As

Copies next to each other share a barrier. How often its phases completed before is read off the loops around, so the parity is
an index expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.types import U64
from texpr.ir.value import Buffer, Load, walk
from texpr.lowering.barriers import Gap, Need, lists
from texpr.lowering.copies import filled_with_zero
from texpr.lowering.names import Names
from texpr.lowering.needs import Meeting
from texpr.lowering.places import Place
from texpr.lowering.team import Branch, Leaf, Loop, Node, leaves
from texpr.mapping.bands import band
from texpr.schedule.marks import TENSOR, mark
from texpr.schedule.tensor import Boxes, Planned, planned
from texpr.support.diagnostic import Limitation, limitation
from texpr.tma.swizzle import LINE, Swizzle


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A step as copies of boxes. `loops`: the index that walks along each dimension, None for one of a single element."""

    leaf: Leaf
    bind: ir.Bind
    loops: tuple[Sym | None, ...]
    boxes: Boxes

    @property
    def align(self) -> int:
        """Bytes of which the address of the shared array is a multiple."""
        return max(LINE, self.boxes.swizzle.period)

    def at(self, load: Load, number: tuple[int, ...]) -> Load:
        """The first element of the box `number`, in shared or in global memory."""
        starts = zip(self.loops, number, self.boxes.box, strict=True)
        first = {sym: expr(n * box) for sym, n, box in starts if sym is not None}
        return replace(load, index=tuple(e.substitute(first) for e in load.index))


def _step(leaf: Leaf) -> Step | None:
    asked = mark(leaf.stmt, TENSOR) if isinstance(leaf.stmt, ir.Par) else None
    if asked is None or not isinstance(leaf.stmt, ir.Par):
        return None
    loops, body = band(leaf.stmt)
    numbers = tuple(a.value for a in asked.args if isinstance(a.value, int))
    match body:
        case (ir.Bind() as bind,):
            pass
        case (ir.If(then=(ir.Bind() as bind,), orelse=()),):
            pass
        case (ir.If() as test,) if (bind := filled_with_zero(test)) is not None:
            pass
        case _:
            raise changed(leaf.stmt)
    (source,) = bind.values
    plain = all(loop.directives == ((asked,) if loop is leaf.stmt else ()) and loop.extent.is_constant for loop in loops)
    if not plain or not isinstance(source, Load) or source.buffer.rank != len(numbers) - 1:
        raise changed(leaf.stmt)
    along = tuple(next((loop for loop in loops if loop.sym in e.syms()), None) for e in source.index)
    extent = tuple(1 if loop is None else loop.extent.constant for loop in along)
    boxes = Boxes(extent, numbers[1:], source.dtype.bytes, Swizzle(numbers[0]))
    return Step(leaf, bind, tuple(None if loop is None else loop.sym for loop in along), boxes)


def changed(par: ir.Par) -> Limitation:
    """The refusal of a copy whose loops are no longer those that the schedule made."""
    reason = f"the tensor memory accelerator runs the loops over `{par.sym.base}`, which another directive has changed"
    return limitation("E0916", par.span, reason, help="leave the loops of the copy as `stage` makes them")


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Copies that one barrier is for: neighbours in the list `number`, the last of them step `last`. `count`: how often its
    phases have completed before."""

    members: tuple[Step, ...]
    number: int
    last: int
    barrier: Buffer
    count: Expr


@dataclass(slots=True)
class Tensors:
    """The copies of one nest that go to or from shared memory by the tensor memory accelerator."""

    steps: Mapping[Leaf, Step]
    places: Mapping[Buffer, Place]
    names: Names
    known: Callable[[ir.Stmt], Known]
    waits: dict[Gap, list[k.BarrierWait]] = field(default_factory=dict[Gap, "list[k.BarrierWait]"])
    maps: list[k.TensorMap] = field(default_factory=list[k.TensorMap])
    groups: list[_Group] = field(default_factory=list[_Group])

    @classmethod
    def of(
        cls, nodes: tuple[Node, ...], places: Mapping[Buffer, Place], names: Names, known: Callable[[ir.Stmt], Known]
    ) -> Tensors:
        """Those among the steps of a team. `known`: what is known where a statement runs."""
        return cls({leaf: found for leaf in leaves(nodes) if (found := _step(leaf))}, places, names, known)

    def turns(self, meetings: Iterable[Meeting], nodes: tuple[Node, ...]) -> Iterator[Need]:
        """A copy begins a phase only when every thread has seen the last one: who waits looks at its parity alone."""
        found = tuple(meetings)
        for leaf in self.steps:
            loops = [node.stmt for node in _around(nodes, leaf) if isinstance(node, Loop)]
            sink = next((m.sink for m in found if m.source is leaf and m.carrier is None), None)
            if loops and sink is not None:
                span = leaf.stmt.span
                covered = k.Covered("WAR", "the phase of a barrier", sink.stmt.span, span, loops[-1].sym)
                yield Need(sink, leaf, loops[-1], k.Level.BLOCK, covered)

    def place(self, nodes: tuple[Node, ...], meetings: Iterable[Meeting], placed: Mapping[Gap, k.Barrier]) -> None:
        """Decides which copies share a barrier, and where all threads wait: before the first step that meets one of them."""
        met = tuple(meetings)
        for steps in lists(nodes):
            for first, last in _runs(steps.nodes, steps.number, self.steps, placed):
                members = tuple(self.steps[leaf] for leaf in steps.nodes[first : last + 1] if isinstance(leaf, Leaf))
                span = members[0].leaf.stmt.span
                name = self.names.name("_".join((*(m.bind.targets[0].buffer.name for m in members), "full")))
                barrier = Buffer(name, U64, (expr(1),), "local", span=span)
                group = _Group(members, steps.number, last, barrier, _completed(nodes, steps.nodes, members[0]))
                self.groups.append(group)
                self._wait(group, steps.nodes, met)

    def _wait(self, group: _Group, nodes: tuple[Node, ...], meetings: tuple[Meeting, ...]) -> None:
        own = {member.leaf for member in group.members}
        mine = [m for m in meetings if m.source in own and m.sink not in own]
        sinks = {m.sink for m in mine if m.carrier is None}
        after = range(group.last + 1, len(nodes))
        before = next((at for at in after if not sinks.isdisjoint(leaves((nodes[at],)))), len(nodes))
        covers = tuple(dict.fromkeys(m.covered for m in mine))
        wait = k.BarrierWait(_only(group.barrier), group.count % 2, covers, group.members[0].leaf.stmt.span)
        self.waits.setdefault((group.number, before - 1), []).append(wait)

    @property
    def arrays(self) -> Iterator[k.Array]:
        """The barriers."""
        for group in self.groups:
            listed = ", ".join(f"`{m.bind.targets[0].buffer.name}`" for m in group.members)
            yield k.Array(group.barrier, k.Space.SHARED, f"completes when {listed} has landed", barrier=True)

    def aligned(self, array: k.Array) -> k.Array:
        """The array as copies need it to begin."""
        own = (s for s in self.steps.values() if self.places[s.bind.targets[0].buffer].buffer is array.buffer)
        return replace(array, align=max((array.align, *(s.align for s in own))))

    def start(self) -> tuple[k.Stmt, ...]:
        """What one thread does before all else: the barriers are made, and known to the copies."""
        made = (k.BarrierInit(_only(g.barrier), 1, g.members[0].leaf.stmt.span) for g in self.groups)
        return (*made, k.Fence("init")) if self.groups else ()

    @property
    def made(self) -> tuple[k.Covered, ...]:
        """What the barrier behind `start` is there for."""
        spans = ((g.barrier.name, g.members[0].leaf.stmt.span) for g in self.groups)
        return tuple(k.Covered("RAW", name, span, span) for name, span in spans)

    def issue(self, step: Step) -> Iterator[k.Stmt]:
        """What one thread does where the copy stands."""
        group = next(g for g in self.groups if step in g.members)
        span = step.leaf.stmt.span
        if step is group.members[0]:
            total = sum(self._map(each).bytes * len(each.boxes.numbers) for each in group.members)
            yield k.BarrierExpect(_only(group.barrier), total, span)
        (source,) = step.bind.values
        (target,) = step.bind.targets
        assert isinstance(source, Load)
        place, map = self.places[target.buffer], self._map(step)
        for number in step.boxes.numbers:
            there = step.at(target, number)
            into = replace(there, buffer=place.buffer, index=place.index(there.index))
            at = self._planned(step, step.at(source, number)).coordinates
            yield k.CopyTensor(into, map.name, at, _only(group.barrier), span)

    def _planned(self, step: Step, first: Load) -> Planned:
        found = planned(first.buffer, first.index, step.boxes, self.known(step.bind))
        if not isinstance(found, Planned):
            raise changed(step.leaf.stmt) if isinstance(step.leaf.stmt, ir.Par) else AssertionError(str(found))
        return found

    def _map(self, step: Step) -> k.TensorMap:
        (source,) = step.bind.values
        assert isinstance(source, Load)
        place = self.places.get(source.buffer)
        if place is not None and (place.space is not k.Space.GLOBAL or place.leading or place.trailing):
            reason = f"`{source.buffer.name}` is not one tensor in global memory, but a block's own"
            raise limitation("E0916", step.bind.span, reason, help="stage it by via=ld")
        copy = self._planned(step, step.at(source, step.boxes.numbers[0])).copy
        buffer = source.buffer if place is None else place.buffer
        described = copy.tensor_map(ZERO)
        box = tuple(each.box.constant for each in copy.dimensions)
        strides = tuple(each.stride * buffer.dtype.bytes for each in copy.dimensions[1:])
        for map in self.maps:
            if (map.buffer, map.sizes, map.strides, map.box, map.swizzle, map.offset) == (
                buffer, described.sizes, strides, box, step.boxes.swizzle.span, copy.skipped
            ):  # fmt: skip
                return map
        steps = tuple(each.element_stride.constant for each in copy.dimensions)
        name = self.names.name(f"{buffer.name}_map")
        swizzle = step.boxes.swizzle.span
        span = step.leaf.stmt.span
        made = k.TensorMap(name, buffer, described.sizes, strides, box, steps, swizzle, offset=copy.skipped, span=span)
        self.maps.append(made)
        return made


def _only(barrier: Buffer) -> Load:
    return Load(barrier, (ZERO,))


def _runs(
    nodes: tuple[Node, ...], number: int, steps: Mapping[Leaf, Step], placed: Mapping[Gap, k.Barrier]
) -> Iterator[tuple[int, int]]:
    """Where runs of neighbouring copies, between which no thread waits, begin and end."""
    first: int | None = None
    for at, node in enumerate(nodes):
        if node not in steps:
            continue
        first = at if first is None else first
        follows = at + 1 < len(nodes) and nodes[at + 1] in steps and (number, at) not in placed
        if not follows:
            yield first, at
            first = None


def _around(nodes: tuple[Node, ...], leaf: Leaf) -> tuple[Loop | Branch, ...]:
    """The loops and branches around a leaf, outermost first."""
    for node in nodes:
        if isinstance(node, Leaf) or not any(each is leaf for each in leaves((node,))):
            continue
        inner = node.body if isinstance(node, Loop) else (*node.then, *node.orelse)
        return (node, *_around(inner, leaf))
    return ()


def _completed(nodes: tuple[Node, ...], own: tuple[Node, ...], step: Step) -> Expr:
    """How many phases of its barrier have completed when a copy starts. Refuses what the indices of loops do not tell."""
    count = ZERO
    loops: list[Sym] = []
    for node in _around(nodes, step.leaf):
        if isinstance(node, Branch):
            condition = node.stmt.condition
            data = any(isinstance(part, Load) for part in walk(condition))
            if loops and (data or not k.value_symbols(condition).isdisjoint(loops)):
                raise _uncounted(step, f"whether it runs is decided anew in each iteration of `{loops[-1].base}`")
            continue
        inner = node.stmt.extent.syms() & set(loops)
        if inner:
            name = min(s.base for s in inner)
            raise _uncounted(step, f"how often `{node.stmt.sym.base}` runs depends on `{name}`")
        count = count * node.stmt.extent + node.stmt.sym
        loops.append(node.stmt.sym)
    return count


def _uncounted(step: Step, why: str) -> Limitation:
    name = step.bind.targets[0].buffer.name
    reason = f"how often `{name}` was copied before is not a function of the loops around: {why}"
    return limitation("E0916", step.leaf.stmt.span, reason, help="stage it by via=cp_async")
