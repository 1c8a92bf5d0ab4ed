"""Emission of the program's statements as statements of a kernel, for one thread.

Before: `C[i, j] += A[i, k] * B[k, j]`. After: a store to the place of `C`, or an assignment if that is a register. Other
threads are not considered here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from math import prod

from texpr.affine.expr import ONE, ZERO, Expr, Sym, maximum, minimum
from texpr.affine.facts import Known
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.ops.copies import COPY_BYTES
from texpr.ir.program.marked import Atomicity, is_atomic, mark
from texpr.ir.program.marks import Vector
from texpr.ir.program.rewrite import replace_loads
from texpr.ir.program.updates import SUMS, combine, sum_and_product, taken
from texpr.ir.program.uses import loads
from texpr.ir.steps.place import Place, RegisterLayout
from texpr.ir.value import Buffer, Index, Literal, Load, Op, Ref, Value, conjunction, walk
from texpr.ir.value.types import BOOL, I32
from texpr.isa.levels import Level
from texpr.lowering.build.signals import signalled
from texpr.lowering.build.unrolling import MOST_UNROLLED, unrolling
from texpr.lowering.engine.copies import filled_with_zero, is_copy
from texpr.lowering.engine.instruct import alone
from texpr.lowering.names import Names
from texpr.lowering.place.owners import Frame, RegisterRef, register_of
from texpr.relation.facts import in_loop, known
from texpr.support.diagnostic import error
from texpr.support.record import Mutable, field, replace

MOST_REGISTERS = 8192
"""The largest array in bytes that may be in registers: more than the registers of a thread."""


class Emitter(Mutable, dict=True):
    """Emits statements of one nest as those of a thread.

    `simd`: innermost parallel loops become vector lanes. `reduce`: the emission of a `par … reduce` within a thread.
    `elements`: the accumulators that currently replace elements. `arrays`: memory that emission adds. `vector`: the emission of
    a loop marked `#vector`; `known`, `loops`: facts at a statement, and the loops around it. `copying`: copies to shared memory
    are asynchronous. `free`: buffers whose sums have a free order, so that products may be fused. `frame`: facts about
    iterations and the thread, for elements in lanes; `fetched`: the values of such elements that the current statement has read
    by shuffles; `within`: maps a thread's number to one that exists in the warp, itself if it does.
    """

    places: dict[Buffer, Place]
    names: Names
    simd: bool = False
    elements: dict[tuple[object, ...], tuple[Load | Ref, ...]] = field(
        default_factory=dict[tuple[object, ...], tuple["Load | Ref", ...]]
    )
    arrays: list[k.Array] = field(default_factory=list[k.Array])
    atomics: dict[ir.Bind, Atomicity] = field(default_factory=dict[ir.Bind, Atomicity])
    free: frozenset[Buffer] = frozenset()
    reduce: Callable[[Emitter, ir.Par], Iterator[k.Stmt]] | None = None
    vector: Callable[[Emitter, ir.Loop], Iterator[k.Stmt]] | None = None
    known: Callable[[ir.Stmt], Known] = lambda _: Known({})
    loops: Callable[[ir.Stmt], tuple[ir.Loop, ...]] = lambda _: ()
    copying: bool = False
    frame: Frame = field(default_factory=Frame)
    within: Callable[[Expr], Expr] = lambda keeper: keeper
    fetched: dict[Load, Value] = field(default_factory=dict[Load, Value])
    _declaring: dict[ir.Bind, Sym] = field(default_factory=dict[ir.Bind, Sym])

    @cached_property
    def has_dealt(self) -> bool:
        """Whether any local is in lanes."""
        return any(place.dealt for place in self.places.values())

    def value(self, value: Value) -> Value:
        """`value` with every element replaced by the one in its place."""
        return replace_loads(value, self._load)

    def _load(self, load: Load) -> Value | None:
        place = self.places.get(load.buffer)
        if place is None:
            return None
        if place.dealt is not None:
            kept = register_of(place.dealt, load.index, self.frame)
            return self.fetched.get(load) or Load(place.buffer, kept.slots, span=load.span)
        return place.element(load)

    def target(self, load: Load) -> Load | Ref:
        """The target of a write to `load`."""
        data = tuple((sym, self.value(meaning)) for sym, meaning in load.data)
        moved = self._load(replace(load, data=data))
        assert moved is None or isinstance(moved, Load | Ref)
        return replace(load, data=data) if moved is None else moved

    def block(self, body: tuple[ir.Stmt, ...]) -> tuple[k.Stmt, ...]:
        """The statements of one thread for `body`, in order."""
        found: list[k.Stmt] = []
        for at, stmt in enumerate(body):
            found.extend(self.new(stmt, body[at + 1 :]) if isinstance(stmt, ir.New) else self.stmt(stmt))
        return tuple(found)

    def stmt(self, stmt: ir.Stmt) -> Iterator[k.Stmt]:
        """The statements of one thread for `stmt`, which is not a `new`."""
        yield from self.fetch(stmt)
        match stmt:
            case ir.Par() if stmt.reduce and self.reduce is not None and not is_atomic(stmt):
                yield from self.reduce(self, stmt)
            case ir.Par() | ir.Seq() if self.vector is not None and mark(stmt, Vector):
                yield from self.vector(self, stmt)
            case ir.Par() | ir.Seq():
                yield self.loop(stmt)
            case ir.Bind():
                yield from self.bind(stmt)
            case ir.Let():
                yield k.let(stmt.sym, self.value(stmt.value), stmt.span)
            case ir.If() if self.copying and (filled := filled_with_zero(stmt)) and self._can_copy(filled):
                yield self._copy(filled, self.value(stmt.condition))
            case ir.If():
                yield k.If(self.value(stmt.condition), self.block(stmt.then), self.block(stmt.orelse), span=stmt.span)
            case ir.Anchor():
                yield k.let(self.names.sym("anchored"), self.value(stmt.value), stmt.span)
            case ir.Instruction() if stmt.signal is not None:
                yield signalled(stmt, stmt.signal)
            case ir.Instruction():
                assert stmt.instr is not None, "no other instruction is left"
                yield alone(stmt, stmt.instr, [self.target(load) for load in stmt.operands])
            case ir.New():
                yield from self.new(stmt, ())

    def is_own(self, place: Place, load: Load) -> bool:
        """Whether an element that lanes keep is in a register of the lane itself."""
        return place.dealt is not None and register_of(place.dealt, load.index, self.frame).own

    def fetch(self, stmt: ir.Stmt) -> Iterator[k.Shuffle]:
        """Shuffles for the elements in lanes that `stmt` reads and other threads own."""
        self.fetched = {}
        if not self.has_dealt or isinstance(stmt, ir.Par | ir.Seq | ir.New):
            return
        self.frame = self.frame.where(self.known(stmt).nonnegatives())
        for load in (node for value in ir.values(stmt) for node in walk(value) if isinstance(node, Load)):
            place = self.places.get(load.buffer)
            if place is None or place.dealt is None or load in self.fetched:
                continue
            kept = register_of(place.dealt, load.index, self.frame)
            if not kept.own:
                found = [Ref(self.names.sym(f"{load.buffer.name.split(chr(39))[0]}_got"), load.dtype) for _ in kept.ways]
                for got, slots in zip(found, kept.ways, strict=True):
                    there = self._there(slots, place.dealt, stmt)
                    yield k.Shuffle(got.sym, Load(place.buffer, there), self.within(kept.thread), span=stmt.span)
                self.fetched[load] = chosen(found, kept)

    def _there(self, slots: tuple[Expr, ...], dealt: RegisterLayout, stmt: ir.Stmt) -> tuple[Expr, ...]:
        """`slots`, or valid ones if these may be out of range: all lanes reach a shuffle, also those whose test is false."""
        loops = (loop for loop in self.loops(stmt) if loop.sym not in self.frame.turns)
        inside = known((*(fact for loop in loops for fact in in_loop(loop.sym, loop.extent)), *self.frame.ranges))
        pairs = zip(slots, dealt.shape, strict=True)
        ends = ((e, n, all(map(inside.nonnegative, (e, n - 1 - e)))) for e, n in pairs)
        return tuple(e if fits else maximum(0, minimum(e, n - 1)) for e, n, fits in ends)

    def loop(self, loop: ir.Loop) -> k.For:
        """A sequential loop of the thread, unrolled if a mark or its arrays need it, or a loop over vector lanes."""
        body = self.block(loop.body)
        factor = unrolling(loop)
        kind = "serial" if factor is None else "unroll"
        free = isinstance(loop, ir.Par) and is_simple(loop.body, self.atomics) and not self._assigns_shared(loop)
        if factor is None and self.simd and free:
            kind = "simd"
        elif kind == "serial" and loop.extent.is_constant and loop.extent.constant <= MOST_UNROLLED:
            kind = "unroll" if mark(loop, Vector) or self._indexes_own(loop) else kind
        return k.For(loop.sym, ZERO, loop.extent, body, ONE, kind, span=loop.span, factor=factor or 0)

    def _assigns_shared(self, loop: ir.Loop) -> bool:
        """Whether an iteration assigns a register that all iterations share: an array of one element."""
        own = {s.buffer for s in ir.walk(loop.body) if isinstance(s, ir.New)}
        targets = [t.buffer for s in ir.walk(loop.body) if isinstance(s, ir.Bind) for t in s.targets]
        places = [self.places.get(b) for b in targets if b not in own]
        return any(place is not None and place.register is not None for place in places)

    def _indexes_own(self, loop: ir.Loop) -> bool:
        """Whether `loop` indexes an array of the thread that may be in registers: not what instructions read in memory."""
        rows = {buffer for stmt in ir.walk(loop.body) for buffer in _rows(stmt)}
        for stmt in ir.walk(loop.body):
            for load in (load for load in loads(stmt) if load.buffer not in rows):
                place = self.places.get(load.buffer)
                own = place is not None and place.space in (k.Space.LOCAL, k.Space.LANES) and place.register is None
                if place is not None and own and _is_small(place) and any(loop.sym in e.syms() for e in load.index):
                    return True
        return False

    def bind(self, bind: ir.Bind) -> Iterator[k.Stmt]:
        """A bind as stores, assignments, an atomic, an asynchronous copy, or the initialisation of a register."""
        if self.copying and self._can_copy(bind):
            yield self._copy(bind)
            return
        values = tuple(self.value(v) for v in bind.values)
        if bind in self.atomics and not self._is_own(bind.targets[0].buffer):
            yield self._atomic(bind, values[0])
            return
        declared = self._declaring.pop(bind, None)
        if declared is not None:
            yield k.let(declared, values[0], bind.span)
            return
        own = self.elements.get(tuple((t.buffer, t.index) for t in bind.targets))
        targets = own if own is not None and bind.update is not None else tuple(self.target(t) for t in bind.targets)
        yield from self.join(targets, bind.update, values, bind)

    def join(
        self, targets: tuple[Load | Ref, ...], update: ir.Update | None, values: tuple[Value, ...], bind: ir.Bind
    ) -> Iterator[k.Stmt]:
        """`targets (update)= values`."""
        if len(targets) == 1:
            (value,) = values if update is None else combine(update, targets, values)
            yield k.assign(targets[0], value, bind.span, fused=self.may_fuse(bind, value))
            return
        apart = all(isinstance(v, Literal | Ref) and v not in targets for v in values)  # no target is read after it is written
        temporaries = values if apart else tuple(Ref(self.names.sym("next"), v.dtype) for v in values)
        for temporary, value in zip(temporaries, values, strict=True):
            if temporary is not value and isinstance(temporary, Ref):
                yield k.let(temporary.sym, value, bind.span)
        stores = tuple(k.assign(t, v, bind.span) for t, v in zip(targets, temporaries, strict=True))
        if update is None:
            yield from stores
        else:
            assert isinstance(update, str)
            yield k.If(taken(update, targets, temporaries), stores, span=bind.span)

    def may_fuse(self, bind: ir.Bind, value: Value) -> bool:
        """Whether `value`, the result of an update, is a sum with a free order, of a product."""
        return bind.update in SUMS and bind.targets[0].buffer in self.free and sum_and_product(value) is not None

    def _can_copy(self, bind: ir.Bind) -> bool:
        return is_copy(bind, self.places) and bind.targets[0].dtype.bytes in COPY_BYTES

    def _copy(self, bind: ir.Bind, when: Value | None = None) -> k.CopyAsync:
        target, source = self.target(bind.targets[0]), self.value(bind.values[0])
        assert isinstance(target, Load) and isinstance(source, Load)
        return k.CopyAsync(target, source, 1, when, span=bind.span)

    def _is_own(self, buffer: Buffer) -> bool:
        """Whether only the running thread accesses `buffer`."""
        place = self.places.get(buffer)
        return place is not None and place.space in (k.Space.LOCAL, k.Space.LANES)

    def _atomic(self, bind: ir.Bind, value: Value) -> k.Atomic:
        target = self.target(bind.targets[0])
        assert isinstance(target, Load) and isinstance(bind.update, str)
        how, place = self.atomics[bind], self.places.get(bind.targets[0].buffer)
        if how.scope == "block" and (place is None or place.space is not k.Space.SHARED):
            told = f"updates of `{target.buffer.name}` are one step for threads of one block, and threads of all blocks have it"
            help = "without that word they are one step for all threads; what is made in a loop over blocks is of one block"
            raise error("E0335", bind.span, told, help=help)
        op, value = ("add", Op("neg", (value,), value.dtype)) if bind.update == "sub" else (bind.update, value)
        return k.Atomic(target, op, value, Level(how.scope), how.order, span=bind.span)

    def atomics_at_once(self, bind: ir.Bind, first: Load, values: tuple[Value, ...]) -> k.AtomicVector:
        """An atomic of consecutive elements, from `first` on, with a value for each."""
        how = self.atomics[bind]
        if bind.update == "sub":
            values = tuple(Op("neg", (value,), value.dtype) for value in values)
        return k.AtomicVector(first, "add", values, Level(how.scope), how.order, span=bind.span)

    def new(self, new: ir.New, rest: tuple[ir.Stmt, ...]) -> Iterator[k.Stmt]:
        """A register is initialised by the first bind that follows, if that is simple; otherwise by 0."""
        place = self.places.get(new.buffer)
        if place is None or place.register is None:
            return
        for stmt in rest:
            mentioned = [load for inner in ir.walk((stmt,)) for load in loads(inner) if load.buffer is new.buffer]
            if not mentioned:
                continue
            if isinstance(stmt, ir.Bind) and _is_first(stmt, mentioned, new.buffer):
                self._declaring[stmt] = place.register
                return
            break
        yield k.let(place.register, Literal(0, new.buffer.dtype), new.span)


def chosen(found: Sequence[Value], kept: RegisterRef) -> Value:
    """The selection of the element among the values of possible slots."""
    value = found[-1]
    for got, slots in zip(reversed(found[:-1]), reversed(kept.ways[:-1]), strict=True):
        pairs = zip(kept.told, slots, strict=True)
        same = [Op("eq", (Index(told, I32), Index(slot, I32)), BOOL) for told, slot in pairs if told is not slot]
        test = conjunction(same)
        value = got if test is None else Op("select", (test, got, value), got.dtype)
    return value


def _is_first(bind: ir.Bind, mentioned: list[Load], buffer: Buffer) -> bool:
    """Whether `bind` only gives `buffer` its first value."""
    return bind.update is None and len(bind.targets) == 1 and len(mentioned) == 1 and bind.targets[0].buffer is buffer


def _rows(stmt: ir.Stmt) -> Iterator[Buffer]:
    """The arrays that an instruction of a core reads."""
    if isinstance(stmt, ir.Instruction) and stmt.instr is not None:
        pairs = zip(stmt.instr.operands, stmt.operands, strict=True)
        yield from (load.buffer for operand, load in pairs if not operand.is_written)


def _is_small(place: Place) -> bool:
    """Whether the array may be in registers; a larger one stays in memory, whatever its loops."""
    extents, size = place.buffer.shape, place.buffer.dtype.bytes
    return all(e.is_constant for e in extents) and prod(e.constant for e in extents) * size <= MOST_REGISTERS


def is_simple(body: tuple[ir.Stmt, ...], atomics: Collection[ir.Bind]) -> bool:
    """Whether `body` is simple enough for vector lanes: no loops, arrays or atomics."""
    return not any(
        isinstance(s, ir.Par | ir.Seq | ir.Instruction | ir.Anchor)
        or (isinstance(s, ir.New) and s.buffer.rank > 0)
        or (isinstance(s, ir.Bind) and s in atomics)
        for s in ir.walk(body)
    )


def free_sums(loops: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...]) -> frozenset[Buffer]:
    """The buffers for which each update has a loop around it that relaxes its order by `reduce`, and with it the rounding."""
    held: set[Buffer] = set()

    def visit(block: tuple[ir.Stmt, ...], free: frozenset[Buffer]) -> None:
        for stmt in block:
            if isinstance(stmt, ir.Bind) and stmt.update is not None:
                held.update(t.buffer for t in stmt.targets if t.buffer not in free)
            inside = free | frozenset(stmt.reduce) if isinstance(stmt, ir.Par | ir.Seq) else free
            for inner in ir.blocks(stmt):
                visit(inner, inside)

    around = frozenset(b for loop in loops for b in loop.reduce)
    visit(body, around)
    named = around.union(*(s.reduce for s in ir.walk(body) if isinstance(s, ir.Par | ir.Seq)))
    return named - held
