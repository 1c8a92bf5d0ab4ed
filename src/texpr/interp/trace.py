"""A traced run of the sequential program, one scalar at a time, with every access recorded: errors at these sizes and on this
data.

For small sizes: it confirms what is proved for all sizes. It shares no code with `texpr.interp.vector` except the arithmetic
of one operation and the checks of arguments.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TypeAlias, assert_never

import numpy as np

from texpr.affine.expr import Expr, Sym
from texpr.interp.arguments import Arguments, Bound, bind
from texpr.interp.arithmetic import apply, cast, literal
from texpr.interp.dtypes import Array, limits, numpy_dtype
from texpr.interp.facts import broken_facts, element
from texpr.interp.findings import Finding, Iteration, in_words
from texpr.ir.program import Anchor, Bind, Combiner, Function, If, Instruction, Let, New, Par, Seq, Stmt, Update
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.types import DType
from texpr.support.record import Mutable, Record, field
from texpr.support.span import Span

READ, WRITE = "read", "write"


class Trace(Record):
    """The outputs of a run, by name (elements never written are zero), and its errors."""

    outputs: dict[str, Array]
    findings: list[Finding]


def conflicts(function: Function, arguments: Arguments, sizes: Mapping[str, int] | None = None) -> list[Finding]:
    """All errors of a run, one of each kind for a place in the text; empty for a legal program.

    Raises `TexprError` only if the arguments do not match.
    """
    return trace(function, arguments, sizes).findings


def trace(function: Function, arguments: Arguments, sizes: Mapping[str, int] | None = None) -> Trace:
    """Runs `function` sequentially and records errors. Out of bounds, a read gives zero and a write is ignored."""
    bound = bind(function, arguments, sizes)
    facts = [Finding(d.code, d.message, d.span) for d in broken_facts(function, bound)]
    tracer = _Tracer(function, bound)
    tracer.block(function.body)
    outputs = {buffer.name: tracer.output(buffer) for buffer in _outputs(function)}
    return Trace(outputs, [*facts, *tracer.findings])


def _outputs(function: Function) -> list[Buffer]:
    return [*function.results, *(p for p in function.params if p.role == "inout" and p not in function.results)]


class _Store(Mutable):
    """The memory of one execution of a `new`, or of a parameter."""

    serial: int
    buffer: Buffer
    data: Array
    written: Array


class _Access(Record):
    index: int
    iteration: Iteration
    span: Span


_Cell: TypeAlias = tuple[int, tuple[int, ...]]
"""A store's serial number and an index."""


class _Running(Mutable):
    """A `par` that runs: its current index, and the first iteration to access each element, by kind of access."""

    par: Par
    index: int = 0
    first: dict[_Cell, dict[object, _Access]] = field(default_factory=dict[_Cell, dict[object, _Access]])


