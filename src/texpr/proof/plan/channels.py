"""Rings of slots between two roles: the premises of the lemmas of docs/theory/channels.md, each an obligation.

The producer, one thread, waits for an empty slot and fills it; each lane of the consumer waits for the slot, and its warp
releases it. By the lemmas each wait then ends with the phase that is meant, none waits for ever, and what lanes did before a
release comes before what the producer does behind the wait for it (`read.order`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.operation import Brings, Makes
from texpr.isa.levels import Space
from texpr.presburger.formula import TRUE, Formula, Ge, between, conj, differ, disj, negate
from texpr.presburger.questions import Point, witness
from texpr.proof.common.asked import Asked, Claim
from texpr.proof.plan.landing import same, there
from texpr.proof.read.events import Channel, Reading, Signal, Site
from texpr.proof.read.order import Sides, domains, not_behind, sides_of, unordered
from texpr.support.record import Record

N, M, P, Q = (expr(Sym(f"{name}○")) for name in ("turn", "other_turn", "thread", "other_thread"))


class Ring(Record, eq=False):
    """A channel, with the threads of its roles."""

    channel: Channel
    reading: Reading
    premises: Formula

    @property
    def producer(self) -> Expr:
        """The thread that fills."""
        return expr(_role(self.channel.fill.site).first * self._warp)

    @property
    def consumers(self) -> tuple[int, int]:
        """The threads first … end − 1 that use and release."""
        role = _role(self.channel.release.site)
        return role.first * self._warp, (role.first + role.warps) * self._warp

    @property
    def _warp(self) -> int:
        return self.channel.fill.site.launch.kernel.warp

    def questions(self) -> Iterator[Asked]:
        """The obligations."""
        acquire, site = self.channel.acquire, self.channel.acquire.site
        about = f"{self.channel.fill.barrier.buffer.name} and {acquire.barrier.buffer.name}"
        for what, how, cases in (
            ("channel, counts", "as many arrivals as are waited for, each by whom it is said", self.miscounted),
            ("channel, phase", "slots and parities follow from the turn", self.misread),
            ("channel, trip counts", "both sides pass the same turns", self.unequal),
            ("channel, no deadlock", "what is waited for comes before in the text", self.endless),
            ("channel, copies", "behind the wait for an empty slot", self.early),
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
        c, (first, end) = self.channel, self.consumers
        for signal in (c.use, c.release):
            yield self.there(signal, N, P), negate(between(first, P, end))
            yield self.there(signal, N, P), between(first, Q, end), negate(self.there(signal, N, Q))
        for signal, other in ((c.acquire, c.fill), (c.fill, c.acquire)):
            yield self.there(signal, N, P), differ((P,), (self.producer,))
            yield self.there(signal, N, P), negate(self.there(other, N, P))
        if any(made.what.count * self._warp != end - first for made in self.made() if isinstance(made.what, Makes)):
            yield (TRUE,)

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
        c, lane = self.channel, expr(self.consumers[0])
        for signal, thread in ((c.fill, self.producer), (c.use, lane), (c.release, lane)):
            yield self.there(signal, N, thread), Ge(-N - 1)
            yield self.there(signal, N, thread), between(ZERO, M, N), negate(self.there(signal, M, thread))
        yield self.there(c.fill, N, self.producer), negate(self.there(c.use, N, lane))
        yield self.there(c.use, N, lane), negate(self.there(c.fill, N, self.producer))
        yield self.there(c.release, N, P), negate(self.there(c.use, N, P))
        yield self.there(c.release, N, P), self.late(c.use, N, P, c.release, N, P)
        yield self.there(c.fill, N, P), self.late(c.acquire, N, P, c.fill, N, P)

    def endless(self) -> Iterator[Sequence[Formula]]:
        """A wait for a release, or for a fill, that does not come before it in the text."""
        c, before = self.channel, N - self.channel.slots
        waits = self.there(c.acquire, N, P), Ge(before), between(self.consumers[0], Q, self.consumers[1])
        yield *waits, negate(self.there(c.release, before, Q))
        yield *waits, self.late(c.release, before, Q, c.acquire, N, P)
        yield self.there(c.use, N, P), self.late(c.fill, N, self.producer, c.use, N, P)

    def early(self) -> Iterator[Sequence[Formula]]:
        """A copy into a slot that is not behind the wait for it."""
        acquire = self.channel.acquire
        for copy in self.reading.signals:
            if copy.barrier.buffer is self.channel.fill.barrier.buffer and isinstance(copy.what, Brings):
                names = {sym: expr(sym) for sym in acquire.site.dims}
                if self.channel.loop not in copy.site.loops:
                    yield (TRUE,)
                    return
                yield *copy.site.where, negate(there(acquire.site, names))
                yield *copy.site.where, disj(not_behind(acquire.site, copy.site, Sides(names, same(copy.site)), False))

    def made(self) -> list[Signal]:
        """The initialisations of barriers for empty slots."""
        own = (s for s in self.reading.signals if s.site.launch is self.channel.acquire.site.launch)
        return [s for s in own if isinstance(s.what, Makes) and s.barrier.buffer is self.channel.acquire.barrier.buffer]

    def unmade(self) -> Iterator[Sequence[Formula]]:
        """A slot that is not made once, by the first thread, or is used before that is known."""
        made, launch = self.made(), self.channel.acquire.site.launch
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


def _role(site: Site) -> k.Role:
    """The role around a signal. Raises ValueError if there is none."""
    nodes = (block[at] for block, at in site.path)
    found = next((node.role for node in nodes if isinstance(node, k.If) and node.role), None)
    if found is None:
        raise ValueError("it is in no role")
    return found
