"""That what threads sum in parts is the sum that the program means: each update once, in the right element, for all sizes.

A *final* joins a part into an element of the program; a *store* keeps one for a later launch, to which its elements are updates
of a sum of their own. What a part holds is written out (`shares`): that its updates are those of the element is asked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.value import Buffer, Load
from texpr.isa.levels import Space
from texpr.presburger.formula import Eq, Formula, between, conj, differ, disj, negate, rename, syms
from texpr.presburger.questions import Point, witness
from texpr.presburger.relaxed import eliminated, flat
from texpr.reading.actions import Action, Spot
from texpr.reading.events import Event, Site
from texpr.reading.order import Sides, domains, equal_all, sides_of, textual, unordered, within
from texpr.verifier.asked import Asked, Told
from texpr.verifier.flow import Flow
from texpr.verifier.match import Match, home_of
from texpr.verifier.shares import Share, Shares, Wrong, again, common, precedes, subscripts
from texpr.verifier.tags import ELEMENTS, Statement
from texpr.verifier.there import There, nowhere, there

HOW = "for all sizes"


@dataclass(slots=True)
class Sums:
    """What is made of parts. `of`: the sums that finals are said to end. `matches`: finals, as all turns of summed loops."""

    shares: Shares
    flow: Flow
    of: dict[Event, tuple[Statement, ...]]
    matches: list[Match] = field(default_factory=list[Match])

    def questions(self) -> Iterator[Asked]:
        """What is to be proved. Raises Wrong."""
        own, premises = self.shares, self.flow.premises
        stores = [e for home, events in own.writes.items() if self.flow.space(home) is Space.GLOBAL for e in events]
        finals = [e for e in own.joins if home_of(e.target) not in own.parts]
        ends = {e: own.held(*own.origin(e)) for e in (*stores, *finals)}
        made = {e: {m.action for share in ends[e] for leaf in share.pile for m in self.behind(leaf)} for e in ends}
        for join in own.joins.values():
            if len({own.shape(e) if e in own.joins else None for e in join.beside}) > 1:
                raise Wrong("the elements of a tuple are not joined together")
        for leaf in filter(own.is_leaf, (e for events in own.writes.values() for e in events)):
            into = [e for e, shares in ends.items() if any(leaf in share.pile for share in shares)]
            homes, actions = {home_of(e.target) for e in into if e in stores}, {m.action for m in self.behind(leaf)}
            peers = [e for e in ends if (home_of(e.target) in homes if homes else e in finals and made[e] & actions)]
            if not into or not {*into} <= {*peers} or len(homes) > 1:
                raise Wrong(f"what {home_of(leaf.target).name} takes is lost")
            for event in peers:
                yield from self.taken(leaf, event, ends[event])
            if homes:
                yield (
                    Told.of(leaf, "every update is in a part", HOW),
                    nowhere,
                    (leaf.site.where, [*map(self.element, peers)], premises),
                )
        for event, shares in ends.items():
            yield from self.once(event, shares)
        yield from self.apart()
        yield from ((Told.of(event, what, HOW), witness, (facts, premises)) for event, what, facts in own.doubts)

    def taken(self, leaf: Event, event: Event, shares: Sequence[Share]) -> Iterator[Asked]:
        """That a final, or a store, takes all that `leaf` updates its element by, and nothing else. Raises Wrong."""
        pairs, premises = list(self.elements(leaf, event)), self.flow.premises
        sides = sides_of(leaf.site, event.site)
        both, ways = tuple(domains(leaf.site, event.site, sides)), disj(_ways(leaf, shares, sides))
        alike = [Eq(sides.a(x) - sides.b(y)) for x, y in pairs]
        yield Told.of(event, "no update is lost", HOW), witness, ((*both, *alike, negate(ways)), premises)
        yield Told.of(event, "no update of another element", HOW), witness, ((*both, ways, negate(conj(alike))), premises)

    def element(self, store: Event) -> There:
        """The instance of a store which is that of its place for the same coordinates."""
        place = subscripts(store.target)
        said = tuple(e.substitute(dict(zip(ELEMENTS, place, strict=False))) for e in self.shares.inverses[store])
        host = tuple(map(expr, store.site.launch.host))
        return there(store.site, zip((*place, *host), (*place, *host), strict=True), (said,))

    def elements(self, leaf: Event, event: Event) -> Iterator[tuple[Expr, Expr]]:
        """Coordinates of the element that an update of `leaf` is meant for, and of that which `event` makes. Raises Wrong."""
        launch, own = event.site.launch, subscripts(event.target)
        yield from ((expr(s), expr(s)) for s in launch.host)
        if event not in self.shares.joins:
            others = {*event.site.dims} - {*launch.host, *launch.blocks}
            if any(e.syms() & others for e in own) or leaf.site.launch is not launch:
                raise Wrong("in which part an update is cannot be seen")
            yield from zip(own, own, strict=True)
            return
        for match in self.behind(leaf):
            theirs = self.final(event, match.action).indices
            pairs = [(match.indices[s], e) for s, e in theirs.items()]
            if leaf in self.shares.joins and any(x is not y or not x.syms() <= {*launch.host} for x, y in pairs):
                raise Wrong("parts of different elements are mixed")
            yield from pairs

    def behind(self, leaf: Event) -> Iterator[Match]:
        """The updates of the program that a leaf takes, or that are in the parts that it takes. Raises Wrong."""
        own = self.shares
        if leaf in own.leaves:
            yield own.leaves[leaf]
        for store in own.writes[home] if leaf in own.joins and (home := own.source(leaf)) else ():
            for each in dict.fromkeys(e for share in own.held(*own.origin(store)) for e in share.pile):
                if each in own.joins or not precedes(store.site, leaf.site):
                    raise Wrong("parts of parts are stored")
                yield own.leaves[each]

    def final(self, event: Event, action: Action) -> Match:
        """`event` as all turns of the loops of `action` whose order is free. Raises Wrong."""
        depth = next((n for n, loop in enumerate(action.spot.loops) if action.stored in loop.reduce), -1)
        said = next((s for s in self.of[event] if self.flow.program.actions[s.action] is action), None)
        home, update = home_of(event.target), "add" if action.update == "sub" else action.update
        seen = isinstance(home, Buffer) and home not in self.flow.reading.spaces and home.role != "local"  # it is itself
        known = said is not None and len(said.indices) == depth and not (seen and home != action.stored)
        if said is None or not known or update != self.shares.joins[event].update:
            raise Wrong(f"what is joined is not what is summed into `{action.stored.name}`")
        found = next((m for m in self.matches if m.event is event and m.action is action), None)
        if found is None:
            outer = (loop.sym for loop in action.spot.loops[:depth])
            found = Match(event, action, dict(zip(outer, said.indices, strict=True)), (), said.inverse)
            self.matches.append(found)
        return found

    def once(self, event: Event, shares: Sequence[Share]) -> Iterator[Asked]:
        """That no two of the shares have an update in common."""
        lane = expr(Sym("lane◁"))
        for one, two in combinations(shares, 2):
            if {*one.pile} & {*two.pile} and not again(self.shares.kind(one)[0]):
                other = two.moved({s: Sym(f"{s.name}'") for s in two.own})
                facts = (*event.site.where, *one.facts, *other.facts, one.near(lane), other.near(lane))
                yield Told.of(event, "no update is taken twice", HOW), witness, (facts, self.flow.premises)

    def kept(self) -> Iterator[tuple[Action, list[Match]]]:
        """What is stored for a later launch, and what takes that, as statements over the elements of an array. Raises Wrong."""
        own = self.shares
        for home, stores in own.writes.items():
            if not isinstance(home, Buffer) or self.flow.space(home) is not Space.GLOBAL:
                continue
            launch, names = stores[0].site.launch, ELEMENTS[: home.rank]
            loops = tuple(ir.Seq(s, expr(0), ()) for s in (*launch.host, *names))
            facts = [f for f in launch.domain if not syms(f) & {*launch.blocks, *launch.threads}]
            facts += [between(0, s, n) for s, n in zip(names, home.shape, strict=True)]
            place = Load(home, tuple(map(expr, names)))
            joins = [(e, subscripts(own.origin(e)[0])) for e in own.joins if own.source(e) is home]
            for events in ([(e, subscripts(e.target)) for e in stores], joins):
                action = Action(Spot((), loops, tuple(facts)), place, place, None, ir.Bind((place,), (place,)))
                if any(e.site.launch.host != launch.host for e, _ in events):
                    raise Wrong("parts of different launches are mixed")
                places = [(e, dict(zip((*launch.host, *names), (*map(expr, launch.host), *i), strict=True))) for e, i in events]
                yield action, [Match(e, action, indices, (), own.inverses[e]) for e, indices in places]

    def apart(self) -> Iterator[Asked]:
        """Parts that threads share are touched in textual order, and within bounds."""
        own, touched = self.shares, list[tuple[Event, Site, Load, bool]]()
        for event in dict.fromkeys((*(e for events in own.writes.values() for e in events), *own.joins)):
            place, site = own.origin(event)
            for each, at, write in ((event.target, event.site, True), (place, site, False)):
                if isinstance(each, Load) and each.buffer in own.parts:
                    touched.append((event, at, each, write))
        for event, a, x, first in touched:
            space, inside = self.flow.space(x.buffer), [between(0, e, n) for e, n in zip(x.index, x.buffer.shape, strict=True)]
            yield (
                Told.of(event, f"{x.buffer.name} in bounds", HOW),
                witness,
                ((*a.where, negate(conj(inside))), self.flow.premises),
            )
            if space is Space.CLUSTER:
                told = Told.of(event, f"{x.buffer.name} of a block that is there", HOW)
                yield told, self.flow.strayed, (a, x.index, first)
            for _, b, y, second in touched:
                free = space is not Space.LOCAL or any(loop.kind == "simd" for loop in common(a, b))
                if x.buffer is y.buffer and (first or second) and free:
                    yield Told.of(event, f"{x.buffer.name} in turn", HOW), self._race, (a, b, x, y)

    def _race(self, a: Site, b: Site, x: Load, y: Load) -> Point | None:
        space = self.flow.space(x.buffer)
        where = self.flow.instance(x.buffer, a)
        sides = sides_of(a, b, where if a.launch is b.launch else ())
        place = [*equal_all(where, sides), *(Eq(sides.a(i) - sides.b(j)) for i, j in zip(x.index, y.index, strict=True))]
        bad = unordered(a, b, sides, space, later=True)
        wanted = textual(a, b, sides)
        if a is b and a.launch.threads:  # two threads that write at once
            who = (*a.launch.threads, *(s for s in within(a.launch) if s not in where))
            here = equal_all([s for s in a.dims if s not in who], sides)
            wanted.append(conj((*here, differ(map(sides.a, who), map(sides.b, who)))))
        return witness((*domains(a, b, sides), *place, disj(wanted), disj(bad)), self.flow.premises)


def _ways(leaf: Event, shares: Sequence[Share], sides: Sides) -> Iterator[Formula]:
    """When an instance of `leaf`, on the left, is in a share, on the right. Raises Wrong."""
    for share in shares:
        if leaf in share.pile:
            there, place = share.moved(sides.right), map(sides.a, subscripts(leaf.target))
            facts = [*there.facts, there.near(sides.a(leaf.site.launch.thread))]
            values = dict(zip(ELEMENTS, place, strict=False))
            left, _ = eliminated(list(flat(rename(f, values) for f in facts)), {*share.own}.__contains__)
            if any(syms(fact) & {*share.own} for fact in left):
                raise Wrong("which turn takes an update is not known")
            yield conj(left)
