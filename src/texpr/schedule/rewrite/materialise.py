"""A scheduled program as a plain one: indices expressed in the actual loops, and holes guarded.

Before:  split(i, 128) -> (bi, ti)              After:  par (M + 127) / 128 |bi| {
         par … |bi| { par 128 |ti| {                      par 128 |ti| {
             y[i] = x[i]                                      if bi * 128 + ti < M {
         } }                                                      y[bi * 128 + ti] = x[bi * 128 + ti] } } }

Predicates are those that the graph above a statement needs (`texpr.domain.predicates.needed`), each hoisted to the outermost
loop at which it is decided. A predicate stays inside the loops that become threads, so that bands stay perfectly nested. The
result is a plain function: the interpreter runs it, the checks check it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.simplify import Simplifier
from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import Side
from texpr.domain.predicates.needed import Predicates, predicates
from texpr.ir import program as ir
from texpr.ir.program.marked import mark, unmarked
from texpr.ir.program.marks import Joint, Persistent, Unguard
from texpr.ir.program.rewrite import Rewriter, replace_loads, substitute_value
from texpr.ir.value import Buffer, Index, Literal, Load, Op, Value, conjunction
from texpr.ir.value.types import BOOL, I64
from texpr.presburger.formula import Formula, Ge, compare, conj, disj, negate
from texpr.relation.conditions import condition
from texpr.relation.facts import facts_of, in_loop, known
from texpr.schedule.holes.overrun import Filling, Holes, Matters, fillings, is_freed
from texpr.schedule.holes.unread import Asked, Path, Unread, require_freed, require_unread
from texpr.schedule.levels import may_be_inside
from texpr.schedule.rewrite.linked import linked, sums_of_parts
from texpr.schedule.state import State
from texpr.schedule.tree import Body
from texpr.support.diagnostic import error
from texpr.support.record import Mutable, Record, field, replace
from texpr.support.span import NOWHERE, Span


class Guarded(Record):
    """The analysis of predicates below `loops`, for `explain` and pictures."""

    loops: Path
    graph: DomainGraph
    predicates: Predicates


class Materialised(Record):
    """`function` is the plain program. `origin`: for each of its computing statements, the one of the scheduled program
    `state`. `paths`: the loops around each list of statements of `state`."""

    function: ir.Function
    origin: Mapping[ir.Stmt, ir.Stmt]
    paths: tuple[Path, ...]
    state: State

    @property
    def guards(self) -> tuple[Guarded, ...]:
        """The predicates below each of `paths` with transforms. The compiler itself computes only those that it tests."""
        facts = tuple(given(self.state.function))
        graphs = ((path, self.state.graph(path)) for path in self.paths)
        return tuple(Guarded(path, graph, _predicates(graph, facts)) for path, graph in graphs if graph.transforms)


def materialise(state: State) -> Materialised:
    """The plain program of `state`."""
    maker = _Maker(state, tuple(given(state.function)))
    body = _wrapped(maker.block(state.function.body, (), {}), {})
    require_freed(maker.freed, maker.kept)
    require_unread(maker.unread, state.function.body, maker, state.function.sizes)
    return Materialised(replace(state.function, body=body), maker.origin, tuple(maker.arounds), state)


def is_filled(state: State, path: Path, load: Load, test: Value) -> bool:
    """Whether a copy fills each element that `load` reads, inside of the loops `path`, where `test` fails."""
    maker, copy = _Maker(state, tuple(given(state.function))), fillings(state).get(load.buffer.name)
    indices = maker.around(path).indices
    failing = condition(substitute_value(test, indices), holds=False).formula
    try:
        if copy is not None:
            holes = Holes(state, conj((*maker.runs(path), failing)), indices, {})
            holes.require_filled(load, copy, maker.reached(copy))
    except Matters:
        return False
    return copy is not None


def given(function: ir.Function) -> Iterable[Expr]:
    """What is promised of sizes, as expressions ≥ 0: sizes themselves, and `where`."""
    return facts_of((*(Ge(expr(s)) for s in function.sizes), *(compare(c.op, c.left, c.right) for c in function.where)))


class _Need(Record):
    """A guard `left op right` of some statements."""

    op: str
    left: Expr
    right: Expr

    @property
    def syms(self) -> frozenset[Sym]:
        return self.left.syms() | self.right.syms()

    @property
    def formula(self) -> Formula:
        return compare(self.op, self.left, self.right)

    @property
    def value(self) -> Value:
        return Op(self.op, (Index(self.left, I64), Index(self.right, I64)), BOOL)


_Needs = dict[_Need, None]
"""An ordered set of predicates."""


class _Entry(Record):
    """A statement and its guards; None for a `new`, which needs none. `filled`: it tests further guards itself."""

    stmt: ir.Stmt
    needs: _Needs | None
    filled: bool = False


class _Around(Record, eq=False, dict=True):
    """What the loops of `path` determine for the statements inside, computed on demand."""

    path: Path
    graph: DomainGraph
    given: tuple[Expr, ...]

    @cached_property
    def _names(self) -> Mapping[Sym, Expr]:
        return {d.sym: expr(loop.sym) for d, loop in zip(self.graph.leaves, self.path, strict=True)}

    @cached_property
    def indices(self) -> Mapping[Sym, Expr]:
        """The index of every IterDomain above the loops, over their symbols."""
        return {s: e for s, e in self.graph.indices(self._names).items() if e.as_sym != s}

    @cached_property
    def simple(self) -> Simplifier:
        """The simplifier inside the loops."""
        facts = list(self.given)
        for loop in self.path:
            facts += in_loop(loop.sym, loop.extent.substitute(self.indices))
        return Simplifier(known(facts))

    @cached_property
    def ended(self) -> tuple[Expr, ...]:
        """What is ≥ 0 as loops over the tiles of a block end with the last one."""
        ends = ((s.sym, s.extent.substitute(self.indices)) for s in self.path if mark(s, Persistent))
        return tuple(fact for sym, extent in ends for fact in in_loop(sym, extent))

    @cached_property
    def needs(self) -> _Needs:
        """The comparisons that exclude holes."""
        needs: _Needs = {}
        for predicate in _predicates(self.graph, self.given).kept:
            # Not simplified by facts from inside the loops: the comparison may be hoisted out of them.
            index = predicate.index.substitute({**self._names, **self.indices})
            extent = predicate.bound.domain.extent.substitute(self.indices)
            low = predicate.bound.side is Side.LOW
            if not low and known(self.ended).positive(extent - index):
                continue
            needs[_Need("ge", index, ZERO) if low else _Need("lt", index, extent)] = None
        return needs

    def index(self, old: Expr) -> Expr:
        """An expression of IterDomains over the actual loops."""
        return old if old.is_constant else self.simple(old.substitute(self.indices))


class _Maker(Mutable):
    state: State
    given: tuple[Expr, ...]
    origin: dict[ir.Stmt, ir.Stmt] = field(default_factory=dict[ir.Stmt, ir.Stmt])
    arounds: dict[Path, _Around] = field(default_factory=dict[Path, _Around])
    buffers: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])
    counted: frozenset[Sym] = frozenset()
    tiles: Mapping[Buffer, Span] | None = None
    linked: frozenset[Buffer] | None = None
    unread: list[Unread] = field(default_factory=list[Unread])
    freed: Asked = field(default_factory=dict["tuple[Sym, Buffer | None]", "tuple[ir.Loop, Span]"])
    kept: Asked = field(default_factory=dict["tuple[Sym, Buffer | None]", "tuple[ir.Loop, Span]"])
    """Of which guards were dropped, or kept."""

    def block(self, body: Body, path: Path, held: _Needs) -> list[_Entry]:
        """The statements of `body` below the loops `path`, where the predicates `held` hold."""
        computes = any(not isinstance(s, ir.Par | ir.Seq | ir.New) for s in body)
        unknown = self._counted() - {loop.sym for loop in path}  # a copy's guards may involve symbols inside of it
        needs = [n for n in self.around(path).needs if n.syms.isdisjoint(unknown)] if computes else []
        base: _Needs = {n: None for n in needs if n not in held}
        free = self._free(body, path, {**held, **base})
        base = {n: None for n in base if n not in free}
        entries = [self._filled(stmt, path, base) or self._entry(stmt, path, {**held, **base}) for stmt in body]
        return [e if e.needs is None or e.filled else replace(e, needs={**base, **e.needs}) for e in entries]

    def _counted(self) -> frozenset[Sym]:
        """Every symbol that counts iterations, those of transformed loops included."""
        if not self.counted:
            loops = (s for s in ir.walk(self.state.function.body) if isinstance(s, ir.Par | ir.Seq))
            every = (d.sym for each in self.state.transforms for d in (*each.inputs, *each.outputs))
            self.counted = frozenset((*every, *(s for loop in loops for s in (loop.sym, self.state.domain(loop).sym))))
        return self.counted

    def _filled(self, stmt: ir.Stmt, path: Path, needs: _Needs) -> _Entry | None:
        """A filling copy, with its own test and the guard of its iteration in one condition.

        So the fill is written also where the loops around are at holes: the copy is strong.
        """
        bind = stmt.then[0] if isinstance(stmt, ir.If) and len(stmt.then) == 1 else stmt
        if not isinstance(bind, ir.Bind) or (fill := self._fills().get(bind.targets[0].buffer.name)) is None:
            return None
        (target,) = bind.targets
        own = {p.sym for p in path if not any(isinstance(s, ir.New) and s.buffer is target.buffer for s in ir.walk(p.body))}
        around = {n: None for n in needs if not n.syms.isdisjoint(own)}
        rewriter = self._rewriter(path)
        tests = [n.value for n in needs if n not in around]
        tests += [rewriter.value(stmt.condition)] if isinstance(stmt, ir.If) else []
        test, made = conjunction(tests), rewriter.stmt(bind)
        assert isinstance(made, ir.Bind)
        self.origin[made] = bind
        if test is None:
            return _Entry(made, around, filled=True)
        other = replace(made, values=(Literal(fill, target.dtype),))
        both = ir.If(test, (made,), (other,), span=stmt.span)
        self.origin |= {other: bind, both: stmt}
        return _Entry(both, around, filled=True)

    def _fills(self) -> dict[str, float]:
        """The fill of each staged buffer's holes, by name."""
        return {staged.name: staged.fill for staged in self.state.staged if staged.fill is not None}

    def _free(self, body: Body, path: Path, needs: _Needs) -> frozenset[_Need]:
        """The guards of an unguarded loop, which are dropped: holes are proved to change nothing."""
        statements = [s for s in body if not isinstance(s, ir.Par | ir.Seq | ir.New)]
        joint, plain = self._joint(path), {loop.sym: found.span for loop in path if (found := mark(loop, Unguard))}
        asked = {**plain, **joint}
        beyond = self._beyond(statements, path, needs) if joint or self._tiles() else frozenset[_Need]()
        beyond |= self._left(statements, path, needs, plain) if plain and not joint else frozenset[_Need]()
        stored = self._along(statements, path) & plain.keys() - joint.keys() if plain else frozenset[Sym]()
        sums = {t.buffer for s in ir.walk(tuple(statements)) if isinstance(s, ir.Bind) for t in s.targets if stored}
        for loop in (loop for loop in path if loop.sym in stored and any(loop.sym in n.syms for n in needs)):
            at = self.freed if any(loop.sym in n.syms for n in beyond) else self.kept
            for buffer in (each if self._is_summed(each) else None for each in sums):
                at.setdefault((self.state.domain(loop).sym, buffer), (loop, plain[loop.sym]))
        free = frozenset(n for n in needs if not n.syms.isdisjoint(asked.keys() - stored)) - beyond
        if not statements or not (free or beyond):
            return frozenset()
        copies = fillings(self.state) if free else {}
        reached = {name: self.reached(copy) for name, copy in copies.items()}
        kept = [n.formula for n in needs if n not in free and n not in beyond]
        try:
            for stmt in statements:
                if beyond:  # where these fail nobody reads what is made, so anything may be read, if it is there
                    self._holes(path, beyond, kept, asked).require_inside(stmt)
                if free:
                    also = [*kept, *(n.formula for n in beyond)]
                    self._holes(path, free, also, asked).require_neutral(
                        stmt, copies, reached, unsigned=bool(joint) and is_freed(stmt, path)
                    )
        except Matters as reason:
            (span, *_) = asked.values() or self._tiles().values()
            raise error("E0906", span, f"holes cannot be computed: {reason}", help=reason.help) from None
        return free | beyond

    def _holes(self, path: Path, free: frozenset[_Need], kept: Sequence[Formula], asked: Mapping[Sym, Span]) -> Holes:
        """The iterations in which one of `free` fails, and `kept` hold."""
        failing = _failing(free)
        numbers_last = sorted(free, key=lambda need: need.right.is_constant)
        ends = {sym: need.right for need in numbers_last for sym in need.syms if sym in asked}
        return Holes(self.state, conj((*self.runs(path), *kept, failing)), self.around(path).indices, ends)

    def _joint(self, path: Path) -> Mapping[Sym, Span]:
        """The loops of a nest that lanes do together, which have no guards."""
        at, span = next(((n, found.span) for n, loop in enumerate(path) if (found := mark(loop, Joint))), (len(path), NOWHERE))
        return {loop.sym: span for loop in path[at:]}

    def _beyond(self, statements: Sequence[ir.Stmt], path: Path, needs: _Needs) -> frozenset[_Need]:
        """The guards of elements of a tile, held by lanes, that no element of the program is kept in: they may be anything."""
        tiles, joint, own, sums = (
            self._tiles(),
            self._joint(path),
            self._linked(),
            sums_of_parts(self.state.function.body, self._tiles()),
        )
        inside = [s for s in ir.walk(tuple(statements)) if not isinstance(s, ir.If | ir.Let)]
        binds = [stmt for stmt in inside if isinstance(stmt, ir.Bind) and len(stmt.targets) == 1]
        for stmt in binds:
            buffer, is_start = stmt.targets[0].buffer, stmt.update is None and isinstance(stmt.values[0], Literal)
            is_tile = buffer in tiles and stmt in statements and (joint or is_start)
            if buffer.role != "local" or not (is_tile or buffer in own or (buffer in sums and stmt in statements)):
                return frozenset()
        if not binds or len(binds) != len(inside if own else statements):
            return frozenset()
        found = self._rewriter(path).target(binds[0].targets[0])
        through = {sym for e in found.index for sym in e.syms()}
        inner = {loop.sym for loop in path if loop.sym in joint and loop.sym not in through}
        free = frozenset(n for n in needs if not n.syms.isdisjoint(through) and n.syms.isdisjoint(inner))
        kept = [n.formula for n in needs if n not in free]
        alone = free and not joint and not self._holes(path, free, kept, {}).are_inside(binds)
        if alone or not sums.isdisjoint(stmt.targets[0].buffer for stmt in binds):
            free = self._inside(binds, path, needs, free)
        if free:
            spans, failing = self._tiles(), _failing(free)
            first = next(iter(spans.values()))
            self.unread += [Unread(s, path, failing, spans.get(s.targets[0].buffer) or first) for s in binds]
        return free

    def _along(self, statements: Sequence[ir.Stmt], path: Path) -> frozenset[Sym]:
        """The loops on which subscripts of what statements write depend: holes have elements of their own there."""
        binds = (s for s in ir.walk(tuple(statements)) if isinstance(s, ir.Bind))
        targets = (self._rewriter(path).target(target) for bind in binds for target in bind.targets)
        return frozenset(sym for target in targets for e in target.index for sym in e.syms())

    def _left(self, statements: Sequence[ir.Stmt], path: Path, needs: _Needs, asked: Mapping[Sym, Span]) -> frozenset[_Need]:
        """The guards of loops over a local, of elements that holes alone know: sums are left there that nobody reads."""
        binds = [s for s in statements if isinstance(s, ir.Bind) and len(s.targets) == 1]
        if not binds or len(binds) != len(statements) or not all(self._is_summed(s.targets[0].buffer) for s in binds):
            return frozenset()
        along = [self._along((bind,), path) & asked.keys() for bind in binds]
        free = frozenset(n for n in needs if along[0] and all(not n.syms.isdisjoint(each) for each in along))
        self.unread += [Unread(bind, path, _failing(free), next(iter(asked.values()))) for bind in binds if free]
        return free

    def _is_summed(self, buffer: Buffer) -> bool:
        """Whether a local begins with numbers, and is only updated from then on."""
        binds = [s for s in ir.walk(self.state.function.body) if isinstance(s, ir.Bind)]
        of = [bind for bind in binds if any(target.buffer is buffer for target in bind.targets)]
        return buffer.role == "local" and all(
            len(bind.targets) == 1 and (isinstance(bind.update, str) or isinstance(bind.values[0], Literal)) for bind in of
        )

    def _inside(self, binds: Sequence[ir.Bind], path: Path, needs: _Needs, free: frozenset[_Need]) -> frozenset[_Need]:
        """Those of guards without which statements read nothing out of bounds."""
        found = frozenset[_Need]()
        for more in (found | {need} for need in needs if need in free):
            kept = [n.formula for n in needs if n not in more]
            found = more if self._holes(path, more, kept, {}).are_inside(binds) else found
        return found

    def _tiles(self) -> Mapping[Buffer, Span]:
        """What nests sum up in that lanes do together, and where that is asked for."""
        if self.tiles is None:
            marked = [
                (s, found)
                for s in ir.walk(self.state.function.body)
                if isinstance(s, ir.Par | ir.Seq)
                if (found := mark(s, Joint))
            ]
            binds = ((s, found) for loop, found in marked for s in ir.walk(loop.body) if isinstance(s, ir.Bind))
            self.tiles = {target.buffer: found.span for stmt, found in binds for target in stmt.targets}
        return self.tiles

    def _linked(self) -> frozenset[Buffer]:
        """What lanes hold and read, which holes compute, too."""
        if self.linked is None:
            self.linked = linked(self.state.function.body, self._tiles()) if self._tiles() else frozenset()
        return self.linked

    def runs(self, path: Path) -> Iterator[Formula]:
        """That loops run."""
        around = self.around(path)
        yield from (Ge(e) for e in self.given)
        for loop in path:
            yield from (Ge(e) for e in in_loop(loop.sym, loop.extent.substitute(around.indices)))

    def guards(self, path: Path) -> Iterator[Formula]:
        """That an iteration is no hole."""
        yield from (n.formula for n in self.around(path).needs)

    def moved(self, load: Load, path: Path) -> Load:
        """An access over the actual loops."""
        return self._rewriter(path).target(load)

    def reached(self, copy: Filling) -> Formula:
        """The condition under which a copy's iteration is no hole."""
        own = copy.target.index
        needs = (n for n in self.around(copy.around).needs if all(n.syms.isdisjoint(e.syms()) for e in own))
        return conj([n.formula for n in needs])

    def _entry(self, stmt: ir.Stmt, path: Path, held: _Needs) -> _Entry:
        match stmt:
            case ir.Par() | ir.Seq():
                return self._loop(stmt, path, held)
            case ir.If():
                then, orelse = (_wrapped(self.block(b, path, held), {}) for b in (stmt.then, stmt.orelse))
                test = self._rewriter(path).value(stmt.condition)
                return self._noted(replace(stmt, condition=test, then=then, orelse=orelse), stmt)
            case ir.New(buffer):
                graph = self.state.allocations.get(buffer)
                declared = buffer.shape if graph is None else tuple(d.extent for d in graph.leaves)
                plain = self.around(path).index
                shape, strides = tuple(map(plain, declared)), buffer.strides and tuple(map(plain, buffer.strides))
                if buffer.role == "local" and (shape, strides) != (buffer.shape, buffer.strides):  # callers know a result
                    self.buffers[buffer] = replace(buffer, shape=shape, strides=strides)
                return _Entry(self._rewriter(path).stmt(stmt), None)
            case _:
                return self._noted(self._rewriter(path).stmt(stmt), stmt)

    def _noted(self, made: ir.Stmt, old: ir.Stmt) -> _Entry:
        self.origin[made] = old
        return _Entry(made, {})

    def _loop(self, loop: ir.Loop, path: Path, held: _Needs) -> _Entry:
        inner = self.block(loop.body, (*path, loop), held)
        outside: _Needs = {}
        if may_be_inside(loop, path):
            every = [e.needs for e in inner if e.needs is not None]
            outside = {n: None for n in (every or [{}])[0] if loop.sym not in n.syms and all(n in m for m in every)}
        reduce = tuple(dict.fromkeys(map(self._buffer, loop.reduce)))
        extent = self.around(path).index(loop.extent)
        bare = unmarked(unmarked(loop, Unguard), Persistent)
        return _Entry(replace(bare, extent=extent, body=_wrapped(inner, outside), reduce=reduce), outside)

    def around(self, path: Path) -> _Around:
        found = self.arounds.get(path)
        if found is None:
            found = self.arounds[path] = _Around(path, self.state.graph(path), self.given)
        return found

    def _rewriter(self, path: Path) -> Rewriter:
        around = self.around(path)

        def placed(load: Load) -> Load:
            index = tuple(map(around.simple, load.index))
            graph = self.state.allocations.get(load.buffer)
            if graph is not None:
                below = graph.below({d.sym: e for d, e in zip(graph.logical, index, strict=True)})
                index = tuple(around.index(below[d.sym]) for d in graph.leaves)  # its extents may depend on loops, too
            return replace(load, buffer=self._buffer(load.buffer), index=index)

        def target(old: Load) -> Load:
            moved = value(old)
            assert isinstance(moved, Load)
            return moved

        def value(old: Value) -> Value:
            return replace_loads(substitute_value(old, around.indices), placed)

        return Rewriter(around.index, value, target, self._buffer)

    def _buffer(self, buffer: Buffer) -> Buffer:
        """The memory of `buffer`: its allocation domain, in the loops around its `new`."""
        return self.buffers.get(buffer, buffer)


