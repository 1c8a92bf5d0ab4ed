"""Where a vector may be: what is promised of addresses and pitches, before a directive asks; what a thread reads of a tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from texpr.affine.expr import Sym
from texpr.affine.facts import Known
from texpr.ir.value import Buffer
from texpr.planner.nest import Nest, Touch
from texpr.planner.search import Candidate, Staging

SELDOM = 512
"""Iterations of sums from which on it matters little how they are written."""


def rows_begin_even(buffer: Buffer, lanes: int, known: Known) -> bool:
    """Whether every row begins at a multiple of `lanes` elements in memory; results begin where a schedule asks for it."""
    starts = buffer.role not in ("input", "inout") or not (buffer.align or buffer.dtype.bytes) % (lanes * buffer.dtype.bytes)
    pitches = buffer.strides[:-1] if buffer.strides is not None else buffer.shape[-1:] if buffer.rank > 1 else ()
    return starts and all(known.multiple(pitch, lanes) for pitch in pitches)


def begins_even(touch: Touch, lanes: int, known: Known) -> bool:
    """The same, and that `touch` begins at a multiple of `lanes` in its row; of a buffer that lies flat, its own rows do."""
    if not touch.index or (len(touch.shape) > touch.buffer.rank and not known.multiple(touch.shape[-1], lanes)):
        return False
    return known.multiple(touch.index[-1].base, lanes) and rows_begin_even(touch.buffer, lanes, known)


def fragments(nest: Nest, candidate: Candidate, width: int) -> Mapping[Sym, int]:
    """For each loop along which a thread reads neighbours of a row in shared memory, the elements of a vector of `width` bytes.

    A thread's own iterations of a `par` are neighbours where they are dealt out so, which pays if results that lie along it can
    be written in vectors, too: one by one, they would be written with gaps, to as many sectors each as all of them have. Those
    of a `seq` in a tile always are, and one load where that is unrolled: a compiler merges loads of which it knows where they
    begin.
    """
    seqs = {loop.sym for loop in nest.seqs}
    found: dict[Sym, int] = {}
    for staging in candidate.staged:
        sym = along(nest.of(staging.form.buffer), staging)
        if sym is not None:
            own = candidate.tile[sym] if sym in seqs else _own(nest, candidate, sym)
            lanes = min(own, width // staging.form.buffer.dtype.bytes, found.get(sym, own))
            found[sym] = lanes if candidate.tile[sym] % lanes == 0 and _is_written(nest, sym, lanes) else 1
    return {sym: lanes for sym, lanes in found.items() if lanes > 1}


def along(touches: Sequence[Touch], staging: Staging) -> Sym | None:
    """The loop along which all that is read of a box are neighbours of a row, from its beginning; None where that is none."""
    if not staging.box or staging.form.spread[-1] or len(staging.form.dims[-1]) != 1:
        return None
    ((sym, step),) = staging.form.dims[-1]
    alone = all(t.index is not None and not any(part.varies(sym) for part in t.index[:-1]) for t in touches)
    return sym if step == 1 and alone and not staging.form.bent else None


def _own(nest: Nest, candidate: Candidate, sym: Sym) -> int:
    """A thread's own iterations of a `par`, where these may be neighbours: nothing else is read along it turn by turn."""
    own, size = candidate.own.get(sym, 1), candidate.tile[sym]
    staged, seqs = {each.form.buffer for each in candidate.staged}, {loop.sym for loop in nest.seqs}
    others = (t for t in nest.touches if t.buffer not in staged and t.buffer not in nest.local and not t.writes)
    return 1 if own == size or any(t.along(sym) and t.around & seqs for t in others) else own


def _is_written(nest: Nest, sym: Sym, lanes: int) -> bool:
    """Whether what is written along a loop can be written in vectors of so many elements, or is written seldom."""
    if prod(loop.extent.constant if loop.extent.is_constant else 1 for loop in nest.seqs) >= SELDOM:
        return True
    written = (t for t in nest.touches if t.writes and t.buffer not in nest.local and t.index)
    return all(begins_even(t, lanes, nest.known) for t in written if t.index and t.index[-1].varies(sym))
