"""That what threads sum in parts is the sum that the program means: each update once, in the right element, for all sizes.

A *final* joins a part into an element of the program; a *store* keeps one for a later launch, to which its elements are updates
of a sum of their own. What a part holds is written out (`shares`): that its updates are those of the element is asked here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from texpr.affine.expr import Sym, expr
from texpr.ir import program as ir
from texpr.ir.updates import EXACTLY_ONCE_FREE
from texpr.ir.value import Buffer, Load
from texpr.isa.levels import Space
from texpr.presburger.formula import Eq, Formula, between, conj, disj, negate, rename, syms
from texpr.presburger.questions import witness
from texpr.presburger.relaxed import eliminated, flat
from texpr.reading.actions import Action, Spot
from texpr.reading.events import Event
from texpr.reading.order import domains, sides_of
from texpr.verifier.asked import Asked, Told
from texpr.verifier.flow import Access, Flow
from texpr.verifier.match import Match, home_of
from texpr.verifier.shares import Doubt, Share, Shares, Wrong, common, precedes, subscripts
from texpr.verifier.tags import ELEMENTS, Joined, Tag


@dataclass(slots=True)
class Sums:
    """What is made of parts. `made`: finals as all turns of the loops that they sum up. `kept`: what is stored, and taken."""

    shares: Shares
    flow: Flow
    made: list[Match] = field(default_factory=list[Match])
    kept: dict[Action, list[Match]] = field(default_factory=dict[Action, list[Match]])

    def questions(self, tagged: Mapping[Event, Tag | None]) -> Iterator[Asked]:
        """What is to be proved. Raises Wrong."""
        own = self.shares
        stores = [self.keep(home) for home in own.writes if isinstance(home, Buffer) and self.flow.space(home) is Space.GLOBAL]
        ends = {e: own.held(*own.origin(e)) for e in (*stores, *(e for e in own.joins if home_of(e.target) not in own.parts))}
        for event, shares in ends.items():
            actions = dict.fromkeys(m.action for share in shares for leaf in share.pile for m in self.behind(leaf))
            self.made += [self.final(event, tagged[event], action, shares) for action in actions if event not in stores]
        for join in own.joins.values():
            if len({own.shape(e) if e in own.joins else None for e in join.beside}) > 1:
                raise Wrong("the elements of a tuple are not joined together")
        for leaf in filter(own.is_leaf, (e for events in own.writes.values() for e in events)):
            into = [e for e, shares in ends.items() if any(leaf in share.pile for share in shares)]
            actions = {m.action for m in self.behind(leaf)}
            peers = into if {*into} & {*stores} else dict.fromkeys(m.event for m in self.made if m.action in actions)
            if not into or (peers is into and len(into) > 1):
                raise Wrong(f"what {home_of(leaf.target).name} takes is lost")
            for event in peers:
                own.doubts += self.taken(leaf, event, ends[event])
        for event, shares in ends.items():
            for one, two in combinations(shares, 2):
                if {*one.pile} & {*two.pile} and own.kind(one)[0] not in EXACTLY_ONCE_FREE:
                    other, lane = two.moved({s: Sym(f"{s.name}'") for s in two.own}), expr(Sym("lane◁"))
                    facts = (*event.site.where, *one.facts, *other.facts, one.near(lane), other.near(lane))
                    own.doubts.append((event, "no update is taken twice", facts))
        yield from self.apart()
        for event, what, facts in own.doubts:
            yield Told.of(event, what, "for all sizes"), witness, (facts, self.flow.premises)

    def behind(self, leaf: Event) -> Iterator[Match]:
        """The updates of the program that a leaf takes, or that are in the parts that it takes. Raises Wrong."""
        own = self.shares
        for store in own.writes[own.part(own.origin(leaf)[0])] if leaf in own.joins else ():
            for each in dict.fromkeys(e for share in own.held(*own.origin(store)) for e in share.pile):
                if each in own.joins:
                    raise Wrong("parts of parts are stored")
                yield own.leaves[each]
        if leaf in own.leaves:
            yield own.leaves[leaf]

    def final(self, event: Event, tag: Tag | None, action: Action, shares: Sequence[Share]) -> Match:
        """`event` as all turns of the loops of `action` whose order is free, as `tag` says. Raises Wrong."""
        said = [s for s in tag.of if self.flow.program.actions[s.action] is action] if isinstance(tag, Joined) else []
        depth = next((n for n, loop in enumerate(action.spot.loops) if action.stored in loop.reduce), -1)
        home, update = home_of(event.target), self.shares.joins[event].update
        other = isinstance(home, Buffer) and home.role != "local" and home != action.stored
        fits = said and len(said[0].indices) == depth and not other
        if not fits or update != self.shares.kind(*shares)[0]:
            raise Wrong(f"what is joined is not what is summed into `{action.stored.name}`")
        outer = [loop.sym for loop in action.spot.loops[:depth]]
        return Match(event, action, dict(zip(outer, said[0].indices, strict=True)), (), said[0].inverse)

    def taken(self, leaf: Event, event: Event, shares: Sequence[Share]) -> Iterator[Doubt]:
        """That a final, or a store, takes all that `leaf` updates its element by, and nothing else. Raises Wrong."""
        launch, place = event.site.launch, subscripts(event.target)
        sides, known, ways = sides_of(leaf.site, event.site), {*launch.host}, list[Formula]()
        pairs = [(expr(s), expr(s)) for s in launch.host]
        if event in self.shares.joins:
            made = {f.action: f.indices.items() for f in self.made if f.event is event}
            pairs += [(m.indices[s], e) for m in self.behind(leaf) for s, e in made.get(m.action, ())]
            if leaf in self.shares.joins and any(x is not y or not x.syms() <= known for x, y in pairs):
                raise Wrong("parts of different elements are mixed")
        else:
            pairs += zip(place, place, strict=True)
            if any(e.syms() & {*event.site.dims} - known - {*launch.blocks} for e in place):
                raise Wrong("in which part an update is cannot be seen")
            shape = event.target.buffer.shape if isinstance(event.target, Load) else ()
            inside = [between(0, e, n) for e, n in zip(place, shape, strict=True)]
            yield leaf, "every update is in a part", (*leaf.site.where, negate(conj(inside)))
        for share in (share for share in shares if leaf in share.pile):
            there, values = share.moved(sides.right), dict(zip(ELEMENTS, map(sides.a, subscripts(leaf.target)), strict=False))
            facts = (rename(f, values) for f in (*there.facts, there.near(sides.a(leaf.site.launch.thread))))
            left, _ = eliminated(list(flat(facts)), {*share.own}.__contains__)
            if any(syms(fact) & {*share.own} for fact in left):
                raise Wrong("which turn takes an update is not known")
            ways.append(conj(left))
        both, alike = tuple(domains(leaf.site, event.site, sides)), conj(Eq(sides.a(x) - sides.b(y)) for x, y in pairs)
        yield event, "no update is lost", (*both, alike, negate(disj(ways)))
        yield event, "no update of another element", (*both, disj(ways), negate(alike))

    def keep(self, home: Buffer) -> Event:
        """What stores parts in an array for a later launch: a statement over its elements, as is taking them. Raises Wrong."""
        own, (store, *more) = self.shares, self.shares.writes[home]
        launch, names = store.site.launch, ELEMENTS[: len(subscripts(store.target))]
        takes = [e for e in own.joins if own.part(own.origin(e)[0]) == home]
        late = all(e.site.launch.host == launch.host and precedes(store.site, e.site) for e in takes)
        if more or not late or store.site.tests or any(own.joins[e].tests for e in takes):
            raise Wrong(f"{home.name} is not stored once, and then taken")
        every = (*launch.host, *names)
        facts = [f for f in launch.domain if not syms(f) & {*launch.blocks, *launch.threads}]
        facts += [between(0, s, n) for s, n in zip(names, home.shape, strict=True)]
        spot = Spot((), tuple(ir.Seq(s, expr(0), ()) for s in every), tuple(facts))
        place = Load(home, tuple(map(expr, names)))
        for events in ([(store, store.target)], [(e, own.origin(e)[0]) for e in takes]):
            action = Action(spot, place, place, None, ir.Bind((place,), (place,)))
            found = ((e, dict(zip(every, (*map(expr, launch.host), *subscripts(at)), strict=True))) for e, at in events)
            self.kept[action] = [Match(e, action, indices, (), own.inverses[e]) for e, indices in found]
        return store

    def apart(self) -> Iterator[Asked]:
        """Parts in arrays are touched in textual order, by one thread behind another, and within bounds."""
        own, touched = self.shares, defaultdict[Buffer, list[Access]](list)
        for event in dict.fromkeys((*(e for events in own.writes.values() for e in events), *own.joins)):
            for place, site, write in ((*own.origin(event), False), (event.target, event.site, True)):
                if isinstance(place, Load) and place.buffer in own.parts:
                    same = self.flow.instance(place.buffer, site)
                    others = [s for s in (*site.launch.blocks, *site.launch.threads) if s not in same]  # all at once
                    steps = (*(s if isinstance(s, int) else s.sym for s in (*site.launch.time, *site.time)), *others)
                    when = (*(s if isinstance(s, int) else (ir.Seq(s, expr(0), ()), expr(s)) for s in steps), int(write))
                    one = Access(event, site, place.buffer, place.index, write, when, place.buffer, (), ())
                    touched[place.buffer].append(one)
        for a, among in ((a, each) for each in touched.values() for a in each):
            yield Told.of(a.event, f"{a} in bounds", "for all sizes"), self.flow.outside, (a,)
            if self.flow.space(a.home) is Space.CLUSTER:
                yield Told.of(a.event, f"{a}: a block is there", "for all sizes"), self.flow.strayed, (a.site, a.index, a.write)
            shared = self.flow.space(a.home) is not Space.LOCAL
            for b in among if a.write else [b for b in among if b.write]:
                if shared or any(loop.kind == "simd" for loop in common(a.site, b.site)):
                    yield Told.of(a.event, f"{a} and {b} in turn", "for all sizes"), self.flow.misordered, (a, b)
