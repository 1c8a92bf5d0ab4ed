"""The condition under which a reduction updates its element: otherwise the element may belong to another iteration, or not
exist.

    par m |i| { par i |j| reduce(s) { s[i - 1] += x[j] } }   →   par m |i| { if 0 < i { par i |j| reduce(s) { … } } }

Threads combine their partial results once for all iterations, and do so even where there are no iterations. So the condition
of an update is tested before the loop, as an existential over the loops inside: a · j + p ≥ 0 and q - b · j ≥ 0 for some j
where ⌊p / a⌋ + ⌊q / b⌋ ≥ 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, reduce
from itertools import product

from texpr.affine.expr import Expr, Sym, expr, term
from texpr.affine.facts import Known
from texpr.ir import program as ir
from texpr.ir.program.updates import Accumulator
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer, Index, Load, Op, Value, conjunction
from texpr.ir.value.types import BOOL, I64
from texpr.presburger.formula import And, Eq, Formula, Ge, Or, between, compare, syms
from texpr.presburger.linear import simple_extrema
from texpr.presburger.solve.relaxed import flat
from texpr.relation.conditions import condition
from texpr.relation.facts import facts_of, known
from texpr.schedule.tree import Body
from texpr.support.record import Record, field, replace

_MOST = 64
"""The limit of facts in an elimination, of which each step may square their number."""


class Around(Record, dict=True):
    """The context of a statement. `numbers`: `sizes` and indices; `nest`: each `par`; `own`: memory declared in its
    iteration."""

    facts: tuple[Formula, ...]
    sizes: frozenset[Sym]
    numbers: frozenset[Sym]
    nest: tuple[ir.Par, ...] = ()
    own: frozenset[Buffer] = field(default_factory=frozenset[Buffer])

    def inside(self, stmt: ir.Stmt, taken: bool = True) -> Around:
        """The context of the statements in `stmt`."""
        match stmt:
            case ir.Par() | ir.Seq():
                facts, numbers = (*self.facts, between(0, stmt.sym, stmt.extent)), self.numbers | {stmt.sym}
                apart = isinstance(stmt, ir.Par)
                nest, own = ((*self.nest, stmt), frozenset[Buffer]()) if apart else (self.nest, self.own)
                return replace(self, facts=facts, numbers=numbers, nest=nest, own=own)
            case ir.If():
                return replace(self, facts=(*self.facts, condition(stmt.condition, holds=taken).formula))
            case _:
                return self

    def inside_all(self, loops: Sequence[ir.Loop]) -> Around:
        """The context of the body of nested loops."""
        return reduce(Around.inside, loops, self)

    def after(self, stmt: ir.Stmt) -> Around:
        """The context after `stmt`."""
        return replace(self, own=self.own | {stmt.buffer}) if isinstance(stmt, ir.New) else self

    @cached_property
    def known(self) -> Known:
        """The facts, for cheap proofs."""
        return known(facts_of(self.facts))

    def is_harmless(self, target: Load) -> bool:
        """Whether the element is in bounds, and accessed by no other iteration."""
        ends = (e for i, s in zip(target.index, target.buffer.shape, strict=True) for e in (i, s - 1 - i))
        return (target.buffer in self.own or self._is_apart(target)) and all(map(self.known.nonnegative, ends))

    def _is_apart(self, target: Load) -> bool:
        """Whether, for each parallel loop, some subscript distinguishes its iterations, wherever the buffer is accessed."""
        places = [[at for at, e in enumerate(target.index) if self._tells(e, par.sym)] for par in self.nest]
        if not all(places):
            return False
        inside = (load for stmt in ir.walk(self.nest[:1]) for load in loads(stmt) if load.buffer is target.buffer)
        return all(load.index[at] == target.index[at] for load in inside for at, *_ in places)

    def _tells(self, subscript: Expr, sym: Sym) -> bool:
        """Whether a subscript is injective in the index."""
        found = lines((subscript,), sym)
        return bool(found) and all(rest.syms() <= self.sizes for _, rest in found)


def outermost(function: ir.Function) -> Around:
    """The context of the statements of a function."""
    promised = [compare(c.op, c.left, c.right) for c in function.where]
    sizes = (*function.sizes, *(sym for sym, _ in function.consts))
    return Around((*(Ge(expr(s)) for s in function.sizes), *promised), frozenset(sizes), frozenset(sizes))


def where_reached(
    loops: Sequence[ir.Loop], body: Body, found: Sequence[Accumulator], around: Around, made: Body
) -> Body | None:
    """`made`, which updates what `loops` reduce into in `body`, guarded by the condition that these do; None where it cannot
    be computed before the loop."""
    if all(around.is_harmless(target) for each in found for target in each.targets):
        return made
    needs = {_needs(loops, body, each, around.numbers) for each in found}
    first = needs.pop()
    if needs or first is None or not _only_updates(body, found):
        return None
    asked = [_value(fact) for fact in first if not (isinstance(fact, Ge) and around.known.nonnegative(fact.expr))]
    test = conjunction(asked)
    return made if test is None else (ir.If(test, made, span=loops[0].span),)


def _only_updates(body: Body, found: Sequence[Accumulator]) -> bool:
    """Whether `body` consists of these updates only."""
    wanted = {target.buffer for each in found for target in each.targets}
    own = {s.buffer for s in ir.walk(body) if isinstance(s, ir.New)}
    binds = [t.buffer for s in ir.walk(body) if isinstance(s, ir.Bind) for t in s.targets]
    return {*binds} <= wanted | own and not any(isinstance(s, ir.Anchor | ir.Instruction) for s in ir.walk(body))


def _needs(loops: Sequence[ir.Loop], body: Body, wanted: Accumulator, numbers: frozenset[Sym]) -> tuple[Formula, ...] | None:
    """The condition, over `numbers`, that holds exactly where an element is updated; None if it is not known."""
    outer = [between(0, loop.sym, loop.extent) for loop in loops]
    inner = {loop.sym for loop in (*loops, *ir.walk(body)) if isinstance(loop, ir.Par | ir.Seq)}
    every = {_somewhere((*outer, *facts), inner, numbers) for facts in _updates(body, wanted, ())}
    return every.pop() if len(every) == 1 else None


def _updates(body: Body, wanted: Accumulator, facts: tuple[Formula, ...]) -> Iterator[tuple[Formula, ...]]:
    """The conditions around each update of an element."""
    for stmt in body:
        match stmt:
            case ir.Bind():
                if stmt.update is not None and Accumulator(stmt.targets, stmt.update).key == wanted.key:
                    yield facts
            case ir.Par() | ir.Seq():
                yield from _updates(stmt.body, wanted, (*facts, between(0, stmt.sym, stmt.extent)))
            case ir.If():
                for taken, block in ((True, stmt.then), (False, stmt.orelse)):
                    yield from _updates(block, wanted, (*facts, condition(stmt.condition, holds=taken).formula))
            case _:
                pass


def _somewhere(given: Sequence[Formula], inner: Collection[Sym], numbers: frozenset[Sym]) -> tuple[Formula, ...] | None:
    """The condition on `numbers` under which `given` holds for some values of `inner` (projection)."""
    plain = [*flat(simple_extrema(fact) for fact in given)]
    kept = [fact for fact in plain if syms(fact).isdisjoint(inner)]
    left: list[Expr] = []
    for fact in plain:
        if not syms(fact).isdisjoint(inner):
            if not isinstance(fact, Ge | Eq):
                return None
            left += facts_of((fact,))
    while rest := [s for s in inner if any(s in e.syms() for e in left)]:
        told = {sym: found for sym in rest if (found := lines(left, sym)) is not None}
        sym = min(told, key=lambda s: (max(abs(slope) for slope, _ in told[s]), s.name), default=None)
        if sym is None or len(left) > _MOST:
            return None
        ups, downs = ([(s, e) for s, e in told[sym] if (s > 0) is up] for up in (True, False))
        left = [e for e in left if sym not in e.syms()]
        left += (p // a + q // -b for (a, p), (b, q) in product(ups, downs))
    found = tuple(dict.fromkeys((*kept, *map(Ge, left))))
    return found if all(syms(fact) <= numbers for fact in found) else None


def lines(facts: Sequence[Expr], sym: Sym) -> list[tuple[int, Expr]] | None:
    """Each expression as slope and rest in `sym`; None where `sym` occurs other than linearly."""
    found = [(sum(c for m, c in e.terms if m == (sym,)), e) for e in facts if sym in e.syms()]
    found = [(slope, e - term((sym,), slope)) for slope, e in found]
    return found if all(slope and sym not in e.syms() for slope, e in found) else None


def _value(fact: Formula) -> Value:
    """A fact as a condition."""
    match fact:
        case Ge(e) | Eq(e):
            more = sum((term(m, c) for m, c in e.terms if c > 0), start=expr(max(e.constant, 0)))
            less = more - e
            name = "le" if isinstance(fact, Ge) else "eq"
            if name == "le" and less.constant > 0:
                name, less = "lt", less - 1
            return Op(name, (Index(less, I64), Index(more, I64)), BOOL)
        case And(parts) | Or(parts):
            name = "and" if isinstance(fact, And) else "or"
            return reduce(lambda a, b: Op(name, (a, b), BOOL), map(_value, parts))
