"""Rings of slots between two sets of threads: the premises of the lemmas of docs/theory/channels.md, each an obligation.

The producer, one thread, waits for an empty slot and has an engine fill it; each lane of the consumer waits for the slot, and
its warp releases it. In a ring of the text threads of the producer fill it, and each thread of both sides arrives by itself.
By the lemmas each wait then ends with the phase that is meant, none waits for ever, and what lanes did before a release comes
before what the producer does behind the wait for it; so it is with arrivals of threads, and waits for a full slot
(`read.order`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import prod
from typing import TypeAlias

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.ir.operation import Arrives, Brings, Makes, Releases, Waits
from texpr.isa.levels import WARP, Space
from texpr.presburger.formula import TRUE, Eq, Formula, Ge, between, conj, differ, disj, negate, rename
from texpr.presburger.questions import Point, witness
from texpr.proof.common.asked import Asked, Claim
from texpr.proof.plan.landing import same, there
from texpr.proof.read.events import Channel, Reading, Relay, Signal, Site
from texpr.proof.read.order import Sides, domains, not_behind, of_one_cluster, ranks, sides_of, unjoined, unordered
from texpr.support.record import Record

N, M, P, Q, T = (expr(Sym(f"{name}○")) for name in ("turn", "other_turn", "thread", "other_thread", "tile"))


LASTING = "its blocks have the same turns, and none ends before others have arrived there"

Cases: TypeAlias = Callable[[], Iterator[Sequence[Formula]]]
"""The cases in which a rule is broken."""


class Ring(Record, eq=False):
    """A channel, as it was found."""

    channel: Channel
    reading: Reading
    premises: Formula

    def questions(self) -> Iterator[Asked]:
        """The obligations; in a ring of the text those of each signal are by themselves, so that it is said which is wrong."""
        c, kernel = self.channel, self.channel.fill.site.launch.kernel.name
        arrivals, waits = (c.acquire, c.fill, *c.uses, *c.releases, *self.others()), (c.acquire, *c.uses)
        for what, how, cases, signals in (
            ("channel, warps", "whole warps wait and arrive, and are on one side", self.torn, ()),
            ("channel, counts", "as many arrivals as are waited for, each by whom it is said", self.miscounted, arrivals),
            ("channel, phase", "slots and parities follow from the turn", self.misread, (*c.first, *c.last)),
            ("channel, trip counts", "both sides pass the same turns", self.unequal, ()),
            ("channel, no deadlock", "what is waited for comes before in the text", self.endless, waits),
            ("channel, life", "each barrier is made once, before a barrier of all", self.unmade, ()),
            ("channel, cluster", LASTING, self.apart, ()),
            ("channel, handed over", "the group that has a tile uses its turns behind all of the tile before", self.seized, ()),
        ):
            if (
                (cases == self.seized and c.relay is None)
                or (cases == self.apart and not c.is_wide)
                or (cases == self.torn and not c.by_threads)
            ):
                continue
            for own in [(each,) for each in signals] if c.by_threads and signals else [signals]:
                about = " and ".join(each.barrier.buffer.name for each in (own if len(own) == 1 else (c.fill, c.acquire)))
                span = (own if len(own) == 1 else (c.acquire,))[0].stmt.span
                yield Claim(what, about, how, span, kernel), self.first, (partial(cases, *own),)

    def first(self, cases: Cases) -> Point | None:
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

    def torn(self) -> Iterator[Sequence[Formula]]:
        """A side that begins or ends within a warp, or has threads of the other one."""
        (first, end), (start, last), warp = (
            self.channel.producers,
            self.channel.consumers,
            self.channel.fill.site.launch.kernel.warp,
        )
        if any(each % warp for each in (first, end, start, last)) or max(first, start) < min(end, last):
            yield (TRUE,)

    def miscounted(self, *signals: Signal) -> Iterator[Sequence[Formula]]:
        """A thread that does not what its side does, another one that does, or does it twice; another number of arrivals."""
        c, others = self.channel, [*self.others()]
        for signal in (each for each in signals if each not in others):
            alike = next(each for each in ((c.acquire,), (c.fill,), c.uses, c.releases) if signal in each)
            first, end = c.producers if signal in (c.acquire, c.fill) else c.users(T)
            yield self.there(signal, N, P), negate(between(first, P, end))
            yield self.there(signal, N, P), between(first, Q, end), self.nowhere(alike if c.by_threads else (signal,), N, Q)
            yield from ((self.there(signal, N, P), self.there(other, N, P)) for other in alike if other is not signal)
        if c.acquire in signals:
            yield self.there(c.acquire, N, P), negate(self.there(c.fill, N, P))
        if c.fill in signals:
            begun = Ge(N - c.slots) if c.by_threads else TRUE  # for the first slots nobody has to wait
            yield begun, self.there(c.fill, N, P), negate(self.there(c.acquire, N, P))
        if not {*others}.isdisjoint(signals) or not all(map(self.is_counted, signals)):
            yield (TRUE,)

    def is_counted(self, signal: Signal) -> bool:
        """Whether barriers are made for what arrives there: one arrival of each thread of a side, or of each warp that uses, in
        each block of a cluster."""
        c, kernel = self.channel, self.channel.fill.site.launch.kernel
        users = signal in (c.acquire, *c.releases)
        (first, end), by = (c.consumers if users else c.producers), 1 if c.by_threads else WARP
        threads = c.users_count if users else end - first
        if c.by_threads:
            plain = isinstance(signal.what, Waits) or (type(signal.what) is Arrives and signal.what.bytes is ZERO)
        else:
            plain = kernel.warp == WARP and first % WARP == 0 and self.is_said()
        own, blocks = c.by_threads or signal in (c.acquire, *c.releases), prod(kernel.cluster) if c.is_wide else 1
        return not own or (plain and all(count * by == threads * blocks for _, count in made(self.reading, signal)))

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
            plain = isinstance(each.what, Makes) or (full and isinstance(each.what, Brings) and not c.by_threads)
            if (full or empty) and not plain and (each not in (*c.first, *c.last) or each.site.tests):
                yield each

    def misread(self, *signals: Signal) -> Iterator[Sequence[Formula]]:
        """A slot, or a parity, that is not that of a turn; or a phase that the text says."""
        c = self.channel
        for signal in signals:
            names, phase = self.at(signal, N, P), c.rank(T, N) - (1 if signal is c.acquire else 0)
            told = [(signal.barrier.index[0], c.slot(N))]
            if isinstance(signal.what, Waits):
                told += [(signal.parity, phase % 2)] + ([] if signal.what.phase is None else [(signal.what.phase, phase)])
            yield from ((self.there(signal, N, P), differ((said.substitute(names),), (meant,))) for said, meant in told)

    def unequal(self) -> Iterator[Sequence[Formula]]:
        """A turn that only some of the signals have, or one before that they have not, or another order of them."""
        c, (lane, _) = self.channel, self.channel.users(T)
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
        if c.by_threads:
            yield self.there(c.fill, N, P), self.there(c.acquire, N, P), self.late(c.acquire, N, P, c.fill, N, P)
        if c.tiles is not None:
            turns = between(ZERO, N, c.count)
            yield self.there(c.fill, N, c.producer), negate(turns)
            yield turns, between(ZERO, T, c.fill.site.bounds[c.tiles][1]), negate(self.there(c.fill, N, c.producer))

    def endless(self, *waits: Signal) -> Iterator[Sequence[Formula]]:
        """A wait for a release, or for a fill, that does not come before it in the text."""
        c = self.channel
        for use in (each for each in waits if each is not c.acquire):
            yield self.there(use, N, P), between(c.producers[0], Q, c.producers[1]), self.late(c.fill, N, Q, use, N, P)
        for condition, tile, before in c.before(T, N) if c.acquire in waits else ():
            first, end = c.users(tile)
            waited = self.there(c.acquire, N, P), condition, between(first, Q, end)
            yield *waited, self.nowhere(c.releases, before, Q, tile)
            for release in c.releases:
                yield *waited, self.there(release, before, Q, tile), self.late(release, before, Q, c.acquire, N, P, tile)

    def seized(self) -> Iterator[Sequence[Formula]]:
        """A use of a tile's turn in a thread before it has waited for the tile, or behind what hands it over."""
        c, relay = self.channel, self.channel.relay
        assert relay is not None
        for use in c.uses:
            names, where = self.at(use, N, P), self.there(use, N, P)
            for bound in (relay.take, relay.give):
                ends = turn_of(relay, bound, T, P)
                first, then = (bound, use) if bound is relay.take else (use, bound)
                sides = Sides(ends, names) if bound is relay.take else Sides(names, ends)
                late = disj(not_behind(first.site, then.site, sides, False))
                yield where, disj((negate(there(bound.site, ends)), late))

    def unmade(self) -> Iterator[Sequence[Formula]]:
        """A slot that is not made once, by the first thread, or is used before that is known."""
        c = self.channel
        yield from unmade(self.reading, (c.acquire, *c.releases), c.slots, c.is_wide)
        if c.by_threads:
            yield from unmade(self.reading, (c.fill, *c.uses), c.slots, c.is_wide)


