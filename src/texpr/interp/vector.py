"""The reference semantics of a function: all iterations of a `par` run each statement together, `seq` loops run step by step.

Iterations of a `par` are independent, so this equals the sequential program; for reductions see `texpr.interp.meeting`. Lanes
masked off by a condition are removed, so they read nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import numpy as np

from texpr.affine.expr import Sym
from texpr.interp.arithmetic import apply, cast, literal
from texpr.interp.combine import Combine, family, lexicographic, sequential, single
from texpr.interp.dtypes import Array, numpy_dtype
from texpr.interp.lanes import Column, Lanes, evaluate
from texpr.interp.meeting import Meetings, Update
from texpr.interp.memory import Locate, Memory, dims_of
from texpr.ir.program import Anchor, Bind, Combiner, If, Instruction, Let, New, Par, Seq, Signal, Stmt
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.types import I64, U64
from texpr.support.diagnostic import error

_BYTES = 1 << 28
"""The most memory for the copies of one local: beyond that, lanes run the rest of their block in groups."""


class Execution:
    """One run of a function's body."""

    def __init__(self, memories: dict[Buffer, Memory]):
        self.memories = memories
        self._meetings = Meetings()
        self._loops: list[Sym] = []
        self._arrivals: dict[Buffer, int] = {}

    def block(self, body: Sequence[Stmt], lanes: Lanes) -> None:
        """Runs statements on all lanes."""
        if lanes.count == 0:
            return
        for at, stmt in enumerate(body):
            match stmt:
                case New():
                    groups = list(lanes.groups(self._together(stmt, lanes)))
                    if len(groups) > 1:
                        for group in groups:
                            self.block(body[at:], group)
                        return
                    lanes = self._new(stmt, lanes)
                case Let(sym=sym, value=value):
                    lanes = lanes.extend(sym, np.asarray(self.value(value, lanes)))
                case Par():
                    self._par(stmt, lanes)
                case Seq():
                    self._seq(stmt, lanes)
                case If():
                    self._if(stmt, lanes)
                case Bind():
                    self._bind(stmt, lanes)
                case Anchor(value=value):
                    self.value(value, lanes)
                case Instruction() if stmt.signal is not None:
                    self._signal(stmt, stmt.signal, lanes)
                case Instruction(body=meaning):
                    self.block(meaning, lanes)
                case _:
                    assert_never(stmt)

    def _together(self, stmt: New, lanes: Lanes) -> int:
        room = dims_of(self._shape(stmt.buffer, lanes))
        return max(1, _BYTES // max(1, int(np.prod(room, dtype=object)) * stmt.buffer.dtype.bytes))

    def _new(self, stmt: New, lanes: Lanes) -> Lanes:
        buffer, shape = stmt.buffer, self._shape(stmt.buffer, lanes)
        for at, dim in enumerate(shape):
            least = dim if isinstance(dim, int) else int(dim.min())
            if least < 0:
                raise error("E0726", stmt.span, f"dimension {at} of `{buffer!r}` is {least}")
        self.memories[buffer] = Memory.fresh(buffer, dims_of(shape), lanes.count)
        self._arrivals[buffer] = stmt.arrivals
        return lanes.extend(buffer, 0 if lanes.count == 1 else np.arange(lanes.count))

    def _signal(self, stmt: Instruction, signal: Signal, lanes: Lanes) -> None:
        """Lanes arrive at barriers, or must find a phase to be complete there: what they would wait for comes later. Memory of
        barriers has the number of arrivals. Raises TexprError E0727."""
        (load,) = stmt.operands
        place, came = self._place(load, lanes), self.memories[load.buffer].data
        if signal.phase is None:
            np.add.at(came, np.broadcast_to(place, (lanes.count,)), 1)
            return
        phase, need = evaluate(signal.phase, lanes, stmt.span), self._arrivals[load.buffer]
        least, full = np.broadcast_arrays((np.asarray(phase) + 1) * need, came[place].astype(np.int64))
        if (late := np.flatnonzero(np.broadcast_to(full < least, (lanes.count,)))).size:
            lane = int(late[0])
            missing, there = (int(np.broadcast_to(each, (lanes.count,))[lane]) for each in (least, full))
            name = self.memories[load.buffer].name_of(int(np.broadcast_to(place, (lanes.count,))[lane]))
            told = f"{name} has {there} arrivals before this in the text, and {missing // need} phases take {missing}"
            raise error("E0727", stmt.span, f"this lane waits for ever: {told}{self._locate(lanes)(lane)}")

    def _par(self, stmt: Par, lanes: Lanes) -> None:
        extent = evaluate(stmt.extent, lanes, stmt.span)
        self._loops.append(stmt.sym)
        with self._meetings.inside(stmt) as most:
            for iterations in lanes.expand(stmt, extent, most):
                self.block(stmt.body, iterations)
                self._meetings.end(iterations)
        self._loops.pop()

    def _seq(self, stmt: Seq, lanes: Lanes) -> None:
        extent = evaluate(stmt.extent, lanes, stmt.span)
        self._loops.append(stmt.sym)
        for step in range(extent if isinstance(extent, int) else int(extent.max(initial=0))):
            self.block(stmt.body, lanes.active(extent, step).extend(stmt.sym, step))
        self._loops.pop()

    def _if(self, stmt: If, lanes: Lanes) -> None:
        for rows, body in zip(_split(self.value(stmt.condition, lanes), lanes.count), (stmt.then, stmt.orelse), strict=True):
            self.block(body, lanes if len(rows) == lanes.count else lanes.take(rows))

    def _bind(self, stmt: Bind, lanes: Lanes) -> None:
        values = [self.value(value, lanes) for value in stmt.values]
        places = [self._place(target, lanes) for target in stmt.targets]
        if stmt.update is None:
            for target, place, value in zip(stmt.targets, places, values, strict=True):
                self._meetings.settle(target.buffer, place)
                self.memories[target.buffer].write(place, value)
        elif any(self._meetings.meets(target.buffer) for target in stmt.targets):
            self._meet(stmt, places, values, lanes)
        else:
            old = [self._read(target, place, lanes) for target, place in zip(stmt.targets, places, strict=True)]
            met = self._combine(stmt.update, stmt.targets)(old, values)
            for target, place, value in zip(stmt.targets, places, met, strict=True):
                self.memories[target.buffer].write(place, value)

    def _meet(self, stmt: Bind, places: Sequence[Column], values: Sequence[Array], lanes: Lanes) -> None:
        """An update in which lanes may have a common element. `sub` is `add` of the negative, which is exact."""
        memories = tuple(self.memories[target.buffer] for target in stmt.targets)
        for target, memory, place in zip(stmt.targets, memories, places, strict=True):
            memory.read(place, target.span, self._locate(lanes))
        kind, dtype = family(stmt.update), stmt.targets[0].dtype
        assert kind is not None
        if kind != stmt.update:
            values = [apply("neg", values, dtype)]
        update = Update(kind, memories, self._combine(kind, stmt.targets), sequential(kind, dtype))
        every = (lanes.count,)
        full = [np.broadcast_to(np.asarray(place, np.int64), every) for place in places]
        self._meetings.update(update, lanes, full, [np.broadcast_to(value, every) for value in values])

    def _combine(self, update: str | Combiner, targets: Sequence[Load]) -> Combine:
        if isinstance(update, Combiner):
            return lambda old, new: (self._user(update, old[0], new[0]),)
        if len(targets) == 1:
            return single(update, targets[0].dtype)
        return lexicographic(update, [target.dtype for target in targets])

    def _user(self, combiner: Combiner, old: Array, new: Array) -> Array:
        old, new = np.broadcast_arrays(old, new)
        return self.value(combiner.value, Lanes(old.size, {combiner.a: old, combiner.b: new}))

    def value(self, value: Value, lanes: Lanes) -> Array:
        """A value on every lane, in its type's storage: of shape (lanes.count,), or of rank 0 if all lanes share it."""
        match value:
            case Literal(value=number, dtype=dtype):
                return literal(number, dtype)
            case Load():
                return self._load(value, lanes)
            case Index(expr=expr, dtype=dtype, span=span):
                column = evaluate(expr, lanes, span, unsigned=dtype == U64)
                if isinstance(column, int):
                    return literal(column, dtype)
                return column if column.dtype == np.uint64 else cast(column, I64, dtype)
            case Ref(sym=sym):
                return np.asarray(lanes[sym])
            case Op(name="select"):
                return self._select(value, lanes)
            case Op(name=name, args=args):
                return apply(name, [self.value(arg, lanes) for arg in args], args[0].dtype)
            case Cast(arg=arg, dtype=dtype):
                return cast(self.value(arg, lanes), arg.dtype, dtype)
            case _:
                assert_never(value)

    def _select(self, op: Op, lanes: Lanes) -> Array:
        condition, then, orelse = op.args
        yes, no = _split(self.value(condition, lanes), lanes.count)
        if len(no) == 0:
            return self.value(then, lanes)
        if len(yes) == 0:
            return self.value(orelse, lanes)
        result = np.empty(lanes.count, numpy_dtype(op.dtype))
        result[yes] = self.value(then, lanes.take(yes))
        result[no] = self.value(orelse, lanes.take(no))
        return result

    def _load(self, load: Load, lanes: Lanes) -> Array:
        return self._read(load, self._place(load, lanes), lanes)

    def _read(self, load: Load, place: Column, lanes: Lanes) -> Array:
        self._meetings.settle(load.buffer, place)
        return self.memories[load.buffer].read(place, load.span, self._locate(lanes))

    def _place(self, load: Load, lanes: Lanes) -> Column:
        buffer = load.buffer
        row = lanes[buffer] if buffer.role in ("local", "result") else 0
        shape = self._shape(buffer, lanes)
        for sym, meaning in load.data:
            lanes = lanes.extend(sym, np.asarray(self.value(meaning, lanes)))
        index = [evaluate(entry, lanes, load.span) for entry in load.index]
        return self.memories[buffer].offset(row, index, shape, load.span, self._locate(lanes))

    def _shape(self, buffer: Buffer, lanes: Lanes) -> list[Column]:
        return [evaluate(entry, lanes, buffer.span) for entry in buffer.shape]

    def _locate(self, lanes: Lanes) -> Locate:
        def text(lane: int) -> str:
            at = ((sym, lanes[sym]) for sym in self._loops)
            words = [f"{sym.base} = {column if isinstance(column, int) else column[lane]}" for sym, column in at]
            return f" (at {', '.join(words)})" if words else ""

        return text


def _split(condition: Array, count: int) -> tuple[Array, Array]:
    """The lanes in which a condition holds, and the others."""
    full = np.broadcast_to(condition, (count,))
    return np.flatnonzero(full), np.flatnonzero(~full)
