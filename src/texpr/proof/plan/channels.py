"""Rings of slots between two roles: the premises of the lemmas of docs/theory/channels.md, each an obligation.

The producer, one thread, waits for an empty slot and fills it; each lane of the consumer waits for the slot, and its warp
releases it. By the lemmas each wait then ends with the phase that is meant, none waits for ever, and what lanes did before a
release comes before what the producer does behind the wait for it (`read.order`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.ir.operation import Brings, Makes
from texpr.isa.levels import WARP, Space
from texpr.presburger.formula import TRUE, Formula, Ge, between, conj, differ, disj, negate
from texpr.presburger.questions import Point, witness
from texpr.proof.common.asked import Asked, Claim
from texpr.proof.plan.landing import same, there
from texpr.proof.read.events import Channel, Reading, Signal, Site
from texpr.proof.read.order import Sides, domains, not_behind, sides_of, unordered
from texpr.support.record import Record

N, M, P, Q = (expr(Sym(f"{name}○")) for name in ("turn", "other_turn", "thread", "other_thread"))


class Ring(Record, eq=False):
    """A channel, as it was found."""

    channel: Channel
    reading: Reading
    premises: Formula

    def questions(self) -> Iterator[Asked]:
        """The obligations."""
        acquire, site = self.channel.acquire, self.channel.acquire.site
        about = f"{self.channel.fill.barrier.buffer.name} and {acquire.barrier.buffer.name}"
        for what, how, cases in (
            ("channel, counts", "as many arrivals as are waited for, each by whom it is said", self.miscounted),
            ("channel, phase", "slots and parities follow from the turn", self.misread),
            ("channel, trip counts", "both sides pass the same turns", self.unequal),
            ("channel, no deadlock", "what is waited for comes before in the text", self.endless),
            ("channel, life", "each barrier is made once, before a barrier of all", self.unmade),
        ):
            yield Claim(what, about, how, acquire.stmt.span, site.launch.kernel.name), self.first, (cases,)

    def first(self, cases: Callable[[], Iterator[Sequence[Formula]]]) -> Point | None:
        """An instance in one of some cases."""
        points = (witness((*self.channel.fill.site.launch.domain, *case), self.premises) for case in cases())
        return next((point for point in points if point is not None), None)

    def at(self, signal: Signal, ordinal: Expr, thread: Expr) -> dict[Sym, Sym | Expr]:
        """The coordinates of a signal."""
        return self.channel.names(signal, ordinal, {**same(Site(signal.site.launch)), signal.site.launch.threads[0]: thread})

    def there(self, signal: Signal, ordinal: Expr, thread: Expr) -> Formula:
        """The condition that a signal with this ordinal exists in a thread."""
        launch = signal.site.launch
        facts = there(signal.site, self.at(signal, ordinal, thread))
        return conj((facts, between(ZERO, thread, launch.kernel.threads)))

    def late(self, one: Signal, n: Expr, p: Expr, other: Signal, m: Expr, q: Expr) -> Formula:
        """The condition that one signal is not before another in the text, turn by turn."""
        return disj(not_behind(one.site, other.site, Sides(self.at(one, n, p), self.at(other, m, q)), False))

    def miscounted(self) -> Iterator[Sequence[Formula]]:
        """A thread that does not what its role does, or another one that does, or another number of warps."""
        c, (first, end) = self.channel, self.channel.consumers
        for signal in (c.use, c.release):
            yield self.there(signal, N, P), negate(between(first, P, end))
            yield self.there(signal, N, P), between(first, Q, end), negate(self.there(signal, N, Q))
        for signal, other in ((c.acquire, c.fill), (c.fill, c.acquire)):
            yield self.there(signal, N, P), differ((P,), (c.producer,))
            yield self.there(signal, N, P), negate(self.there(other, N, P))
        kernel = c.fill.site.launch.kernel
        alone = kernel.warp == WARP and kernel.cluster == (1, 1, 1) and first % WARP == 0 and not any(self.others())
        if not alone or any(count * WARP != end - first for _, count in self.made()):
            yield (TRUE,)

    def others(self) -> Iterator[Signal]:
        """What else arrives or waits at barriers of the ring, or does so where data says so."""
        c = self.channel
        for each in (s for s in self.reading.signals if s.site.launch is c.fill.site.launch):
            full, empty = (each.barrier.buffer is own.barrier.buffer for own in (c.fill, c.acquire))
            plain = isinstance(each.what, Makes) or (full and isinstance(each.what, Brings))
            if (full or empty) and not plain and (each not in c.first or each.site.tests):
                yield each

    def misread(self) -> Iterator[Sequence[Formula]]:
        """A slot, or a parity, that is not that of a turn."""
        c, slots = self.channel, self.channel.slots
        for signal, phase in ((c.acquire, N // slots + 1), (c.fill, None), (c.use, N // slots), (c.release, None)):
            names = self.at(signal, N, P)
            yield self.there(signal, N, P), differ((signal.barrier.index[0].substitute(names),), (N % slots,))
            if phase is not None:
                yield self.there(signal, N, P), differ((signal.parity.substitute(names),), (phase % 2,))

    def unequal(self) -> Iterator[Sequence[Formula]]:
        """A turn that only some of the signals have, or one before that they have not, or another order of them."""
        c, lane = self.channel, expr(self.channel.consumers[0])
        for signal, thread in ((c.fill, c.producer), (c.use, lane), (c.release, lane)):
            yield self.there(signal, N, thread), Ge(-N - 1)
            yield self.there(signal, N, thread), between(ZERO, M, N), negate(self.there(signal, M, thread))
        yield self.there(c.fill, N, c.producer), negate(self.there(c.use, N, lane))
        yield self.there(c.use, N, lane), negate(self.there(c.fill, N, c.producer))
        yield self.there(c.release, N, P), negate(self.there(c.use, N, P))
        yield self.there(c.release, N, P), self.late(c.use, N, P, c.release, N, P)

    def endless(self) -> Iterator[Sequence[Formula]]:
        """A wait for a release, or for a fill, that does not come before it in the text."""
        c, before = self.channel, N - self.channel.slots
        waits = self.there(c.acquire, N, P), Ge(before), between(c.consumers[0], Q, c.consumers[1])
        yield *waits, negate(self.there(c.release, before, Q))
        yield *waits, self.late(c.release, before, Q, c.acquire, N, P)
        yield self.there(c.use, N, P), self.late(c.fill, N, c.producer, c.use, N, P)

    def made(self) -> list[tuple[Signal, int]]:
        """The initialisations of barriers for empty slots, with their counts."""
        empty = self.channel.acquire.barrier.buffer
        own = (s for s in self.reading.signals if s.site.launch is self.channel.acquire.site.launch)
        return [(s, s.what.count) for s in own if isinstance(s.what, Makes) and s.barrier.buffer is empty]

    def unmade(self) -> Iterator[Sequence[Formula]]:
        """A slot that is not made once, by the first thread, or is used before that is known."""
        made, launch = [each for each, _ in self.made()], self.channel.acquire.site.launch
        slots = [each.barrier.index[0] for each in made]
        if {*slots} != {*map(expr, range(self.channel.slots))} or len({*slots}) != len(slots):
            yield (TRUE,)
        for each in made:
            if each.site.loops or each.site.tests:
                yield (TRUE,)
                return
            yield (negate(there(each.site, {**same(each.site), launch.threads[0]: ZERO})),)
            yield *each.site.where, differ(launch.threads, (ZERO,))
            for signal in (self.channel.acquire, self.channel.release):
                sides = sides_of(each.site, signal.site, (*launch.host, *launch.blocks))
                late = unordered(each.site, signal.site, sides, Space.SHARED, later=False)
                yield *domains(each.site, signal.site, sides), disj(late)
