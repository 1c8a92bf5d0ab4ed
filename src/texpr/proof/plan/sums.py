"""Sums in parts: each update of the program contributes to the right element once, for all sizes.

A *part* is memory that the program does not have, a register or an array with a partial sum: it is initialised with the neutral
value or by a copy, and combined with updates of the program (*leaves*) and with other parts. Its contents are the last
initialisation before in the text, and the updates since: a sum over places of leaves, lanes, and loop iterations. They are
expressed at the place where a part is read. The textual order determines them: accesses to shared parts are in textual order
(`Sums.touched`), and a part is neither initialised nor read in a loop in which updates continue.

A *final* combines a part with an element of the program; a *store* keeps one for a later launch, where its elements are updates
of another sum. It is proved that their updates are those of the element.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.updates import EXACTLY_ONCE_FREE, combine, identity, taken
from texpr.ir.proof.tags import ELEMENTS, Joined, Statement, Step, Tag
from texpr.ir.value import Buffer, Load, Ref, Value, walk
from texpr.ir.value.structure import same, same_constant
from texpr.isa.levels import Space
from texpr.presburger.formula import Eq, Formula, between, conj, differ, disj, equal, negate, rename, syms
from texpr.presburger.questions import witness
from texpr.presburger.solve.relaxed import eliminated, flat
from texpr.proof.common.asked import Asked
from texpr.proof.plan.flow import Access, Flow, Home
from texpr.proof.plan.match import Match, claim, home_of, subscripts
from texpr.proof.read.actions import Action, indices
from texpr.proof.read.events import Event, Site, plainly
from texpr.proof.read.order import sides_of
from texpr.support.record import Mutable, Record, field, replace

Doubt: TypeAlias = tuple[Event, str, tuple[Formula, ...]]
"""The event of a claim, and facts that must never hold together."""

How: TypeAlias = tuple[ir.Update, int, int]
"""The update of a place, its position in a tuple, and the length of that: the first decides, then the next."""

PLACES = tuple(Sym(f"place {at}") for at in range(8))
"""The subscripts of a place of a part."""


class Wrong(Exception):
    """An event is no valid sum; the message has the reason."""


class Join(Record, eq=False):
    """An update of a target with another place, read at a site, under tests of data. `beside`: the other updates of a tuple."""

    how: How
    origin: tuple[Value, Site]
    tests: tuple[object, ...]
    beside: tuple[Event, ...]


class Share(Record):
    """Updates by the events `pile` (leaves) of the thread number `thread`, or of the `lanes` whose numbers differ from it by an
    xor.

    There is an update for each point over `own` with `facts`. The facts are over the coordinates of the reader, of the leaf
    (`s◁` for `s`), and over `ELEMENTS`, the place that the leaf updates.
    """

    pile: tuple[Event, ...]
    thread: Expr
    lanes: frozenset[int]
    facts: tuple[Formula, ...]
    own: tuple[Sym, ...] = ()

    def moved(self, values: Mapping[Sym, Sym | Expr], own: Iterable[Sym] = (), facts: Iterable[Formula] = ()) -> Share:
        """The same over other coordinates, with an update for each point over `own` with `facts`."""
        facts = (*(rename(f, values) for f in self.facts), *facts)
        return replace(self, thread=self.thread.substitute(values), facts=facts, own=(*self.own, *own))

    def near(self, number: Expr) -> Formula:
        """The condition that `number` is one of its threads. Raises Wrong."""
        every = max(self.lanes)
        low = every & -every or 1
        if len(self.lanes) != 1 << every.bit_count() or (every + low) & every or 0 not in self.lanes:
            raise Wrong("a sum over some lanes only")
        return equal(*((x // (every + low), x % low) for x in (number, self.thread)))


Holding: TypeAlias = tuple[tuple[Formula, ...], tuple[Share, ...]]
"""The contents of a part, over `PLACES` and the common coordinates; and the conditions for them."""


class Sums(Mutable):
    """The parts of a plan by their tags, and their contents.

    `made`: finals as all iterations of the loops that they sum over. `spare`: for leaves that all threads execute redundantly,
    the conditions of the threads whose sums are used.
    """

    flow: Flow
    tags: dict[Event, Statement | Step | Joined] = field(default_factory=dict["Event", "Statement | Step | Joined"])
    parts: set[Home] = field(default_factory=set[Home])
    joins: dict[Event, Join] = field(default_factory=dict[Event, Join])
    leaves: dict[Event, Sequence[Match]] = field(default_factory=dict[Event, Sequence[Match]])
    writes: dict[Home, list[Event]] = field(default_factory=lambda: defaultdict(list[Event]))
    found: dict[object, Holding] = field(default_factory=dict["object", "Holding"])
    doubts: list[Doubt] = field(default_factory=list["Doubt"])
    made: list[Match] = field(default_factory=list[Match])
    spare: dict[Event, tuple[Formula, ...]] = field(default_factory=dict[Event, "tuple[Formula, ...]"])

    def take(self, tagged: Mapping[Event, Tag | None], matches: Mapping[Event, Match]) -> None:
        """Reads the tags of parts. Raises Wrong if they are inconsistent."""
        self.tags |= {e: t for e, t in tagged.items() if isinstance(t, Step | Joined)}
        self.parts |= {home_of(e.target) for e, t in self.tags.items() if not (isinstance(t, Joined) and t.of)}
        self.leaves |= {event: (match,) for event, match in matches.items() if home_of(event.target) in self.parts}
        self.tags |= {e: t for e, t in tagged.items() if isinstance(t, Statement) and e in self.leaves}
        for event, tag in self.tags.items():
            if isinstance(tag, Joined) and event not in self.joins:
                self.joins |= self.join(event, tag.update)
        known = {*(a.stored for a in self.flow.program.actions), *self.flow.program.function.params}
        for event in (e for e in tagged if home_of(e.target) in self.parts):
            self.writes[home_of(event.target)].append(event)
            if event not in self.tags or event.kind == "async" or home_of(event.target) in known:
                raise Wrong(f"{home_of(event.target).name} is part of a sum, and something else is stored there")
        updated = {(arm(e), e.target, m.action.stored) for e, (m, *_) in self.leaves.items()}
        for match, o in ((m, o) for m in matches.values() for o in m.operands if home_of(o.read) in self.parts):
            now = o.site.time == match.event.site.time[: len(o.site.time)]
            if not now or (arm(match.event), o.read, home_of(o.meant)) not in updated:  # the own element, or those of a tuple
                raise Wrong(f"{home_of(match.event.target).name} is computed from a part of a sum")

    def origin(self, event: Event) -> tuple[Value, Site]:
        """The operand that an event copies or combines, and the site of its read."""
        return self.joins[event].origin if event in self.joins else self.read(event.value, event.site)

    def read(self, value: Value, site: Site) -> tuple[Value, Site]:
        """A value at a site, with registers that are never reassigned substituted."""
        variable = self.flow.reading.variables.get(value.sym) if isinstance(value, Ref) else None
        return self.read(variable.value, variable.site) if variable and variable.value is not None else (value, site)

    def join(self, event: Event, update: ir.Update) -> Mapping[Event, Join]:
        """`event` as an update of its target with another place by `update`, with the other updates of a tuple. Raises
        Wrong."""
        for place in dict.fromkeys(each for each in walk(event.value) if isinstance(each, Load | Ref)):
            if place != event.target and same(event.value, combine(update, (event.target,), (place,))[0]):
                return {event: Join((update, 0, 1), self.read(place, event.site), event.site.tests, (event,))}
        if event.site.tests and isinstance(update, str) and update in ("max", "min"):
            beside = tuple(e for e in self.flow.reading.events if e.site.tests == event.site.tests and arm(e) == arm(event))
            *others, (test, _) = event.site.tests  # the last test selects the tuple
            if len(beside) > 1 and same(taken(update, [e.target for e in beside], [e.value for e in beside]), test):
                tests = tuple(others)
                origins = [self.read(e.value, replace(e.site, tests=tests)) for e in beside]
                return {e: Join((update, n, len(beside)), origins[n], tests, beside) for n, e in enumerate(beside)}
        raise Wrong(f"{home_of(event.target).name} is not joined with another by what the program updates with")

    def kind(self, shares: Iterable[Share]) -> tuple[How, Value]:
        """The update of some shares, and its neutral value. Raises Wrong."""
        kinds = list[tuple[How, Value]]()
        for action in dict.fromkeys(m.action for share in shares for leaf in share.pile for m in self.leaves[leaf]):
            stmt, update = action.stmt, "add" if action.update == "sub" else action.update
            if update is None or not isinstance(stmt, ir.Bind):
                raise Wrong(f"{action.stored.name} is given a value, not updated")
            at, dtypes = stmt.targets.index(action.target), [t.dtype for t in stmt.targets]
            kinds.append(((update, at, len(dtypes)), identity(update, dtypes)[at]))
        if any(kind != kinds[0] for kind in kinds) or not kinds:
            raise Wrong("one part is updated in several ways, or not at all")
        return kinds[0]

    def held(self, place: Value, site: Site) -> tuple[Share, ...]:
        """The contents of a place at its read, over the coordinates there. Raises Wrong."""
        if not isinstance(place, Load | Ref) or home_of(place) not in self.parts:
            raise Wrong("what is joined is no part of a sum")
        home = home_of(place)
        writes = [e for e in self.writes[home] if e.site.launch is site.launch or self.flow.space(home) is Space.GLOBAL]
        before = [e for e in writes if precedes(e.site, site)]
        start = next((e for e in reversed(before) if e not in self.joins and e not in self.leaves), None)
        if start is None or any(e.site.launch.host != site.launch.host for e in writes):
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
        """The contents of a part after its initialisation by `start` and the updates `steps`, in the same iterations of the
        loops `around`. Raises Wrong."""
        launch, home, (value, there) = start.site.launch, home_of(start.target), self.origin(start)
        same = {*self.flow.instance(home, start.site), *launch.host, *(loop.sym for loop in around)}
        goals, at = self.begun(start, start.target, same)
        copied, pile = isinstance(value, Load | Ref), tuple(e for e in steps if e in self.leaves)
        found = [exchanged(start, share).moved(at) for share in (self.held(value, there) if copied else ())]
        if pile:
            mine = {s: Sym(f"{s.name}◁") for s in start.site.dims}
            who = launch.thread if same.issuperset(launch.threads) else launch.thread.substitute(mine)
            here = [Eq(expr(mine[s]) - s) for s in mine if s in same and s not in launch.threads]
            here += [Eq(expr(x) - y) for x, y, _ in zip(ELEMENTS, PLACES, subscripts(start.target), strict=False)]
            found.append(Share(pile, who, frozenset({0}), tuple(here)))
        for event in (e for e in steps if e not in pile):
            found += self.joined(event, start, same)
        how, zero = self.kind(found)
        if any(self.joins[e].how != how for e in steps if e in self.joins) or not (copied or same_constant(value, zero)):
            raise Wrong(f"{home.name} starts at what changes something, or is joined in another way than what it takes")
        lanes = defaultdict[Share, frozenset[int]](frozenset)
        for share in found:
            key = replace(share, lanes=frozenset[int]())
            if lanes[key] & share.lanes and how[0] not in EXACTLY_ONCE_FREE:
                raise Wrong(f"something is joined into {home.name} twice")
            lanes[key] |= share.lanes
        return goals, tuple([replace(share, lanes=own) for share, own in lanes.items()])

    def begun(self, event: Event, place: Value, same: Collection[Sym]) -> tuple[tuple[Formula, ...], Mapping[Sym, Expr]]:
        """The condition that `event` accesses `PLACES` of a part, and at which coordinates, beside `same`, by the inverse of
        its tag."""
        dims, own = event.site.dims, subscripts(place)
        said, rest = dict(zip(dims, self.tags[event].inverse, strict=False)), [s for s in dims if s not in same]
        values = [dict(zip(ELEMENTS, index, strict=False)) for index in (map(expr, PLACES), own)]
        at, back = ({s: plainly(said.get(s, expr(0)).substitute(v), event.site) for s in rest} for v in values)
        if any(back[s] is not expr(s) for s in rest):
            what = "a part is taken once" if event in self.joins else "a place starts once"
            self.doubts.append((event, what, (*event.site.where, differ(back.values(), rest))))
        placed = (Eq(e.substitute(at) - p) for e, p in zip(own, PLACES, strict=False))
        return tuple([f for f in (*(rename(f, at) for f in event.site.where), *placed) if f != Eq(expr(0))]), at

    def joined(self, event: Event, start: Event, same: Collection[Sym]) -> Iterator[Share]:
        """The updates of a place by `event`, over all of its coordinates except `same`. Raises Wrong."""
        turn = self.flow.reading.events.index(self.joins[event].beside[0])  # equal for the elements of a tuple
        own = {s: Sym(f"{s.name}◦{turn}") for s in event.site.dims if s not in same}
        facts = [f for g in event.site.where if (f := rename(g, own)) not in start.site.where]
        facts += [Eq(x.substitute(own) - y) for x, y in zip(subscripts(event.target), PLACES, strict=False)]
        yield from (share.moved(own, own.values(), facts) for share in self.held(*self.origin(event)))

    def shape(self, event: Event) -> tuple[Share, ...]:
        """The updates by an event, without the position in a tuple. Raises Wrong."""
        return tuple([replace(share, pile=tuple(map(arm, share.pile))) for share in self.held(*self.origin(event))])

    def questions(self, tagged: Mapping[Event, Tag | None]) -> Iterator[Asked]:
        """The obligations. Raises Wrong."""
        ways = dict[Event, list[tuple[Share, Formula]]]()
        stores = [self.keep(home) for home in self.writes if isinstance(home, Buffer) and self.flow.space(home) is Space.GLOBAL]
        tuples = dict.fromkeys(join.beside for join in self.joins.values() if len(join.beside) > 1)
        if any(len({*map(self.shape, beside)}) > 1 for beside in tuples):
            raise Wrong("the elements of a tuple are not joined together")
        for event in (*stores, *(e for e in self.joins if home_of(e.target) not in self.parts)):
            shares = self.held(*self.origin(event))
            ways[event] = [(share, self.way(share, event)) for share in shares]
            actions = dict.fromkeys(m.action for share in shares for leaf in share.pile for m in self.leaves[leaf])
            self.made += [self.final(event, tagged[event], action, shares) for action in actions if event not in stores]
        for leaf, matches in self.leaves.items():
            into = [e for e, found in ways.items() if any(leaf in share.pile for share, _ in found)]
            if not into or (into[0] in stores and len(into) > 1):
                raise Wrong(f"what {home_of(leaf.target).name} takes is lost")
            self.spare[leaf] = self.taking(leaf, ways)
            finals = dict.fromkeys(f.event for f in self.made if any(f.action is m.action for m in matches))
            for event in into if into[0] in stores else finals:
                self.doubts += self.exactly(leaf, event, [way for share, way in ways[event] if leaf in share.pile])
        for event, what, facts in dict.fromkeys(self.doubts):
            yield claim(event, what, "for all sizes"), witness, (facts, self.flow.premises)

    def taking(self, leaf: Event, ways: Mapping[Event, Sequence[tuple[Share, Formula]]]) -> tuple[Formula, ...]:
        """The condition that the sum of a thread is used, for a `leaf` in registers: what other threads execute, redundantly,
        is no instance (`narrowed`)."""
        launch, threads = leaf.site.launch, {*leaf.site.launch.threads}
        taken = [(e, share) for e, found in ways.items() for share, _ in found if leaf in share.pile]
        lane = frozenset({0})
        own = all(e.site.launch is launch and s.thread is launch.thread and s.lanes == lane and not s.own for e, s in taken)
        counted = isinstance(self.tags[leaf], Statement)
        if not own or not counted or self.flow.space(home_of(leaf.target)) is not Space.LOCAL:
            return ()
        asked = [{f for f in flat(e.site.where) if syms(f) and syms(f) <= threads} for e, _ in taken]
        return tuple(f for f in dict.fromkeys(flat(taken[0][0].site.where)) if all(f in each for each in asked))

    def narrowed(self) -> Iterator[tuple[Event, Match]]:
        """The leaves of threads whose sums are used; other sums are never read. Events that use parts execute no statement."""
        for leaf, facts in self.spare.items():
            for match in self.leaves[leaf] if facts and isinstance(self.tags[leaf], Statement) else ():
                site = match.event.site
                yield leaf, replace(match, event=replace(match.event, site=replace(site, domain=(*site.domain, *facts))))

    def way(self, share: Share, event: Event) -> Formula:
        """The condition that the place that a leaf updates is in a share of `event`. Raises Wrong."""
        sides = sides_of(event.site, event.site)
        there = share.moved(sides.right)
        facts = list(flat((*there.facts, there.near(sides.a(event.site.launch.thread)))))
        found = conj(eliminated(facts, {*share.own}.__contains__)[0])
        if syms(found) & {*share.own}:
            raise Wrong("which turn takes an update is not known")
        return found

    def final(self, event: Event, tag: Tag | None, action: Action, shares: Sequence[Share]) -> Match:
        """`event` as all iterations of those loops of `action` whose order is free, by its tag. Raises Wrong."""
        said = [s for s in tag.of if self.flow.program.actions[s.action] is action] if isinstance(tag, Joined) else []
        found = (fixed(action, depth) for depth in range(len(action.spot.loops) + 1))
        outer = next((each for each in found if said and len(each) == len(said[0].indices)), ())  # of each length there is one
        home, alike = home_of(event.target), self.joins[event].how == self.kind(shares)[0]
        fits = not isinstance(home, Buffer) or home.role == "local" or home == action.stored
        if not (alike and fits and said) or len(said[0].indices) != len(outer) or not is_sum(action):
            raise Wrong(f"what is joined is not what is summed into `{action.stored.name}`")
        return Match(event, action, dict(zip(outer, said[0].indices, strict=True)), (), said[0].inverse)

    def exactly(self, leaf: Event, event: Event, each: Sequence[Formula]) -> Iterator[Doubt]:
        """A final, or a store, includes each update of its element by `leaf` once, and nothing else, for `each` of its ways.

        The claim is about any place of the array that the leaf updates, so that equal leaves have equal claims. Raises Wrong.
        """
        sides, host = sides_of(leaf.site, event.site), [expr(s) for s in event.site.launch.host]
        made = {f.action: f.indices for f in self.made if f.event is event}
        asked = [(m.indices.get(s), e) for m in self.leaves[leaf] for s, e in made.get(m.action, {}).items()]
        pairs = [(x, y) for x, y in asked if x is not None]
        if len(pairs) < len(asked):
            raise Wrong("parts of different elements are mixed")
        same = (*host, *(() if event in self.joins else subscripts(event.target)))
        alike = conj(Eq(sides.a(x) - sides.b(y)) for x, y in (*zip(same, same, strict=True), *pairs))
        ways, here = disj(each), tuple(rename(f, sides.b) for f in event.site.where)
        rest = {s for s in leaf.site.dims if not sides.a(s).syms() <= syms(ways) | syms(alike)}
        shape = leaf.target.buffer.shape if isinstance(leaf.target, Load) else ()
        both = [rename(f, sides.a) for f in leaf.site.where if not syms(f) & rest]
        both += [between(0, s, n) for s, n in zip(ELEMENTS, shape, strict=False)]
        spare = [rename(f, sides.a) for f in self.spare[leaf]]
        if spare:
            yield event, "no update of a spare thread", (*both, *here, ways, negate(conj(spare)))
        yield event, "no update is lost", (*both, *spare, *here, alike, negate(ways))
        yield event, "no update of another element", (*both, *here, ways, negate(alike))
        for one, two in combinations(each, 2) if self.leaves[leaf][0].action.update not in EXACTLY_ONCE_FREE else ():
            yield event, "no update is taken twice", (*here, one, two)

    def keep(self, home: Buffer) -> Event:
        """The event that stores parts in an array for a later launch, each element of which is used once. Raises Wrong."""
        *_, store = self.writes[home]
        launch, place = store.site.launch, subscripts(store.target)
        sources = {e: self.origin(e)[0] for e in self.joins}
        takes = {e: source for e, source in sources.items() if isinstance(source, Load) and source.buffer == home}
        behind = dict.fromkeys(leaf for e in takes for share in self.held(*self.origin(e)) for leaf in share.pile)
        matches = [(leaf.site, m) for leaf in behind for m in self.leaves[leaf]]
        where, host = [{*leaf.site.where} for leaf in behind], tuple(map(expr, launch.host))
        for e, source in takes.items():  # the place of a part determines its element, or it is constant in the launch
            self.leaves[e] = found = list[Match]()
            for site, m in matches:
                said = dict(zip((*host, *(plainly(x, site) for x in place)), (*host, *source.index), strict=True))
                known = ((s, said.get(plainly(x, site))) for s, x in m.indices.items())
                found.append(replace(m, indices={s: x for s, x in known if x is not None}))
        there = [self.begun(e, source, launch.host)[0] for e, source in takes.items()]
        ways = disj(rename(conj(each), dict(zip(PLACES, place, strict=False))) for each in there)
        every = [f for f in store.site.where if all(f in facts for facts in where)]
        self.doubts.append((store, "every update is in a part", (*every, negate(ways))))
        self.doubts += [(store, "no part is taken twice", (*one, *two)) for one, two in combinations(there, 2)]
        return store

    def touched(self) -> Iterator[tuple[object, Access]]:
        """The accesses to parts in arrays, which have to be in textual order between threads; with the memory.

        Accesses of one thread are in order, except for the lanes of a vector: each of these loops counts as another memory.
        """
        for event in dict.fromkeys((*chain(*self.writes.values()), *self.joins)):
            for place, site, write in ((*self.origin(event), False), (event.target, event.site, True)):
                if isinstance(place, Load) and place.buffer in self.parts:
                    launch, lanes = site.launch, [loop for loop in site.loops if loop.kind == "simd"] or [site]
                    steps = (*launch.time, *site.time, *launch.blocks, *launch.threads, int(write))  # others are simultaneous
                    syms = (s if isinstance(s, int | Sym) else s.sym for s in steps)
                    when = tuple(s if isinstance(s, int) else (ir.Seq(s, expr(0), ()), expr(s)) for s in syms)
                    access = Access(event, site, place.buffer, place.index, write, when, place.buffer, (), ())
                    yield (place.buffer, lanes[0]) if self.flow.space(place.buffer) is Space.LOCAL else place.buffer, access


def is_sum(action: Action) -> bool:
    """Whether a loop around an update has a free order."""
    return any(action.stored in loop.reduce for loop in action.spot.loops)


def fixed(action: Action, least: int = 0) -> tuple[Sym, ...]:
    """The indices that one sum of updates by `action` has: of the loops outside of those with a free order, or of the `least`
    outermost ones, and all others that occur in the subscripts of the element, free or not."""
    depth = max(least, next((at for at, loop in enumerate(action.spot.loops) if action.stored in loop.reduce), 0))
    named = {sym for e in subscripts(action.target) for sym in e.syms()}
    return (*indices(action.spot)[:depth], *(s for s in indices(action.spot)[depth:] if s in named))


def arm(event: Event) -> tuple[object, ...]:
    """The list of statements that contains an event."""
    return event.site.launch, event.site.time[:-1]


def common(a: Site, b: Site) -> list[k.For]:
    """The loops around both."""
    return [x for x, y in zip(a.loops, b.loops, strict=False) if x is y and a.launch is b.launch]


def precedes(a: Site, b: Site) -> bool:
    """Whether one precedes the other in the text."""
    times = zip((*a.launch.time, *a.time), (*b.launch.time, *b.time), strict=False)
    return next((isinstance(x, int) and isinstance(y, int) and x < y for x, y in times if x != y), False)


def exchanged(event: Event, share: Share) -> Share:
    """The contents of a register after `event`, if it is an exchange, where each lane has `share`. Raises Wrong."""
    stmt, launch = event.stmt, event.site.launch
    if not isinstance(stmt, k.Exchange):
        return share
    warp = launch.kernel.warp
    if stmt.width != warp or not 0 < stmt.mask < warp or launch.kernel.threads % (1 << stmt.mask.bit_length()):
        raise Wrong(f"lanes are exchanged by {stmt.mask} of {stmt.width}")
    own, masks = share.thread is launch.thread, stmt.masks
    lanes = frozenset(lane ^ mask for lane in share.lanes for mask in masks) if own else share.lanes
    known = {s for f in share.facts for s in syms(f)}.union(() if own else share.thread.syms())
    if known & {*launch.threads} or len(lanes) != len(share.lanes) * len(masks):
        raise Wrong("what another lane holds is not known, or is joined twice")
    return replace(share, lanes=lanes)
