"""A function → its model: a walk over the statements that records the instances and accesses of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr
from texpr.affine.ranges import Interval, interval
from texpr.affine.simplify import Simplifier
from texpr.ir.program import Anchor, Assume, Bind, Compare, Function, If, Instruction, Let, New, Par, Seq, Stmt, Update
from texpr.ir.value import Buffer, Load, Op, Value, operands
from texpr.presburger.formula import Formula, Ge, between, compare, conj, syms
from texpr.presburger.linear import is_affine
from texpr.relation.conditions import condition
from texpr.relation.data import Bounds, Hidden, Ranges, needed, told
from texpr.relation.delinearise import Subscripts, View, views
from texpr.relation.facts import facts_of, known, remainder
from texpr.relation.model import Ancestor, Branch, Computing, Draft, Frame, Instance, Model
from texpr.relation.opaque import Opaque
from texpr.relation.standing import Standing
from texpr.support.limits import LARGEST_SIZE
from texpr.support.record import Mutable, Record, field, replace


class _Where(Record):
    """The position of a statement: its ancestors, the formulas that hold there, and the `let`s in scope."""

    path: tuple[Ancestor, ...] = ()
    formulas: tuple[Formula, ...] = ()
    lets: tuple[Hidden, ...] = ()
    exact: bool = True

    @property
    def depth(self) -> int:
        return sum(isinstance(a, Par | Seq) for a in self.path)


class _Touch(Record, eq=False):
    """An access before its view is chosen: subscripts may contain products of symbols."""

    load: Load
    kind: str
    formulas: tuple[Formula, ...]
    hidden: tuple[Hidden, ...]
    certain: bool
    update: Update | None = None


class _Site(Record, eq=False, dict=True):
    """A computing statement, as the walk finds it."""

    stmt: Computing
    where: _Where
    touches: tuple[_Touch, ...]
    given: tuple[Expr, ...]

    @property
    def path(self) -> tuple[Ancestor, ...]:
        return self.where.path

    @property
    def facts(self) -> tuple[Expr, ...]:
        return self._facts

    @property
    def said(self) -> tuple[tuple[Sym, Expr], ...]:
        """What is not negative of the numbers that `let`s before have."""
        return tuple((each.sym, fact) for each in self.where.lets for fact in _bound_facts((each,)))

    @cached_property
    def _facts(self) -> tuple[Expr, ...]:
        return (*self.given, *facts_of(self.where.formulas), *_bound_facts(self.where.lets))


class _Walk(Mutable, eq=False, dict=True):
    ranges: Ranges
    sizes: frozenset[Sym]
    given: tuple[Expr, ...]
    sites: list[_Site] = field(default_factory=list[_Site])
    frames: dict[Buffer, Frame] = field(default_factory=dict[Buffer, Frame])
    intervals: dict[Sym, Interval] = field(default_factory=dict[Sym, Interval])

    def block(self, body: Sequence[Stmt], where: _Where) -> None:
        for stmt in body:
            where = self.stmt(stmt, where)

    def stmt(self, stmt: Stmt, where: _Where) -> _Where:
        """Records `stmt` and returns the position of its successor, with the `let`s so far in scope."""
        match stmt:
            case Par() | Seq():
                inside = (*where.formulas, between(0, stmt.sym, stmt.extent), *self._sizes(stmt.extent))
                most = interval(stmt.extent, self.intervals)[1]
                self.intervals[stmt.sym] = (0, max(0, most - 1))
                self.block(stmt.body, replace(where, path=(*where.path, stmt), formulas=inside))
            case New():
                self.frames[stmt.buffer] = Frame(
                    tuple(a for a in where.path if isinstance(a, Par | Seq)), where.formulas, where.lets
                )
            case Let():
                self._site(stmt, where, list(self._reads(stmt.value, (), True)))
                if stmt.value.dtype.is_integer:  # no subscript, extent or comparison of indices uses another type
                    hidden = self.ranges.hidden(stmt.sym, stmt.value, stmt, where.depth)
                    lo, hi = hidden.bounds.lo, hidden.bounds.hi
                    if lo is not None and hi is not None:
                        self.intervals[stmt.sym] = (interval(lo, self.intervals)[0], interval(hi, self.intervals)[1])
                    return replace(where, lets=(*where.lets, hidden))
            case Bind():
                self._site(stmt, where, list(self._bind(stmt)))
            case Anchor():
                self._site(stmt, where, list(self._reads(stmt.value, (), True)))
            case If():
                self._if(stmt, where)
            case Instruction():
                self.block(stmt.body, replace(where, path=(*where.path, stmt)))
        return where

    def _sizes(self, extent: Expr) -> list[Formula]:
        """The sizes in an extent M · N, which are positive where its loop runs an iteration."""
        if extent.constant or len(extent.terms) != 1:
            return []
        ((monomial, coefficient),) = extent.terms
        factors = [a for a in monomial if isinstance(a, Sym) and a in self.sizes]
        return [Ge(expr(s) - 1) for s in factors] if coefficient > 0 and 1 < len(factors) == len(monomial) else []

    def _if(self, stmt: If, where: _Where) -> None:
        self._site(stmt, where, list(self._reads(stmt.condition, (), True)))
        for taken, block in ((True, stmt.then), (False, stmt.orelse)):
            test = condition(stmt.condition, holds=taken, ranges=self.intervals)
            inside = replace(
                where,
                path=(*where.path, Branch(stmt, taken)),
                formulas=(*where.formulas, test.formula),
                exact=where.exact and test.exact,
            )
            self.block(block, inside)

    def _site(self, stmt: Computing, where: _Where, touches: Sequence[_Touch]) -> None:
        self.sites.append(_Site(stmt, where, tuple(touches), self.given))

    def _bind(self, stmt: Bind) -> Iterator[_Touch]:
        for value in stmt.values:
            yield from self._reads(value, (), True)
        for target in stmt.targets:
            for _, meaning in target.data:
                yield from self._reads(meaning, (), True)
        kind = "write" if stmt.update is None else "update"
        for target in stmt.targets:
            yield _Touch(target, kind, (), self._data(target), True, stmt.update)

    def _reads(self, value: Value, guard: tuple[Formula, ...], certain: bool) -> Iterator[_Touch]:
        """The loads that `value` performs when evaluated; those in a branch of `select` are guarded by its condition."""
        if isinstance(value, Op) and value.name == "select":
            chooser, then, orelse = value.args
            yield from self._reads(chooser, guard, certain)
            for holds, branch in ((True, then), (False, orelse)):
                test = condition(chooser, holds=holds, ranges=self.intervals)
                yield from self._reads(branch, (*guard, test.formula), certain and test.exact)
            return
        for below in operands(value):
            yield from self._reads(below, guard, certain)
        if isinstance(value, Load):
            yield _Touch(value, "read", guard, self._data(value), certain)

    def _data(self, load: Load) -> tuple[Hidden, ...]:
        """The data symbols of a load and of the loads in its subscripts, the latter first."""
        found: list[Hidden] = []
        for sym, meaning in load.data:
            for inner in _loads(meaning):
                found.extend(self._data(inner))
            found.append(self.ranges.hidden(sym, meaning))
        return tuple(found)


def _loads(value: Value) -> Iterator[Load]:
    if isinstance(value, Load):
        yield value
    else:
        for below in operands(value):
            yield from _loads(below)


def _bound_facts(hidden: Sequence[Hidden]) -> Iterator[Expr]:
    return facts_of(told(hidden))


def _walked(body: Sequence[Stmt], sizes: Sequence[Sym], facts: Sequence[Formula], assumes: Sequence[Assume]) -> _Walk:
    walk = _Walk(Ranges(tuple(assumes)), frozenset(sizes), tuple(facts_of(facts)))
    walk.intervals.update({size: (0, LARGEST_SIZE) for size in sizes})
    walk.block(body, _Where())
    return walk


def _promised(sizes: Sequence[Sym], where: Sequence[Compare]) -> list[Formula]:
    return [*(Ge(expr(s)) for s in sizes), *(compare(c.op, c.left, c.right) for c in where)]


def standing(body: Sequence[Stmt], sizes: Sequence[Sym], where: Sequence[Compare], assumes: Sequence[Assume] = ()) -> Standing:
    """Where the statements of `body` stand, and what is known there, by what is promised of sizes and of data."""
    walk = _walked(body, sizes, _promised(sizes, where), assumes)
    return Standing(walk.given, walk.sites)


def model(function: Function) -> Model:
    """Every instance and access of `function`."""
    sizes = (*function.sizes, *(sym for sym, _ in function.consts))
    facts = _promised(function.sizes, function.where)
    walk = _walked(function.body, function.sizes, facts, function.assumes)
    opaque = Opaque(sizes, known(walk.given))
    found, further = _views(walk, opaque)
    given, _ = opaque.close_formula(conj(facts))
    contexts = [opaque.close_formula(conj(site.where.formulas)) for site in walk.sites]
    around = [needed(site.where.lets, syms(context)) for site, (context, _) in zip(walk.sites, contexts, strict=True)]
    drafts = [
        [_draft(site, touch, found[touch], further.get(touch, ()), opaque, lets) for touch in site.touches]
        for site, lets in zip(walk.sites, around, strict=True)
    ]
    given = conj((given, opaque.facts()))
    params = (*sizes, *opaque.meaning)
    instances = [
        _instance(number, site, conj((given, context)), lets, affine, own, opaque, params)
        for number, (site, (context, affine), lets, own) in enumerate(zip(walk.sites, contexts, around, drafts, strict=True))
    ]
    return Model(function, tuple(instances), params, given, walk.given, opaque, walk.frames)


_Member: TypeAlias = tuple[_Touch, Subscripts, tuple[Ancestor, ...]]


def _views(walk: _Walk, opaque: Opaque) -> tuple[Mapping[_Touch, View], Mapping[_Touch, tuple[View, ...]]]:
    """The view of each access, chosen buffer by buffer; and additional affine views of accesses whose view is not affine."""
    groups: dict[Buffer, list[_Member]] = {}
    for site in walk.sites:
        for touch in site.touches:
            facts = (*site.facts, *facts_of(touch.formulas), *_bound_facts(touch.hidden))
            index = touch.load.index
            if not all(is_affine(opaque.close(e)) for e in index):
                index = tuple(map(Simplifier(known(facts)), index))
            groups.setdefault(touch.load.buffer, []).append((touch, Subscripts(index, facts), site.where.path))
    found: dict[_Touch, View] = {}
    further: dict[_Touch, tuple[View, ...]] = {}
    for buffer, members in groups.items():
        seen = _seen(buffer, members, opaque)
        found.update(seen)
        crooked = [member for member in members if not _is_straight(seen[member[0]], opaque)]
        if len(crooked) > 0 and len(members) > 1:
            further.update(_further(buffer, members, crooked, opaque))
    return found, further


def _seen(buffer: Buffer, members: Sequence[_Member], opaque: Opaque) -> dict[_Touch, View]:
    seen = views(buffer, [subscripts for _, subscripts, _ in members], opaque)
    return dict(zip((touch for touch, _, _ in members), seen, strict=True))


def _is_straight(view: View, opaque: Opaque) -> bool:
    return all(is_affine(opaque.close(e)) for e in view.index)


def _further(
    buffer: Buffer, members: Sequence[_Member], crooked: Sequence[_Member], opaque: Opaque
) -> Iterator[tuple[_Touch, tuple[View, ...]]]:
    """The affine views that an access has together with only the accesses in one of its loops, or with only those whose
    common view is not affine. A buffer that is reshaped in one nest and used as declared in another has a view in each."""
    groups = {loop: [m for m in members if loop in m[2]] for _, _, path in crooked for loop in path}
    every = [
        seen for group in (crooked, *groups.values()) if len(group) < len(members) for seen in (_seen(buffer, group, opaque),)
    ]
    for touch, _, _ in crooked:
        own = dict.fromkeys(seen[touch] for seen in every if touch in seen and _is_straight(seen[touch], opaque))
        if own:
            yield touch, tuple(own)


def _draft(site: _Site, touch: _Touch, view: View, further: Sequence[View], opaque: Opaque, lets: Sequence[Hidden]) -> Draft:
    """Completes an access with its view; a subscript that is not affine, and no remainder, is widened to any index of its
    dimension.

    `lets`: those that the context of the instance mentions.
    """
    guard, affine = opaque.close_formula(conj(touch.formulas))
    index: list[Expr] = []
    free: list[Hidden] = []
    said: list[Formula] = []
    for position, (subscript, extent) in enumerate(zip(view.index, view.shape, strict=True)):
        closed = opaque.close(subscript)
        if not is_affine(closed):
            sym = Sym(f"⟨{touch.load.buffer.name}.{position}⟩")
            wrapped = remainder(closed, sym, (*site.facts, *facts_of(touch.formulas), *_bound_facts(touch.hidden)))
            said += [wrapped] if wrapped is not None else []
            free.append(Hidden(sym, Bounds(expr(0), extent - 1), widened=True, defined=wrapped is not None))
            closed = expr(sym)
        index.append(closed)
    more = tuple(View(tuple(map(opaque.close, v.index)), tuple(map(opaque.close, v.shape)), v.is_whole) for v in further)
    named = (e for view in more for e in (*view.index, *view.shape))
    used = frozenset(s for e in (*index, *view.shape, *named) for s in e.syms()) | syms(guard)
    hidden = (*needed((*site.where.lets, *touch.hidden), used), *free)
    bounds, _ = opaque.close_formula(conj(told(tuple({each.sym: each for each in (*lets, *hidden)}.values()))))
    sure = touch.certain and affine and (bool(more) or all(each.defined for each in free))
    affine = affine and all(each.defined for each in free)
    return Draft(
        touch.load.buffer, touch.kind, touch.load, tuple(index), tuple(map(opaque.close, view.shape)),
        conj((guard, bounds, *said)), (*facts_of(touch.formulas), *_bound_facts(touch.hidden)), hidden,
        touch.certain and affine, affine, touch.update, more, sure, view.is_whole,
    )  # fmt: skip


def _instance(
    number: int,
    site: _Site,
    context: Formula,
    lets: tuple[Hidden, ...],
    affine: bool,
    drafts: Sequence[Draft],
    opaque: Opaque,
    params: tuple[Sym, ...],
) -> Instance:
    bounds, _ = opaque.close_formula(conj(told(lets)))
    return Instance(
        number, site.stmt, site.where.path, conj((context, bounds)), site.facts, lets,
        site.where.exact and affine, affine, params, tuple(drafts), site.where.lets,
    )  # fmt: skip
