"""Rings of slots between two sets of threads, as found in the text of a kernel; that they are rings is proved in
`plan.rings`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.affine.expr import ONE, ZERO, expr
from texpr.ir.operation import Arrives, Brings, Makes, Releases, Waits
from texpr.presburger.formula import Ge, between
from texpr.presburger.solve.omega import refuted
from texpr.proof.read.events import Channel, Launch, Reading, Relay, Signal
from texpr.support.record import replace

MOST = 16
"""Loops are taken to begin their work in one of so many first turns."""


def channels(reading: Reading, launch: Launch) -> Iterator[Channel]:
    """The rings of a launch: arrays of barriers that warps release, or threads arrive at, and one wait is for, with the fill
    behind that wait."""
    every = [s for s in reading.signals if s.site.launch is launch and not isinstance(s.what, Makes)]
    if len(launch.threads) != 1:
        return
    for acquire in (s for s in every if isinstance(s.what, Waits)):
        (block, at), releases = acquire.site.path[-1], _others(acquire, every, Releases)
        fills = (s for s in every if isinstance(s.what, Arrives) and s.site.path[-1][0] is block and s.site.path[-1][1] > at)
        fill = min(fills, key=lambda s: s.site.path[-1][1], default=None)
        uses = () if fill is None else _others(fill, every, Waits)
        if not releases:
            fill, uses, releases = _of_text(acquire, every)
        if fill is None or not uses:
            continue
        behind = tuple(each for each in releases if each.site.loops and each.site.loops == fill.site.loops[:-1])
        inside = tuple(each for each in releases if each not in behind)
        if inside and _are_alike((acquire, fill, *uses, *inside), behind):
            found = _found(acquire, fill, uses, inside, behind)
            if found.tiles is None or found.tiles.sym not in found.count.syms():
                yield found


def relays(reading: Reading, launch: Launch) -> Iterator[Relay]:
    """The groups of a launch that take turns: at each of an array of barriers they wait, and release it, in a role and a loop,
    at one place of the text each."""
    every = [s for s in reading.signals if s.site.launch is launch and not isinstance(s.what, Makes)]
    for take in (s for s in every if isinstance(s.what, Waits) and len(launch.threads) == 1):
        own = [s for s in every if s.barrier.buffer is take.barrier.buffer and s is not take]
        alike = len(own) == 1 and isinstance(own[0].what, Releases) and own[0].site.loops == take.site.loops
        if alike and len(take.site.loops) == 1 and take.site.role is not None and own[0].site.role == take.site.role:
            yield Relay(take.site.loops[0], take, own[0], _threads((take,)))


def _of_text(acquire: Signal, every: Sequence[Signal]) -> tuple[Signal | None, tuple[Signal, ...], tuple[Signal, ...]]:
    """The fill, uses and releases of a ring at whose barriers each thread arrives by itself. The fill is the first arrival at
    another barrier behind the wait, of which the threads that fill, and those that use, are the same on both; or else the
    first of all. What else there is at these barriers is none of it, and is refused."""
    arrivals = [s for s in every if type(s.what) is Arrives and s.what.bytes is ZERO]
    mine, inside = acquire.barrier.buffer, acquire.site.loops
    later = [s for s in arrivals if s.barrier.buffer is not mine and s.site.loops == inside and acquire.site.time < s.site.time]
    later.sort(key=lambda s: s.site.time, reverse=True)
    firsts, releases = {s.barrier.buffer: s for s in later}, tuple(s for s in arrivals if s.barrier.buffer is mine)
    waits = {b: tuple(s for s in every if isinstance(s.what, Waits) and s.barrier.buffer is b) for b in firsts}
    found = [(s, waits[b], releases) for b, s in reversed(firsts.items()) if waits[b]]
    for fill, uses, _ in found if releases and len(found) > 1 else ():
        if _threads((acquire,)) == _threads((fill,)) and _threads(uses) == _threads(releases):
            return fill, uses, releases
    return found[0] if found else (None, (), ())


def _found(
    acquire: Signal, fill: Signal, uses: tuple[Signal, ...], inside: tuple[Signal, ...], behind: tuple[Signal, ...]
) -> Channel:
    """The ring of some signals, of which releases may stand behind its loop."""
    by_threads = not isinstance(inside[0].what, Releases)
    own = ((acquire, fill), uses, inside) if by_threads else ((acquire,), (fill,), uses, inside)
    first = {signal: min(map(_first, alike)) for alike in own for signal in alike}
    producers, consumers = _threads((fill,)), _threads((*uses, *inside))
    *around, loop = fill.site.loops
    ends = (producers if by_threads else (producers[0], producers[0] + 1)), consumers
    found = Channel(loop, acquire, fill, uses, (*inside, *behind), first, *ends, around[0] if around else None)
    among = (r for r in uses[0].site.launch.relays if around and r.tiles is around[0] and r.threads == consumers)
    last = {signal: found.count - late for late, signal in enumerate(reversed(behind), 1)}
    return replace(found, last=last, relay=next(among, None))


def _others(one: Signal, every: Sequence[Signal], kind: type) -> tuple[Signal, ...]:
    """What arrives or waits at the barrier of a signal beside it; nothing, if some of that is of another kind. Copies that
    bring bytes are counted apart."""
    mine = [s for s in every if s.barrier.buffer is one.barrier.buffer and s is not one and not isinstance(s.what, Brings)]
    return tuple(mine) if all(isinstance(s.what, kind) for s in mine) else ()


def _are_alike(signals: tuple[Signal, ...], behind: tuple[Signal, ...]) -> bool:
    """Whether signals are in one loop, alone or in one over tiles, in roles or of the text, in no test of data, and of as many
    slots."""
    acquire, _, *others = signals
    loops = {s.site.loops for s in signals}
    sizes = {s.barrier.buffer.shape for s in (*signals, *behind)}
    around = signals[0].site.loops
    plain = 1 <= len(around) <= 2 and all(each.step is ONE and each.kind == "serial" for each in around)
    starts = plain and all(signals[0].site.bounds[each][0] is ZERO for each in around[:-1])
    if not starts or not len(loops) == len(sizes) == 1 or any(s.site.tests for s in (*signals, *behind)):
        return False
    if any(isinstance(s.what, Releases) for s in others):
        return all(s.site.role for s in (*signals, *behind))
    use = next(s for s in others if isinstance(s.what, Waits))
    return _begins(acquire, use)


def _begins(one: Signal, other: Signal) -> bool:
    """Whether of two waits the first is that for empty slots: it is for a phase before the first one, or else is first in the
    text. A ring of threads may be read from either side."""
    mine, theirs = (
        each.parity.substitute({loop.sym: expr(_first(each) if loop is each.site.loops[-1] else 0) for loop in each.site.loops})
        for each in (one, other)
    )
    return one.site.time < other.site.time if mine is theirs else mine is ONE


def _threads(signals: tuple[Signal, ...]) -> tuple[int, int]:
    """The threads of the role that signals are in, or the first and the one behind the last that may come to one of them."""
    launch, role = signals[0].site.launch, signals[0].site.role
    if role is not None:
        return role.first * launch.kernel.warp, (role.first + role.warps) * launch.kernel.warp

    def comes(first: int, end: int) -> bool:
        among = between(expr(first), launch.thread, end)
        return any(not refuted((*signal.site.where, among)) for signal in signals)

    warp, threads = launch.kernel.warp, launch.kernel.threads
    warps = [at for at in range(0, threads, warp) if comes(at, at + warp)]
    if not warps:
        return 0, 0
    first = next((at for at in range(warps[0], warps[0] + warp) if comes(at, at + 1)), warps[0])
    last = next((at for at in range(warps[-1] + warp - 1, warps[-1] - 1, -1) if comes(at, at + 1)), warps[-1] + warp - 1)
    return first, last + 1


def _first(signal: Signal) -> int:
    """The first turn in which a signal may be, by what is plain."""
    loop = signal.site.loops[-1]
    turns = (turn for turn in range(MOST, 0, -1) if refuted((*signal.site.where, Ge(turn - 1 - expr(loop.sym)))))
    return next(turns, 0)
