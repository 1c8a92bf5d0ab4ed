"""`stage(A, …, via=bulk)`: a region as runs of neighbouring elements, which the engine copies without a tensor map or bounds
check.

So runs are clipped to the tensor, and each is a multiple of 16 bytes, aligned to 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from texpr.affine.expr import ONE, ZERO, Expr
from texpr.affine.facts import Known
from texpr.ir.value import Buffer
from texpr.isa.engine import CHUNK
from texpr.schedule.call import Call
from texpr.schedule.edits import begins_at, promise
from texpr.schedule.stage.boxes import ALLOCATED, dense_strides
from texpr.schedule.stage.region import Box
from texpr.schedule.tensor.rows import Rows
from texpr.support.diagnostic import Note

MOST = (1 << 20) - 1
"""The bytes that a barrier can count in a phase."""


def misplaced(buffer: Buffer, base: Sequence[Expr], extent: Sequence[int], known: Known) -> Expr | None:
    """An offset of the region's rows, in elements, that is not proved to be a multiple of 16 bytes."""
    strides = dense_strides(buffer)
    first = sum((b * s for b, s in zip(base, strides, strict=True)), ZERO)
    rows = (s for s, count in zip(strides[:-1], extent[:-1], strict=True) if count > 1)
    return next((place for place in (first, *rows) if not known.multiple(place * buffer.dtype.bytes, CHUNK)), None)


def require_named_runs(call: Call, found: Rows, known: Known) -> None:
    """The same for rows given by an index table, which may be any of the matrix."""
    region = Box((ZERO, found.load.index[1]), (max(2, found.count), found.width), (1, 1), (1, 1))
    require_runs(call, found.load.buffer, region, known)


def require_runs(call: Call, buffer: Buffer, region: Box, known: Known) -> None:
    """Refuses (E0912) regions that are not proved to be such runs, at every size."""
    if not region.extent:
        raise call.refuse("E0916", f"`{buffer.name}` is a single number, and no run", offers=call.by("ld"))
    size, strides = buffer.dtype.bytes, dense_strides(buffer)
    name, note = buffer.name, Note(f"`{buffer.name}` is declared here", buffer.span)
    if strides[-1] is not ONE or any(step > 1 for step in region.step):
        raise call.refuse("E0916", f"the elements of a row of the region are not neighbours in `{name}`", note)
    if region.extent[-1] * size % CHUNK:
        reason = f"a row of the region has {region.extent[-1] * size} bytes, no multiple of {CHUNK}"
        raise call.refuse(
            "E0916",
            reason,
            help="rows are as long as the loops that walk along them",
            offers=call.by("ld"),
        )
    begins = ALLOCATED if buffer.role not in ("input", "inout") else size
    if (buffer.align or begins) % CHUNK:
        offers = begins_at(buffer, CHUNK)
        raise call.refuse("E0916", f"`{name}` need not begin at a multiple of {CHUNK} bytes", note, offers=offers)
    place = misplaced(buffer, region.base, region.extent, known)
    offers = promise(call.state.function, f"where {buffer.shape[-1]} % {CHUNK // size or 1} == 0")
    if place is not None:
        reason = f"rows of the region need not begin at multiples of {CHUNK} bytes: {place} elements of {buffer.dtype}"
        raise call.refuse("E0916", reason, note, offers=offers)
    first, rest = region.base[-1], buffer.shape[-1] - region.base[-1]
    for room, there in ((first, -first), (rest - region.extent[-1], rest)):
        if not known.nonnegative(room) and not known.multiple(there * size, CHUNK):
            reason = f"where the region reaches beyond `{name}`, the rest of a row need not be whole chunks of {CHUNK} bytes"
            raise call.refuse("E0916", reason, note, offers=offers)
    total = prod(region.extent) * size
    if total > MOST:
        raise call.refuse("E0916", f"the region has {total} bytes, and a barrier counts {MOST}", offers=call.by("ld"))