def turn_of(relay: Relay, signal: Signal, tile: Expr, thread: Expr) -> dict[Sym, Sym | Expr]:
    """The coordinates of what a group does once a tile."""
    launch = signal.site.launch
    names = {**same(Site(launch)), launch.threads[0]: thread, relay.tiles.sym: tile}
    return {sym: names[sym] for sym in signal.site.dims}


def made(reading: Reading, user: Signal) -> list[tuple[Signal, int]]:
    """The initialisations of barriers like that of a signal, with their counts."""
    own = (s for s in reading.signals if s.site.launch is user.site.launch)
    return [(s, s.what.count) for s in own if isinstance(s.what, Makes) and s.barrier.buffer is user.barrier.buffer]


def unmade(reading: Reading, users: Sequence[Signal], slots: int, wide: bool) -> Iterator[Sequence[Formula]]:
    """A barrier, of those at which `users` wait or arrive, that is not made once, by the first thread, or is used before that
    is known. `wide`: from several blocks of a cluster."""
    begun, launch = [each for each, _ in made(reading, users[0])], users[0].site.launch
    found = [each.barrier.index[0] for each in begun]
    if {*found} != {*map(expr, range(slots))} or len({*found}) != len(found):
        yield (TRUE,)
    for each in begun:
        if each.site.loops or each.site.tests:
            yield (TRUE,)
            return
        yield (negate(there(each.site, {**same(each.site), launch.threads[0]: ZERO})),)
        yield *each.site.where, differ(launch.threads, (ZERO,))
        alike = (*launch.host, *(sym for sym in launch.blocks if not wide or sym not in ranks(launch)))
        for signal in users:
            sides = sides_of(each.site, signal.site, alike)
            near = [Eq(sides.a(s) // n - sides.b(s) // n) for s, n in ranks(launch).items()] if wide else []
            late = unordered(each.site, signal.site, sides, Space.SHARED, later=False)
            yield *domains(each.site, signal.site, sides), *near, disj(late)
