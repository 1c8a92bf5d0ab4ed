"""Loop fission by phases of rows that share operands, so that tiles of the first and the last phase pay.

    par L |i| { par S |j| { p[j] = 0  seq D |d| { p[j] += Q[i, d] * K[j, d] } }  …  par D |e| { … p[j] * V[j, e] … } }

A block that computes a row alone reads all of K and V for it. With a loop of its own each phase is a matrix product, of which
a tile reads far less; the values of a row that are live between phases (p) go to memory. It is applied where the phases read
more data shared among rows than private to each, counted for each phase, and where a tile is found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.planner.follow import Refused
from texpr.planner.model import form
from texpr.planner.nest import NoPlan, Touch, nest_of, nests, outermost
from texpr.planner.search import LEAST_REUSE
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject
from texpr.relation.collect import model
from texpr.relation.model import Instance
from texpr.schedule.rewrite.materialise import materialise
from texpr.support.record import Record


class Phases(Record):
    """`way`: the loops around all phases, from outside in. `sizes`: the number of statements of each phase."""

    way: tuple[ir.Par, ...]
    sizes: tuple[int, ...]

    def first(self, par: ir.Par) -> ir.Stmt:
        """The first statement of the phase in the loops of `par`; no `let`, which may be there again in the next one."""
        body = par.body
        for _ in self.way[1:]:
            body = next(s.body for s in body if isinstance(s, ir.Par))
        found = [s for s in body if not isinstance(s, ir.New)]
        return next((s for s in found if not isinstance(s, ir.Let)), found[0])


def phases(par: ir.Par, function: ir.Function) -> Phases | None:
    """The phases of the nest of `par`, an outermost loop of `function`, if fission pays. Other nests say nothing about it."""
    way = way_of(par)
    statements = [s for s in way[-1].body if not isinstance(s, ir.New)]
    if len(statements) < 2 or any(p.reduce or p.fully or p.directives for p in way):
        return None
    around = {p.sym for p in way}
    instances = [i for i in model(function).instances if par in i.loops]
    shared = kept = 0
    sizes: list[int] = []
    in_run = False
    for stmt in statements:
        read, own = _bytes(par, [i for i in instances if stmt in (*i.path, i.stmt)], around)
        shared, kept = shared + read, kept + own
        is_one = read > LEAST_REUSE * own
        if is_one or not in_run:
            sizes.append(0)
        sizes[-1] += 1
        in_run = not is_one
    worth = len(sizes) > 1 and shared > LEAST_REUSE * kept
    return Phases(tuple(way), tuple(sizes)) if worth else None


def way_of(par: ir.Par) -> list[ir.Par]:
    """The perfectly nested `par`s from `par` inward."""
    found = [par]
    while len(found[-1].body) == 1 and isinstance(inner := found[-1].body[0], ir.Par):
        found.append(inner)
    return found


def _bytes(par: ir.Par, instances: list[Instance], around: set[Sym]) -> tuple[int, int]:
    """The bytes that one iteration of the loops `around` accesses in `instances`: shared with other iterations (and
    tileable), and private."""
    try:
        nest = nest_of(par, instances, meeting=True)
    except NoPlan:
        return 0, sum(a.buffer.dtype.bytes for i in instances for a in i.accesses)
    each: dict[Buffer, list[Touch]] = {}
    for touch in nest.touches:
        each.setdefault(touch.buffer, []).append(touch)
    read_only = {*nest.read_only()}
    inside = {sym: 1 if sym in around else trips for sym, trips in nest.trips.items()}
    shared = own = 0
    for buffer, touches in each.items():
        size = _box(touches, inside) * buffer.dtype.bytes
        if buffer in read_only and not all(any(t.along(sym) for t in touches) for sym in around):
            shared += size
        else:
            own += size
    return shared, own


def _box(touches: list[Touch], trips: Mapping[Sym, int]) -> int:
    """The elements that these accesses of one buffer touch, with the trip counts `trips`."""
    if not touches[0].shape:
        return 1
    found = form(touches)
    return prod(found.box(trips)) if found else max(prod(trips[s] for s in t.around) for t in touches)


class Phased(Script, kw_only=True):
    """Puts loops of their own around each of `phases` (fission)."""

    phases: Phases

    def run(self) -> Sequence[Subject]:
        """Applies every directive, and leaves the new loops in place of the nest. Raises Refused."""
        *outer, innermost = self.phases.way
        before = {par.sym for par in outermost(self.state.function.body)} - {self.phases.way[0].sym}
        self.must("distribute", innermost.sym.name, *self.phases.sizes)
        for loop in reversed(outer):
            self.must("distribute", loop.sym.name)
        made = {par.sym for par in outermost(self.state.function.body)} - before
        return [
            Subject(par, nest, self.state, is_part=True, named=self.phases.first(par).span.line)
            for par, nest in nests(materialise(self.state).function)
            if par.sym in made
        ]


def _applies(subject: Subject) -> bool:
    return isinstance(subject.nest, NoPlan) and not subject.is_part


def _propose(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
    found = None if refused else phases(*subject.alone())
    return None if found is None else Proposal(Phased(subject.state, subject.span, phases=found))


STRATEGY = Strategy(Rank.PARTS, _applies, _propose)
