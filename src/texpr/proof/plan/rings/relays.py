"""Groups of threads that take the iterations of a loop in turn: the premises of the lemma of docs/theory/channels.md.

In iteration t the group t % G waits until the group before it has handed over, and then hands over itself. By the lemma a
wait ends with the phase that is meant, none waits for ever, and what a group did before it handed over comes before what the
next one does behind its wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.affine.expr import ZERO, Expr
from texpr.ir.operation import Makes, Releases
from texpr.isa.levels import WARP
from texpr.presburger.formula import TRUE, Formula, Ge, between, conj, differ, disj, negate
from texpr.presburger.questions import Point, witness
from texpr.proof.common.asked import Asked, Claim
from texpr.proof.plan.landing import there
from texpr.proof.plan.rings.channels import Cases, P, Q, T, made, turn_of, unmade
from texpr.proof.read.events import Reading, Relay, Signal
from texpr.proof.read.order import Sides, not_behind
from texpr.support.record import Record


class Handover(Record, eq=False):
    """Groups that take turns, as they were found."""

    relay: Relay
    reading: Reading
    premises: Formula

    def questions(self) -> Iterator[Asked]:
        """The obligations."""
        take = self.relay.take
        for what, how, cases in (
            ("groups, counts", "the group whose turn it is waits, and each of its warps hands over once", self.miscounted),
            ("groups, phase", "barriers and parities follow from the turn", self.misread),
            ("groups, trip counts", "each turn is taken, and handed over by who took it", self.missed),
            ("groups, no deadlock", "what is waited for comes before in the text", self.endless),
            ("groups, life", "each barrier is made once, before a barrier of all", self.unmade),
        ):
            claim = Claim(what, take.barrier.buffer.name, how, take.stmt.span, take.site.launch.kernel.name)
            yield claim, self.first, (cases,)

    def first(self, cases: Cases) -> Point | None:
        """An instance in one of some cases."""
        points = (witness((*self.relay.take.site.launch.domain, *case), self.premises) for case in cases())
        return next((point for point in points if point is not None), None)

    def at(self, signal: Signal, thread: Expr, tile: Expr = T) -> Formula:
        """The condition that a thread waits, or arrives, in a turn."""
        exists = there(signal.site, turn_of(self.relay, signal, tile, thread))
        return conj((exists, between(ZERO, thread, signal.site.launch.kernel.threads)))

    def late(self, one: Signal, p: Expr, tile: Expr, other: Signal, q: Expr) -> Formula:
        """The condition that one signal, in `tile`, is not before another in the text."""
        sides = Sides(turn_of(self.relay, one, tile, p), turn_of(self.relay, other, T, q))
        return disj(not_behind(one.site, other.site, sides, False))

    def miscounted(self) -> Iterator[Sequence[Formula]]:
        """A thread of another group, or one of this group that is missing; another number of arrivals, or other ones."""
        relay, kernel = self.relay, self.relay.take.site.launch.kernel
        first, end = relay.own(T)
        for signal in (relay.take, relay.give):
            yield self.at(signal, P), negate(between(first, P, end))
            yield self.at(signal, P), between(first, Q, end), negate(self.at(signal, Q))
        whole = kernel.warp == WARP and not relay.threads[0] % WARP and not relay.size % WARP and relay.groups > 1
        said = whole and relay.size * relay.groups == relay.threads[1] - relay.threads[0]
        one = isinstance(relay.give.what, Releases) and relay.give.what.blocks == 1
        counted = all(count * WARP == relay.size for _, count in made(self.reading, relay.take))
        if not (said and one and counted) or any(self.others()):
            yield (TRUE,)

    def others(self) -> Iterator[bool]:
        """What else waits or arrives at these barriers, or does so where data says so."""
        relay = self.relay
        for each in (s for s in self.reading.signals if s.barrier.buffer is relay.take.barrier.buffer):
            own = each in (relay.take, relay.give) or isinstance(each.what, Makes)
            if not own or each.site.tests or each.site.launch is not relay.take.site.launch:
                yield True

    def misread(self) -> Iterator[Sequence[Formula]]:
        """A barrier that is not the group's, or of the next one; a parity that is not of the phase that was handed over."""
        relay, groups = self.relay, self.relay.groups
        phase = (T + (groups - 1)) // groups - 1
        told = (
            (relay.take, relay.take.barrier.index[0], T % groups),
            (relay.take, relay.take.parity, (phase + 2) % 2),
            (relay.give, relay.give.barrier.index[0], (T + 1) % groups),
        )
        for signal, said, meant in told:
            names = turn_of(relay, signal, T, P)
            yield self.at(signal, P), differ((said.substitute(names),), (meant,))

    def missed(self) -> Iterator[Sequence[Formula]]:
        """A turn that nobody takes, or hands over, or does so first; turns that do not count from 0, or differ for threads."""
        relay = self.relay
        lo, hi = relay.take.site.bounds[relay.tiles]
        if lo is not ZERO or (hi.syms() & {*relay.take.site.launch.threads}) or relay.tiles.step.constant != 1:
            yield (TRUE,)
        (first, _), turns = relay.own(T), between(ZERO, T, hi)
        for signal in (relay.take, relay.give):
            yield turns, negate(self.at(signal, first))
            yield self.at(signal, P), negate(turns)
        yield self.at(relay.take, P), self.at(relay.give, P), self.late(relay.take, P, T, relay.give, P)

    def endless(self) -> Iterator[Sequence[Formula]]:
        """A wait for what is not handed over before it in the text."""
        relay = self.relay
        first, end = relay.own(T - 1)
        waited = self.at(relay.take, P), Ge(T - 1), between(first, Q, end)
        yield *waited, negate(self.at(relay.give, Q, T - 1))
        yield *waited, self.late(relay.give, Q, T - 1, relay.take, P)

    def unmade(self) -> Iterator[Sequence[Formula]]:
        """A barrier that is not made once, or is used before that is known."""
        yield from unmade(self.reading, (self.relay.take, self.relay.give), self.relay.groups, False)
