"""Flat tensors seen with the rows that their subscripts speak of.

    A: f32[M * K]     A[i * K + k] with 0 ≤ k < K     A as f32[M, K]: element (i, k)

What one iteration touches is a box of the one and none of the other. The rows are those that delinearisation proves
(`relation.delinearise`), in all accesses and for every size; memory is the same, and so are the subscripts that copies have.
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
    """The dimensions that are seen, of as many elements as the tensor has, in its order."""

    shape: tuple[Expr, ...]

    def of(self, buffer: Buffer) -> Buffer:
        """`buffer` with these dimensions."""
        return replace(buffer, shape=self.shape, strides=None)

    def meant(self, index: Sequence[Expr], shape: Sequence[Expr]) -> tuple[Expr, ...]:
        """The index in the tensor, of one dimension, of an index in those that are seen."""
        total = ZERO
        for at, extent in zip(index, self.shape, strict=True):
            total = total * extent + at
        return (total,)


def in_rows(state: State, uses: Sequence[Use]) -> tuple[Flat, tuple[Use, ...]] | None:
    """A flat tensor's dimensions, and `uses` with their subscripts in them; None where it has none, or needs none."""
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
