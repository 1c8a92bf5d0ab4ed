"""Every integer that the code of a plan computes: its expression tree, its context, and the range that it must fit.

The host computes with 128 bits: shapes, conditions, bytes, grids, loops. Kernels compute with 32 and 64: axes, loops, tests,
offsets of elements, coordinates of tiles. Printers emit exactly these trees (`tests/backends/test_arithmetic.py` compares).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import mul
from typing import TypeAlias

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr, maximum
from texpr.affine.typed import Knowledge, Typed, count, place, typed
from texpr.ir import kernel as k
from texpr.ir.kernel.knowledge import (
    axis_knowledge,
    branch_facts,
    data_knowledge,
    every_element,
    host_knowledge,
    host_loop,
    kernel_knowledge,
    loop_knowledge,
    loop_ranges,
    loops_around,
    source_of,
)
from texpr.ir.kernel.together import grid, joint, together
from texpr.ir.kernel.turns.apart import spread
from texpr.ir.kernel.vector.lanes import lanes_of
from texpr.ir.kernel.vector.streams import streams
from texpr.ir.operation import Bound
from texpr.ir.program import Compare, InRange
from texpr.ir.value import Buffer, Index, Load, Op, Ref, Value, operands
from texpr.ir.value.types import DType
from texpr.isa.levels import Level
from texpr.support.limits import LARGEST_INT, LARGEST_SIZE, Width
from texpr.support.record import Record, replace
from texpr.support.span import Span


class Turn(Record):
    """Context: a loop or axis with lo ≤ sym < hi. `blocks`: an axis of the grid, of at most 2³¹ − 1 blocks; `host`: a loop of
    the host, whose trip count launchers check to be at most `LARGEST_SIZE`."""

    sym: Sym
    lo: Expr
    hi: Expr
    blocks: bool = False
    host: bool = False


class Test(Record):
    """Context: a condition that holds."""

    condition: Value


class Datum(Record):
    """Context: a data-dependent integer of type `dtype`; `source`: the array that it is loaded from, if it is just a load."""

    sym: Sym
    dtype: DType
    source: Buffer | None = None


class Named(Record):
    """Context: `sym` is the name of an expression's value."""

    sym: Sym
    value: Expr


Around: TypeAlias = Turn | Test | Datum | Named


class Computed(Record):
    """One integer that is computed.

    `what`: a description for messages; `around`: the context, outermost first; `here`: the printer's knowledge there. `least`
    and `most`: the range of valid values, for an `int` argument, a trip count, or a value of some type; None where only the
    width, or `int`, bounds it. `turns`: whether it is the trip count of a host loop, where negative values act like 0. `load`:
    the element whose offset it is, which is in bounds wherever it is computed; None if it is no such offset. `checked`: whether
    the plan's requirements, not only its bounds, have been checked before.
    """

    tree: Typed
    what: str
    span: Span
    around: tuple[Around, ...]
    here: Knowledge
    kernel: str = ""
    most: int | None = None
    load: Load | None = None
    checked: bool = True
    turns: bool = False
    least: int | None = None


def computed(plan: k.Plan) -> Iterator[Computed]:
    """All integers: of the host's checks, then of its steps, then of the kernels."""
    yield from _checks(plan)
    here = host_knowledge(plan, Width.INT, checked=True)
    yield from (_host(typed(b.room * b.dtype.bytes, here), "bytes", b, plan, here) for b in plan.workspace)
    for assume in plan.assumes:
        ends = (assume.lo, assume.hi) if isinstance(assume, InRange) else (_elements(assume.buffer),)
        yield from (_host(typed(end, here), "what data are checked against", assume.buffer, plan, here) for end in ends)
        yield _looked_at(assume.buffer, plan, here)
    for step in plan.steps:
        yield from _step(step, plan, here, ())
    for kernel in dict.fromkeys(k.kernels(plan.steps)):
        yield from _Kernel(plan, kernel).all()
    for loop in together(plan.steps):
        yield from _together(loop, plan)


