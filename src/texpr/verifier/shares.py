"""What parts of sums hold, written out from where they are read.

A *part* is memory that the program does not have: a register or an array that starts at what changes nothing or as a copy, and
is joined with updates of the program (*leaves*) and with other parts. It holds its last start before in the text, and what was
joined since: a sum over places of leaves, lanes, and turns of loops. The text tells what is there: threads touch shared parts
in textual order (`sums.Sums.apart`), and nothing starts, or is read, in some turn of a loop in which more is joined.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.structure import same
from texpr.ir.updates import EXACTLY_ONCE_FREE, combine, identity
from texpr.ir.value import Load, Op, Ref, Value
from texpr.isa.levels import Space
from texpr.presburger.formula import TRUE, Eq, Formula, conj, differ, equal, negate, rename, syms
from texpr.reading.events import Event, Site
from texpr.verifier.flow import Flow, Home
from texpr.verifier.match import Match, home_of, memory_in, same_constant
from texpr.verifier.tags import ELEMENTS, Joined, Leaf, Step, Tag

Doubt: TypeAlias = tuple[Event, str, tuple[Formula, ...]]
"""Of which event what is to be shown: that facts never hold together."""


class Wrong(Exception):
    """A sum that is none; says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """How an event joins another place, read at a site, into its target, under which tests of data. `beside`: what joins the
    elements of its tuple."""

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
        return Share(self.pile, self.thread.substitute(values), self.lanes, facts, (*self.own, *own))

    def near(self, number: Expr) -> Formula:
        """That `number` is one of its threads. Raises Wrong."""
        every = max(self.lanes, default=0)
        low = every & -every
        if self.lanes and (len(self.lanes) != 1 << every.bit_count() or (every + low) & every or 0 not in self.lanes):
            raise Wrong("a sum over some lanes only")
        ends = [(x // (every + low), x % low) if every else (x,) for x in (number, self.thread)]
        return equal(*ends) if self.lanes else TRUE


@dataclass(slots=True)
class Shares:
    """The parts of a plan, as its tags say."""

    flow: Flow
    parts: set[Home] = field(default_factory=set[Home])
    joins: dict[Event, Join] = field(default_factory=dict[Event, Join])
    leaves: dict[Event, Match] = field(default_factory=dict[Event, Match])
    inverses: dict[Event, tuple[Expr, ...]] = field(default_factory=dict[Event, tuple[Expr, ...]])
    writes: dict[Home, list[Event]] = field(default_factory=lambda: defaultdict(list[Event]))
    kinds: dict[Event, tuple[ir.Update, Value]] = field(default_factory=dict["Event", "tuple[ir.Update, Value]"])
    found: dict[tuple[object, ...], tuple[Share, ...]] = field(default_factory=dict["tuple[object, ...]", "tuple[Share, ...]"])
    doubts: list[Doubt] = field(default_factory=list["Doubt"])

    def take(self, tagged: Mapping[Event, Tag | None], leaves: Mapping[Event, Match], others: Iterable[Match]) -> None:
        """Takes what tags say of parts. Raises Wrong where it cannot be so."""
        program, steps = self.flow.program, {e: t for e, t in tagged.items() if isinstance(t, Leaf | Step | Joined)}
        self.leaves.update(leaves)
        self.parts |= {home_of(e.target) for e, t in steps.items() if not (isinstance(t, Joined) and t.of)}
        for event, tag in steps.items():
            if isinstance(tag, Joined):
                self.joins[event] = self.join(event, tag.update)
            self.inverses[event] = tag.inverse
        for event in tagged:
            if home_of(event.target) in self.parts:
                self.writes[home_of(event.target)].append(event)
                if event not in steps or event.kind == "async":
                    raise Wrong(f"{home_of(event.target).name} is part of a sum, and something else is stored there")
        if self.parts & {*(a.stored for a in program.actions), *program.function.params}:
            raise Wrong("memory of the program is part of a sum")
        for match in (*leaves.values(), *others):
            self.alone(match)

    def alone(self, match: Match) -> None:
        """That a statement reads no part but those that it updates, a tuple together. Raises Wrong."""
        time = match.event.site.time
        own = [(e.target, m.action.stored) for e, m in self.leaves.items() if arm(e) == arm(match.event)]
        for operand in (o for o in match.operands if home_of(o.read) in self.parts):
            now = operand.site.time == time[: len(operand.site.time)]
            if not now or (operand.read, home_of(operand.meant)) not in own:
                raise Wrong(f"{home_of(match.event.target).name} is computed from a part of a sum")

    def origin(self, event: Event) -> tuple[Value, Site]:
        """What an event copies or joins, and where that is read."""
        return self.joins[event].origin if event in self.joins else self.read(event.value, event.site)

    def read(self, value: Value, site: Site) -> tuple[Value, Site]:
        """A value at a site, with registers that never change written out."""
        while isinstance(value, Ref) and value.sym not in self.parts:
            variable = self.flow.reading.variables.get(value.sym)
            if variable is None or variable.value is None:
                break
            value, site = variable.value, variable.site
        return value, site

    def join(self, event: Event, update: ir.Update) -> Join:
        """`event` as a join of its target with another place by `update`. Raises Wrong."""
        for place in dict.fromkeys(memory_in(event.value)):
            if place != event.target and same(event.value, combine(update, (event.target,), (place,))[0]):
                return Join(update, self.read(place, event.site), event.site.tests)
        if event.site.tests and isinstance(event.value, Load | Ref) and update in ("max", "min"):
            beside = tuple(e for e in self.flow.reading.events if arm(e) == arm(event))
            wanted = combine(update, [e.target for e in beside], [e.value for e in beside])[0]
            if len(beside) > 1 and isinstance(wanted, Op) and same(wanted.args[0], event.site.tests[-1][0]):
                site = replace(event.site, tests=event.site.tests[:-1])  # the last one chooses the tuple
                return Join(update, self.read(event.value, site), site.tests, beside)
        raise Wrong(f"{home_of(event.target).name} is not joined with another by what the program updates with")

    def is_leaf(self, event: Event) -> bool:
        """Whether an event takes an update of the program, or an element of an array that an earlier launch stored."""
        return event in self.leaves or (event in self.joins and self.is_stored(self.joins[event].origin[0]))

    def is_stored(self, place: Value) -> bool:
        """Whether a part is kept from one launch to the next."""
        return isinstance(place, Load) and place.buffer in self.parts and self.flow.space(place.buffer) is Space.GLOBAL

    def part(self, place: Value) -> Home:
        """The part that a place is in. Raises Wrong."""
        if not isinstance(place, Load | Ref) or home_of(place) not in self.parts:
            raise Wrong("what is joined is no part of a sum")
        return home_of(place)

    def kind(self, *shares: Share) -> tuple[ir.Update, Value]:
        """What the updates of some shares are done by, and what changes nothing then. Raises Wrong."""
        kinds = list(dict.fromkeys(self.updated(leaf) for share in shares for leaf in share.pile))
        if not kinds or any(update != kinds[0][0] or not same_constant(zero, kinds[0][1]) for update, zero in kinds[1:]):
            raise Wrong("one part is updated in several ways, or not at all")
        return kinds[0]

    def updated(self, leaf: Event) -> tuple[ir.Update, Value]:
        """The same of a leaf. Raises Wrong."""
        if leaf not in self.kinds and leaf in self.joins:
            self.kinds[leaf] = self.kind(*self.held(*self.origin(self.writes[self.part(self.origin(leaf)[0])][0])))
            if self.kinds[leaf][0] != self.joins[leaf].update:
                raise Wrong("parts are joined in another way than they were made")
        elif leaf not in self.kinds:
            action = self.leaves[leaf].action
            stmt, update = action.stmt, "add" if action.update == "sub" else action.update
            if update is None or not isinstance(stmt, ir.Bind):
                raise Wrong(f"{action.stored.name} is given a value, not updated")
            zeros = zip(stmt.targets, identity(update, [t.dtype for t in stmt.targets]), strict=True)
            self.kinds[leaf] = update, next(zero for target, zero in zeros if target is action.target)
        return self.kinds[leaf]

    def held(self, place: Value, site: Site) -> tuple[Share, ...]:
        """What a place holds where it is read, over the coordinates there. Raises Wrong."""
        key = (self.part(place), subscripts(place), site.launch, site.time, len(site.tests))
        if key not in self.found:
            self.found[key] = tuple(self.written_out(*key[:2], site))
        return self.found[key]

    def written_out(self, home: Home, index: tuple[Expr, ...], site: Site) -> Iterator[Share]:
        """What the last start before `site` put there, and what was joined since. Raises Wrong."""
        launch, mine = site.launch, self.flow.instance(home, site)
        writes = [e for e in self.writes[home] if e.site.launch is launch]
        before = [e for e in writes if precedes(e.site, site)]
        start = next((e for e in reversed(before) if e not in self.joins and e not in self.leaves), None)
        if start is None or self.flow.space(home) is Space.GLOBAL:
            raise Wrong(f"{home.name} is read before it holds anything")
        around = common(start.site, site)
        if any(len(common(e.site, at)) > len(around) for e in writes if e is not start for at in (site, start.site)):
            raise Wrong(f"{home.name} starts, or is read, in a loop in which it is summed")
        others = [s for s in (*launch.blocks, *launch.threads) if s not in mine]
        block = (*launch.host, *(s for s in launch.blocks if s in mine), *(loop.sym for loop in around))
        steps = before[before.index(start) + 1 :]
        pile, (value, there) = tuple(filter(self.is_leaf, steps)), self.origin(start)
        if any(tests != site.tests for tests in (start.site.tests, *(self.joins[e].tests for e in steps if e in self.joins))):
            raise Wrong(f"whether {home.name} is given something depends on data")
        at = self.begun(start, index, site, {*mine, *block})
        copied = isinstance(value, Load | Ref)
        found = [exchanged(start, share).moved(at) for share in (self.held(value, there) if copied else ())]
        if pile:
            here = [Eq(expr(s) - e) for s, e in (*((Sym(f"{s.name}◁"), s) for s in block), *zip(ELEMENTS, index, strict=False))]
            found.append(Share(pile, launch.thread, frozenset(() if others else {0}), tuple(here)))
        for event in (e for e in steps if e not in pile):
            found += self.joined(event, index, site, [*others, *(loop.sym for loop in event.site.loops[len(around) :])])
        update, zero = self.kind(*found)
        if not copied and not same_constant(value, zero):
            raise Wrong(f"{home.name} does not start at what changes nothing")
        lanes: dict[Share, frozenset[int]] = {}
        for share in found:
            key = replace(share, lanes=frozenset())
            if key in lanes and (lanes[key] & share.lanes or not share.lanes) and update not in EXACTLY_ONCE_FREE:
                raise Wrong(f"something is joined into {home.name} twice")
            lanes[key] = lanes.get(key, frozenset[int]()) | share.lanes
        yield from (replace(share, lanes=own) for share, own in lanes.items())

    def begun(self, start: Event, index: tuple[Expr, ...], site: Site, known: set[Sym]) -> Mapping[Sym, Expr]:
        """Where `start` put what is read at `site`, the same coordinates `known` of both. Raises Wrong."""
        dims, own = start.site.dims, subscripts(start.target)
        said, rest = dict(zip(dims, self.inverses[start], strict=False)), [s for s in dims if s not in known]
        if not {*rest} <= said.keys():
            raise Wrong(f"where {home_of(start.target).name} starts is not said")
        values = [dict(zip(ELEMENTS, place, strict=False)) for place in (index, own)]
        at, back = ({s: said[s].substitute(v) if s in rest else expr(s) for s in dims} for v in values)
        there = (*(rename(f, at) for f in start.site.where), equal((e.substitute(at) for e in own), index))
        goals = [f for f in there if f not in (*site.where, Eq(expr(0)))]
        self.doubts.append((start, "what is joined is there", (*site.where, negate(conj(goals)))))
        self.doubts.append((start, "a place starts once", (*start.site.where, differ(back.values(), dims))))
        return at

    def joined(self, event: Event, index: tuple[Expr, ...], site: Site, inner: Sequence[Sym]) -> Iterator[Share]:
        """What `event` joins into a place for all of its coordinates `inner`. Raises Wrong."""
        shared = {*inner} & {*site.launch.blocks, *site.launch.threads}  # else the elements of a tuple have the same turns
        number = next(n for n, e in enumerate(self.flow.reading.events) if e is event or (not shared and arm(e) == arm(event)))
        own = {sym: Sym(f"{sym.name}◦{number}") for sym in inner}
        facts = [f for g in event.site.where if (f := rename(g, own)) not in site.where]
        facts += [Eq(x.substitute(own) - y) for x, y in zip(subscripts(event.target), index, strict=True)]
        for share in self.held(*self.origin(event)):
            if self.kind(share)[0] != self.joins[event].update:
                raise Wrong(f"{home_of(event.target).name} is joined in another way than what it is joined with")
            yield share.moved(own, own.values(), facts)

    def shape(self, event: Event) -> tuple[object, ...]:
        """What an event copies or joins, but for which element of a tuple that is. Raises Wrong."""
        value, site = self.origin(event)
        if self.is_stored(value):
            stores = self.writes[home_of(value)] if isinstance(value, Load) else ()
            return (subscripts(value), *((e.site.where, subscripts(e.target), self.shape(e)) for e in stores))
        return tuple((replace(share, pile=()), *map(arm, share.pile)) for share in self.held(value, site))


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
    x, y = next(((x, y) for x, y in times if x != y), (None, None))
    return isinstance(x, int) and isinstance(y, int) and x < y


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
