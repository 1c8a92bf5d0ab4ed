"""Barriers that count arrivals and bytes, phase by phase: what a wait for a parity waits for.

One thread arrives at a barrier, turn by turn; so its n-th arrival begins phase n, which completes when the bytes that are
expected have come. A wait sees no more than whether the phase that runs has another parity than the one that it names. That is
the phase of the arrival which it is said to wait for, if the parity of arrivals alternates, beginning with 0; if the phase
before was seen to complete where it waits; and if none begins before it has passed (PTX ISA, "mbarrier").

Tags say which arrival is the one before another, and which one a wait or a copy belongs to, by its coordinates. So a phase has
no number here, but an instance of an arrival; what holds of each and the one before holds of all, as none lies in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod
from types import UnionType
from typing import TypeAlias

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.tags import End, Instance, Turn
from texpr.isa.levels import Space
from texpr.presburger.formula import TRUE, Eq, Formula, Ge, conj, differ, disj, equal, negate
from texpr.presburger.omega import refuted
from texpr.presburger.questions import Point, witness
from texpr.reading.events import Reading, Signal, Site
from texpr.reading.order import Sides, domains, equal_all, not_behind, sides_of, textual, unordered
from texpr.support.span import NOWHERE
from texpr.verifier.asked import Asked, Told
from texpr.verifier.landing import Landing, Names, known, located, never_lands, not_landed, own_dims, there

Kind: TypeAlias = type[object] | UnionType
ARRIVAL, COPY = k.BarrierExpect | k.BarrierArrive, k.CopyTensor | k.CopyBulk
SAME: Names = {}
Box: TypeAlias = tuple[tuple[Expr, Expr], ...]
TURNS = tuple(Sym(f"turn {at}") for at in range(8))
"""The turns of loops over copies."""


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """A signal at the coordinates `names`, if `there`."""

    signal: Signal
    names: Names
    there: Formula


@dataclass(slots=True)
class Phases:
    """The barriers of a plan, with what tags say of each signal."""

    reading: Reading
    premises: Formula
    turns: Sequence[Turn]
    tagged: Mapping[Signal, Turn] = field(init=False)

    def __post_init__(self) -> None:
        self.tagged = dict(zip(self.reading.signals, self.turns, strict=False))

    def questions(self) -> Iterator[Asked]:
        """What is to be proved of all barriers."""
        for user in self.reading.signals:
            launch, barrier, kind = user.site.launch, user.barrier.buffer, type(user.stmt)
            users = [s for s in self.reading.signals if s.barrier.buffer is barrier and s.site.launch is launch]
            about, span = f"{barrier.name}[{user.barrier.index[0]}]", getattr(user.stmt, "span", NOWHERE)
            for kinds, what, how, question, *more in (
                (k.BarrierInit, "a barrier is made", "once, before it is used", self.spoiled, users),
                (ARRIVAL, "a barrier is made", "before it is used", self.unmade),
                (ARRIVAL, "one arrival a phase", "one thread, one at a time", self.alone),
                (ARRIVAL, "phases are counted", "the one before is known, and none lies in between", self.uncounted, users),
                (ARRIVAL, "parity", "0, and then the other one each time", self.misnumbered),
                (ARRIVAL, "bytes of a phase", "as many as are expected", self.unlike, users),
                (ARRIVAL, "a phase is waited for", "before its thread ends", self.forgotten),
                (k.BarrierWait | COPY, "a phase is begun", "by an arrival", self.strays),
                (k.BarrierWait, "parity", "that of the phase which is waited for", self.misread),
                (k.BarrierWait, "a wait ends", "its phase was begun before", self.endless),
                (ARRIVAL | COPY, "all have passed", "before the next phase begins", self.passed_by, users),
                (ARRIVAL | COPY | k.BarrierWait, "phases follow", "the one before was seen to complete", self.unseen),
            ):
                if issubclass(kind, kinds):
                    yield Told(launch.kernel.name, what, about, how, span), question, (user, *more)

    def named(self, to: Sequence[Instance], user: Signal, names: Names, kind: Kind) -> tuple[list[Named], Formula]:
        """Signals of one kind at the barrier of `user` at these coordinates, each if no earlier one is there; when none is."""
        found: list[Named] = []
        none: list[Formula] = []
        for each in to:
            signal = self.reading.signals[each.of]
            alike = signal.barrier.buffer is user.barrier.buffer and signal.site.launch is user.site.launch
            if not (alike and isinstance(signal.stmt, kind)):
                raise ValueError("a signal of another kind, or barrier")
            own = located(signal.site, each.at, names)
            here = conj((there(signal.site, own), Eq(slot(signal, own) - slot(user, names))))
            found.append(Named(signal, own, conj((here, *none))))
            none.append(negate(here))
        return found, conj(none)

    def begun(self, user: Signal, names: Names = SAME) -> tuple[list[Named], Formula]:
        """The arrival that begins the phase of a wait or a copy, or the phase before that of an arrival; when there is none."""
        return self.named(self.tagged[user].begun, user, names, ARRIVAL)

    def phases(self, user: Signal, names: Names = SAME) -> list[Named]:
        """The phases to which a signal belongs."""
        return [Named(user, names, TRUE)] if isinstance(user.stmt, ARRIVAL) else self.begun(user, names)[0]

    def landings(self, phases: Sequence[Named]) -> tuple[Landing, ...]:
        """The waits for some phases, by any thread of the block; that they are for no others is proved of their arrivals."""
        found: list[Landing] = []
        for phase in phases:
            threads = {*phase.signal.site.launch.threads}
            at = {s: expr(e) for s, e in phase.names.items() if s not in threads}
            for each in self.tagged[phase.signal].seen:
                wait = self.reading.signals[each.of]
                if not isinstance(wait.stmt, k.BarrierWait) or any(e.syms() & threads for e in at.values()):
                    raise ValueError("a phase that is one thread's, or no wait for it")
                found.append(Landing(wait.site, tuple(e.substitute(at) for e in each.at), negate(phase.there), True))
        return tuple(found)

    def first(self, site: Site, cases: Iterator[Sequence[Formula]]) -> Point | None:
        """An instance of `site` in one of some cases."""
        points = (witness((*site.where, *case), self.premises) for case in cases)
        return next((point for point in points if point is not None), None)

    def alone(self, arrival: Signal) -> Point | None:
        """Two threads that arrive in one turn."""
        site = arrival.site
        sides = sides_of(site, site)
        here = equal_all([s for s in site.dims if s not in site.launch.threads], sides)
        return witness((*domains(site, site, sides), *here, _differ(site.launch.threads, sides)), self.premises)

    def unmade(self, arrival: Signal) -> Point | None:
        """An arrival at a barrier that is never made."""
        _, none = self.named(self.tagged[arrival].made, arrival, SAME, k.BarrierInit)
        return witness((*arrival.site.where, none), self.premises)

    def spoiled(self, made: Signal, users: Sequence[Signal]) -> Point | None:
        """A barrier that waits for more than one arrival, is made again, or is perhaps not yet known where it is used."""
        fences = known(made.site, map(End, self.tagged[made].seen), self.reading, "init")
        for user in users:
            sides = sides_of(made.site, user.site)
            here = (*domains(made.site, user.site, sides), *_home(made, user, sides))
            if isinstance(user.stmt, k.BarrierInit):
                wrong = _differ(made.site.dims, sides) if user is made and user.stmt.count == 1 else TRUE
            else:
                wrong = not_landed(made.site, user.site, fences, sides, Space.SHARED, later=False)
            if (found := witness((*here, wrong), self.premises)) is not None:
                return found
        return None

    def uncounted(self, arrival: Signal, users: Sequence[Signal]) -> Point | None:
        """An arrival before another that is not the one said to be, or lies in between, or is where there should be none."""

        def cases() -> Iterator[Sequence[Formula]]:
            found, none = self.begun(arrival)
            for each in found:
                yield each.there, negate(disj(textual(each.signal.site, arrival.site, Sides(each.names, SAME))))
            for other in (s for s in users if isinstance(s.stmt, ARRIVAL)):
                own = {s: Sym(f"{s.name}○") for s in own_dims(other.site)}
                earlier = disj(textual(other.site, arrival.site, Sides(own, SAME)))
                here = (there(other.site, own), Eq(slot(other, own) - slot(arrival, SAME)), earlier)
                yield none, *here
                for each in found:
                    yield each.there, *here, disj(textual(each.signal.site, other.site, Sides(each.names, own)))

        return self.first(arrival.site, cases())

    def misnumbered(self, arrival: Signal) -> Point | None:
        """An arrival whose parity is not 0 for the first at a barrier, or that of the one before."""
        tag, dims, (found, none) = self.tagged[arrival], own_dims(arrival.site), self.begun(arrival)
        before = [(p.there, self.tagged[p.signal].number.substitute(p.names) + 1) for p in found]
        cases = zip((*before, (none, ZERO)), tag.own, strict=True)
        whole = ((case, number, located(arrival.site, own, SAME)) for (case, number), own in cases)
        odd = (
            (case, disj((differ(dims, [own[s] for s in dims]), negate(Eq((tag.number - number).substitute(own) % 2)))))
            for case, number, own in whole
        )
        return self.first(arrival.site, odd)

    def misread(self, wait: Signal) -> Point | None:
        """A wait for another parity than that of its phase."""
        parity = getattr(wait.stmt, "parity", ZERO)
        numbers = ((p, self.tagged[p.signal].number.substitute(p.names)) for p in self.begun(wait)[0])
        return self.first(wait.site, ((p.there, negate(Eq((parity - number) % 2))) for p, number in numbers))

    def strays(self, user: Signal) -> Point | None:
        """A wait or a copy of no phase."""
        return witness((*user.site.where, self.begun(user)[1]), self.premises)

    def endless(self, wait: Signal) -> Point | None:
        """A wait for what begins behind it."""
        late = ((p.there, disj(not_behind(p.signal.site, wait.site, Sides(p.names, SAME), False))) for p in self.begun(wait)[0])
        return self.first(wait.site, late)

    def forgotten(self, arrival: Signal) -> Point | None:
        """A phase that its thread does not wait for, or a wait for another one that is said to be for it."""
        dims = own_dims(arrival.site)
        for each in self.tagged[arrival].seen:
            wait = self.reading.signals[each.of]
            own = located(wait.site, each.at, {s: Sym(f"{s.name}○") for s in wait.site.launch.threads})
            own_phases = (p for p in self.phases(wait, own) if p.signal is arrival)
            right = disj(conj((p.there, equal(dims, [p.names[s] for s in dims]))) for p in own_phases)
            if (found := witness((*arrival.site.where, there(wait.site, own), negate(right)), self.premises)) is not None:
                return found
        return never_lands(arrival.site, self.landings(self.phases(arrival)), self.premises)

    def unseen(self, user: Signal) -> Point | None:
        """A signal of a phase where the one before was perhaps not seen to complete."""

        def cases() -> Iterator[Sequence[Formula]]:
            for phase in self.phases(user):
                for before in self.begun(phase.signal, phase.names)[0]:
                    found = self.landings([before])
                    late = not_landed(user.site, user.site, found, Sides(SAME, SAME), Space.SHARED, later=False)
                    yield phase.there, before.there, late

        return self.first(user.site, cases())

    def passed_by(self, user: Signal, users: Sequence[Signal]) -> Point | None:
        """An arrival, or a copy, of a phase that is begun before all have passed a wait for the one before."""
        block = (*user.site.launch.host, *user.site.launch.blocks)
        for wait in (s for s in users if isinstance(s.stmt, k.BarrierWait)):
            sides = sides_of(wait.site, user.site)
            late = disj(unordered(wait.site, user.site, sides, Space.SHARED, later=False))
            facts = (*domains(wait.site, user.site, sides), *equal_all(block, sides), late)
            for phase in self.phases(user, sides.right):
                for before in self.begun(phase.signal, phase.names)[0]:
                    for mine in (p for p in self.begun(wait, sides.left)[0] if p.signal is before.signal):
                        same = (Eq(expr(mine.names[s]) - before.names[s]) for s in own_dims(mine.signal.site))
                        found = witness((*facts, phase.there, before.there, mine.there, *same), self.premises)
                        if found is not None:
                            return found
        return None

    def unlike(self, arrival: Signal, users: Sequence[Signal]) -> Point | None:
        """A turn in which other bytes come than are expected. Raises ValueError where that is not understood."""
        parts: dict[object, tuple[Expr, Box, list[Formula]]] = {}
        for copy in (s for s in users if isinstance(s.stmt, COPY)):
            for phase in (p for p in self.begun(copy)[0] if p.signal is arrival):
                if refuted((*copy.site.where, phase.there, self.premises)):
                    continue  # all of its bytes are of another arm
                own = located(copy.site, self.tagged[copy].own[0], {**{s: s for s in copy.site.dims}, **phase.names})
                apart = differ(own_dims(copy.site), [own[s] for s in own_dims(copy.site)])
                if (found := witness((*copy.site.where, phase.there, apart), self.premises)) is not None:
                    return found
                bytes, box, come = self.parcel(copy, arrival)
                parts.setdefault((self.tagged[copy].part, bytes, box), (bytes, box, []))[2].append(come)
        total = ZERO
        for bytes, box, arms in parts.values():
            inside = [f for turn, (lo, hi) in zip(TURNS, box, strict=False) for f in (Ge(expr(turn) - lo), Ge(hi - turn - 1))]
            unlike = disj((conj(map(negate, arms)), *map(conj, combinations(arms, 2))))
            for wrong in (disj(Ge(lo - hi - 1) for lo, hi in box), conj((*inside, unlike))):
                if (found := witness((*arrival.site.where, wrong), self.premises)) is not None:
                    return found
            total += prod((hi - lo for lo, hi in box), start=bytes)
        if total.syms() & {*TURNS}:
            raise ValueError("how many bytes come depends on the turn")
        return witness((*arrival.site.where, differ((total,), (_expected(arrival),))), self.premises)

    def parcel(self, copy: Signal, arrival: Signal) -> tuple[Expr, Box, Formula]:
        """What a copy brings to an arrival: so many bytes in each of some turns; and when it does. Raises ValueError."""
        stmt, tag = copy.stmt, self.tagged[copy].own[0]
        loops = [loop for loop in copy.site.loops if loop not in arrival.site.loops and expr(loop.sym) in tag]
        if any(loop.sym in arrival.site.dims or loop.step is not ONE for loop in loops):
            raise ValueError("loops over copies that are not understood")
        names = located(copy.site, tag, {loop.sym: turn for loop, turn in zip(loops, TURNS, strict=False)})
        box = tuple((lo.substitute(names), hi.substitute(names)) for lo, hi in map(copy.site.bounds.__getitem__, loops))
        if isinstance(stmt, k.CopyBulk):
            bytes = expr(stmt.source.dtype.bytes) * (stmt.count if stmt.exactly is None else stmt.exactly)
        else:
            assert isinstance(stmt, k.CopyTensor)
            map_ = next(each for each in copy.site.launch.kernel.maps if each.name == stmt.map)
            bytes = expr(map_.bytes * max(1, len(stmt.rows)))
        begun = disj(p.there for p in self.begun(copy, names)[0] if p.signal is arrival)
        return bytes.substitute(names), box, conj((there(copy.site, names), begun))


def slot(signal: Signal, names: Names) -> Expr:
    """Which of an array of barriers it is."""
    return signal.barrier.index[0].substitute(names)


def _expected(arrival: Signal) -> Expr:
    """The bytes that a phase waits for."""
    stmt = arrival.stmt
    if not isinstance(stmt, k.BarrierExpect):
        return ZERO
    return expr(stmt.bytes) if stmt.exactly is None else stmt.exactly


def _home(a: Signal, b: Signal, sides: Sides) -> Iterator[Formula]:
    """That two instances are of one barrier."""
    yield from equal_all((*a.site.launch.host, *a.site.launch.blocks), sides)
    yield Eq(slot(a, sides.left) - slot(b, sides.right))


def _differ(of: Sequence[Sym], sides: Sides) -> Formula:
    return differ(map(sides.a, of), map(sides.b, of))
