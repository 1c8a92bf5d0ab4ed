"""That what threads sum in parts is the sum that the program means: all of it, once, in the right element."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.value import Buffer, Load
from texpr.isa.levels import Space
from texpr.presburger.formula import TRUE, Eq, Formula, between, conj, differ, disj, negate, rename
from texpr.presburger.questions import Point, witness
from texpr.presburger.sets import Set
from texpr.reading.actions import Action
from texpr.reading.events import Event, Site
from texpr.verifier.flow import Flow, Home
from texpr.verifier.match import Match, absent, home_of
from texpr.verifier.order import Sides, domains, equal_all, sides_of, textual, unordered
from texpr.verifier.reductions import Follower, Held, Join, Reductions, Unit, Wrong, outer_loops
from texpr.verifier.tags import ELEMENTS

Question: TypeAlias = "tuple[Event, str, Callable[..., Point | None], tuple[object, ...]]"
"""What must not happen at any point: of which event, in a word, and how to ask."""


@dataclass(slots=True)
class Totals:
    """What is joined in the end. `matches`: each as all turns of the loops that it sums up."""

    reductions: Reductions
    flow: Flow
    matches: list[Match] = field(default_factory=list[Match])
    followed: list[Follower] = field(default_factory=list[Follower])

    def follow(self) -> None:
        """Follows the parts of every launch. Raises Wrong."""
        for launch in self.flow.reading.launches:
            for events in self.reductions.groups(launch):
                follower = Follower(self.reductions, launch, events)
                follower.run()
                self.followed.append(follower)

    def questions(self) -> Iterator[Question]:
        """What remains to be proved. Raises Wrong."""
        for join in self.reductions.joins.values():
            wanted = self._updates(home_of(join.source))
            if wanted and wanted != {join.update}:
                raise Wrong(f"{home_of(join.source).name} is joined in another way than it was made")
        for follower in self.followed:
            yield from self._apart(follower)
            for event, masks in follower.final.items():
                held = follower.holding(masks)
                self._group(follower, held)
                join = self.reductions.joins.get(event)
                if join is None:
                    yield from self._stored(follower, event, held)
                else:
                    yield from self._final(follower, event, join, held)

    def _updates(self, home: Home) -> set[ir.Update]:
        found: set[ir.Update] = {j.update for e, j in self.reductions.joins.items() if home_of(e.target) == home}
        for event, match in self.reductions.leaves.items():
            update = match.action.update
            if home_of(event.target) == home and update is not None:
                found.add("add" if update == "sub" else update)
        return found

    def _apart(self, follower: Follower) -> Iterator[Question]:
        """Parts that threads share are written before they are read, and read before they are written again."""
        touched: list[tuple[Event, Load, bool]] = []
        for event in follower.events:
            source = self.reductions.source(event)
            for place, write in ((event.target, True), (source, False)):
                if isinstance(place, Load) and place.buffer in self.reductions.parts:
                    touched.append((event, place, write))
        for a, x, first in touched:
            inside = conj(between(0, e, n) for e, n in zip(x.index, x.buffer.shape, strict=True))
            yield a, f"{x.buffer.name} in bounds", witness, ((*a.site.where, negate(inside)), self.flow.premises)
            for b, y, second in touched:
                if x.buffer is y.buffer and (first or second):
                    yield a, f"{x.buffer.name} in turn", self._race, (a, b, x, y)

    def _race(self, a: Event, b: Event, x: Load, y: Load) -> Point | None:
        space, loops = self.flow.space(x.buffer), b.site.loops
        if space is Space.LOCAL and not any(loop.kind == "simd" for loop in a.site.loops if loop in loops):
            return None  # one thread runs what it runs in textual order
        where = self.flow.instance(x.buffer, a.site)
        sides = sides_of(a.site, b.site, where if a.site.launch is b.site.launch else ())
        place = [*equal_all(where, sides), *(Eq(sides.a(i) - sides.b(j)) for i, j in zip(x.index, y.index, strict=True))]
        bad = unordered(a.site, b.site, sides, shared_only=space is Space.SHARED, private=space is Space.LOCAL, later=True)
        wanted = textual(a.site, b.site, sides)
        if a is b and a.site.launch.threads:  # two threads that write at once
            here = equal_all([s for s in a.site.dims if s not in a.site.launch.threads], sides)
            wanted.append(conj((*here, differ(map(sides.a, a.site.launch.threads), map(sides.b, a.site.launch.threads)))))
        return witness((*domains(a.site, b.site, sides), *place, disj(wanted), disj(bad)), self.flow.premises)

    def _together(self, a: Site, b: Site, follower: Follower, sides: Sides) -> list[Formula]:
        """That two instances are in one activation of the steps of `follower`."""
        syms = (*a.launch.host, *a.launch.blocks, *(loop.sym for loop in follower.loops))
        return equal_all(syms, sides)

    def _group(self, follower: Follower, held: Mapping[int, Held]) -> int:
        """How many neighbouring threads' units each thread of `held` has; 0 for those of all. Raises Wrong."""
        homes = {unit[0] for units in held.values() for unit in units}
        every = frozenset(p for p in follower.state if p[0] in homes)
        if not every or not all(held.values()):
            raise Wrong("nothing is joined")
        if all(units == every for units in held.values()):
            return 0
        group = next(iter(held.values()))
        width = len({unit[1] for unit in group})
        for number, units in held.items():
            lost = frozenset(u for u in every if u[1] // width == number // width) - units
            if lost or len({u[1] for u in units}) != width:
                raise Wrong(f"thread {number} has not what thread {self._first(lost or every - units)} has")
        return width

    def _first(self, units: Iterable[Unit]) -> int:
        return min((unit[1] for unit in units), default=0)

    def _among(self, follower: Follower, held: Mapping[int, Held], sides: Sides) -> Formula:
        """That the unit of the first instance is among those that the second has."""
        width = self._group(follower, held)
        number = follower.launch.thread
        return TRUE if width == 0 else Eq(sides.a(number) // width - sides.b(number) // width)

    def _leaves(self, follower: Follower, held: Mapping[int, Held]) -> list[Event]:
        homes = {unit[0] for units in held.values() for unit in units}
        return [e for e in follower.events if home_of(e.target) in homes and follower.is_leaf(e)]

    def _final(self, follower: Follower, event: Event, join: Join, held: Mapping[int, Held]) -> Iterator[Question]:
        """A join into memory of the program."""
        leaves = self._leaves(follower, held)
        taking = [leaf for leaf in leaves if leaf in follower.symbolic]
        if taking:
            yield from self._final_of_stored(follower, event, join, held, taking)
        for leaf in leaves:
            if leaf in follower.symbolic:
                continue
            match = self.reductions.leaves[leaf]
            outer = tuple(loop.sym for loop in outer_loops(match.action))
            theirs = self._summed(event, match.action, outer, join)
            sides = sides_of(leaf.site, event.site)
            one = [sides.a(match.indices[s]) for s in outer]
            two = [sides.b(theirs.indices[s]) for s in outer]
            here = conj((*self._together(leaf.site, event.site, follower, sides), self._among(follower, held, sides)))
            both = tuple(domains(leaf.site, event.site, sides))
            lost = (*both, *(Eq(x - y) for x, y in zip(one, two, strict=True)), negate(here))
            yield event, "no update is lost", witness, (lost, self.flow.premises)
            if outer:
                yield event, "no update of another element", witness, ((*both, here, differ(one, two)), self.flow.premises)

    def _summed(self, event: Event, action: Action, outer: Sequence[Sym], join: Join) -> Match:
        """`event` as all turns of the loops of `action` whose order is free. Raises Wrong."""
        match = next((found for found in self.reductions.of[event] if found.action is action), None)
        update = "add" if action.update == "sub" else action.update
        known = match is not None and set(match.indices) == set(outer)
        if match is None or not known or update != join.update or action.stored != self._meant(event, action):
            raise Wrong(f"what is joined is not what is summed into `{action.stored.name}`")
        if match not in self.matches:
            self.matches.append(match)
        return match

    def _meant(self, event: Event, action: Action) -> Buffer | Sym:
        """The program's memory that a target is, where that can be seen: global memory is itself."""
        home = home_of(event.target)
        return (
            home
            if isinstance(home, Buffer) and home not in self.flow.reading.spaces and home.role != "local"
            else action.stored
        )

    def _stored(self, follower: Follower, event: Event, held: Mapping[int, Held]) -> Iterator[Question]:
        """A part that is kept for a later launch: each unit is in one element, each element written once."""
        target = event.target
        assert isinstance(target, Load)
        premises = self.flow.premises
        sides = sides_of(event.site, event.site)
        same = equal_all(event.site.launch.host, sides)
        both = tuple(domains(event.site, event.site, sides))
        apart = differ(map(sides.a, event.site.dims), map(sides.b, event.site.dims))
        element = [Eq(sides.a(e) - sides.b(e)) for e in target.index]
        yield event, "one part in an element", witness, ((*both, *same, *element, apart), premises)
        together = (*self._together(event.site, event.site, follower, sides), self._among(follower, held, sides))
        yield event, "a part in one element", witness, ((*both, *together, apart), premises)
        for leaf in self._leaves(follower, held):
            sides = sides_of(leaf.site, event.site)
            here = (*self._together(leaf.site, event.site, follower, sides), self._among(follower, held, sides))
            facts = [*domains(leaf.site, event.site, sides), *here]
            yield event, "every update is in a part", self._beyond, (leaf.site, event.site, facts)

    def _beyond(self, site: Site, other: Site, facts: Iterable[Formula]) -> Point | None:
        """An instance of `site` for which no instance of `other` satisfies `facts`, over the names of `sides_of`."""
        mine, theirs = ({s: Sym(f"{s.name}{side}") for s in at.dims} for at, side in ((site, "◁"), (other, "▷")))
        dims = tuple(mine.values())
        every = self.flow.points(dims, [rename(f, mine) for f in site.where], ())
        return every.subtract(self.flow.points(dims, facts, tuple(theirs.values()))).sample()

    def _final_of_stored(
        self, follower: Follower, event: Event, join: Join, held: Mapping[int, Held], taking: Sequence[Event]
    ) -> Iterator[Question]:
        """A join of parts that an earlier launch stored: each element is taken once, and all of the updates are in them."""
        premises = self.flow.premises
        places: list[tuple[Event, Load]] = []
        for each in taking:
            source = self.reductions.joins[each].source
            assert isinstance(source, Load)
            places.append((each, source))
            sides = sides_of(each.site, event.site)
            here = conj((*self._together(each.site, event.site, follower, sides), self._among(follower, held, sides)))
            same = equal_all(event.site.launch.host, sides)
            yield event, "no part is lost", witness, ((*domains(each.site, event.site, sides), *same, negate(here)), premises)
        for at, (one, first) in enumerate(places):
            for two, second in places[at:]:
                sides = sides_of(one.site, two.site)
                facts = [*domains(one.site, two.site, sides), *equal_all(event.site.launch.host, sides)]
                facts += [Eq(sides.a(x) - sides.b(y)) for x, y in zip(first.index, second.index, strict=True)]
                if one is two:
                    facts.append(differ(map(sides.a, one.site.dims), map(sides.b, one.site.dims)))
                if first.buffer == second.buffer:
                    yield one, "no part is taken twice", witness, (tuple(facts), premises)
        for buffer in dict.fromkeys(place.buffer for _, place in places):
            taken = [(each, place) for each, place in places if place.buffer == buffer]
            yield event, "every part is taken", self._untaken, (buffer, taken)
            for action, indices in self._behind(buffer):
                outer = tuple(loop.sym for loop in outer_loops(action))
                theirs = self._summed(event, action, outer, join)
                host = {*event.site.launch.host}
                if any(theirs.indices[s] is not indices[s] or not indices[s].syms() <= host for s in outer):
                    raise Wrong("parts of different elements are mixed")

    def _behind(self, buffer: Buffer) -> Iterator[tuple[Action, Mapping[Sym, Expr]]]:
        """The actions whose updates are in the parts kept in `buffer`, with their indices."""
        for follower in self.followed:
            for event, masks in follower.final.items():
                if home_of(event.target) is buffer:
                    for leaf in self._leaves(follower, follower.holding(masks)):
                        if leaf in follower.symbolic:
                            raise Wrong("parts of parts are stored")
                        match = self.reductions.leaves[leaf]
                        yield match.action, match.indices

    def _untaken(self, buffer: Buffer, taken: Sequence[tuple[Event, Load]]) -> Point | None:
        """An element that is written and not taken, or taken and not written."""
        written = [
            (event, event.target)
            for earlier in self.followed
            for event in earlier.final
            if home_of(event.target) is buffer and isinstance(event.target, Load)
        ]
        if all(self._without(some, others) is None for some, others in ((written, taken), (taken, written))):
            return None
        names = ELEMENTS[: buffer.rank]
        dims = (*taken[0][0].site.launch.host, *names)
        one, two = Set.empty(dims), Set.empty(dims)
        for event, place in taken:
            one = one.union(self._elements(event.site, place, names, dims))
        for event, place in written:
            two = two.union(self._elements(event.site, place, names, dims))
        left = two.subtract(one).sample()
        return one.subtract(two).sample() if left is None else left

    def _without(self, some: Sequence[tuple[Event, Load]], others: Sequence[tuple[Event, Load]]) -> Point | None:
        """An element of `some` that is perhaps none of `others`, by the coordinates that are said of those."""
        for event, place in some:
            names = {s: Sym(f"{s.name}◁") for s in event.site.dims}
            values = dict(zip(ELEMENTS, (e.substitute(names) for e in place.index), strict=False))
            missed = [
                formula for other, there in others if (formula := self._absent(other, there, event, names, values)) is not None
            ]
            found = witness((*(rename(f, names) for f in event.site.where), *missed), self.flow.premises)
            if found is not None:
                return found
        return None

    def _absent(
        self, other: Event, there: Load, event: Event, names: Mapping[Sym, Sym], values: Mapping[Sym, Expr]
    ) -> Formula | None:
        pairs = [*zip(there.index, values.values(), strict=True)]
        pairs += [(expr(s), expr(names[s])) for s in event.site.launch.host if s in other.site.launch.host]
        return absent(other.site, self.reductions.inverses[other], values, pairs)

    def _elements(self, site: Site, place: Load, names: Sequence[Sym], dims: Sequence[Sym]) -> Set:
        facts = [*site.where, *(Eq(expr(n) - e) for n, e in zip(names, place.index, strict=True))]
        return self.flow.points(dims, facts, [s for s in site.dims if s not in dims])
