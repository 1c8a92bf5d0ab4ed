"""Programs run step by step on small sizes, noting every access: the truth that relations and checks are held against.

Knows nothing of sets or solvers: loops count, conditions are evaluated, elements are tuples of integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from texpr.affine.expr import Sym
from texpr.ir.program import Bind, Function, If, Loop, New, Par, Seq, Stmt
from texpr.ir.value import Buffer, Index, Load, Op, Value
from texpr.support.record import Record

COMPARE = {
    "lt": int.__lt__,
    "le": int.__le__,
    "gt": int.__gt__,
    "ge": int.__ge__,
    "eq": int.__eq__,
    "ne": int.__ne__,
}


class Event(Record, eq=False, dict=True):
    """One access, at one point of its loops. `memory` numbers executions of `new`."""

    stmt: Stmt
    load: Load
    kind: str
    point: tuple[int, ...]
    loops: tuple[Loop, ...]
    memory: int
    element: tuple[int, ...]
    run: int

    @property
    def writes(self) -> bool:
        return self.kind != "read"

    @property
    def reads(self) -> bool:
        return self.kind != "write"


class Trace:
    """A run of a function at given sizes. `events` in the order of the program."""

    def __init__(self, function: Function, sizes: Mapping[Sym, int]):
        self.function = function
        self.sizes = dict(sizes)
        self.events: list[Event] = []
        self.shapes: dict[int, tuple[int, ...]] = {}
        self._memory: dict[Buffer, int] = {}
        self._runs = 0
        for buffer in function.params:
            self._new(buffer, self.sizes)
        self._block(function.body, dict(sizes), ())

    def memory_of(self, buffer: Buffer) -> int:
        return self._memory[buffer]

    def _new(self, buffer: Buffer, values: Mapping[Sym, int]) -> None:
        self._memory[buffer] = len(self.shapes)
        self.shapes[self._memory[buffer]] = tuple(e.evaluate(values) for e in buffer.shape)

    def _block(self, body: tuple[Stmt, ...], values: dict[Sym, int], loops: tuple[Loop, ...]) -> None:
        for stmt in body:
            match stmt:
                case Par() | Seq():
                    for i in range(stmt.extent.evaluate(values)):
                        self._block(stmt.body, values | {stmt.sym: i}, (*loops, stmt))
                case New():
                    self._new(stmt.buffer, values)
                case If():
                    self._block(stmt.then if truth(stmt.condition, values) else stmt.orelse, values, loops)
                case Bind():
                    self._runs += 1
                    for value in stmt.values:
                        for load in loads(value, values):
                            self._event(stmt, load, "read", values, loops)
                    for target in stmt.targets:
                        self._event(stmt, target, "write" if stmt.update is None else "update", values, loops)
                case _:
                    raise AssertionError(stmt)

    def _event(self, stmt: Stmt, load: Load, kind: str, values: Mapping[Sym, int], loops: tuple[Loop, ...]) -> None:
        point = tuple(values[loop.sym] for loop in loops)
        element = tuple(e.evaluate(values) for e in load.index)
        self.events.append(Event(stmt, load, kind, point, loops, self._memory[load.buffer], element, self._runs))


def truth(condition: Value, values: Mapping[Sym, int]) -> bool:
    """The value of an affine condition."""
    assert isinstance(condition, Op)
    if condition.name == "not":
        return not truth(condition.args[0], values)
    if condition.name in ("and", "or"):
        return (all if condition.name == "and" else any)(truth(a, values) for a in condition.args)
    left, right = condition.args
    assert isinstance(left, Index) and isinstance(right, Index)
    return COMPARE[condition.name](left.expr.evaluate(values), right.expr.evaluate(values))


def loads(value: Value, values: Mapping[Sym, int]) -> Iterator[Load]:
    """The loads that evaluating `value` performs."""
    match value:
        case Load():
            yield value
        case Op(name="select", args=(test, then, orelse)):
            yield from loads(then if truth(test, values) else orelse, values)
        case Op(args=args):
            for arg in args:
                yield from loads(arg, values)
        case _:
            pass


Pair = tuple[int, int, Sym | None, tuple[int, ...], tuple[int, ...]]


def pairs(trace: Trace) -> set[Pair]:
    """(source load, sink load, carrier, source point, sink point) of every dependence between two instances."""
    found: set[Pair] = set()
    touched: dict[tuple[int, tuple[int, ...]], list[Event]] = {}
    for event in trace.events:
        earlier = touched.setdefault((event.memory, event.element), [])
        for source in earlier:
            if source.run != event.run and (source.writes or event.writes):
                found.add((id(source.load), id(event.load), carrier(source, event), source.point, event.point))
        earlier.append(event)
    return found


def carrier(source: Event, sink: Event) -> Sym | None:
    """The outermost common loop whose index differs."""
    for a, b, x, y in zip(source.loops, sink.loops, source.point, sink.point, strict=False):
        if a is not b:
            return None
        if x != y:
            return a.sym
    return None


def out_of_bounds(trace: Trace) -> bool:
    """Whether an access leaves its buffer."""
    return not all(inside(trace, event) for event in trace.events)


def inside(trace: Trace, event: Event) -> bool:
    """Whether the element exists."""
    return all(0 <= i < n for i, n in zip(event.element, trace.shapes[event.memory], strict=True))


def races(trace: Trace) -> set[Sym]:
    """The `par` loops in which two iterations meet, `reduce` aside."""
    found: set[Sym] = set()
    touched: dict[tuple[int, tuple[int, ...]], list[Event]] = {}
    for event in trace.events:
        earlier = touched.setdefault((event.memory, event.element), [])
        for source in earlier:
            if source.writes or event.writes:
                sym = carrier(source, event)
                loop = next((loop for loop in event.loops if loop.sym == sym), None)
                if isinstance(loop, Par) and not _free(source, event, loop):
                    found.add(loop.sym)
        earlier.append(event)
    return found


def _free(a: Event, b: Event, loop: Par) -> bool:
    same = isinstance(a.stmt, Bind) and isinstance(b.stmt, Bind) and a.stmt.update == b.stmt.update
    return a.kind == b.kind == "update" and same and a.load.buffer in loop.reduce


def undefined_reads(trace: Trace) -> set[str]:
    """The locals of which an element is read before it is written."""
    found: set[str] = set()
    written: set[tuple[int, tuple[int, ...]]] = set()
    for event in trace.events:
        local = event.load.buffer not in trace.function.params
        if event.reads and local and inside(trace, event) and (event.memory, event.element) not in written:
            found.add(event.load.buffer.name)
        if event.writes:
            written.add((event.memory, event.element))
    return found


def holes(trace: Trace) -> bool:
    """Whether an element of a result is never written."""
    written = {(e.memory, e.element) for e in trace.events if e.writes}
    for buffer in trace.function.results:
        memory = trace.memory_of(buffer)
        if any((memory, element) not in written for element in elements(trace.shapes[memory])):
            return True
    return False


def elements(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every index of an array."""
    if not shape:
        yield ()
        return
    for first in range(shape[0]):
        for rest in elements(shape[1:]):
            yield (first, *rest)
