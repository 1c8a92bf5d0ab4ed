"""Conflicts of two steps, accesses to one element with a write among them: whether there are any, and between which threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.steps import Step
from texpr.lowering.dependences.dependence import Scope, parts
from texpr.mapping.nest import Nest
from texpr.presburger.formula import TRUE, Formula, between, compare, conj, disj
from texpr.presburger.isl.maps import left, right
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.linear import NotAffine
from texpr.presburger.points import Points
from texpr.relation.conditions import condition
from texpr.relation.dependence import comparable, meeting_formula
from texpr.relation.model import Access, Model
from texpr.relation.model import Branch as Side
from texpr.support.record import Mutable, Record, field, replace

_ONE, _OTHER = Sym("thread'left"), Sym("thread'right")

BLOCK: Scope = (k.Level.BLOCK, 0)
CLUSTER: Scope = (k.Level.CLUSTER, 0)


class End(Record):
    """One access, the step that it belongs to, and the thread that executes it (None: every thread).

    `crosses`: another block of the cluster may execute it.
    """

    access: Access
    leaf: Step
    order: int
    thread: Expr | None
    crosses: bool = False


def landing(end: End, model: Model, nest: Nest) -> End:
    """The access as a write of a whole box by the engine: tests and loops in the step exclude no element."""
    instance = end.access.instance
    within = {nest.origin.get(stmt, stmt) for stmt in ir.walk((end.leaf.stmt,))}
    around: list[Formula] = []
    for ancestor in instance.path:
        match ancestor:
            case ir.Par() | ir.Seq() if ancestor not in within:
                around.append(between(0, ancestor.sym, ancestor.extent))
            case Side() if ancestor.stmt not in within:
                around.append(condition(ancestor.stmt.condition, holds=ancestor.taken).formula)
            case _:
                pass
    context, _ = model.close(conj((model.facts, *around)))
    draft = replace(end.access.draft, guard=TRUE)
    return replace(end, access=Access(replace(instance, context=context, exact=False), draft))


class Conflict(Record, eq=False, dict=True):
    """The pairs of instances that access one element, the source first: in a later iteration of `carrier`, one of the loops
    `common` to both ends, or in one iteration of all of these. Undecided pairs count as possible."""

    model: Model
    nest: Nest
    source: End
    sink: End
    common: tuple[ir.Seq, ...] = ()
    carrier: ir.Seq | None = None
    shared: _Shared = field(default_factory=lambda: _Shared())

    def carried(self, carrier: ir.Seq) -> Conflict:
        """The same two steps, the sink in a later iteration of `carrier`."""
        return replace(self, carrier=carrier)

    @property
    def crosses(self) -> bool:
        """Whether one end may be in another block of the cluster."""
        return self.source.crosses or self.sink.crosses

    @property
    def widest(self) -> Scope:
        """The scope of all threads that execute the steps."""
        return CLUSTER if self.nest.blocks > 1 else BLOCK

    @property
    def covered(self) -> k.Covered:
        """The dependence, as the annotation of a barrier."""
        source, sink = self.source.access, self.sink.access
        kind = ("WAW" if sink.writes and not sink.reads else "RAW") if source.writes else "WAR" if sink.writes else "RAR"
        ends = source.instance.stmt.span, sink.instance.stmt.span
        return k.Covered(kind, source.buffer.name, *ends, None if self.carrier is None else self.carrier.sym)

    def happens(self, given: Formula = TRUE) -> bool:
        """Whether there is a pair for which `given` holds, whatever the threads of its ends."""
        if self._is_apart:
            return False
        if self.shared.pairs is None:
            self.shared.pairs = Points(self._meeting(), self.model.params)
        return not _is_empty(self.shared.pairs, conj((*self._in_order(), given)))

    def stays_within(self, threads: int, given: Formula = TRUE) -> bool:
        """Whether both ends of each pair for which `given` holds are in one group of so many threads."""
        if self._is_apart:
            return True
        if self.shared.in_threads is None:
            team = self.nest.team
            ends = (*_thread(self.source, _ONE, left, team), *_thread(self.sink, _OTHER, right, team))
            self.shared.in_threads = Points(conj((self._meeting(), *ends)), self.model.params)
        return _is_empty(self.shared.in_threads, conj((*self._in_order(), given, _apart(threads))))

    def scope(self, given: Formula = TRUE) -> Scope | None:
        """The narrowest scope that contains both ends where `given` holds; None if one thread has both, or there is no pair."""
        if self.crosses:
            return CLUSTER if self.happens(given) else None
        team, warp = min(self.nest.team, self.nest.threads), self.nest.warp
        if self.nest.blocks > 1 and not self.stays_within(team, given):
            return CLUSTER
        of_block = parts(team, warp) if team == self.nest.threads else ()
        widest = of_block[-1] if of_block else warp
        if team > warp and not self.stays_within(widest, given):
            return BLOCK
        if self.stays_within(1, given):
            return None
        if team <= warp or self.stays_within(warp, given):
            return k.Level.WARP, 0
        return k.Level.BLOCK, next(part for part in of_block if part == widest or self.stays_within(part, given))

    @property
    def _is_apart(self) -> bool:
        """Whether the subscripts of the ends differ in a dimension where both are constant."""
        one, other = self.source.access, self.sink.access
        pairs = zip(one.index, other.index, strict=False) if comparable(one, other) else ()
        return any(a.is_constant and b.is_constant and a is not b for a, b in pairs)

    def _in_order(self) -> Iterator[Formula]:
        for loop in self.common:
            if loop is self.carrier:
                yield compare("<", left(loop.sym), right(loop.sym))
                return
            yield compare("==", left(loop.sym), right(loop.sym))

    def _meeting(self) -> Formula:
        """The condition that both instances exist, and access one element."""
        source, sink = self.source.access, self.sink.access
        grid = frozenset(m.loop.sym for m in self.nest.grid)
        return conj((self.model.facts, meeting_formula(source, sink, grid)))


class _Shared(Mutable):
    """Results that do not depend on the carrier: the points at which the steps access one element, in any order."""

    pairs: Points | None = None
    in_threads: Points | None = None


def apart(op: str, loop: ir.Seq, iterations: int) -> Formula:
    """The condition that the sink is `iterations` iterations of `loop` after the source (`==`), or more (`>`)."""
    return compare(op, expr(right(loop.sym)) - expr(left(loop.sym)), iterations)


def _is_empty(points: Points, also: Formula) -> bool:
    """Whether the set is proved empty."""
    try:
        return points.is_empty(also)
    except (NotAffine, Undecided):
        return False


def _thread(end: End, name: Sym, rename: Callable[[Sym], Sym], team: int) -> Iterator[Formula]:
    yield between(0, name, team)
    if end.thread is not None:
        renamed = end.thread.substitute({s: expr(rename(s)) for s in end.access.instance.syms})
        yield compare("==", name, renamed)


def _apart(width: int) -> Formula:
    """The condition that the threads are in different groups of `width`."""
    one, other = expr(_ONE) // width, expr(_OTHER) // width
    return disj((compare("<", one, other), compare(">", one, other)))
