"""For which turn of a loop each wait at a barrier of copies is."""

from __future__ import annotations

from texpr.affine.expr import expr
from texpr.ir import kernel as k
from texpr.reading.events import Reading, Signal

FAR = 64
"""The most turns that a copy may be on its way."""


def waited(reading: Reading) -> tuple[int | None, ...]:
    """For each wait, in order, how many turns of the innermost loop around both ago its phase was begun."""
    waits = (s for s in reading.signals if isinstance(s.stmt, k.BarrierWait))
    return tuple(
        next((n for s in reading.signals if _arrives(s, w) for n in [_before(w, s)] if n is not None), None) for w in waits
    )


def _arrives(signal: Signal, wait: Signal) -> bool:
    alike = signal.barrier.buffer is wait.barrier.buffer and signal.site.launch is wait.site.launch
    return alike and isinstance(signal.stmt, k.BarrierExpect | k.BarrierArrive)


def _before(wait: Signal, arrival: Signal) -> int | None:
    """How many turns before a wait its barrier was the one at which the arrival is."""
    common = [loop for loop in wait.site.loops if loop in arrival.site.loops]
    first = next(i < j for (x, i), (y, j) in zip(arrival.site.path, wait.site.path, strict=False) if x is not y or i != j)
    for turns in range(0 if first else 1, FAR if common else 1):
        moved = {common[-1].sym: expr(common[-1].sym) - common[-1].step * turns} if common else {}
        if arrival.barrier.index[0].substitute(moved) is wait.barrier.index[0]:
            return turns
    return None
