"""That what threads sum in parts is the sum that the program means: each update once, in the right element, for all sizes.

A *final* joins a part into an element of the program; a *store* keeps one for a later launch, to which its elements are updates
of a sum of their own. What a part holds is written out (`shares`): that its updates are those of the element is asked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from texpr.affine.expr import Sym, expr
from texpr.ir import program as ir
from texpr.ir.tags import ELEMENTS, Joined, Tag
from texpr.ir.updates import EXACTLY_ONCE_FREE
from texpr.ir.value import Buffer, Load
from texpr.isa.levels import Space
from texpr.presburger.formula import Eq, Formula, between, conj, disj, negate, rename, syms
from texpr.presburger.questions import witness
from texpr.presburger.relaxed import eliminated, flat
from texpr.reading.actions import Action, Spot
from texpr.reading.events import Event
from texpr.reading.order import sides_of
from texpr.verifier.asked import Asked, Told
from texpr.verifier.flow import Access, Flow
from texpr.verifier.match import Match, home_of
from texpr.verifier.shares import Doubt, Share, Shares, Wrong, precedes, subscripts


@dataclass(slots=True)
class Sums:
    """What is made of parts. `made`: finals as all turns of the loops that they sum up. `kept`: what is stored, and taken."""

    shares: Shares
    flow: Flow
    made: list[Match] = field(default_factory=list[Match])
    kept: dict[Action, list[Match]] = field(default_factory=dict[Action, list[Match]])

    def questions(self, tagged: Mapping[Event, Tag | None]) -> Iterator[Asked]:
        """What is to be proved. Raises Wrong."""
        own, ways = self.shares, dict[Event, list[tuple[Share, Formula]]]()
        stores = [self.keep(home) for home in own.writes if isinstance(home, Buffer) and self.flow.space(home) is Space.GLOBAL]
        for join in own.joins.values():
            if len({own.shape(e) if e in own.joins else None for e in join.beside}) > 1:
                raise Wrong("the elements of a tuple are not joined together")
        for event in (*stores, *(e for e in own.joins if home_of(e.target) not in own.parts)):
            shares = own.held(*own.origin(event))
            ways[event] = [(share, self.way(share, event)) for share in shares]
            actions = dict.fromkeys(m.action for share in shares for leaf in share.pile for m in own.leaves[leaf])
            self.made += [self.final(event, tagged[event], action, shares) for action in actions if event not in stores]
            for one, two in combinations(shares, 2):
                if {*one.pile} & {*two.pile} and own.kind([one])[0] not in EXACTLY_ONCE_FREE:
                    other, lane = two.moved({s: Sym(f"{s.name}'") for s in two.own}), expr(Sym("lane◁"))
                    facts = (*event.site.where, *one.facts, *other.facts, one.near(lane), other.near(lane))
                    own.doubts.append((event, "no update is taken twice", facts))
        for leaf, matches in own.leaves.items():
            into = [e for e, found in ways.items() if any(leaf in share.pile for share, _ in found)]
            if not into or (into[0] in stores and len(into) > 1):
                raise Wrong(f"what {home_of(leaf.target).name} takes is lost")
            finals = dict.fromkeys(f.event for f in self.made if any(f.action is m.action for m in matches))
            for event in into if into[0] in stores else finals:
                own.doubts += self.taken(leaf, event, disj(way for share, way in ways[event] if leaf in share.pile))
        for event, what, facts in dict.fromkeys(own.doubts):
            yield Told.of(event, what, "for all sizes"), witness, (facts, self.flow.premises)

    def way(self, share: Share, event: Event) -> Formula:
        """When the place that a leaf updates is in a share of what `event` makes. Raises Wrong."""
        sides = sides_of(event.site, event.site)
        there = share.moved(sides.right)
        facts = list(flat((*there.facts, there.near(sides.a(event.site.launch.thread)))))
        found = conj(eliminated(facts, {*share.own}.__contains__)[0])
        if syms(found) & {*share.own}:
            raise Wrong("which turn takes an update is not known")
        return found

    def final(self, event: Event, tag: Tag | None, action: Action, shares: Sequence[Share]) -> Match:
        """`event` as all turns of the loops of `action` whose order is free, as `tag` says. Raises Wrong."""
        said = [s for s in tag.of if self.flow.program.actions[s.action] is action] if isinstance(tag, Joined) else []
        depth = next((n for n, loop in enumerate(action.spot.loops) if action.stored in loop.reduce), -1)
        home, alike = home_of(event.target), self.shares.joins[event].update == self.shares.kind(shares)[0]
        fits = not isinstance(home, Buffer) or home.role == "local" or home == action.stored
        if not (alike and fits and said) or len(said[0].indices) != depth:
            raise Wrong(f"what is joined is not what is summed into `{action.stored.name}`")
        outer = [loop.sym for loop in action.spot.loops[:depth]]
        return Match(event, action, dict(zip(outer, said[0].indices, strict=True)), (), said[0].inverse)

    def taken(self, leaf: Event, event: Event, ways: Formula) -> Iterator[Doubt]:
        """That a final, or a store, takes all that `leaf` updates its element by, and nothing else, in some of `ways`.

        That is asked of any place of the array that it updates, so that leaves which are alike ask the same. Raises Wrong.
        """
        sides, host = sides_of(leaf.site, event.site), [expr(s) for s in event.site.launch.host]
        made = {f.action: f.indices for f in self.made if f.event is event}
        pairs = [(m.indices[s], e) for m in self.shares.leaves[leaf] for s, e in made.get(m.action, {}).items()]
        if leaf in self.shares.joins and any(x is not y or not x.syms() <= {*event.site.launch.host} for x, y in pairs):
            raise Wrong("parts of different elements are mixed")
        same = (*host, *(() if event in self.shares.joins else subscripts(event.target)))
        alike = conj(Eq(sides.a(x) - sides.b(y)) for x, y in (*zip(same, same, strict=True), *pairs))
        rest = {s for s in leaf.site.dims if not sides.a(s).syms() <= syms(ways) | syms(alike)}
        shape = leaf.target.buffer.shape if isinstance(leaf.target, Load) else ()
        both = [rename(f, sides.a) for f in leaf.site.where if not syms(f) & rest]
        both += [between(0, s, n) for s, n in zip(ELEMENTS, shape, strict=False)]
        both += [rename(f, sides.b) for f in event.site.where]
        yield event, "no update is lost", (*both, alike, negate(ways))
        yield event, "no update of another element", (*both, ways, negate(alike))

    def keep(self, home: Buffer) -> Event:
        """What stores parts in an array for a later launch: a statement over its elements, as is taking them. Raises Wrong."""
        own, (store, *more) = self.shares, self.shares.writes[home]
        launch, place = store.site.launch, subscripts(store.target)
        takes = [e for e, join in own.joins.items() if isinstance(join.origin[0], Load) and join.origin[0].buffer == home]
        late = all(e.site.launch.host == launch.host and precedes(store.site, e.site) for e in takes)
        turns = any(e.syms() & {*store.site.dims} - {*launch.host, *launch.blocks} for e in place)
        if more or turns or not late or store.site.tests or any(own.joins[e].tests for e in takes):
            raise Wrong(f"{home.name} is not stored once, by each block its own, and then taken")
        inside = [between(0, e, n) for e, n in zip(place, home.shape, strict=True)]
        own.doubts.append((store, "every update is in a part", (*launch.domain, negate(conj(inside)))))
        behind = dict.fromkeys(leaf for share in own.held(*own.origin(store)) for leaf in share.pile)
        if {*behind} & {*own.joins}:
            raise Wrong("parts of parts are stored")
        own.leaves |= {e: [m for leaf in behind for m in own.leaves[leaf]] for e in takes}
        names, every = ELEMENTS[: home.rank], (*launch.host, *ELEMENTS[: home.rank])
        facts = [f for f in launch.domain if not syms(f) & {*launch.blocks, *launch.threads}]
        facts += [between(0, s, n) for s, n in zip(names, home.shape, strict=True)]
        spot = Spot((), tuple(ir.Seq(s, expr(0), ()) for s in every), tuple(facts))
        place = Load(home, tuple(map(expr, names)))
        for events in ([(store, store.target)], [(e, own.origin(e)[0]) for e in takes]):
            action = Action(spot, place, place, None, ir.Bind((place,), (place,)))
            found = ((e, dict(zip(every, (*map(expr, launch.host), *subscripts(at)), strict=True))) for e, at in events)
            self.kept[action] = [Match(e, action, indices, (), own.tags[e].inverse) for e, indices in found]
        return store

    def touched(self) -> Iterator[tuple[object, Access]]:
        """What touches parts in arrays, to be in textual order, by one thread behind another; and the memory that it is.

        A thread's own is so but for the lanes of a vector: each of these loops counts as another memory.
        """
        own = self.shares
        for event in dict.fromkeys((*(e for events in own.writes.values() for e in events), *own.joins)):
            for place, site, write in ((*own.origin(event), False), (event.target, event.site, True)):
                if isinstance(place, Load) and place.buffer in own.parts:
                    lanes = [loop for loop in site.loops if loop.kind == "simd"][:1]
                    memory, steps = (place.buffer, *(lanes or [site])), (*(loop.sym for loop in lanes),)
                    if self.flow.space(place.buffer) is not Space.LOCAL:
                        times = (s if isinstance(s, int) else s.sym for s in (*site.launch.time, *site.time))
                        same = self.flow.instance(place.buffer, site)  # the others are all at once
                        others = (s for s in (*site.launch.blocks, *site.launch.threads) if s not in same)
                        memory, steps = place.buffer, (*times, *others, int(write))
                    when = tuple(s if isinstance(s, int) else (ir.Seq(s, expr(0), ()), expr(s)) for s in steps)
                    yield memory, Access(event, site, place.buffer, place.index, write, when, place.buffer, (), ())
