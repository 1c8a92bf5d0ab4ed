"""Reads kernels as events: registers that are never reassigned are substituted, vectors and tiles decomposed into elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import cast

from texpr.affine.expr import ONE, ZERO, Expr, Number, Sym, expr, number_of
from texpr.affine.facts import Fact, Known
from texpr.affine.simplify import Simplifier
from texpr.ir import kernel as k
from texpr.ir.operation import (
    BLOCK,
    CLUSTER,
    Arrives,
    Awaits,
    Brings,
    Closes,
    Commits,
    Completion,
    Fences,
    Joins,
    Lasts,
    Makes,
    Releases,
    Waits,
)
from texpr.ir.program.rewrite import map_value
from texpr.ir.value import Buffer, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.types import BOOL, DType
from texpr.isa.levels import Level, Space
from texpr.presburger.formula import TRUE, Eq, Formula, Ge, between, compare, conj, negate
from texpr.presburger.solve.products import is_never_negative
from texpr.presburger.solve.relaxed import flat
from texpr.proof.read.actions import Action, Program, indices, named_by
from texpr.proof.read.boxes import Copy, Piece, Sender, aligned, filled, needed, pieces, sender
from texpr.proof.read.channels import channels, relays
from texpr.proof.read.conditions import test
from texpr.proof.read.events import (
    Block,
    Event,
    Host,
    Launch,
    Meeting,
    Reading,
    Signal,
    Site,
    Step,
    Variable,
    index_names,
    over,
)
from texpr.proof.read.folded import folded
from texpr.proof.read.instructs import instructed, not_understood, premises, used
from texpr.proof.read.lanes import joins_lanes
from texpr.proof.read.pairs import Counted, Half, counted, half_of, led, near_of, part_of, sent
from texpr.proof.read.tables import Tables, number_in, read_at
from texpr.support.record import Mutable, Record, field, replace


def read(plan: k.Plan, program: Program) -> Reading:
    """The events of `plan`; its registers may be named after memory of `program`."""
    stored = {a.stored for a in program.actions if not isinstance(a.stored, Buffer) or a.stored.role == "local"}
    single = frozenset(s.name for s in stored if not isinstance(s, Buffer) or not s.rank)
    promised = tuple(compare(c.op, c.left, c.right) for c in plan.requires)
    facts = [fact for each in promised for fact in _facts(each)]
    names, known = frozenset(s.name for s in stored), Known({size: (0, None) for size in plan.sizes}, facts)
    promised += tuple(Ge(expr(size)) for size in plan.sizes)
    reader = _Reader(names, single, program.lets, program.tables, known, promised)
    reader.steps(plan.steps, (), ())
    for launch in reader.found.launches:
        launch.relays.extend(relays(reader.found, launch))
        launch.channels.extend(channels(reader.found, launch))
    return reader.found


def _facts(promise: Formula) -> Iterator[Fact]:
    """The facts about sizes in a promise."""
    if isinstance(promise, Ge | Eq):
        yield Fact(0, promise.expr, 1 if isinstance(promise, Eq) else None)


def _first(sym: Sym) -> Sym:
    """The symbol that `sym` is a copy of, by its name."""
    first, _, number = sym.name.rpartition("_")
    return Sym(first) if first and number.isdecimal() else sym


class _Reader(Mutable):
    names: frozenset[str]
    single: frozenset[str]
    lets: Mapping[Sym, Action]
    tables: Tables
    known: Known
    promised: tuple[Formula, ...]
    found: Reading = field(default_factory=Reading)
    numbers: Iterator[int] = field(default_factory=count)
    lanes: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])
    halves: dict[Buffer, Half] = field(default_factory=dict[Buffer, Half])

    def steps(self, steps: tuple[k.HostStep, ...], time: Host, domain: tuple[Formula, ...]) -> None:
        for at, step in enumerate(steps):
            match step:
                case k.Launch(kernel):
                    self.kernel(kernel, (*time, at), domain)
                case k.HostLoop(sym, extent, inner):
                    self.steps(inner, (*time, at, step), (*domain, between(0, sym, extent)))
                case k.HostIf(conditions, inner):
                    facts = tuple(compare(c.op, c.left, c.right) for c in conditions)
                    self.steps(inner, (*time, at), (*domain, *facts))

    def kernel(self, kernel: k.Kernel, time: Host, domain: tuple[Formula, ...]) -> None:
        for array in kernel.arrays:
            rows = replace(array.buffer, shape=(expr(kernel.threads), *array.buffer.shape))  # a row for each thread
            own = array.space in (Space.LANES, Space.TENSOR)
            made = self.lanes.setdefault(array.buffer, rows) if own else array.buffer
            self.found.spaces[made] = array.space
            if (half := half_of(array)) is not None:
                self.halves[array.buffer] = half
                self.found.spaces[half.whole] = array.space
        blocks, threads, skip = list[Sym](), list[Sym](), 0
        env: dict[Sym, Expr] = {}
        ranks = {a.sym: a for a in kernel.axes if a.level is Level.CLUSTER}
        for axis in (a for a in kernel.axes if a.sym not in ranks):
            own = threads if axis.level is Level.BLOCK else blocks
            found = folded(axis, kernel.body) if axis.level in (Level.GRID, Level.CORE) else None
            known, facts = self.known.nonnegative, (*domain, *self.promised)  # a product of two negative extents is positive
            if found is not None and all(known(e) or is_never_negative(e, facts) for e in found[0].values()):
                digits, skip, env = found
                own.extend(digits)
                domain = (*domain, *(between(0, sym, extent) for sym, extent in digits.items()))
            else:
                own.append(axis.sym)
                domain = (*domain, between(0, axis.sym, axis.extent))
        launch = Launch(kernel, time, domain, tuple(blocks), tuple(threads))
        self.found.launches.append(launch)
        if ranks:  # clusters are whole, wherever their barriers are
            self.found.together.append(Meeting("barrier", CLUSTER, Site(launch), kernel.span))
        assigned = k.reassigned(kernel.body)
        plain = Simplifier(
            Known({a.sym: (0, a.extent.constant - 1) for a in kernel.axes if a.extent.is_constant and not a.base})
        )
        along = {a.dim: expr(a.sym) for a in kernel.axes if a.level is Level.GRID}
        meaning = {**env, **{sym: plain(along[a.dim] % a.extent) for sym, a in ranks.items()}}
        body = _Body(self, launch, assigned, maps={map.name: map for map in kernel.maps})
        body.block(kernel.body, Site(launch), _Scope(meaning, {}), skip)


class _Scope(Record):
    exprs: dict[Sym, Expr]
    refs: dict[Sym, Sym]

    def copy(self) -> _Scope:
        return _Scope(dict(self.exprs), dict(self.refs))


class _Body(Mutable):
    """`data`: the data-dependent integers of the statement at `site`, for all its reads and writes."""

    reader: _Reader
    launch: Launch
    assigned: frozenset[Sym]
    site: Site = field(init=False)
    data: dict[tuple[Sym, Value], Number] = field(default_factory=dict["tuple[Sym, Value]", Number])
    maps: dict[str, k.TensorMap] = field(default_factory=dict[str, k.TensorMap])

    def block(self, body: Block, around: Site, scope: _Scope, skip: int = 0) -> None:
        scope = scope.copy()
        for at, stmt in enumerate(body):
            if at >= skip:
                site = around.at(at, body, scope.exprs)
                for sym in index_names(k.values(stmt)).union(*[e.syms() for e in k.exprs(stmt)]) & scope.refs.keys():
                    if sym in self.assigned:
                        self.reader.found.strange.append((stmt, site, "what a register holds now is a subscript"))
                    else:
                        scope.exprs[sym] = self.number(scope.refs[sym])
                self.site, self.data = site, {}
                self.stmt(stmt, site, scope)

    def stmt(self, stmt: k.Stmt, site: Site, scope: _Scope) -> None:
        match stmt:
            case k.For() if joins_lanes(stmt):
                self.block(stmt.body, site, scope)
            case k.For():
                self.loop(stmt, site, scope)
            case k.If():
                self.branch(stmt, site, scope)
            case _:
                stmt.does(_Here(self, stmt, site, scope))
                self.goes_on(stmt, site, scope)

    def goes_on(self, stmt: k.Operation, site: Site, scope: _Scope) -> None:
        """Records the role of an operation in asynchronous copies; the copies themselves are recorded by their effects."""
        what = stmt.completion(self.maps)
        if isinstance(what, Closes | Awaits | Fences | Lasts):
            self.reader.found.steps.append(Step(stmt, site, what))
        elif isinstance(what, Makes | Arrives | Waits | Releases):
            stmt = stmt.over(lambda value: value, lambda e: e.substitute(scope.exprs))
            self.signal(stmt, stmt.completion(self.maps), site, scope)

    def signal(self, stmt: k.Operation, what: Completion | None, site: Site, scope: _Scope) -> None:
        """Records an operation on a barrier in shared memory."""
        match what:
            case Makes():
                what = Makes(self.load(what.at, scope), what.count)
            case Commits():
                what = Commits(self.load(what.at, scope), what.bytes, what.group, what.pair)
                site = led(site) if what.pair else site
            case Arrives():
                what = Arrives(self.load(what.at, scope), what.bytes)
            case Releases():
                what = Releases(self.load(what.at, scope), what.blocks)
            case Waits():
                what = Waits(self.load(what.at, scope), what.parity, what.phase)
                if site.tests:  # all threads of a block wait, or none
                    last = replace(site.tests[-1][1], tests=site.tests)
                    self.reader.found.together.append(Meeting("barrier", BLOCK, last))
            case _:
                return
        self.reader.found.signals.append(Signal(stmt, site, what))

    def loop(self, stmt: k.For, site: Site, scope: _Scope) -> None:
        inner = scope.copy()
        if stmt.step.syms() & scope.exprs.keys():
            self.reader.found.strange.append((stmt, site, "a register says how far apart the turns of a loop are"))
        lo, hi = (e.substitute(scope.exprs) for e in (stmt.lo, stmt.hi))
        domain: list[Formula] = [Ge(expr(stmt.sym) - lo), Ge(hi - stmt.sym - 1)]
        if stmt.step is not ONE:
            domain.append(Eq((expr(stmt.sym) - lo) % stmt.step))
        inner.exprs.pop(stmt.sym, None)
        time, loops = (*site.time, stmt), (*site.loops, stmt)
        bounds = {**site.bounds, stmt: (lo, hi)}
        self.block(stmt.body, replace(site, time=time, loops=loops, domain=(*site.domain, *domain), bounds=bounds), inner)

    def branch(self, stmt: k.If, site: Site, scope: _Scope) -> None:
        value = self.resolved(self.value(stmt.condition, scope))
        found = test(value)
        if found is None:
            self.name(Sym("test"), site, value, scope.copy())
        for number, (body, taken) in enumerate(((stmt.then, True), (stmt.orelse, False))):
            domain, tests = site.domain, site.tests
            if found is None:
                tests = (*tests, (value if taken else Op("not", (value,), BOOL), site))
            else:
                domain = (*domain, found if taken else negate(found))
            if body:
                self.block(body, replace(site, time=(*site.time, number), domain=domain, tests=tests), scope)

    def resolved(self, value: Value) -> Value:
        """`value` with a variable that only holds a test of indices substituted."""

        def leaf(node: Value) -> Value | None:
            variable = self.reader.found.variables.get(node.sym) if isinstance(node, Ref) else None
            return variable.value if variable is not None and variable.value is not None and test(variable.value) else None

        return map_value(value, leaf)

    def name(self, sym: Sym, site: Site, value: Value | None, scope: _Scope) -> Sym:
        made = Sym(f"{sym.name}#{next(self.reader.numbers)}")
        lets = self.reader.lets
        called = sym if sym in lets or _first(sym) not in lets else _first(sym)  # a copy of a `let` has its name
        self.reader.found.variables[made] = Variable(made, site, value, called)
        scope.refs[sym] = made
        scope.exprs.pop(sym, None)
        return made

    def number(self, made: Sym) -> Expr:
        """The contents of a register that is never reassigned, for index expressions: an element of a table; a `let` of the
        program of that name, with the indices for which it reads the same elements, or of the same names, which is to be
        proved. Otherwise an uninterpreted function of the coordinates of its declaration."""
        variable = self.reader.found.variables[made]
        if (own := number_in(variable.value, self.reader.tables)) is not None:
            return expr(own)
        site, let = variable.site, self.reader.lets.get(variable.name)
        called = {**{sym: expr(sym) for sym in site.dims}, **site.names}
        known, (block, at) = {**{_first(sym): value for sym, value in called.items()}, **called}, site.path[-1]
        known |= {} if let is None or variable.value is None else read_at(variable.value, let.value)
        if let is None or not known.keys() >= {*indices(let.spot)} or not k.declares(block[at]):
            return expr(number_of(made.name, site.dims))
        named = named_by(let, [known[s] for s in indices(let.spot)], self.reader.tables)
        return self.reader.found.named.setdefault(made, named)

    def engine(self, stmt: Copy, site: Site, scope: _Scope) -> None:
        """Decomposes a copy of a tile into elements; a multicast copy into those that one block receives, from each sender."""
        found, name = self.reader.found, f"box{next(self.reader.numbers)}"
        moved, signal, by, half = self.moved(stmt, scope), None, Sender(), self.reader.halves.get(near_of(stmt))
        own = moved, site
        if moved.moved(self.maps).peers:
            if site.tests:
                raise ValueError("a test of data decides whether a box is sent")
            by = sender(moved, self.launch.kernel, name)
            site, known = sent(site, by), Simplifier(Known({loop.sym: (0, loop.hi.constant - 1) for loop in by.loops}))
            seen = _Scope({sym: known(e.substitute(by.values)) for sym, e in {**by.values, **scope.exprs}.items()}, scope.refs)
            self.site, self.data = site, {}
            moved = self.moved(stmt, seen)
        copy, count, what = moved, Counted(site), own[0].completion(self.maps)
        if isinstance(what, Brings) and (half is not None or what.led):  # at another block's barrier than that of the tile
            copy, count = own[0], counted(what, own[1], by, name)
        what = copy.completion(self.maps)
        if isinstance(what, Brings):
            signal = Signal(copy, count.site, what)
            found.signals.append(signal)
        group = what.group if isinstance(what, Joins) else None
        sizes = {*self.launch.kernel.sizes}
        facts = [Fact(0, f.expr, None) for f in flat(site.where) if isinstance(f, Ge) and f.expr.syms() <= sizes]
        inside = self.reader.known.also(facts)
        needs = (needed(moved, self.launch.kernel, inside), by.needs)
        found.needed += ((stmt, site, each) for each in needs if each is not None)
        for piece in pieces(moved, self.launch.kernel, name, inside, site.dims):
            near, far, joins = piece.near, piece.far, False
            inward = signal is not None
            if far is None:
                target, value = near, filled(moved, self.launch.kernel, near)
            elif inward:
                target, value = near, far
            else:
                target, value = far, near
                if (op := moved.moved(self.maps).reduce) is not None:
                    value, joins = Op(op, (far, near), far.dtype), True
            place = self.within(site, piece, scope)
            if half is not None:
                found.needed.append((stmt, place, half.holds(near)))
                target = half.of(near, part_of(by))
            made = Event(place, target, value, stmt, "async", signal=signal, group=group, joins=joins, afar=count.afar)
            found.events.append(made)

    def moved(self, stmt: Copy, scope: _Scope) -> Copy:
        """A copy with unique names of coordinates and registers."""

        def operand(value: Value) -> Value:
            return self.load(value, scope) if isinstance(value, Load) else self.value(value, scope)

        return cast("Copy", stmt.over(operand, lambda e: e.substitute(scope.exprs)))

    def within(self, site: Site, piece: Piece, scope: _Scope) -> Site:
        """The domain and time of the elements of a copy."""
        inside = over(site, piece.loops)
        domain, tests = (*inside.domain, *piece.domain), inside.tests
        for asked, taken in piece.tests:
            found = test(asked)
            if found is None:
                tests = (*tests, (asked if taken else Op("not", (asked,), BOOL), site))
            else:
                domain = (*domain, found if taken else negate(found))
        return replace(inside, domain=domain, tests=tests)

    def value(self, value: Value, scope: _Scope) -> Value:
        """`value` with unique names of coordinates and registers."""

        def leaf(node: Value) -> Value | None:
            match node:
                case Load():
                    return self.load(node, scope)
                case Index(e):
                    return Index(e.substitute(scope.exprs), node.dtype, node.span)
                case Ref(sym) if sym in scope.refs:  # before its integer, if it has one
                    return Ref(scope.refs[sym], node.dtype)
                case Ref(sym) if sym in scope.exprs:
                    return Index(scope.exprs[sym], node.dtype)
                case _:
                    return None

        return map_value(value, leaf)

    def kept(self, load: Load, thread: Expr | None = None) -> Load:
        """An element in registers of a lane: of the running thread, if no other is given."""
        lanes = self.reader.lanes.get(load.buffer)
        if lanes is None:
            return load
        return replace(load, buffer=lanes, index=(self.launch.thread if thread is None else thread, *load.index))

    def load(self, load: Load, scope: _Scope, thread: Expr | None = None) -> Load:
        """An element with unique names of coordinates and registers, and data-dependent integers of this statement."""
        inner, data = scope.copy() if load.data else scope, list[tuple[Sym, Value]]()
        for sym, meaning in load.data:
            said = sym, self.value(meaning, inner)
            if said not in self.data:
                self.data[said] = number_of(f"{sym}#{next(self.reader.numbers)}", self.site.dims)
            inner.exprs[sym] = expr(self.data[said])
            data.append((self.data[said], said[1]))
        index = tuple([e.substitute(inner.exprs) for e in load.index])
        return self.kept(Load(load.buffer, index, tuple(data), load.span), thread)


class _Here(Record):
    """An operation at its site, which reports its effects (`texpr.ir.operation.effects`)."""

    body: _Body
    stmt: k.Operation
    site: Site
    scope: _Scope

    @property
    def found(self) -> Reading:
        return self.body.reader.found

    @property
    def thread(self) -> Expr:
        return self.body.launch.thread

    @property
    def warp(self) -> int:
        return self.body.launch.kernel.warp

    def declares(self, sym: Sym, dtype: DType, value: Value) -> None:
        reader, body, scope = self.body.reader, self.body, self.scope
        told = sym.name in reader.names or sym.name.rsplit("_", 1)[0] in reader.single
        if isinstance(value, Index) and sym not in body.assigned and not told:
            scope.exprs[sym] = value.expr.substitute(scope.exprs)
            scope.refs.pop(sym, None)
            return
        first = body.value(value, scope)
        constant = sym not in body.assigned
        made = body.name(sym, self.site, first if constant else None, scope)
        if not constant or told or not isinstance(first, Load | Ref):
            self.found.events.append(Event(self.site, Ref(made, dtype), first, self.stmt, let=constant))

    def assigns(self, sym: Sym, value: Value) -> None:
        ref = Ref(self.scope.refs[sym], value.dtype)
        self.found.events.append(Event(self.site, ref, self.body.value(value, self.scope), self.stmt))

    def writes(self, target: Load, value: Value) -> None:
        place = self.body.load(target, self.scope)
        self.found.events.append(Event(self.site, place, self.body.value(value, self.scope), self.stmt))

    def combines(self, target: Load, op: str, value: Value, *, whole: bool) -> None:
        place, other = self.body.load(target, self.scope), self.body.value(value, self.scope)
        joined = Op(op, (place, other), place.dtype)
        if op == "add" and isinstance(other, Op) and other.name == "neg":
            joined = Op("sub", (place, *other.args), place.dtype)
        whole = whole or self.found.spaces.get(place.buffer) is Space.SHARED
        self.found.events.append(Event(self.site, place, joined, self.stmt, "atomic" if whole else "plain"))

    def takes(self, sym: Sym, source: Load, thread: Expr | None = None) -> None:
        lane = None if thread is None else thread.substitute(self.scope.exprs)
        self.body.name(sym, self.site, self.body.load(source, self.scope, lane), self.scope)

    def exchanges(self, sym: Sym, source: Ref, shift: Expr) -> None:
        around = self.site.path[-2:-1]
        if shift is not ZERO and not any(joins_lanes(block[number]) for block, number in around):
            self.found.strange.append((self.stmt, self.site, "lanes that a loop says"))
        ref = Ref(self.body.name(sym, self.site, None, self.scope), source.dtype)
        self.found.events.append(Event(self.site, ref, self.body.value(source, self.scope), self.stmt, "exchange"))

    def at_once(self, count: int, *firsts: Load) -> None:
        loads = [self.body.load(first, self.scope) for first in firsts]
        needs = [fact for load in loads for fact in aligned(load, count * load.dtype.bytes, self.body.reader.known)]
        self.found.needed += [(self.stmt, self.site, conj(needs))] if needs else []

    def copies(self, target: Load, source: Load, count: int, when: Value | None) -> None:
        body, site, scope = self.body, self.site, self.scope
        what = self.stmt.completion(body.maps)
        group = what.group if isinstance(what, Joins) else None
        taken = None if when is None else body.resolved(body.value(when, scope))
        fact = None if taken is None else test(taken)
        for to, out_of in zip(k.consecutive(target, count), k.consecutive(source, count), strict=True):
            place, value = body.load(to, scope), body.value(out_of, scope)
            if taken is None:
                self.found.events.append(Event(site, place, value, self.stmt, "async", group=group))
                continue
            zero = Literal(0.0 if to.dtype.is_float else 0, to.dtype)
            arms = ((value, fact, taken), (zero, fact and negate(fact), Op("not", (taken,), BOOL)))
            for number, (moved, holds, asked) in enumerate(arms):
                inside = replace(site, time=(*site.time, number))
                if holds is not None:
                    inside = replace(inside, domain=(*site.domain, holds))
                else:
                    inside = replace(inside, tests=(*site.tests, (asked, site)))
                self.found.events.append(Event(inside, place, moved, self.stmt, "async", group=group))

    def sends(self, copy: k.Operation) -> None:
        try:
            self.body.engine(cast("Copy", copy), self.site, self.scope)
        except ValueError as why:
            self.found.strange.append((self.stmt, self.site, str(why)))

    def instructs(self, op: k.Operation) -> None:
        def placed(load: Load) -> Load:
            return self.body.load(load, self.scope)

        use = used(op)
        if (why := not_understood(use, self.site.launch)) is not None:
            self.found.strange.append((self.stmt, self.site, why))
            return
        try:
            self.found.events += instructed(use, self.site, self.body.kept, placed, self.body.reader.halves)
        except ValueError as why:
            self.found.strange.append((self.stmt, self.site, str(why)))
            return
        needs = [fact for fact in premises(use, self.site, placed, self.body.reader.known) if fact != TRUE]
        self.found.needed += [(self.stmt, self.site, conj(needs))] if needs else []

    def meets(self) -> None:
        meets = BLOCK if self.stmt.meets is None else self.stmt.meets
        self.found.together.append(Meeting(type(self.stmt).__name__.lower(), meets, self.site, self.stmt.span))
