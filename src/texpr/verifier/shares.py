"""What parts of sums hold, written out from where they are read.

A *part* is memory that the program does not have: a register or an array that starts at what changes nothing or as a copy, and
is joined with updates of the program (*leaves*) and with other parts. It holds its last start before in the text, and what was
joined since: a sum over places of leaves, lanes, and turns of loops. The text tells what is there: threads touch shared parts
in textual order (`sums.Sums.apart`), and nothing starts, or is read, in some turn of a loop in which more is joined.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.structure import same
from texpr.ir.tags import ELEMENTS, Joined, Leaf, Step, Tag
from texpr.ir.updates import EXACTLY_ONCE_FREE, combine, identity
from texpr.ir.value import Load, Op, Ref, Value, walk
from texpr.isa.levels import Space
from texpr.presburger.formula import TRUE, Eq, Formula, conj, differ, equal, negate, rename, syms
from texpr.reading.events import Event, Site
from texpr.verifier.flow import Flow, Home
from texpr.verifier.match import Match, home_of, same_constant

Doubt: TypeAlias = tuple[Event, str, tuple[Formula, ...]]
"""Of which event what is to be shown: that facts never hold together."""

PLACES = tuple(Sym(f"place {at}") for at in range(8))
"""The subscripts of a place of a part."""


class Wrong(Exception):
    """A sum that is none; says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """How an event joins another place, read at a site, into its target, under tests of data. `beside`: with its tuple."""

    update: ir.Update
    origin: tuple[Value, Site]
    tests: tuple[object, ...]
    beside: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """Updates by the leaves `pile` of thread number `thread`, and of lanes beside it by exclusive or; of all threads without.

    It is those for which there is a point over `own` with `facts`, once for each. Facts are over the coordinates of who reads,
    of the leaf (`s◁` for `s`), and over `ELEMENTS`, the place that the leaf updates.
    """

    pile: tuple[Event, ...]
    thread: Expr
    lanes: frozenset[int]
    facts: tuple[Formula, ...]
    own: tuple[Sym, ...] = ()

    def moved(self, values: Mapping[Sym, Sym | Expr], own: Iterable[Sym] = (), facts: Iterable[Formula] = ()) -> Share:
        """The same over other coordinates, once for each of `own` with `facts`."""
        facts = (*(rename(f, values) for f in self.facts), *facts)
        return replace(self, thread=self.thread.substitute(values), facts=facts, own=(*self.own, *own))

    def near(self, number: Expr) -> Formula:
        """That `number` is one of its threads. Raises Wrong."""
        every = max(self.lanes, default=0)
        low = every & -every
        if self.lanes and (len(self.lanes) != 1 << every.bit_count() or (every + low) & every or 0 not in self.lanes):
            raise Wrong("a sum over some lanes only")
        ends = [(x // (every + low), x % low) if every else (x,) for x in (number, self.thread)]
        return equal(*ends) if self.lanes else TRUE


Holding: TypeAlias = tuple[tuple[Formula, ...], tuple[Share, ...]]
"""What a part holds, over `PLACES` and the coordinates that all of it has in common; and what must hold for it to be there."""


@dataclass(slots=True)
class Shares:
    """The parts of a plan, as its tags say."""

    flow: Flow
    tags: Mapping[Event, Leaf | Step | Joined] = field(default_factory=dict["Event", "Leaf | Step | Joined"])
    parts: set[Home] = field(default_factory=set[Home])
    joins: dict[Event, Join] = field(default_factory=dict[Event, Join])
    leaves: dict[Event, Sequence[Match]] = field(default_factory=dict[Event, Sequence[Match]])
    writes: dict[Home, list[Event]] = field(default_factory=lambda: defaultdict(list[Event]))
    found: dict[object, Holding] = field(default_factory=dict["object", "Holding"])
    doubts: list[Doubt] = field(default_factory=list["Doubt"])

    def take(self, tagged: Mapping[Event, Tag | None], leaves: Mapping[Event, Match], others: Iterable[Match]) -> None:
        """Takes what tags say of parts. Raises Wrong where it cannot be so."""
        self.tags = {e: t for e, t in tagged.items() if isinstance(t, Leaf | Step | Joined)}
        self.leaves |= {event: (match,) for event, match in leaves.items()}
        self.parts |= {home_of(e.target) for e, t in self.tags.items() if not (isinstance(t, Joined) and t.of)}
        self.joins |= {e: self.join(e, t.update) for e, t in self.tags.items() if isinstance(t, Joined)}
        for event in (e for e in tagged if home_of(e.target) in self.parts):
            self.writes[home_of(event.target)].append(event)
            if event not in self.tags or event.kind == "async":
                raise Wrong(f"{home_of(event.target).name} is part of a sum, and something else is stored there")
        if self.parts & {*(a.stored for a in self.flow.program.actions), *self.flow.program.function.params}:
            raise Wrong("memory of the program is part of a sum")
        updated = {(arm(e), e.target, m.action.stored) for e, m in leaves.items()}
        for match, o in ((m, o) for m in (*leaves.values(), *others) for o in m.operands if home_of(o.read) in self.parts):
            now = o.site.time == match.event.site.time[: len(o.site.time)]
            if not now or (arm(match.event), o.read, home_of(o.meant)) not in updated:  # else its own, a tuple's together
                raise Wrong(f"{home_of(match.event.target).name} is computed from a part of a sum")

    def origin(self, event: Event) -> tuple[Value, Site]:
        """What an event copies or joins, and where that is read."""
        return self.joins[event].origin if event in self.joins else self.read(event.value, event.site)

    def read(self, value: Value, site: Site) -> tuple[Value, Site]:
        """A value at a site, with registers that never change written out."""
        own = isinstance(value, Ref) and value.sym not in self.parts
        variable = self.flow.reading.variables.get(value.sym) if own and isinstance(value, Ref) else None
        return self.read(variable.value, variable.site) if variable and variable.value is not None else (value, site)

    def join(self, event: Event, update: ir.Update) -> Join:
        """`event` as a join of its target with another place by `update`. Raises Wrong."""
        for place in dict.fromkeys(each for each in walk(event.value) if isinstance(each, Load | Ref)):
            if place != event.target and same(event.value, combine(update, (event.target,), (place,))[0]):
                return Join(update, self.read(place, event.site), event.site.tests)
        if event.site.tests and isinstance(event.value, Load | Ref) and update in ("max", "min"):
            beside = tuple(e for e in self.flow.reading.events if e.site.tests == event.site.tests and arm(e) == arm(event))
            wanted = combine(update, [e.target for e in beside], [e.value for e in beside])[0]
            if len(beside) > 1 and isinstance(wanted, Op) and same(wanted.args[0], event.site.tests[-1][0]):
                site = replace(event.site, tests=event.site.tests[:-1])  # the last one chooses the tuple
                return Join(update, self.read(event.value, site), site.tests, beside)
        raise Wrong(f"{home_of(event.target).name} is not joined with another by what the program updates with")

    def kind(self, shares: Iterable[Share]) -> tuple[ir.Update, Value]:
        """What the updates of some shares are done by, and what changes nothing then. Raises Wrong."""
        kinds = list[tuple[ir.Update, Value]]()
        for action in dict.fromkeys(m.action for share in shares for leaf in share.pile for m in self.leaves[leaf]):
            stmt, update = action.stmt, "add" if action.update == "sub" else action.update
            if update is None or not isinstance(stmt, ir.Bind):
                raise Wrong(f"{action.stored.name} is given a value, not updated")
            kinds.append((update, identity(update, [t.dtype for t in stmt.targets])[stmt.targets.index(action.target)]))
        if any(kind != kinds[0] for kind in kinds) or not kinds:
            raise Wrong("one part is updated in several ways, or not at all")
        return kinds[0]

    def held(self, place: Value, site: Site) -> tuple[Share, ...]:
        """What a place holds where it is read, over the coordinates there. Raises Wrong."""
        if not isinstance(place, Load | Ref) or home_of(place) not in self.parts:
            raise Wrong("what is joined is no part of a sum")
        home = home_of(place)
        writes = [e for e in self.writes[home] if e.site.launch is site.launch]
        before = [e for e in writes if precedes(e.site, site)]
        start = next((e for e in reversed(before) if e not in self.joins and e not in self.leaves), None)
        if start is None or self.flow.space(home) is Space.GLOBAL:
            raise Wrong(f"{home.name} is read before it holds anything")
        around = common(start.site, site)
        if any(len(common(e.site, at)) > len(around) for e in writes if e is not start for at in (site, start.site)):
            raise Wrong(f"{home.name} starts, or is read, in a loop in which it is summed")
        steps = before[before.index(start) :]
        if any(self.joins.get(e, e.site).tests != site.tests for e in steps if e is start or e in self.joins):
            raise Wrong(f"whether {home.name} is given something depends on data")
        key = steps[-1], len(around)
        if key not in self.found:
            self.found[key] = self.written_out(start, steps[1:], around)
        goals, shares = self.found[key]
        values = dict(zip(PLACES, subscripts(place), strict=False))
        wanted = [f for g in goals if (f := rename(g, values)) not in site.where]
        if wanted:
            self.doubts.append((start, "what is joined is there", (*site.where, negate(conj(wanted)))))
        return tuple([share.moved(values) for share in shares]) if values else shares

    def written_out(self, start: Event, steps: Sequence[Event], around: Sequence[k.For]) -> Holding:
        """What `start` put into a part, in the same turns of the loops `around`, and `steps` joined. Raises Wrong."""
        launch, home, (value, there) = start.site.launch, home_of(start.target), self.origin(start)
        same = {*self.flow.instance(home, start.site), *launch.host, *(loop.sym for loop in around)}
        others = [s for s in (*launch.blocks, *launch.threads) if s not in same]
        goals, at = self.begun(start, same)
        copied, pile = isinstance(value, Load | Ref), tuple(e for e in steps if e in self.leaves)
        found = [exchanged(start, share).moved(at) for share in (self.held(value, there) if copied else ())]
        if pile:
            here = [Eq(expr(Sym(f"{s.name}◁")) - s) for s in start.site.dims if s in same and s not in launch.threads]
            here += [Eq(expr(x) - y) for x, y, _ in zip(ELEMENTS, PLACES, subscripts(start.target), strict=False)]
            found.append(Share(pile, launch.thread, frozenset(() if others else {0}), tuple(here)))
        for event in (e for e in steps if e not in pile):
            found += self.joined(event, start, [*others, *(loop.sym for loop in event.site.loops[len(around) :])])
        update, zero = self.kind(found)
        alike = all(self.joins[e].update == update for e in steps if e in self.joins)
        if not alike or not (copied or same_constant(value, zero)):
            raise Wrong(
                f"{home.name} starts at what changes something, or is joined in another way than what it is joined with"
            )
        lanes: dict[Share, frozenset[int]] = {}
        for share in found:
            key = replace(share, lanes=frozenset())
            if key in lanes and (lanes[key] & share.lanes or not share.lanes) and update not in EXACTLY_ONCE_FREE:
                raise Wrong(f"something is joined into {home.name} twice")
            lanes[key] = lanes.get(key, frozenset[int]()) | share.lanes
        return goals, tuple([replace(share, lanes=own) for share, own in lanes.items()])

    def begun(self, start: Event, same: Collection[Sym]) -> tuple[tuple[Formula, ...], Mapping[Sym, Expr]]:
        """Where `start` put what is at a place, the coordinates `same` given, and what must hold for that. Raises Wrong."""
        dims, own = start.site.dims, subscripts(start.target)
        said, rest = dict(zip(dims, self.tags[start].inverse, strict=False)), [s for s in dims if s not in same]
        values = [dict(zip(ELEMENTS, place, strict=False)) for place in (map(expr, PLACES), own)]
        at, back = ({s: said.get(s, expr(0)).substitute(v) for s in rest} for v in values)
        if any(back[s] is not expr(s) for s in rest):
            self.doubts.append((start, "a place starts once", (*start.site.where, differ(back.values(), rest))))
        placed = (Eq(e.substitute(at) - p) for e, p in zip(own, PLACES, strict=False))
        return tuple([f for f in (*(rename(f, at) for f in start.site.where), *placed) if f != Eq(expr(0))]), at

    def joined(self, event: Event, start: Event, inner: Sequence[Sym]) -> Iterator[Share]:
        """What `event` joins into a place for all of its coordinates `inner`. Raises Wrong."""
        launch, time = event.site.launch, event.site.time
        if not {*inner} & {*launch.blocks, *launch.threads}:  # the elements of a tuple have the same turns
            time = time[:-1]
        mark = ".".join(map(str, (self.flow.reading.launches.index(launch), *(t for t in time if isinstance(t, int)))))
        own = {sym: Sym(f"{sym.name}◦{mark}") for sym in inner}
        facts = [f for g in event.site.where if (f := rename(g, own)) not in start.site.where]
        facts += [Eq(x.substitute(own) - y) for x, y in zip(subscripts(event.target), PLACES, strict=False)]
        yield from (share.moved(own, own.values(), facts) for share in self.held(*self.origin(event)))

    def shape(self, event: Event) -> tuple[object, ...]:
        """What an event copies or joins, but for which element of a tuple that is. Raises Wrong."""
        value, site = self.origin(event)
        if event in self.leaves and isinstance(value, Load):
            return value.index, *((e.site.where, subscripts(e.target), self.shape(e)) for e in self.writes[value.buffer])
        return tuple((s.thread, s.lanes, s.facts, s.own, *map(arm, s.pile)) for s in self.held(value, site))


def arm(event: Event) -> tuple[object, ...]:
    """The list of statements that an event stands in."""
    return event.site.launch, event.site.time[:-1]


def subscripts(place: Value) -> tuple[Expr, ...]:
    """The subscripts of a place: none of a register."""
    return place.index if isinstance(place, Load) else ()


def common(a: Site, b: Site) -> list[k.For]:
    """The loops around both."""
    return [x for x, y in zip(a.loops, b.loops, strict=False) if x is y]


def precedes(a: Site, b: Site) -> bool:
    """Whether one stands before the other in the text."""
    times = zip((*a.launch.time, *a.time), (*b.launch.time, *b.time), strict=False)
    return next((isinstance(x, int) and isinstance(y, int) and x < y for x, y in times if x != y), False)


def exchanged(event: Event, share: Share) -> Share:
    """What a lane gets by `event`, if it is an exchange, where each lane holds `share`. Raises Wrong."""
    stmt, launch = event.stmt, event.site.launch
    if not isinstance(stmt, k.Exchange):
        return share
    if stmt.width != 32 or not 0 < stmt.mask < 32 or launch.kernel.threads % (1 << stmt.mask.bit_length()):
        raise Wrong(f"lanes are exchanged by {stmt.mask} of {stmt.width}")
    own = share.thread is launch.thread
    if {s for f in share.facts for s in syms(f)}.union(() if own else share.thread.syms()) & {*launch.threads}:
        raise Wrong("what another lane holds is not known")
    return replace(share, lanes=frozenset(lane ^ stmt.mask for lane in share.lanes)) if own else share
