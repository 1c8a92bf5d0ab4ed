"""Rings of slots between two roles: the premises of the lemmas of docs/theory/channels.md, each an obligation.

The producer, one thread, waits for an empty slot and fills it; each lane of the consumer waits for the slot, and its warp
releases it. By the lemmas each wait then ends with the phase that is meant, none waits for ever, and what lanes did before a
release comes before what the producer does behind the wait for it (`read.order`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from math import prod

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.ir.operation import Brings, Makes, Releases
from texpr.isa.levels import WARP, Space
from texpr.presburger.formula import TRUE, Eq, Formula, Ge, between, conj, differ, disj, negate, rename
from texpr.presburger.questions import Point, witness
from texpr.proof.common.asked import Asked, Claim
from texpr.proof.plan.landing import same, there
from texpr.proof.read.events import Channel, Reading, Signal, Site
from texpr.proof.read.order import Sides, domains, not_behind, of_one_cluster, ranks, sides_of, unjoined, unordered
from texpr.support.record import Record

N, M, P, Q, T = (expr(Sym(f"{name}○")) for name in ("turn", "other_turn", "thread", "other_thread", "tile"))


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
            ("channel, cluster", "its blocks have the same turns, and none ends before others have arrived there", self.apart),
        ):
            if cases == self.apart and not self.channel.is_wide:
                continue
            yield Claim(what, about, how, acquire.stmt.span, site.launch.kernel.name), self.first, (cases,)

    def first(self, cases: Callable[[], Iterator[Sequence[Formula]]]) -> Point | None:
        """An instance in one of some cases."""
        points = (witness((*self.channel.fill.site.launch.domain, *case), self.premises) for case in cases())
        return next((point for point in points if point is not None), None)

    def at(self, signal: Signal, ordinal: Expr, thread: Expr, tile: Expr = T) -> dict[Sym, Sym | Expr]:
        """The coordinates of a signal."""
        launch = signal.site.launch
        return self.channel.names(signal, tile, ordinal, {**same(Site(launch)), launch.threads[0]: thread})

    def there(self, signal: Signal, ordinal: Expr, thread: Expr, tile: Expr = T) -> Formula:
        """The condition that a signal with this ordinal exists in a thread."""
        launch = signal.site.launch
        facts = there(signal.site, self.at(signal, ordinal, thread, tile))
        return conj((facts, self.channel.there(signal, ordinal), between(ZERO, thread, launch.kernel.threads)))

    def nowhere(self, signals: Iterable[Signal], ordinal: Expr, thread: Expr, tile: Expr = T) -> Formula:
        """The condition that none of some signals exists with this ordinal in a thread."""
        return negate(disj(self.there(signal, ordinal, thread, tile) for signal in signals))

    def late(self, one: Signal, n: Expr, p: Expr, other: Signal, m: Expr, q: Expr, tile: Expr = T) -> Formula:
        """The condition that one signal, in `tile`, is not before another in the text, turn by turn."""
        return disj(not_behind(one.site, other.site, Sides(self.at(one, n, p, tile), self.at(other, m, q)), False))

    def miscounted(self) -> Iterator[Sequence[Formula]]:
        """A thread that does not what its role does, or another one that does, or does it twice, or another number of warps."""
        c, (first, end) = self.channel, self.channel.consumers
        for signal in (*c.uses, *c.releases):
            yield self.there(signal, N, P), negate(between(first, P, end))
            yield self.there(signal, N, P), between(first, Q, end), negate(self.there(signal, N, Q))
        for one, other in (*combinations(c.uses, 2), *combinations(c.releases, 2)):
            yield self.there(one, N, P), self.there(other, N, P)
        for signal, other in ((c.acquire, c.fill), (c.fill, c.acquire)):
            yield self.there(signal, N, P), differ((P,), (c.producer,))
            yield self.there(signal, N, P), negate(self.there(other, N, P))
        kernel = c.fill.site.launch.kernel
        alone = kernel.warp == WARP and first % WARP == 0 and not any(self.others()) and self.is_said()
        blocks = prod(kernel.cluster) if c.is_wide else 1
        if not alone or any(count * WARP != (end - first) * blocks for _, count in self.made()):
            yield (TRUE,)

    def is_said(self) -> bool:
        """Whether all signals say alike whether blocks of a cluster share the slots, which they do if one fills another's."""
        c = self.channel
        blocks = prod(c.fill.site.launch.kernel.cluster) if c.is_wide else 1
        same = all(isinstance(each.what, Releases) and each.what.blocks == blocks for each in c.releases)
        sent = any(each.site.sender for each in self.reading.signals if each.barrier.buffer is c.fill.barrier.buffer)
        return same and (c.is_wide or not sent)

    def apart(self) -> Iterator[Sequence[Formula]]:
        """A turn that a block has and another one of its cluster has not; a release behind which a block may have ended."""
        c, launch = self.channel, self.channel.fill.site.launch
        names, together = of_one_cluster(launch, "▷")
        here = (*together, *(rename(fact, names) for fact in launch.domain))
        if not names:
            yield (TRUE,)
        for signal in (c.acquire, c.fill, *c.uses, *c.releases):
            exists = self.there(signal, N, P)
            yield *here, exists, negate(rename(exists, names))
        yield *here, differ((c.count,), (c.count.substitute(names),))
        for release in c.releases:
            yield self.there(release, N, P), unjoined(release.site)

    def others(self) -> Iterator[Signal]:
        """What else arrives or waits at barriers of the ring, or does so where data says so."""
        c = self.channel
        for each in (s for s in self.reading.signals if s.site.launch is c.fill.site.launch):
            full, empty = (each.barrier.buffer is own.barrier.buffer for own in (c.fill, c.acquire))
            plain = isinstance(each.what, Makes) or (full and isinstance(each.what, Brings))
            if (full or empty) and not plain and (each not in (*c.first, *c.last) or each.site.tests):
                yield each

    def misread(self) -> Iterator[Sequence[Formula]]:
        """A slot, or a parity, that is not that of a turn."""
        c, rank = self.channel, self.channel.rank(T, N)
        phases = {c.acquire: rank + 1, **dict.fromkeys(c.uses, rank)}
        for signal in (*c.first, *c.last):
            names = self.at(signal, N, P)
            yield self.there(signal, N, P), differ((signal.barrier.index[0].substitute(names),), (c.slot(N),))
            if signal in phases:
                yield self.there(signal, N, P), differ((signal.parity.substitute(names),), (phases[signal] % 2,))

    def unequal(self) -> Iterator[Sequence[Formula]]:
        """A turn that only some of the signals have, or one before that they have not, or another order of them."""
        c, lane = self.channel, expr(self.channel.consumers[0])
        for signals, thread in (((c.fill,), c.producer), (c.uses, lane), (c.releases, lane)):
            for signal in signals:
                yield self.there(signal, N, thread), Ge(-N - 1)
                yield self.there(signal, N, thread), between(ZERO, M, N), self.nowhere(signals, M, thread)
        yield self.there(c.fill, N, c.producer), self.nowhere(c.uses, N, lane)
        for use in c.uses:
            yield self.there(use, N, lane), negate(self.there(c.fill, N, c.producer))
        for release in c.releases:
            yield self.there(release, N, P), self.nowhere(c.uses, N, P)
            yield from ((self.there(release, N, P), self.there(u, N, P), self.late(u, N, P, release, N, P)) for u in c.uses)
        if c.tiles is not None:
            turns = between(ZERO, N, c.count)
            yield self.there(c.fill, N, c.producer), negate(turns)
            yield turns, between(ZERO, T, c.fill.site.bounds[c.tiles][1]), negate(self.there(c.fill, N, c.producer))

    def endless(self) -> Iterator[Sequence[Formula]]:
        """A wait for a release, or for a fill, that does not come before it in the text."""
        c = self.channel
        for condition, tile, before in c.before(T, N):
            waits = self.there(c.acquire, N, P), condition, between(c.consumers[0], Q, c.consumers[1])
            yield *waits, self.nowhere(c.releases, before, Q, tile)
            for release in c.releases:
                yield *waits, self.there(release, before, Q, tile), self.late(release, before, Q, c.acquire, N, P, tile)
        for use in c.uses:
            yield self.there(use, N, P), self.late(c.fill, N, c.producer, use, N, P)

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
            wide = self.channel.is_wide
            alike = (*launch.host, *(sym for sym in launch.blocks if not wide or sym not in ranks(launch)))
            for signal in (self.channel.acquire, *self.channel.releases):
                sides = sides_of(each.site, signal.site, alike)
                near = [Eq(sides.a(s) // n - sides.b(s) // n) for s, n in ranks(launch).items()] if wide else []
                late = unordered(each.site, signal.site, sides, Space.SHARED, later=False)
                yield *domains(each.site, signal.site, sides), *near, disj(late)
