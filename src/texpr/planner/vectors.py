"""Whether rows of a buffer begin where a vector may: what is promised of addresses and pitches, before a directive asks."""

from __future__ import annotations

from texpr.affine.facts import Known
from texpr.ir.value import Buffer
from texpr.planner.nest import Touch


def rows_begin_even(buffer: Buffer, lanes: int, known: Known) -> bool:
    """Whether every row begins at a multiple of `lanes` elements in memory; results begin where a schedule asks for it."""
    starts = buffer.role not in ("input", "inout") or not (buffer.align or buffer.dtype.bytes) % (lanes * buffer.dtype.bytes)
    pitches = buffer.strides[:-1] if buffer.strides is not None else buffer.shape[-1:] if buffer.rank > 1 else ()
    return starts and all(known.multiple(pitch, lanes) for pitch in pitches)


def begins_even(touch: Touch, lanes: int, known: Known) -> bool:
    """The same, and that `touch` begins at a multiple of `lanes` in its row."""
    return bool(touch.index) and known.multiple(touch.index[-1].base, lanes) and rows_begin_even(touch.buffer, lanes, known)
