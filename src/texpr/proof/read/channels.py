"""Rings of slots between two roles, as found in the text of a kernel; that they are rings is proved in `plan.channels`."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import ONE, expr
from texpr.ir.operation import Arrives, Makes, Releases, Waits
from texpr.isa.levels import Level
from texpr.presburger.formula import Ge
from texpr.presburger.solve.omega import refuted
from texpr.proof.read.events import Channel, Launch, Reading, Signal

MOST = 16
"""Loops are taken to begin their work in one of so many first turns."""


def channels(reading: Reading, launch: Launch) -> Iterator[Channel]:
    """The rings of a launch: arrays of barriers that warps release and one wait is for, with the fill behind that wait."""
    every = [s for s in reading.signals if s.site.launch is launch]
    if any(axis.level is Level.CLUSTER for axis in launch.kernel.axes):
        return  # other blocks may bring bytes
    for release in (s for s in every if isinstance(s.what, Releases)):
        own = [s for s in every if s.barrier.buffer is release.barrier.buffer and not isinstance(s.what, Makes)]
        waits = [s for s in own if isinstance(s.what, Waits)]
        if len(own) != 2 or len(waits) != 1 or len(launch.threads) != 1:
            continue
        (acquire,) = waits
        for fill in (s for s in every if isinstance(s.what, Arrives) and s.site.path[-1][0] is acquire.site.path[-1][0]):
            uses = [s for s in every if s.barrier.buffer is fill.barrier.buffer and not isinstance(s.what, Makes)]
            kinds = [[s for s in uses if isinstance(s.what, kind)] for kind in (Arrives, Waits)]
            if kinds[0] == [fill] and len(kinds[1]) == 1 and _are_alike(found := (acquire, fill, kinds[1][0], release)):
                first = {signal: _first(signal) for signal in found}
                yield Channel(release.site.loops[0], *found, first, expr(_threads(fill)[0]), _threads(release))
                break


def _are_alike(signals: tuple[Signal, ...]) -> bool:
    """Whether signals are in one loop alone, in roles, in no test of data, and of as many slots."""
    loops = {s.site.loops for s in signals}
    sizes = {s.barrier.buffer.shape for s in signals}
    (loop, *more) = signals[0].site.loops or (None,)
    plain = loop is not None and not more and loop.step is ONE and loop.kind == "serial"
    return plain and len(loops) == len(sizes) == 1 and all(s.site.role and not s.site.tests for s in signals)


def _threads(signal: Signal) -> tuple[int, int]:
    """The threads of the role that a signal is in."""
    role, warp = signal.site.role, signal.site.launch.kernel.warp
    assert role is not None
    return role.first * warp, (role.first + role.warps) * warp


def _first(signal: Signal) -> int:
    """The first turn in which a signal may be, by what is plain."""
    (loop,) = signal.site.loops
    turns = (turn for turn in range(MOST, 0, -1) if refuted((*signal.site.where, Ge(turn - 1 - expr(loop.sym)))))
    return next(turns, 0)
