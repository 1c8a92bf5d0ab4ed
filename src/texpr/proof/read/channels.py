"""Rings of slots between two roles, as found in the text of a kernel; that they are rings is proved in `plan.channels`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.affine.expr import ONE, ZERO, expr
from texpr.ir.operation import Arrives, Brings, Makes, Releases, Waits
from texpr.presburger.formula import Ge
from texpr.presburger.solve.omega import refuted
from texpr.proof.read.events import Channel, Launch, Reading, Signal
from texpr.support.record import replace

MOST = 16
"""Loops are taken to begin their work in one of so many first turns."""


def channels(reading: Reading, launch: Launch) -> Iterator[Channel]:
    """The rings of a launch: arrays of barriers that warps release and one wait is for, with the fill behind that wait."""
    every = [s for s in reading.signals if s.site.launch is launch and not isinstance(s.what, Makes)]
    if len(launch.threads) != 1:
        return
    for acquire in (s for s in every if isinstance(s.what, Waits)):
        (block, at), releases = acquire.site.path[-1], _others(acquire, every, Releases)
        fills = (s for s in every if isinstance(s.what, Arrives) and s.site.path[-1][0] is block and s.site.path[-1][1] > at)
        fill = min(fills, key=lambda s: s.site.path[-1][1], default=None)
        uses = () if fill is None else _others(fill, every, Waits)
        if fill is None or not uses:
            continue
        behind = tuple(each for each in releases if each.site.loops and each.site.loops == fill.site.loops[:-1])
        inside = tuple(each for each in releases if each not in behind)
        if inside and _are_alike((acquire, fill, *uses, *inside), behind):
            first = {signal: min(map(_first, own)) for own in ((acquire,), (fill,), uses, inside) for signal in own}
            ends = expr(_threads(fill)[0]), _threads(releases[0])
            *around, loop = fill.site.loops
            tiles = around[0] if around else None
            found = Channel(loop, acquire, fill, uses, releases, first, *ends, tiles)
            last = {signal: found.count - late for late, signal in enumerate(reversed(behind), 1)}
            if tiles is None or tiles.sym not in found.count.syms():
                yield replace(found, last=last)


def _others(one: Signal, every: Sequence[Signal], kind: type) -> tuple[Signal, ...]:
    """What arrives or waits at the barrier of a signal beside it; nothing, if some of that is of another kind. Copies that
    bring bytes are counted apart."""
    mine = [s for s in every if s.barrier.buffer is one.barrier.buffer and s is not one and not isinstance(s.what, Brings)]
    return tuple(mine) if all(isinstance(s.what, kind) for s in mine) else ()


def _are_alike(signals: tuple[Signal, ...], behind: tuple[Signal, ...]) -> bool:
    """Whether signals are in one loop, alone or in one over tiles, in roles, in no test of data, and of as many slots."""
    loops = {s.site.loops for s in signals}
    sizes = {s.barrier.buffer.shape for s in (*signals, *behind)}
    around = signals[0].site.loops
    plain = 1 <= len(around) <= 2 and all(each.step is ONE and each.kind == "serial" for each in around)
    starts = plain and all(signals[0].site.bounds[each][0] is ZERO for each in around[:-1])
    return starts and len(loops) == len(sizes) == 1 and all(s.site.role and not s.site.tests for s in (*signals, *behind))


def _threads(signal: Signal) -> tuple[int, int]:
    """The threads of the role that a signal is in."""
    role, warp = signal.site.role, signal.site.launch.kernel.warp
    assert role is not None
    return role.first * warp, (role.first + role.warps) * warp


def _first(signal: Signal) -> int:
    """The first turn in which a signal may be, by what is plain."""
    loop = signal.site.loops[-1]
    turns = (turn for turn in range(MOST, 0, -1) if refuted((*signal.site.where, Ge(turn - 1 - expr(loop.sym)))))
    return next(turns, 0)
