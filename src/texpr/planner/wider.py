"""What callers would have to promise for accesses of whole vectors: where arrays begin, and that rows are whole vectors.

    fn scale(x: f32[m, n]): f32[m, n]     x begins at a multiple of 16 bytes; n % 4 == 0

A launcher tests it, and takes a plan for callers who keep the promise, or the other one.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import Expr, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.ops.rules import runs
from texpr.ir.program.text import print_directive
from texpr.ir.value import Buffer
from texpr.isa.target import Target
from texpr.relation.facts import known
from texpr.schedule.rewrite.materialise import given
from texpr.support.record import Record


class Promise(Record):
    """`align`: bytes of which the address of a parameter is a multiple, by name. `where`: what holds of sizes."""

    align: dict[str, int]
    where: tuple[ir.Compare, ...]

    def __bool__(self) -> bool:
        return bool(self.align or self.where)


def may_be_wide(plan: k.Plan, target: Target) -> bool:
    """Whether a wide plan is worth looking for: kernels that are launched one after the other."""
    return target.has_blocks and all(isinstance(step, k.Launch) for step in plan.steps)


def same_directives(one: ir.Schedule, other: ir.Schedule | None) -> bool:
    """Whether two schedules say the same: then a promise is of no use to the planner."""
    return other is not None and [*map(print_directive, one.directives)] == [*map(print_directive, other.directives)]


def promise(function: ir.Function, bytes_: int, of: frozenset[str] | None = None) -> Promise:
    """What makes every row of a parameter or result begin at a multiple of so many bytes, as far as that is not known; only
    `of` these arrays, where they are named."""
    facts = known(given(function))
    arrays = [b for b in (*function.params, *function.results) if b.rank and (of is None or b.name in of)]
    align = {b.name: bytes_ for b in arrays if b.role in ("input", "inout") and (b.align or b.dtype.bytes) % bytes_}
    lanes: dict[Expr, int] = {}
    for buffer in arrays:
        count = bytes_ // buffer.dtype.bytes
        for pitch in _pitches(buffer):
            if count > 1 and not pitch.is_constant and not facts.multiple(pitch, count):
                lanes[pitch] = max(count, lanes.get(pitch, 0))
    rests = dict.fromkeys(pitch % count for pitch, count in lanes.items())  # of 9 * c and of c it may be the same
    return Promise(align, tuple(ir.Compare("==", rest, expr(0)) for rest in rests))


def _pitches(buffer: Buffer) -> Iterator[Expr]:
    """How many elements the rows of a buffer are apart."""
    if buffer.strides is not None:
        yield from buffer.strides[:-1]
    elif buffer.rank > 1:
        yield buffer.shape[-1]


def in_vectors(plan: k.Plan) -> frozenset[str]:
    """The parameters and results that are accessed several elements at once, or copied in boxes by an engine."""
    outside, kernels = {*plan.params, *plan.results}, tuple(k.kernels(plan.steps))
    firsts = (first for kernel in kernels for stmt in k.walk(kernel.body) for first, count in runs(stmt) if count > 1)
    touched = {*(first.buffer for first in firsts), *(each.buffer for kernel in kernels for each in kernel.maps)}
    return frozenset(buffer.name for buffer in touched & outside)
