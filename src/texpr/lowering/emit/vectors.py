"""Vectorised loops: one access for all iterations, and arithmetic lane by lane.

Before: par 4 |v| #vector { if 4 * t + v < n { z[4 * t + v] = a * x[4 * t + v] } }. After:

    if (4 * t + 3 < n)
        v0, v1, v2, v3 = x[4 * t …]                     one access
        z[4 * t …] = a * v0, a * v1, a * v2, a * v3     one access
    else
        for v in 0..4: if (4 * t + v < n) z[4 * t + v] = a * x[4 * t + v]

Locals of a thread are in registers and need no vector accesses: their indices are constants here.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Vector
from texpr.ir.program.rewrite import map_value, substitute_load, substitute_value
from texpr.ir.program.updates import combine
from texpr.ir.steps.place import Place
from texpr.ir.value import Buffer, Literal, Load, Ref, Value, conjunction
from texpr.isa.instructions.atomic import VECTORS
from texpr.isa.levels import Level
from texpr.lowering.emit.emitter import Emitter
from texpr.lowering.engine.copies import filled_with_zero, is_copy
from texpr.schedule.rewrite.vectors import Lanes, Obstacle, maybe_read, reads
from texpr.support.diagnostic import TexprError
from texpr.support.record import Mutable, field, replace


def in_lanes(emitter: Emitter, loop: ir.Loop) -> Iterator[k.Stmt]:
    """The statements of one thread for `loop`, marked `#vector`. Raises TexprError E0911 if it cannot be vectorised."""
    made = _Vector(emitter, Lanes(loop, emitter.known))
    body = made.block(loop.body)
    whole = conjunction(list(dict.fromkeys(made.whole)))
    yield from body if whole is None else (k.If(whole, body, (emitter.loop(loop),), span=loop.span),)


class _Vector(Mutable):
    """One vectorised loop. `whole`: conditions that hold if all lanes are active. `held`: the registers of lanes for a loaded
    element.

    `lets`, `scalars`: for symbols and buffers of the body, those of each lane.
    """

    emitter: Emitter
    lanes: Lanes
    whole: list[Value] = field(default_factory=list[Value])
    held: dict[tuple[Load, bool], tuple[Ref, ...]] = field(default_factory=dict[tuple[Load, bool], "tuple[Ref, ...]"])
    lets: dict[Sym, tuple[Sym, ...]] = field(default_factory=dict[Sym, "tuple[Sym, ...]"])
    scalars: dict[Buffer, tuple[Buffer, ...]] = field(default_factory=dict[Buffer, "tuple[Buffer, ...]"])

    def block(self, body: tuple[ir.Stmt, ...]) -> tuple[k.Stmt, ...]:
        """The statements for `body`, all lanes together."""
        return tuple(made for stmt in body for made in self._stmt(stmt))

    def _stmt(self, stmt: ir.Stmt) -> Iterator[k.Stmt]:
        self.lanes.meet(stmt)
        self._require(self.lanes.wrong_statement(stmt))
        match stmt:
            case ir.Bind():
                yield from self._bind(stmt)
            case ir.If():
                yield from self._if(stmt)
            case ir.Let() if stmt.sym in self.lanes.varying:
                yield from self._fetch(stmt)
                own = self.lets[stmt.sym] = tuple(self.emitter.names.sym(stmt.sym.base) for _ in range(self.lanes.width))
                for lane, sym in enumerate(own):
                    value = self.emitter.value(self._in_lane(stmt.value, lane))
                    yield k.let(sym, value, stmt.span)
            case ir.New():
                yield from self._new(stmt)
            case _:
                yield from self.emitter.stmt(stmt)

    def _new(self, stmt: ir.New) -> Iterator[k.Stmt]:
        old, names = stmt.buffer, self.emitter.names
        own = tuple(replace(old, name=names.name(old.name)) for _ in range(self.lanes.width))
        self.scalars[old] = own
        for buffer in own:
            register = Sym(buffer.name)
            self.emitter.places[buffer] = Place(k.Space.LOCAL, buffer, register=register, reason="one lane touches it")
            yield k.let(register, Literal(0, buffer.dtype), stmt.span)

    def _if(self, stmt: ir.If) -> Iterator[k.Stmt]:
        kept, differing = self.lanes.tests(stmt.condition)
        for part in differing:
            found = self.lanes.test(part, stmt)
            if isinstance(found, Obstacle):
                raise self._refusal(found)
            (kept if found.alike else self.whole).append(found.whole)
        condition = conjunction([self.emitter.value(part) for part in kept])
        bind = filled_with_zero(stmt)
        if condition is None:
            yield from self.block(stmt.then)
        elif bind is not None and self._is_copy(bind):
            yield self._copy(bind, condition, stmt.orelse[0])
        else:
            written = {t.buffer for s in ir.walk((stmt,)) if isinstance(s, ir.Bind) for t in s.targets}
            before = {key: refs for key, refs in self.held.items() if key[0].buffer not in written}
            blocks: list[tuple[k.Stmt, ...]] = []
            for block in (stmt.then, stmt.orelse):
                blocks.append(self.block(block))
                self.held = dict(before)
            yield k.If(condition, blocks[0], blocks[1], span=stmt.span)

    def _bind(self, bind: ir.Bind) -> Iterator[k.Stmt]:
        if self._is_copy(bind):
            yield self._copy(bind)
            return
        yield from self._fetch(bind)
        atomic = bind in self.emitter.atomics
        first = self._vector(bind.targets[0], bind) if not atomic or self._is_one_access(bind) else None
        if first is not None and atomic:
            values = (self._in_lane(bind.values[0], lane) for lane in range(self.lanes.width))
            yield self.emitter.atomics_at_once(bind, first, tuple(map(self.emitter.value, values)))
        elif first is not None:
            stored = tuple(self._stored(bind, lane) for lane in range(self.lanes.width))
            fused = all(self.emitter.may_fuse(bind, value) for value in stored)
            yield k.StoreVector(first, stored, span=bind.span, fused=fused)
        else:
            for lane in range(self.lanes.width):
                yield from self.emitter.bind(self._lane_of(bind, lane))
        self._forget({t.buffer for t in bind.targets})

    def _is_one_access(self, bind: ir.Bind) -> bool:
        """Whether one access does the atomic updates of all lanes, in global memory."""
        target, place = bind.targets[0], self.emitter.places.get(bind.targets[0].buffer)
        is_global = place is None or place.space is k.Space.GLOBAL
        op = "add" if bind.update == "sub" else str(bind.update)
        counts = VECTORS.get((op, target.dtype.name), ())
        differs = is_global and self.lanes.width in counts and self.lanes.differs(target)
        return differs and self.emitter.atomics[bind].scope != Level.BLOCK.value and self.lanes.obstacle(target, bind) is None

    def _stored(self, bind: ir.Bind, lane: int) -> Value:
        (value,) = (self._in_lane(v, lane) for v in bind.values)
        if bind.update is not None:
            (value,) = combine(bind.update, (self._in_lane(bind.targets[0], lane),), (value,))
        return self.emitter.value(value)

    def _lane_of(self, bind: ir.Bind, lane: int) -> ir.Bind:
        targets: list[Load] = []
        for target in bind.targets:
            own = self.scalars.get(target.buffer)
            moved = target if own is None else replace(target, buffer=own[lane])
            targets.append(substitute_load(moved, self._symbols(lane)))
        made = replace(bind, targets=tuple(targets), values=tuple(self._in_lane(v, lane) for v in bind.values))
        if bind in self.emitter.atomics:
            self.emitter.atomics[made] = self.emitter.atomics[bind]
        return made

    def _is_copy(self, bind: ir.Bind) -> bool:
        """Whether `bind` is one asynchronous copy of all lanes' elements."""
        if not self.emitter.copying or not is_copy(bind, self.emitter.places):
            return False
        source = bind.values[0]
        return self.lanes.differs(source) and self.lanes.differs(bind.targets[0])

    def _copy(self, bind: ir.Bind, when: Value | None = None, otherwise: ir.Stmt | None = None) -> k.CopyAsync:
        """A copy of all lanes' elements, where `when` holds; `otherwise`: what writes zeros to the same elements elsewhere."""
        source = bind.values[0]
        assert isinstance(source, Load)
        target, source = (self._vector(load, bind, may_be_single=False) for load in (bind.targets[0], source))
        assert target is not None and source is not None, "a copy between memories has its elements in memory"
        if otherwise is not None:
            other = self._vector(bind.targets[0], otherwise, may_be_single=False)
            if other is None or other.index != target.index:  # one of them is so only where the condition holds
                place = self.emitter.places[bind.targets[0].buffer]
                first = {self.lanes.loop.sym: 0}
                target = replace(target, index=tuple(e.substitute(first) for e in place.index(bind.targets[0].index)))
        self._forget({bind.targets[0].buffer})
        return k.CopyAsync(target, source, self.lanes.width, when, span=bind.span)

    def _fetch(self, stmt: ir.Bind | ir.Let) -> Iterator[k.Stmt]:
        """Loads of memory that `stmt` always reads: vectors, and one load for elements that all lanes share."""
        for found in maybe_read(self.lanes, stmt):
            self._require(found)
        atomic = stmt in self.emitter.atomics
        written = {t.buffer for t in stmt.targets} if isinstance(stmt, ir.Bind) else set[Buffer]()
        for value in stmt.values if isinstance(stmt, ir.Bind) and atomic else ir.values(stmt):
            for load, sure in reads(value):
                key = self._key(load)
                if not sure or key in self.held:
                    continue
                first = self._vector(load, stmt)
                if first is not None:
                    base = f"v_{load.buffer.name}"
                    own = tuple(self.emitter.names.sym(base) for _ in range(self.lanes.width))
                    yield k.LoadVector(own, first, span=stmt.span)
                elif load.buffer not in written and self._is_shared_by_lanes(load):
                    own = (self.emitter.names.sym(f"at_{load.buffer.name}"),) * self.lanes.width
                    yield k.let(own[0], self.emitter.value(load), stmt.span)
                else:
                    continue
                self.held[key] = tuple(Ref(sym, load.dtype) for sym in own)

    def _is_shared_by_lanes(self, load: Load) -> bool:
        place = self.emitter.places.get(load.buffer)
        in_memory = load.buffer.rank > 0 and (place is None or place.space is not k.Space.LOCAL)
        return in_memory and not self.lanes.differs(load)

    def _vector(self, load: Load, stmt: ir.Stmt, *, may_be_single: bool = True) -> Load | None:
        """The first element in memory, if lanes access consecutive ones; None if it is in registers, or the same for all lanes.

        In shared memory lanes may also access single elements: a tile is often padded, or accessed across its rows.
        """
        place = self.emitter.places.get(load.buffer)
        if load.buffer in self.lanes.own or not self.lanes.differs(load):
            return None
        if place is not None:
            if place.space is k.Space.LOCAL or place.trailing or self.emitter.is_own(place, load):
                return None
            if place.space is k.Space.CLUSTER and not place.is_own(load.index):
                return None  # single elements of other blocks
            load = replace(load, buffer=place.buffer, index=place.index(load.index))
        obstacle = self.lanes.obstacle(load, stmt)
        if obstacle is not None and may_be_single and place is not None and place.space is k.Space.SHARED:
            return None
        self._require(obstacle)
        data = tuple((sym, self.emitter.value(meaning)) for sym, meaning in load.data)
        return replace(load, index=tuple(self.lanes.at(e, 0, stmt) for e in load.index), data=data)

    def _in_lane(self, value: Value, lane: int) -> Value:
        def leaf(node: Value) -> Value | None:
            match node:
                case Load():
                    held = self.held.get(self._key(node))
                    own = self.scalars.get(node.buffer)
                    return held[lane] if held is not None else None if own is None else replace(node, buffer=own[lane])
                case Ref() if node.sym in self.lets:
                    return Ref(self.lets[node.sym][lane], node.dtype)
                case _:
                    return None

        return substitute_value(map_value(value, leaf), self._symbols(lane))

    def _symbols(self, lane: int) -> dict[Sym, Expr]:
        return {self.lanes.loop.sym: expr(lane), **{old: expr(own[lane]) for old, own in self.lets.items()}}

    def _key(self, load: Load) -> tuple[Load, bool]:
        """The key of `load` in `held`: its first lane's element, and whether lanes differ, as another load may be of that
        element."""
        return substitute_load(load, {self.lanes.loop.sym: 0}), self.lanes.differs(load)

    def _forget(self, written: set[Buffer]) -> None:
        self.held = {key: refs for key, refs in self.held.items() if key[0].buffer not in written}

    def _require(self, obstacle: Obstacle | None) -> None:
        if obstacle is not None:
            raise self._refusal(obstacle)

    def _refusal(self, obstacle: Obstacle) -> TexprError:
        loop = self.lanes.loop
        asked = mark(loop, Vector)
        return obstacle.refusal(loop.span if asked is None else asked.span, loop)