def _checks(plan: k.Plan) -> Iterator[Computed]:
    here = host_knowledge(plan, Width.LONG, checked=False)
    for fact in plan.requires:
        yield from (replace(each, checked=False) for each in _sides(fact, plan.span, (), here))
    for buffer in (*plan.params, *plan.results, *plan.workspace):
        for value in (*buffer.shape, *(buffer.strides or ())):
            yield replace(_host(typed(value, here), "the shape", buffer, plan, here), checked=False)


def _sides(fact: Compare, span: Span, around: tuple[Around, ...], here: Knowledge, kernel: str = "") -> Iterator[Computed]:
    told = f"the condition {fact.left} {fact.op} {fact.right}"
    yield from (Computed(typed(side, here), told, span, around, here, kernel) for side in (fact.left, fact.right))


def _elements(buffer: Buffer) -> Expr:
    return reduce(mul, buffer.shape, ONE)


def _host(tree: Typed, what: str, buffer: Buffer, plan: k.Plan, here: Knowledge) -> Computed:
    return Computed(tree, f"{what} of {buffer.name}", plan.span, (), here)


def _looked_at(buffer: Buffer, plan: k.Plan, here: Knowledge) -> Computed:
    """The offset of each element of an array with an assumption, which `_validate` reads."""
    syms, here = every_element(buffer, here)
    load = Load(buffer, tuple(expr(sym) for sym in syms))
    around = tuple(Turn(sym, ZERO, extent) for sym, extent in zip(syms, buffer.shape, strict=True))
    tree = place(buffer.shape, buffer.strides, load.index, here)
    return Computed(tree, f"elements of {buffer.name}", plan.span, around, here, load=load)


def _step(step: k.HostStep, plan: k.Plan, here: Knowledge, around: tuple[Around, ...]) -> Iterator[Computed]:
    match step:
        case k.Launch(kernel):
            for axis in kernel.axes:
                if axis.level is Level.GRID:
                    yield Computed(typed(axis.extent, here), f"the blocks of {kernel.name}", kernel.span, around, here)
            for map in kernel.maps:
                for value in (map.offset * map.buffer.dtype.bytes, *map.sizes, *map.strides):
                    yield Computed(typed(value, here), f"the map {map.name}", kernel.span, around, here)
        case k.HostLoop():
            what = f"the loop {step.sym}"
            yield Computed(typed(step.extent, here), what, plan.span, around, here, most=LARGEST_SIZE, turns=True)
            inner = host_loop(step.sym, step.extent, here)
            for each in step.steps:
                yield from _step(each, plan, inner, (*around, Turn(step.sym, ZERO, step.extent, host=True)))
        case k.HostIf():
            for fact in step.conditions:
                yield from _sides(fact, plan.span, around, here)
            for each in step.steps:
                yield from _step(each, plan, here, around)


def _together(loop: k.HostLoop, plan: k.Plan) -> Iterator[Computed]:
    """The integers of a joint kernel: trip counts of its loops, and the shares of its blocks."""
    kernel = joint(loop)

    def visit(step: k.HostStep, here: Knowledge, around: tuple[Around, ...]) -> Iterator[Computed]:
        def said(value: Expr, what: str, most: int | None = None) -> Computed:
            return Computed(typed(value, here), what, kernel.span, around, here, kernel.name, most)

        match step:
            case k.Launch(inner):
                extents = [axis.extent for axis in grid(inner).values()]
                yield from (said(extent, "blocks") for extent in (*extents, reduce(mul, extents, ONE)))
            case k.HostLoop():
                yield replace(said(step.extent, f"the loop {step.sym}", LARGEST_SIZE), turns=True)
                within = host_loop(step.sym, step.extent, here)
                for each in step.steps:
                    yield from visit(each, within, (*around, Turn(step.sym, ZERO, step.extent, host=True)))
            case k.HostIf():
                for fact in step.conditions:
                    yield from _sides(fact, kernel.span, around, here, kernel.name)
                for each in step.steps:
                    yield from visit(each, here, around)

    yield from visit(loop, kernel_knowledge(kernel, plan), ())


