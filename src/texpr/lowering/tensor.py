"""Copies that the tensor memory accelerator makes: what is a step marked `#tma`, its maps, and what starts it.

par 128 |a| #tma(128, 64, 32) { par 64 |b| { As[…] = A[128 * bi + a, 64 * ko + b] } }

copy As[0, …] = A_map[64 * ko, 128 * bi]        one for each box of 64 × 32
copy As[1, …] = A_map[64 * ko + 32, 128 * bi]
…
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr, maximum
from texpr.affine.facts import Known
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.value import Buffer, Index, Load, Op, Value
from texpr.lowering.copies import filled_with_zero
from texpr.lowering.names import Names
from texpr.lowering.places import Place
from texpr.lowering.team import Leaf
from texpr.mapping.bands import band
from texpr.schedule.marks import TENSOR, mark
from texpr.schedule.tensor import Boxes, Planned, planned
from texpr.support.diagnostic import Limitation, limitation
from texpr.support.span import Span
from texpr.tma.swizzle import Swizzle


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A step as copies of boxes between the shared array `tile` and `tensor`, in either direction: an element, in its loops.

    `loops`: the index that walks along each dimension, None for one of a single element.
    """

    leaf: Leaf
    bind: ir.Bind
    tile: Load
    tensor: Load
    stores: bool
    loops: tuple[Sym | None, ...]
    boxes: Boxes

    @property
    def span(self) -> Span:
        """The directive's."""
        return self.leaf.stmt.span

    @property
    def align(self) -> int:
        """Bytes of which the address of the shared array is a multiple."""
        return self.boxes.swizzle.period

    def at(self, load: Load, number: tuple[int, ...]) -> Load:
        """The first element of the box `number`, in shared or in global memory."""
        starts = zip(self.loops, number, self.boxes.box, strict=True)
        first = {sym: expr(n * box) for sym, n, box in starts if sym is not None}
        return replace(load, index=tuple(e.substitute(first) for e in load.index))


def step_of(leaf: Leaf, places: Mapping[Buffer, Place]) -> Step | None:
    """The copies that a step of a team is, None for other steps. Raises Limitation where its loops were changed."""
    asked = mark(leaf.stmt, TENSOR) if isinstance(leaf.stmt, ir.Par | ir.Seq) else None
    if asked is None or not isinstance(leaf.stmt, ir.Par | ir.Seq):
        return None
    if isinstance(leaf.stmt, ir.Seq):
        raise changed(leaf.stmt)
    loops, body = band(leaf.stmt)
    swizzle, *box = (a.value for a in asked.args if isinstance(a.value, int))
    bind = _bind(body)
    plain = all(loop.directives == ((asked,) if loop is leaf.stmt else ()) and loop.extent.is_constant for loop in loops)
    source = None if bind is None else bind.values[0]
    if bind is None or not plain or not isinstance(source, Load):
        raise changed(leaf.stmt)
    (target,) = bind.targets
    here = places.get(source.buffer)
    stores = here is not None and here.space is k.Space.SHARED
    tile, tensor = (source, target) if stores else (target, source)
    along = tuple(next((loop for loop in loops if loop.sym in e.syms()), None) for e in tensor.index)
    extent = tuple(1 if loop is None else loop.extent.constant for loop in along)
    if len(box) != len(extent) or sum(loop is not None for loop in along) != len(loops):
        raise changed(leaf.stmt)
    if stores and not _tests_bounds_alone(body, tensor):
        raise changed(leaf.stmt)
    steps = tuple(1 if loop is None else _step(e, loop.sym) for e, loop in zip(tensor.index, along, strict=True))
    if 0 in steps:
        raise changed(leaf.stmt)
    boxes = Boxes(extent, tuple(box), tensor.dtype.bytes, Swizzle(swizzle), steps)
    return Step(leaf, bind, tile, tensor, stores, tuple(None if loop is None else loop.sym for loop in along), boxes)


def _step(index: Expr, along: Sym) -> int:
    """By how much an index grows with the loop along it, a constant; 0 where it does otherwise."""
    grown = index.substitute({along: expr(along) + 1}) - index
    return grown.constant if grown.is_constant and grown.constant > 0 else 0


def _bind(body: tuple[ir.Stmt, ...]) -> ir.Bind | None:
    """What the copy of one element is, whatever is tested: nobody reads what a test would leave out, so it may be loaded."""
    match body:
        case (ir.Bind() as bind,):
            return bind
        case (ir.If(orelse=()) as test,):
            return _bind(test.then)
        case (ir.If() as test,):
            return filled_with_zero(test)
        case _:
            return None