def _failing(needs: Iterable[_Need]) -> Formula:
    """That one of some guards fails."""
    return disj([negate(n.formula) for n in needs])


@lru_cache(maxsize=1024)
def _predicates(graph: DomainGraph, given: tuple[Expr, ...]) -> Predicates:
    """Memoised: the predicates of a nest are the same in successive schedules."""
    return predicates(graph, known(given))


def _wrapped(entries: Sequence[_Entry], done: _Needs) -> Body:
    """Statements inside the guards that they need, adjacent ones with equal guards together; the guards in `done` are
    outside.

    Each `new` comes first, so that it separates no neighbours; the scope of a `let` includes all that follow it.
    """
    entries = sorted(entries, key=lambda e: e.needs is not None)
    if any(isinstance(e.stmt, ir.Let) for e in entries):
        every = [e.needs for e in entries if e.needs is not None]
        shared = {n: None for n in every[0] if n not in done and all(n in m for m in every)}
        if shared:
            test = conjunction([need.value for need in shared])
            assert test is not None
            return (ir.If(test, _wrapped(entries, {**done, **shared}), span=entries[0].stmt.span),)
    found: list[ir.Stmt] = []
    group: list[ir.Stmt] = []
    around: list[_Need] = []

    def close() -> None:
        test = conjunction([need.value for need in around])
        found.extend(group if test is None or not group else (ir.If(test, tuple(group), span=group[0].span),))
        group.clear()

    for entry in entries:
        needs = [n for n in entry.needs or {} if n not in done]
        if needs != around:
            close()
            around = needs
        group.append(entry.stmt)
    close()
    return tuple(found)