class _Tracer:
    def __init__(self, function: Function, bound: Bound):
        self.findings: list[Finding] = []
        self._seen: set[object] = set()
        self._serial = count()
        self._integers: dict[Sym, int] = dict(bound.sizes)
        self._values: dict[Sym, Array] = {}
        self._loops: list[tuple[Sym, int]] = []
        self._running: list[_Running] = []
        self._stores: dict[Buffer, _Store] = {}
        for param in function.params:
            data = bound.arrays[param.name].copy()
            self._stores[param] = _Store(next(self._serial), param, data, np.ones(data.shape, np.bool_))

    def output(self, buffer: Buffer) -> Array:
        """The final contents of `buffer`."""
        store = self._stores[buffer]
        if not store.written.all():
            index = tuple(int(i) for i in np.argwhere(~store.written)[0])
            text = f"{element(buffer.name, index)} is returned and was never written"
            self._find(Finding("E0722", text, buffer.span, buffer, index))
        return store.data

    def block(self, body: Sequence[Stmt]) -> None:
        """Runs statements in order."""
        for stmt in body:
            match stmt:
                case Par():
                    self._par(stmt)
                case Seq(sym=sym, extent=extent, body=inner, span=span):
                    for index in range(self._integer(extent, span)):
                        with self._iteration(sym, index):
                            self.block(inner)
                case New():
                    self._new(stmt)
                case Let(sym=sym, value=value):
                    self._let(sym, value)
                case Bind():
                    self._bind(stmt)
                case If(condition=condition, then=then, orelse=orelse):
                    self.block(then if self._value(condition) else orelse)
                case Anchor(value=value):
                    self._value(value)
                case Instruction(body=inner):
                    self.block(inner)
                case _:
                    assert_never(stmt)

    def _par(self, stmt: Par) -> None:
        running = _Running(stmt)
        extent = self._integer(stmt.extent, stmt.span)
        self._running.append(running)
        for running.index in range(extent):
            with self._iteration(stmt.sym, running.index):
                self.block(stmt.body)
        self._running.pop()

    @contextmanager
    def _iteration(self, sym: Sym, index: int) -> Generator[None]:
        self._integers[sym] = index
        self._loops.append((sym, index))
        yield
        self._loops.pop()

    def _new(self, stmt: New) -> None:
        buffer = stmt.buffer
        dims = [self._integer(entry, stmt.span) for entry in buffer.shape]
        if any(dim < 0 for dim in dims):
            self._note("E0726", stmt.span, f"the shape of `{buffer!r}` is negative: {dims}", buffer)
        shape = tuple(max(dim, 0) for dim in dims)
        data, written = np.zeros(shape, numpy_dtype(buffer.dtype)), np.zeros(shape, np.bool_)
        self._stores[buffer] = _Store(next(self._serial), buffer, data, written)

    def _let(self, sym: Sym, value: Value) -> None:
        self._values[sym] = self._value(value)
        if not value.dtype.is_float:
            self._integers[sym] = int(self._values[sym])

    def _bind(self, stmt: Bind) -> None:
        values = [self._value(value) for value in stmt.values]
        indices = [self._index(target) for target in stmt.targets]
        if stmt.update is not None:
            old = [self._read(t, i, _way(stmt)) for t, i in zip(stmt.targets, indices, strict=True)]
            values = self._updated(stmt.update, old, values, [t.dtype for t in stmt.targets])
        for target, index, value in zip(stmt.targets, indices, values, strict=True):
            if index is None:
                continue
            if stmt.update is None:
                self._touch(target, index, WRITE)
            store = self._stores[target.buffer]
            store.data[index] = value
            store.written[index] = True

    def _updated(self, update: Update, old: list[Array], new: list[Array], dtypes: list[DType]) -> list[Array]:
        if isinstance(update, Combiner):
            self._values[update.a], self._values[update.b] = old[0], new[0]
            return [self._value(update.value)]
        if len(old) == 1:
            return [apply(update, (old[0], new[0]), dtypes[0])]
        return new if _beats(update, new, old, dtypes) else old

    def _value(self, value: Value) -> Array:
        match value:
            case Literal(value=number, dtype=dtype):
                return literal(number, dtype)
            case Load():
                return self._read(value, self._index(value), READ)
            case Index():
                return self._index_value(value)
            case Ref(sym=sym):
                return self._values[sym]
            case Op(name="select", args=(condition, then, orelse)):
                return self._value(then if self._value(condition) else orelse)
            case Op(name=name, args=args):
                return np.asarray(apply(name, [self._value(arg) for arg in args], args[0].dtype))
            case Cast(arg=arg, dtype=dtype):
                return np.asarray(cast(self._value(arg), arg.dtype, dtype))
            case _:
                assert_never(value)

    def _index_value(self, value: Index) -> Array:
        number = self._integer(value.expr, value.span)
        if value.dtype.is_integer:
            low, high = limits(value.dtype)
            if not low <= number <= high:
                self._note("E0725", value.span, f"`{value.expr}` is {number}, which {value.dtype} can't hold")
        return literal(number, value.dtype)

    def _integer(self, value: Expr, span: Span) -> int:
        try:
            return value.evaluate(self._integers)
        except ZeroDivisionError:
            self._note("E0724", span, f"`{value}` divides by zero")
            return 0

    def _index(self, load: Load) -> tuple[int, ...] | None:
        """The element of `load`, or None if it is out of bounds."""
        for sym, meaning in load.data:
            self._let(sym, meaning)
        index = tuple(self._integer(entry, load.span) for entry in load.index)
        shape = self._stores[load.buffer].data.shape
        for at, (entry, dim) in enumerate(zip(index, shape, strict=True)):
            if not 0 <= entry < dim:
                text = f"index {entry} of `{load.buffer!r}` is out of bounds: dimension {at} has {dim} elements"
                self._note("E0720", load.span, text, load.buffer, index)
                return None
        return index

    def _read(self, load: Load, index: tuple[int, ...] | None, way: object) -> Array:
        if index is None:
            return np.zeros((), numpy_dtype(load.dtype))
        self._touch(load, index, way)
        store = self._stores[load.buffer]
        if not store.written[index]:
            text = f"{element(load.buffer.name, index)} is read before it is written"
            self._note("E0721", load.span, text, load.buffer, index)
        return store.data[(*index, ...)].copy()

    def _touch(self, load: Load, index: tuple[int, ...], way: object) -> None:
        """Records an access for every `par` around it, and checks it against those of the loop's other iterations."""
        store = self._stores[load.buffer]
        for running in self._running:
            first = running.first.setdefault((store.serial, index), {})
            for other_way, other in first.items():
                if other.index != running.index and _clash(way, other_way, load.buffer in running.par.reduce):
                    self._clash(load, index, running.par, other)
            if way not in first:
                first[way] = _Access(running.index, tuple(self._loops), load.span)

    def _clash(self, load: Load, index: tuple[int, ...], par: Par, other: _Access) -> None:
        here, name = tuple(self._loops), element(load.buffer.name, index)
        both = f"{in_words(other.iteration)} and {in_words(here)}"
        text = f"iterations of `par {par.sym.base}` depend on each other: {both} meet in {name}"
        self._find(Finding("E0723", text, load.span, load.buffer, index, here, par, other.iteration, other.span))

    def _note(self, code: str, span: Span, message: str, buffer: Buffer | None = None, index: tuple[int, ...] = ()) -> None:
        self._find(Finding(code, message, span, buffer, index, tuple(self._loops)))

    def _find(self, finding: Finding) -> None:
        spans = tuple((s.start, s.end) for s in (finding.span, finding.other_span) if s is not None)
        key = (finding.code, finding.buffer, finding.loop, spans)
        if key not in self._seen:
            self._seen.add(key)
            self.findings.append(finding)


def _way(stmt: Bind) -> object:
    """The kind of an update; updates of one kind commute: `+=` and `-=` do, a tuple update and one of its first component do
    not."""
    return ("add" if stmt.update == "sub" else stmt.update, len(stmt.targets))


def _clash(way: object, other: object, may_meet: bool) -> bool:
    """Whether accesses of one element by two iterations make these dependent."""
    if way != other or way == WRITE:
        return True
    return way != READ and not may_meet


def _beats(update: str, new: Sequence[Array], old: Sequence[Array], dtypes: Sequence[DType]) -> bool:
    """Whether a tuple update replaces the old tuple: a better first component (nan is best), or equal and then smaller ones."""
    for at, (n, o, dtype) in enumerate(zip(new, old, dtypes, strict=True)):
        x, y = (float(v) if dtype.is_float else int(v) for v in (n, o))
        if x == y or (x != x and y != y):
            continue
        if x != x or y != y:
            return x != x
        return x > y if at == 0 and update == "max" else x < y
    return False