def _datum(
    sym: Sym, dtype: DType, source: Buffer | None, here: Knowledge, around: tuple[Around, ...]
) -> tuple[Knowledge, tuple[Around, ...]]:
    """The knowledge and the context with `sym`, a data-dependent integer."""
    return data_knowledge(sym, dtype, here, source), (*around, Datum(sym, dtype, source))


class _Kernel:
    """The integers of one kernel."""

    def __init__(self, plan: k.Plan, kernel: k.Kernel):
        self.plan, self.kernel = plan, kernel
        self.assigned = k.reassigned(kernel.body)
        named = (new for s in k.walk(kernel.body) if isinstance(s, k.Operation) for new in s.bound)
        numbers = (new for new in named if isinstance(new.value, Index) and self._is_number(new.dtype, new.sym))
        self.indices = frozenset(new.sym for new in numbers)

    def all(self) -> Iterator[Computed]:
        here, loops = kernel_knowledge(self.kernel, self.plan), loops_around(self.kernel, self.plan.steps)
        around: tuple[Around, ...] = tuple(Turn(loop.sym, ZERO, loop.extent, host=True) for loop in loops)
        cores = [axis for axis in self.kernel.axes if axis.level is Level.CORE]
        for axis in cores:
            tree = typed(axis.extent, here)
            yield self._said(tree, f"iterations of {axis.sym}", self.kernel.span, here, around, most=Width.LONG.most)
        if len(cores) > 1:
            tree = count([axis.extent for axis in cores], here)
            yield self._said(tree, "iterations", self.kernel.span, here, around, most=Width.LONG.most)
        for axis in self.kernel.axes:
            here = axis_knowledge(axis, here)
            around = (*around, Turn(axis.sym, ZERO, axis.extent, axis.level is Level.GRID))
            yield self._variable(axis.sym, expr(axis.sym), here.ranges[axis.sym], self.kernel.span, here, around)
        yield from self.block(spread(self.kernel.body), here, around)

    def block(self, body: Iterable[k.Stmt], here: Knowledge, around: tuple[Around, ...]) -> Iterator[Computed]:
        for stmt in body:
            match stmt:
                case k.For():
                    yield from self.loop(stmt, here, around)
                case k.If():
                    yield from self.value(stmt.condition, stmt.span, here, around)
                    inner = here.also(facts=branch_facts(stmt.condition))
                    yield from self.block(stmt.then, inner, (*around, Test(stmt.condition)))
                    yield from self.block(stmt.orelse, here, around)
                case k.Operation(DECLARES=True, bound=(Bound(sym, dtype, Index(value)),)) if self._is_number(dtype, sym):
                    yield self._said(typed(value, here), "an index", stmt.span, here, around)  # as wide as it needs
                    here, around = here.integer(sym, here.bounds(value), top=value), (*around, Named(sym, value))
                case _:
                    yield from self.leaf(stmt, here, around)
                    for new in stmt.bound:
                        if new.value is not None and self._is_number(new.dtype, new.sym):
                            here, around = _datum(new.sym, new.dtype, source_of(new.value), here, around)

    def loop(self, loop: k.For, here: Knowledge, around: tuple[Around, ...]) -> Iterator[Computed]:
        """The bounds of a loop, its variable including the final value, and its body."""
        for end in (loop.lo, loop.step):
            yield self._said(typed(end, here), f"an end of the loop {loop.sym}", loop.span, here, around)
        yield self._said(typed(loop.hi, here), f"iterations of {loop.sym}", loop.span, here, around, most=Width.LONG.most)
        inner, within = loop_knowledge(loop, here), (*around, Turn(loop.sym, loop.lo, loop.hi))
        _, past = loop_ranges(loop, here)
        yield self._variable(loop.sym, maximum(loop.lo, loop.hi - 1 + loop.step), past, loop.span, inner, around)
        lanes = lanes_of(loop)
        if lanes is not None and lanes.first is not None:
            yield self._said(typed(lanes.left, inner), "lanes that are left", loop.span, inner, within, most=LARGEST_INT)
        for each, first, inside in streams(loop):
            yield from self.element(first, each.span, inner, within, inside=inside)
        yield from self.block(loop.body, inner, within)

    def leaf(self, stmt: k.Operation, here: Knowledge, around: tuple[Around, ...]) -> Iterator[Computed]:
        """The integers of an operation. The source of a conditional copy need not be in bounds."""
        for value in k.values(stmt):
            if isinstance(value, Load) and any(value is each for each in stmt.perhaps_outside):
                yield from self.element(value, stmt.span, here, around, inside=False)
            else:
                yield from self.value(value, stmt.span, here, around)
        for each in k.exprs(stmt):
            yield self._said(typed(each, here), "an operand", stmt.span, here, around, most=LARGEST_INT)

    def value(self, value: Value, span: Span, here: Knowledge, around: tuple[Around, ...]) -> Iterator[Computed]:
        """Every integer in a value."""
        match value:
            case Op("lt" | "le" | "gt" | "ge" | "eq" | "ne", (Index(left), Index(right))):  # compared as mathematical integers
                yield from (self._said(typed(number, here), "an index", span, here, around) for number in (left, right))
            case Index(number, dtype):
                yield self._typed(number, dtype, span, here, around)
            case Ref(sym, dtype) if sym in self.indices:
                yield self._typed(expr(sym), dtype, span, here, around)
            case Load():
                yield from self.element(value, span, here, around)
            case _:
                for part in operands(value):
                    yield from self.value(part, span, here, around)

    def element(
        self, load: Load, span: Span, here: Knowledge, around: tuple[Around, ...], *, inside: bool = True
    ) -> Iterator[Computed]:
        """The offset of an element, and its data-dependent indices."""
        for sym, meaning in load.data:
            yield from self.value(meaning, span, here, around)
            here, around = _datum(sym, meaning.dtype, source_of(meaning), here, around)
        if load.buffer.rank == 0:
            return
        shape, index = load.buffer.shape, load.index
        if any(a.buffer is load.buffer and a.space is k.Space.CLUSTER for a in self.kernel.arrays):
            yield self._said(typed(index[0], here), "the rank of a block", span, here, around, most=LARGEST_INT)
            shape, index = shape[1:], index[1:]
        tree = place(shape, load.buffer.strides, index, here, inside=inside)
        found = self._said(tree, f"the place in {load.buffer.name}", span, here, around)
        yield replace(found, load=replace(load, index=index, buffer=replace(load.buffer, shape=shape))) if inside else found

    def _is_number(self, dtype: DType, sym: Sym) -> bool:
        """Whether a variable may be used in index expressions: an integer that is assigned once."""
        return dtype.is_integer and sym not in self.assigned

    def _typed(self, number: Expr, dtype: DType, span: Span, here: Knowledge, around: tuple[Around, ...]) -> Computed:
        """An index expression as a value of a type: it must fit the type, since it is read as an exact integer."""
        least, most = dtype.limits if dtype.is_integer else (None, None)  # floats take any integer, rounded
        return replace(self._said(typed(number, here), "an index", span, here, around, most=most), least=least)

    def _variable(
        self, sym: Sym, last: Expr, past: tuple[int | None, int | None], span: Span, here: Knowledge, around: tuple[Around, ...]
    ) -> Computed:
        """A loop variable, with the greatest value that it takes."""
        return self._said(Typed(last, "variable", (), here.widths[sym], past), f"the variable {sym}", span, here, around)

    def _said(
        self, tree: Typed, what: str, span: Span, here: Knowledge, around: tuple[Around, ...], most: int | None = None
    ) -> Computed:
        return Computed(tree, what, span, around, here, self.kernel.name, most)
