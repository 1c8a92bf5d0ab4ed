"""Phases of barriers that count arrivals and bytes: the phase that a wait for a parity waits for.

One thread arrives at a barrier, once per iteration; so its n-th arrival begins phase n, which completes when the expected bytes
have arrived. A wait only tests whether the parity of the current phase differs from the given one. It waits for the phase of
the claimed arrival if parities alternate from phase to phase, beginning with 0; if the preceding phase is known to be complete
where it waits; and if no later phase begins before it has passed (PTX ISA, "mbarrier").

The proof is by induction over consecutive phases. Tags give the predecessor of each arrival, and the arrival of each wait or
copy, by coordinates: a phase is identified by its arrival. What holds for each phase and its predecessor holds for all, as no
arrival is in between. The initialisation of a barrier precedes its first arrival, like a phase of parity 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from types import UnionType
from typing import TypeAlias

from texpr.affine.expr import ZERO, Expr, Sym
from texpr.ir.operation import Arrives, Brings, Commits, Makes, Releases, Waits
from texpr.ir.proof.tags import TURNS, End, Instance, Turn
from texpr.isa.instructions.tcgen05 import PAIR
from texpr.isa.levels import Space
from texpr.presburger.formula import FALSE, TRUE, Eq, Formula, Ge, between, compare, conj, differ, disj, equal, negate
from texpr.presburger.questions import Point, witness
from texpr.proof.common.asked import Asked, Claim
from texpr.proof.plan.landing import Landing, Names, anyone, known, located, not_landed, own_dims, said, same, there
from texpr.proof.plan.rings.channels import Ring
from texpr.proof.plan.rings.relays import Handover
from texpr.proof.read.events import Channel, Event, Reading, Signal
from texpr.proof.read.order import Sides, equal_all, not_behind, unordered
from texpr.proof.read.pairs import beside
from texpr.support.record import Mutable, replace


class Named(Landing, eq=False):
    """A signal with coordinates `names`, if it is `there`."""

    signal: Signal

    @property
    def bytes(self) -> Expr:
        """The number of bytes that are expected, or brought."""
        return self.signal.bytes.substitute(self.names)

    def beside(self, other: Signal, names: Names) -> Formula:
        """The condition that another signal exists, at the same barrier."""
        slots = (each.barrier.index[0].substitute(own) for each, own in ((self.signal, self.names), (other, names)))
        return conj((there(other.site, names), compare("==", *slots)))


Cases: TypeAlias = Iterator[Sequence[Formula]]
"""The cases in which a signal, with the coordinates of its site, violates a rule."""


class Phases(Mutable):
    """The barriers of a plan, with the tag of each signal."""

    reading: Reading
    premises: Formula
    tagged: Mapping[Signal, Turn]

    def ring(self, signal: Signal) -> Channel | None:
        """The channel whose slots a barrier says to be full, if it is of one."""
        found = (each for each in signal.site.launch.channels if each.fill.barrier.buffer is signal.barrier.buffer)
        return next(found, None)

    def questions(self) -> Iterator[Asked]:
        """The obligations of all barriers."""
        for launch in self.reading.launches:
            for each in launch.relays:
                yield from Handover(each, self.reading, self.premises).questions()
            for each in launch.channels:
                yield from Ring(each, self.reading, self.premises).questions()
        for user in self.reading.signals:
            if any(user.barrier.buffer in each.own for each in user.site.launch.channels):
                continue  # the ring has obligations of its own for them
            if any(user.barrier.buffer is each.take.barrier.buffer for each in user.site.launch.relays):
                continue  # and so have groups that take turns
            about = f"{user.barrier.buffer.name}[{user.barrier.index[0]}]"
            for kinds, what, how, cases in (
                (Makes, "a barrier is made", "once, for one arrival a phase", self.remade),
                (Arrives, "phases are counted", "by one thread at a time, and none lies in between", self.uncounted),
                (Arrives, "bytes of a phase", "as many as are expected", self.unlike),
                (Brings, "bytes of a phase", "each copy is counted", self.strewn),
                (Arrives, "a phase is waited for", "before its thread ends", self.forgotten),
                (Waits, "parity", "0, and then the other one each time", self.misread),
                (Arrives | Brings, "a wait ends", "its phase was begun before", self.endless),
                (Arrives | Brings, "all have passed", "before the next phase begins", self.passed_by),
                (Arrives | Brings | Waits, "phases follow", "the one before was seen to complete", self.unseen),
                (Releases, "a slot is released", "in a ring between two roles", self.strange),
            ):
                if isinstance(user.what, kinds):
                    yield Claim(what, about, how, user.stmt.span, user.site.launch.kernel.name), self.first, (user, cases)

    def first(self, user: Signal, cases: Callable[[Named], Cases]) -> Point | None:
        """An instance of a signal in one of some cases."""
        points = (witness((*user.site.where, *case), self.premises) for case in cases(itself(user)))
        return next((point for point in points if point is not None), None)

    def named(self, to: Sequence[Instance], user: Named, kind: type | UnionType) -> tuple[list[Named], Formula]:
        """The signals of one kind at the barrier of `user`, each if no earlier one exists; and the condition that none
        exists."""
        found, none = list[Named](), user.there
        for each in to:
            signal = self.reading.signals[each.of]
            if not (_alike(signal, user.signal) and isinstance(signal.what, kind)):
                raise ValueError("a signal of another kind, or barrier")
            names = located(signal.site, each.at, user.names, user.site)
            where = zip(said(each.where, user.names, user.site), user.names.values(), strict=False)
            here = conj((user.beside(signal, names), *(Eq(x - y) for x, y in where)))
            found.append(Named(signal.site, names, conj((none, here)), signal))
            none = conj((none, negate(here)))
        return found, none

    def others(self, user: Named, kind: type | UnionType) -> Iterator[Named]:
        """Any other signal of one kind at the barrier of `user`."""
        for signal in (s for s in self.reading.signals if _alike(s, user.signal) and isinstance(s.what, kind)):
            own = {s: Sym(f"{s.name}○") for s in own_dims(signal.site)}
            names, other = {**same(signal.site), **own}, differ(own, own.values()) if signal is user.signal else TRUE
            yield Named(signal.site, names, conj((user.beside(signal, names), other)), signal)

    def begun(self, user: Named) -> tuple[list[Named], Formula]:
        """The arrival of a wait or copy, or the predecessor of an arrival; and the condition that there is none."""
        before = Arrives | Makes if isinstance(user.signal.what, Arrives) else Arrives
        return self.named(self.tagged[user.signal].begun, user, before)

    def phases(self, user: Named) -> list[Named]:
        """The arrivals of the phases to which a signal belongs."""
        return [user] if isinstance(user.signal.what, Arrives) else self.begun(user)[0]

    def before(self, user: Named) -> Iterator[Named]:
        """The predecessors of those phases."""
        return (before for phase in self.phases(user) for before in self.begun(phase)[0])

    def waits(self, phase: Named) -> tuple[list[Named], Formula]:
        """The waits for a phase by `anyone`; and the condition that there is none."""
        by = replace(phase, names={**phase.names, **anyone(phase.site)})
        return self.named(self.tagged[phase.signal].seen, by, Waits)

    def landings(self, phases: Iterable[Named]) -> Iterator[Landing]:
        """The completions of phases; that the waits are for these phases is an obligation of their arrivals."""
        for phase in phases:
            if isinstance(phase.signal.what, Makes):
                yield from known(phase.site, phase.names, map(End, self.tagged[phase.signal].seen), self.reading, "init")
            else:
                waits, lane = self.waits(phase)[0], self.lane(phase)
                yield from (*waits, *(each.seen_by(lane) for each in waits if lane))

    def committed(self, event: Event, ends: Iterable[End], block: Names | None = None) -> Iterator[Landing]:
        """The completions of what a thread started: the waits for phases of commits behind it in that thread, of `ends`. Of a
        pair of blocks, which has one for both, those that are waited for in the `block` with these coordinates."""
        for end in ends:
            signal, own = self.reading.signals[end.step.of], {**same(event.site), **(block or {})}
            if not isinstance(signal.what, Commits) or signal.what.group is not event.group or end.groups:
                raise ValueError("it is waited for by what it is no part of")
            names = located(signal.site, end.step.at, own, event.site)
            sides = Sides(own, names)
            behind = negate(disj(not_behind(event.site, signal.site, sides, False)))
            facts = there(signal.site, names), *equal_all(event.site.launch.threads, sides), behind
            yield from self.landings([Named(signal.site, names, conj(facts), signal)])

    def of_pair(self, event: Event, ends: Sequence[End]) -> Iterator[Landing]:
        """Where what a pair of blocks does is waited for in either of both: it is one launch, with one commit for both."""
        for number in range(PAIR):
            for each in self.committed(event, ends, beside(event.site.launch, number)):
                yield each.settled(event.site, self.premises)

    def lane(self, phase: Named) -> dict[Sym, Expr]:
        """In a ring, `anyone` as the first lane that uses the slot: what it saw, others learn along the channel."""
        ring, own = self.ring(phase.signal), anyone(phase.site)
        if ring is None:
            return {}
        tile = ZERO if ring.tiles is None else ZERO + phase.names[ring.tiles.sym]
        return dict.fromkeys(own.values(), ring.users(tile)[0])

    def remade(self, made: Named) -> Cases:
        """A barrier with more than one arrival a phase, or initialised again."""
        yield (FALSE if isinstance(made.signal.what, Makes) and made.signal.what.count == 1 else TRUE,)
        yield from ((other.there,) for other in self.others(made, Makes))

    def uncounted(self, arrival: Named) -> Cases:
        """Another arrival between one and its claimed predecessor, or simultaneous with it."""
        for before in self.begun(arrival)[0]:
            for other in self.others(arrival, Arrives):
                begins = not_behind(other.site, before.site, Sides(other.names, before.names), True)
                ends = not_behind(arrival.site, other.site, Sides(arrival.names, other.names), False)
                yield before.there, other.there, disj(begins), disj(ends)

    def misread(self, wait: Named) -> Cases:
        """A wait with the parity of the preceding phase."""
        for before in self.before(wait):
            for each in [before] if isinstance(before.signal.what, Makes) else self.waits(before)[0]:
                yield (
                    each.there,
                    Eq((wait.signal.parity.substitute(wait.names) - each.signal.parity.substitute(each.names)) % 2),
                )

    def endless(self, user: Named) -> Cases:
        """A wait that precedes an arrival or copy of its phase."""
        for wait in self.others(user, Waits):
            late = disj(not_behind(user.site, wait.site, Sides(user.names, wait.names), False))
            for phase in self.phases(user):
                yield wait.there, late, phase.there, _among(self.phases(wait), phase)

    def forgotten(self, arrival: Named) -> Cases:
        """A phase that its thread, or in a ring a lane that uses slots, does not wait for; a claimed wait for another phase."""
        waits, none = self.waits(arrival)
        own, lane = anyone(arrival.site), self.lane(arrival)
        yield none, equal(own.values(), lane.values() or own)
        for wait in waits:
            yield wait.there, negate(_among(self.phases(wait), arrival))

    def unseen(self, user: Named) -> Cases:
        """A signal without a phase, or where the preceding phase is not known to be complete."""
        yield (self.begun(user)[1],)
        sides = Sides(user.names, user.names)
        ring = self.ring(user.signal)
        lemma = ring is not None and (ring.relay is not None or not isinstance(user.signal.what, Waits))
        for before in self.before(user):
            made = isinstance(before.signal.what, Makes)
            if made or not lemma:
                settled, landed = not made and isinstance(user.signal.what, Brings | Commits), self.landings([before])
                yield before.there, not_landed(user.site, user.site, landed, sides, Space.SHARED, later=False, settled=settled)

    def passed_by(self, user: Named) -> Cases:
        """An arrival, or a copy, of a phase that may begin before all have passed a wait for the preceding phase.

        In a ring, one that is not behind the wait of its phase for an empty slot: the lemma says the rest.
        """
        if (ring := self.ring(user.signal)) is not None:
            for phase in self.phases(user):
                sides = Sides(phase.names, user.names)
                late = not_behind(ring.acquire.site, user.site, sides, False)
                yield phase.there, disj((negate(conj(equal_all(user.site.launch.threads, sides))), *late))
            return
        for wait in self.others(user, Waits):
            both = Sides(wait.names, user.names)
            late = disj(unordered(wait.site, user.site, both, Space.SHARED, later=False, settled=True))
            for before in self.before(user):
                yield wait.there, late, before.there, _among(self.phases(wait), before)

    def strange(self, release: Named) -> Cases:
        """A release that is of no ring."""
        yield (TRUE,)

    def unlike(self, arrival: Named) -> Cases:
        """A point of a parcel without a copy of the claimed bytes, or a total that differs from the expected bytes."""
        total = ZERO
        for number, parcel in enumerate(self.tagged[arrival.signal].parcels):
            turns = dict(zip(TURNS, TURNS[: len(parcel.box)], strict=False))
            bytes, *box = said((parcel.bytes, *parcel.box), arrival.names, arrival.site)
            inside = _inside(turns, box)
            yield (disj(Ge(-extent - 1) for extent in box),)
            copies, none = self.named(parcel.copies, replace(arrival, names={**arrival.names, **turns}), Brings)
            yield inside, none
            for copy in copies:
                turn = said(self.tagged[copy.signal].turn, copy.names, copy.site)
                right = equal((*turn, copy.bytes), (number, *turns, bytes)), _among(self.phases(copy), arrival)
                yield inside, copy.there, negate(conj(right))
            total += prod(box, start=bytes)
        yield (differ((arrival.bytes,), (total,)),)

    def strewn(self, copy: Named) -> Cases:
        """A copy that is not the one at its point of its phase's parcel."""
        number, *turn = said(self.tagged[copy.signal].turn, copy.names, copy.site)
        for phase in self.begun(copy)[0]:
            parcel = self.tagged[phase.signal].parcels[number.constant]
            names = {**phase.names, **dict(zip(TURNS, turn, strict=False))}
            found, _ = self.named(parcel.copies, replace(phase, names=names, there=TRUE), Brings)
            inside = _inside(turn, said(parcel.box, phase.names, phase.site))
            yield phase.there, negate(conj((_among(found, copy), inside)))


def carried(event: Event) -> Named | None:
    """The bytes that a copy counts somewhere, with the coordinates of the event."""
    signal = event.signal
    return None if signal is None else Named(signal.site, {**same(signal.site), **event.afar}, TRUE, signal)


def itself(signal: Signal) -> Named:
    """A signal with the coordinates of its site."""
    return Named(signal.site, same(signal.site), TRUE, signal)


def _among(found: Iterable[Named], one: Named) -> Formula:
    """The condition that an instance is one of some."""
    alike = (each for each in found if each.signal is one.signal)
    return disj(conj((each.there, equal(each.names.values(), one.names.values()))) for each in alike)


def _alike(a: Signal, b: Signal) -> bool:
    """Whether two signals are at barriers of one array."""
    return a.barrier.buffer is b.barrier.buffer and a.site.launch is b.site.launch


def _inside(turns: Iterable[Sym | Expr], box: Sequence[Expr]) -> Formula:
    """The condition that a point is in a box."""
    return conj(between(ZERO, turn, extent) for turn, extent in zip(turns, box, strict=True))
