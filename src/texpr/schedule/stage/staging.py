"""Buffers that hold a part of another one during an iteration of a loop: how they are filled, accessed and written back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.simplify import Simplifier
from texpr.domain.iterdomain import Side
from texpr.domain.predicates.needed import Predicate, predicates
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, replace_loads
from texpr.ir.program.uses import symbols
from texpr.ir.value import Buffer, Index, Literal, Load, Op, Value, conjunction
from texpr.ir.value import walk as value_walk
from texpr.ir.value.types import BOOL, I64
from texpr.presburger.formula import Formula, Ge, conj, negate
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.linear import NotAffine
from texpr.presburger.points import Points
from texpr.relation.conditions import condition
from texpr.relation.facts import in_loop, known
from texpr.schedule.rewrite.materialise import given
from texpr.schedule.stage.flat import Flat
from texpr.schedule.stage.region import Box, Use, cloned, inside, nested, varying
from texpr.schedule.stage.views import View
from texpr.schedule.state import Staged, State
from texpr.schedule.tree import Body, replaced
from texpr.support.record import Record, replace
from texpr.support.span import Span


class _Part(Record):
    """A box in `made`: the loops over it, the bounds check of the buffer (`test`), an element of either memory in these
    loops, and the place of each access."""

    made: Buffer
    base: tuple[str, ...]
    loops: tuple[ir.Par, ...]
    test: Value | None
    own: Load
    theirs: Load
    where: Mapping[int, tuple[Expr, ...]]


class Staging(Record):
    """`buffer` is kept in `name` during each iteration of `at`, the last of the loops `outer`; `uses` are all accesses.

    `space`: the placement of the copy ("shared", "registers"). `via`: how it is copied ("ld", "cp_async"). `span`: the
    directive's. `view`: the dimensions for boxes and for subscripts of `uses`; the buffer's own where it is None.
    """

    state: State
    buffer: Buffer
    name: str
    space: str
    via: str
    outer: tuple[ir.Loop, ...]
    uses: tuple[Use, ...]
    span: Span
    view: View | Flat | None = None

    @property
    def seen(self) -> Buffer:
        """The buffer in the dimensions of the view."""
        return self.buffer if self.view is None else self.view.of(self.buffer)

    @property
    def at(self) -> ir.Loop:
        """The loop in each of whose iterations the copy is live."""
        return self.outer[-1]

    def from_box(
        self,
        region: Box,
        names: Sequence[Sym],
        fill: Literal | None,
        mark: Callable[[ir.Par], ir.Par],
        order: Sequence[int] | None = None,
    ) -> State:
        """The box is copied in by loops over `names`; elements of it outside of the buffer become `fill`, or stay undefined.

        A dimension of extent 1 needs no loop, unless all are. `mark` is applied to the outermost of these loops. `order`: the
        dimensions of the buffer as the copy has them.
        """
        part = self._part(region, names, mark, order)
        bind = ir.Bind((part.own,), (part.theirs,), span=self.span)
        other = () if fill is None else (ir.Bind((part.own,), (fill,), span=self.span),)
        test = part.test if fill is None else conjunction([*self._items(part), *_conjuncts(part.test)])
        before = nested(part.loops, self._where(test, bind, other))
        return self._rebuilt(self._noted(self.state, part.base, fill), part.made, before, (), part.where)

    def _items(self, part: _Part) -> Iterator[Value]:
        """The comparisons by which iterations of the loops around are items: where one fails, the whole box is a hole.

        Those that follow from the test of elements are left out, and those that vary within a box.
        """
        common: dict[Predicate, None] | None = None
        for use in self.uses:
            found = dict.fromkeys(self._decided(use))
            common = found if common is None else {each: None for each in common if each in found}
        facts = (*self._leaves(self.outer), *(f for loop in part.loops for f in in_loop(loop.sym, loop.extent)))
        tested = conj(()) if part.test is None else condition(part.test).formula
        for each in common or ():
            if not self._follows(each.margin, facts, tested):
                op, right = ("ge", ZERO) if each.bound.side is Side.LOW else ("lt", each.bound.domain.extent)
                yield Op(op, (Index(each.index, I64), Index(right, I64)), BOOL)

    def _decided(self, use: Use) -> Iterator[Predicate]:
        """The guards of an access that the loops around alone decide; their own holes have no copy."""
        facts = known(tuple(given(self.state.function)))
        outer = {self.state.domain(loop).sym for loop in use.outer}
        inner = {self.state.domain(loop).sym for loop in use.inner}
        own = {each.bound for each in predicates(self.state.graph(use.outer), facts).kept}
        simple = Simplifier(known(self._leaves((*use.outer, *use.inner))))
        for each in predicates(self.state.graph((*use.outer, *use.inner)), facts).kept:
            index = simple(each.index)
            if each.bound not in own and index.syms() & outer and not index.syms() & inner:
                yield replace(each, index=index)

    def _leaves(self, loops: Sequence[ir.Loop]) -> tuple[Expr, ...]:
        """What is ≥ 0 in the loops, holes included."""
        graph = self.state.graph(loops)
        indices = graph.indices()
        return (*given(self.state.function), *(f for d in graph.leaves for f in in_loop(d.sym, d.extent.substitute(indices))))

    def is_inside(self, region: Box) -> bool:
        """Whether every element of the box is one of the buffer."""
        offsets = tuple(Sym(f"element {n}") for n in range(len(region.extent)))
        facts = (
            *inside(self.state, self.outer),
            *(f for sym, extent in zip(offsets, region.extent, strict=True) for f in in_loop(sym, expr(extent))),
        )
        index = tuple(b + expr(o) * s for b, o, s in zip(region.base, offsets, region.step, strict=True))
        return not any(True for _ in self._tests(index, index, facts))

    def from_column(
        self,
        source: tuple[Expr, ...],
        place: tuple[Expr, ...],
        loops: Mapping[Sym, tuple[Sym, int]],
        fill: Literal | None,
        mark: Callable[[ir.Par], ir.Par],
    ) -> State:
        """An element for each value of the inner counters, copied in from `source` by `loops`; accesses find it at `place`.

        Elements outside of the buffer become `fill`, or stay undefined.
        """
        new = {old: expr(sym) for old, (sym, _) in loops.items()}
        index = tuple(e.substitute(new) for e in source)
        facts = (*inside(self.state, self.outer), *(f for sym, extent in loops.values() for f in in_loop(sym, expr(extent))))
        pars = [ir.Par(sym, expr(extent), (), span=self.span) for sym, extent in loops.values()]
        pars[:1] = map(mark, pars[:1])
        made = self._made(tuple(expr(extent) for _, extent in loops.values()))
        own, theirs = Load(made, tuple(new.values()), span=self.span), Load(self.buffer, index, span=self.span)
        other = () if fill is None else (ir.Bind((own,), (fill,), span=self.span),)
        test = conjunction(list(self._tests(index, index, facts)))
        before = nested(tuple(pars), self._where(test, ir.Bind((own,), (theirs,), span=self.span), other))
        where = {id(each.load): place for each in self.uses}
        return self._rebuilt(self._noted(self.state, (), fill), made, before, (), where)

    def from_rows(
        self,
        source: Load,
        loops: Mapping[Sym, int],
        where: Mapping[int, tuple[Expr, ...]],
        fill: Literal | None,
        mark: Callable[[ir.Par], ir.Par],
    ) -> State:
        """`source`, in `loops`, whose row is an element of a table: an element of the new buffer for each iteration.

        Elements outside of either become `fill`, or stay undefined. `where`: the places of accesses.
        """
        made = self._made(tuple(map(expr, loops.values())))
        pars, own, theirs, test = self._row(source, made, loops, mark)
        other = () if fill is None else (ir.Bind((own,), (fill,), span=self.span),)
        before = nested(pars, self._where(test, ir.Bind((own,), (theirs,), span=self.span), other))
        return self._rebuilt(self._noted(self.state, (), fill), made, before, (), where)

    def to_rows(
        self,
        targets: Sequence[Load],
        loops: Sequence[Mapping[Sym, int]],
        shape: Sequence[int],
        where: Mapping[int, tuple[Expr, ...]],
        mark: Callable[[ir.Par], ir.Par],
        joins: tuple[str, Literal] | None = None,
    ) -> tuple[State, Use]:
        """Scatters the tile, a new buffer of `shape`, by the last of `loops` to the last of `targets`.

        Its row is an element of a table; elements outside of either are not stored. Also the access of the store. If there
        are two of each, the first copy in first, as in `from_rows`; or, with `joins`, initialise with that value and then
        combine by that operation.
        """
        made = self._made(tuple(map(expr, shape)))
        ways = [self._row(target, made, each, mark) for target, each in zip(targets, loops, strict=True)]
        *ins, (pars, own, theirs, test) = ways
        op, start = joins if joins is not None else (None, None)
        store = ir.Bind((theirs,), (own,), op, span=self.span)
        after = nested(pars, self._where(test, store))
        before: Body = ()
        for first, mine, source, tested in ins:
            copy = self._where(tested, ir.Bind((mine,), (source,), span=self.span))
            plain = tuple(replace(par, directives=()) for par in first)
            before += nested(first, copy) if start is None else nested(plain, (ir.Bind((mine,), (start,), span=self.span),))
        noted = self._noted(self.state, (), None, True)
        state = self._rebuilt(noted, made, before, after, where, joins=joins is not None)
        return state, Use(store, theirs, True, self.outer, pars, theirs.index, False)

    def _row(
        self, element: Load, made: Buffer, loops: Mapping[Sym, int], mark: Callable[[ir.Par], ir.Par]
    ) -> tuple[tuple[ir.Par, ...], Load, Load, Value | None]:
        """Loops over the rows and columns of a tile, the outermost of them marked; its element and that of the matrix; and
        the bounds checks of table and row."""
        facts = (*inside(self.state, self.outer), *(f for sym, extent in loops.items() for f in in_loop(sym, expr(extent))))
        pars = [ir.Par(sym, expr(extent), (), span=self.span) for sym, extent in loops.items()]
        pars[:1] = map(mark, pars[:1])
        own, theirs = Load(made, tuple(map(expr, loops)), span=self.span), replace(element, span=self.span)
        hidden = {sym for sym, _ in element.data}
        named = (node for _, meaning in element.data for node in value_walk(meaning) if isinstance(node, Load))
        tests = [test for load in named for test in self._tests(load.index, load.index, facts, load.buffer.shape)]
        plain = [(e, size) for e, size in zip(element.index, self.buffer.shape, strict=True) if not e.syms() & hidden]
        for e, size in plain:
            tests += self._tests((e,), (e,), facts, (size,))
        return tuple(pars), own, theirs, conjunction(tests)

    def to_box(self, region: Box, names: Sequence[Sym], mark: Callable[[ir.Par], ir.Par]) -> State:
        """The box is copied out at the end, except elements outside of the buffer; loops as in `from_box`."""
        part = self._part(region, names, mark)
        bind = ir.Bind((part.theirs,), (part.own,), span=self.span)
        after = nested(part.loops, self._where(part.test, bind))
        return self._rebuilt(self._noted(self.state, part.base, None, True), part.made, (), after, part.where)

    def through_box(
        self, region: Box, names: tuple[Sequence[Sym], Sequence[Sym]], mark: Callable[[ir.Par], ir.Par]
    ) -> tuple[State, Use]:
        """The box is copied in, and out at the end, except elements outside of the buffer; also the access of the copy out."""
        first, part = self._part(region, names[0], mark), self._part(region, names[1], mark)
        load = ir.Bind((replace(first.own, buffer=part.made),), (first.theirs,), span=self.span)
        store = ir.Bind((part.theirs,), (part.own,), span=self.span)
        before, after = (nested(p.loops, self._where(p.test, b)) for p, b in ((first, load), (part, store)))
        state = self._rebuilt(self._noted(self.state, part.base, None, True), part.made, before, after, part.where)
        return state, Use(store, part.theirs, True, self.outer, part.loops, part.theirs.index, False)

    def to_join(
        self, region: Box, names: tuple[Sequence[Sym], Sequence[Sym]], mark: Callable[[ir.Par], ir.Par], op: str, start: Literal
    ) -> tuple[State, Use]:
        """The box is initialised with `start`, and combined with the buffer at the end by `op`; `names`: of the loops of
        both.

        Also the access by which it is combined.
        """
        first, part = self._part(region, names[0], lambda loop: loop), self._part(region, names[1], mark)
        before = nested(first.loops, (ir.Bind((replace(first.own, buffer=part.made),), (start,), span=self.span),))
        join = ir.Bind((part.theirs,), (part.own,), op, span=self.span)
        after = nested(part.loops, self._where(part.test, join))
        state = self._rebuilt(self._noted(self.state, part.base, None, True), part.made, before, after, part.where, joins=True)
        return state, Use(join, part.theirs, True, self.outer, part.loops, part.theirs.index, False)

    def _part(
        self, region: Box, names: Sequence[Sym], mark: Callable[[ir.Par], ir.Par], order: Sequence[int] | None = None
    ) -> _Part:
        """`order`: the dimensions of the buffer in the order of the new one, all of them if it is None."""
        order = range(len(region.extent)) if order is None else order
        every = tuple(zip(names, (region.extent[d] for d in order), strict=True))
        looped = tuple(each for each in every if each[1] > 1) or every[:1]
        at = {d: expr(each[0]) if each in looped else ZERO for d, each in zip(order, every, strict=True)}
        index = tuple(b + at[d] * s for d, (b, s) in enumerate(zip(region.base, region.step, strict=True)))
        facts = (
            *inside(self.state, self.outer),
            *(f for s, e in looped for f in in_loop(s, expr(e))),
        )
        loops = [ir.Par(s, expr(e), (), span=self.span) for s, e in looped]
        loops[:1] = map(mark, loops[:1])
        made = self._made(tuple(expr(region.extent[d]) for d in order))
        places = {id(use.load): region.holds(use.index) for use in self.uses}
        return _Part(
            made,
            tuple(str(region.base[d]) for d in order),
            tuple(loops),
            conjunction(list(self._tests(index, index, facts, self.seen.shape))),
            Load(made, tuple(at[d] for d in order), span=self.span),
            Load(self.buffer, self._meant(index), span=self.span),
            {load: tuple(place[d] for d in order) for load, place in places.items()},
        )

    def _meant(self, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return index if self.view is None else self.view.meant(index, self.buffer.shape)

    def as_used(self, like: Use, copy_in: bool, copy_out: bool, joins: tuple[str, Literal] | None = None) -> State:
        """One element for each iteration of the loops inside that the subscripts of `like` depend on.

        It is copied by such loops, called NAME_0, NAME_1, … on the way in and NAME_out_0, … on the way out; or, with `joins`,
        begins at that value, and is combined with the element by that operation in the end.
        """
        chosen = varying(self.state, like)
        domains = tuple(self.state.domain(loop) for loop in chosen)
        made = self._made(tuple(d.extent for d in domains))
        own = Load(made, tuple(expr(d.sym) for d in domains), span=self.span)
        facts = inside(self.state, (*self.outer, *chosen))
        indices = self.state.graph((*self.outer, *like.inner)).indices()
        whole = tuple(e.substitute(indices) for e in like.load.index)
        known = self.state.graph((*self.outer, *chosen)).indices().keys() | set(self.state.function.sizes)
        shown = tuple(e if e.syms() <= known else w for e, w in zip(like.load.index, whole, strict=True))
        theirs = replace(like.load, index=shown, span=self.span)
        tested = (shown, whole) if self.view is None else (like.index, like.index)
        test = conjunction(list(self._tests(*tested, facts, self.seen.shape)))
        state, before, after, shared = self.state, (), (), self.space == "shared"
        op, start = (None, theirs) if joins is None else joins
        if copy_in:
            state, loops = cloned(state, chosen, self.name, shared)
            before = nested(loops, self._where(test if joins is None else None, ir.Bind((own,), (start,), span=self.span)))
        if copy_out:
            state, loops = cloned(state, chosen, f"{self.name}_out", shared)
            after = nested(loops, self._where(test, ir.Bind((theirs,), (own,), op, span=self.span)))
        noted = self._noted(state, (), None, copy_out)
        where = {id(use.load): own.index for use in self.uses}
        return self._rebuilt(noted, made, before, after, where, joins=joins is not None)

    def _noted(self, state: State, base: tuple[str, ...], fill: Literal | None, copied_out: bool = False) -> State:
        held = None if fill is None else fill.value
        note = Staged(self.name, self.buffer.name, self.at.sym.base, self.via, base, held, copied_out=copied_out)
        return replace(state, staged=(*state.staged, note))

    def _made(self, shape: tuple[Expr, ...]) -> Buffer:
        return Buffer(self.name, self.buffer.dtype, shape, "local", span=self.span)

    def _rebuilt(
        self, state: State, made: Buffer, before: Body, after: Body, where: Mapping[int, tuple[Expr, ...]], joins: bool = False
    ) -> State:
        """The loop with the new buffer, the copies, and accesses redirected to it. Loops around lose the buffer from their
        `reduce`, unless the copy `joins` the old buffer: no updates are left whose order it could free."""

        def load(old: Load) -> Load | None:
            index = where.get(id(old))
            return None if index is None else replace(old, buffer=made, index=index, data=())

        def value(old: Value) -> Value:
            return replace_loads(old, load)

        def target(old: Load) -> Load:
            moved = value(old)
            assert isinstance(moved, Load)
            return moved

        rewriter = Rewriter(value=value, target=target, buffer=lambda b: made if b is self.buffer else b)
        new = ir.New(made, self.space, span=self.span)
        freed = tuple(b for b in self.at.reduce if joins or b is not self.buffer)
        inner = rewriter.block(self.at.body)
        lets = tuple(takewhile(lambda stmt: isinstance(stmt, ir.Let) and stmt.sym in symbols(before), inner))  # where it begins
        at = replace(self.at, body=(new, *lets, *before, *inner[len(lets) :], *after), reduce=freed)
        body = replaced(state.function.body, self.at, lambda _: (at,))
        if after and not joins:
            body = _unfreed(body, at, self.buffer)
        return state.with_body(body)

    def _where(self, test: Value | None, bind: ir.Bind, other: Body = ()) -> Body:
        return (bind,) if test is None else (ir.If(test, (bind,), other, span=self.span),)

    def _tests(
        self, index: Sequence[Expr], whole: Sequence[Expr], facts: tuple[Expr, ...], shape: Sequence[Expr] | None = None
    ) -> Iterator[Value]:
        """The bounds checks of an index in the buffer, or in `shape`; those proved to hold are left out.

        `whole`: the same index over the actual loops. `facts`: what is ≥ 0 there.
        """
        for shown, real, size in zip(index, whole, self.buffer.shape if shape is None else shape, strict=True):
            if not self._holds(real, facts):
                yield Op("ge", (Index(shown, I64), Index(ZERO, I64)), BOOL)
            if not self._holds(size - 1 - real, facts):
                yield Op("lt", (Index(shown, I64), Index(size, I64)), BOOL)

    def _holds(self, margin: Expr, facts: tuple[Expr, ...]) -> bool:
        """Whether `margin` ≥ 0 is proved: by combining facts, or else by the integer solver."""
        if known(facts).nonnegative(margin):
            return True
        return self._follows(margin, facts, conj(()))

    def _follows(self, margin: Expr, facts: tuple[Expr, ...], where: Formula) -> bool:
        """The same by the integer solver, where `where` holds as well."""
        formula = conj((*map(Ge, facts), where, negate(Ge(margin))))
        try:
            return Points(formula, sorted(self.state.function.sizes, key=str)).is_empty()
        except (NotAffine, Undecided):
            return False


def _conjuncts(test: Value | None) -> tuple[Value, ...]:
    if isinstance(test, Op) and test.name == "and":
        return test.args
    return () if test is None else (test,)


def _unfreed(body: Body, inside: ir.Stmt, buffer: Buffer) -> Body:
    """Loops around `inside` without `buffer` in their `reduce`."""
    found: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.Par | ir.Seq) and buffer in stmt.reduce and any(s is inside for s in ir.walk(stmt.body)):
            kept = tuple(b for b in stmt.reduce if b is not buffer)
            found.append(replace(stmt, reduce=kept, body=_unfreed(stmt.body, inside, buffer)))
        elif isinstance(stmt, ir.Par | ir.Seq):
            found.append(replace(stmt, body=_unfreed(stmt.body, inside, buffer)))
        else:
            found.append(stmt)
    return tuple(found)
