"""Flat tensors viewed with the rows that their subscripts imply.

    A: f32[M * K]     A[i * K + k] with 0 ≤ k < K     A as f32[M, K]: element (i, k)

The region of one iteration is a box in the second view and not in the first. The rows are those that delinearisation proves
(`relation.delinearise`), in all accesses and for every size; memory is unchanged, and so are the subscripts of copies.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.expr import ONE, ZERO, Expr
from texpr.ir.value import Buffer
from texpr.presburger.linear import is_affine
from texpr.relation.delinearise import Subscripts, views
from texpr.relation.facts import known
from texpr.relation.opaque import Opaque
from texpr.schedule.stage.region import Use, inside
from texpr.schedule.state import State
from texpr.support.record import Record, replace


class Flat(Record):
    """The dimensions of the view, with the elements of the tensor, in its order."""

    shape: tuple[Expr, ...]

    def of(self, buffer: Buffer) -> Buffer:
        """`buffer` with these dimensions."""
        return replace(buffer, shape=self.shape, strides=None)

    def meant(self, index: Sequence[Expr], shape: Sequence[Expr]) -> tuple[Expr, ...]:
        """The index in the tensor, of one dimension, for an index in the view."""
        total = ZERO
        for at, extent in zip(index, self.shape, strict=True):
            total = total * extent + at
        return (total,)


def in_rows(state: State, uses: Sequence[Use]) -> tuple[Flat, tuple[Use, ...]] | None:
    """The view of a flat tensor, and `uses` with subscripts in it; None where it has none, or needs none."""
    buffer = uses[0].load.buffer
    if buffer.rank != 1 or buffer.strides is not None or any(use.load.data for use in uses):
        return None
    if all(is_affine(use.index[0]) for use in uses):
        return None
    facts = [inside(state, (*use.outer, *use.inner)) for use in uses]
    opaque = Opaque(state.function.sizes, known(facts[0]))
    subscripts = [Subscripts(use.index, each) for use, each in zip(uses, facts, strict=True)]
    found = views(buffer, subscripts, opaque)
    shape = found[0].shape
    total = ONE
    for extent in shape:
        total = total * extent
    if len(shape) < 2 or total is not buffer.shape[0] or any(view.shape != shape for view in found):
        return None
    return Flat(shape), tuple(replace(use, index=view.index) for use, view in zip(uses, found, strict=True))