def _tests_bounds_alone(body: tuple[ir.Stmt, ...], tensor: Load) -> bool:
    """Whether every element that a test leaves out is outside of the tensor, where a store writes nothing either."""
    test = body[0]
    if not isinstance(test, ir.If):
        return True
    bounds = {("ge", e, ZERO) for e in tensor.index} | {
        ("lt", e, size) for e, size in zip(tensor.index, tensor.buffer.shape, strict=True)
    }
    return all(isinstance(part, Op) and _compared(part) in bounds for part in _conjuncts(test.condition))


def _compared(test: Op) -> tuple[str, Expr, Expr] | None:
    match test.args:
        case (Index(left), Index(right)):
            return test.name, left, right
        case _:
            return None


def _conjuncts(condition: Value) -> Iterator[Value]:
    if isinstance(condition, Op) and condition.name == "and":
        for part in condition.args:
            yield from _conjuncts(part)
    else:
        yield condition


def changed(loop: ir.Loop) -> Limitation:
    """The refusal of a copy whose loops are no longer those that the schedule made."""
    reason = f"the tensor memory accelerator runs the loops over `{loop.sym.base}`, which another directive has changed"
    return limitation("E0916", loop.span, reason, help="leave the loops of the copy as `stage` makes them")


@dataclass(slots=True)
class Maps:
    """The maps of a kernel, made as copies ask for them. `known`: what is known where a copy begins."""

    places: Mapping[Buffer, Place]
    names: Names
    known: Callable[[ir.Stmt], Known]
    found: list[k.TensorMap] = field(default_factory=list[k.TensorMap])

    def of(self, step: Step) -> k.TensorMap:
        """The map that the boxes of a step share."""
        place = self.places.get(step.tensor.buffer)
        if place is not None and (place.space is not k.Space.GLOBAL or place.leading or place.trailing):
            reason = f"`{step.tensor.buffer.name}` is not one tensor in global memory, but what a block keeps"
            raise limitation("E0916", step.span, reason, help="stage it by via=ld")
        made = self._made(step, step.tensor.buffer if place is None else place.buffer)
        for map in self.found:
            if _content(map) == _content(made):
                return map
        named = replace(made, name=self.names.name(f"{made.buffer.name}_map"))
        self.found.append(named)
        return named

    def _made(self, step: Step, buffer: Buffer) -> k.TensorMap:
        copy = self._planned(step).copy
        dimensions = copy.dimensions
        return k.TensorMap(
            "",
            buffer,
            tuple(self._present(each.size, step) for each in dimensions),
            tuple(each.stride * buffer.dtype.bytes for each in dimensions[1:]),
            tuple(each.box.constant for each in dimensions),
            tuple(each.element_stride.constant for each in dimensions),
            step.boxes.swizzle.span,
            offset=copy.skipped,
            span=step.span,
        )

    def _present(self, size: Expr, step: Step) -> Expr:
        """A map has no dimension of size 0; where that is so and the copy is not reached then, any other size will do."""
        return size if size.is_constant or not self.known(step.leaf.stmt).positive(size) else maximum(size, ONE)

    def _planned(self, step: Step) -> Planned:
        first = step.at(step.tensor, tuple(0 for _ in step.loops))
        found = planned(first.buffer, first.index, step.boxes, self.known(step.bind))
        assert isinstance(found, Planned), f"{found}: the directive has seen that it is a copy"
        return found

    def bytes(self, step: Step) -> int:
        """What arrives when every box of a step has landed, parts outside of the tensor included."""
        return self.of(step).bytes * len(step.boxes.numbers)

    def loads(self, step: Step, barrier: Load) -> Iterator[k.Stmt]:
        """Starts the copies of a step, which arrive at `barrier`."""
        for tile, at in self._each(step):
            yield k.CopyTensor(tile, self.of(step).name, at, barrier, step.span)

    def stores(self, step: Step) -> Iterator[k.Stmt]:
        """Starts the stores of a step, as one group."""
        for tile, at in self._each(step):
            yield k.StoreTensor(self.of(step).name, at, tile, span=step.span)
        yield k.CommitBulk(step.span)

    def _each(self, step: Step) -> Iterator[tuple[Load, tuple[Expr, ...]]]:
        place, copy = self.places[step.tile.buffer], self._planned(step)
        for number in step.boxes.numbers:
            tile = step.at(step.tile, number)
            yield replace(tile, buffer=place.buffer, index=place.index(tile.index)), copy.coordinates(number)


def _content(map: k.TensorMap) -> tuple[object, ...]:
    return map.buffer, map.sizes, map.strides, map.box, map.steps, map.swizzle, map.offset


def first(barrier: Buffer) -> Load:
    """The only barrier of an array."""
    return Load(barrier, (ZERO,))
