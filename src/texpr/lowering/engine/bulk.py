"""Bulk copies of runs by the engine, without a tensor map: the part of a region inside of the tensor, and the operations.

par 8 |a| #tma(0, 8, 32, bulk) { par 32 |b| { if a + 8 * bi < M and b + 32 * bk < K { C[…] = Cs[a, b] } } }

for a < min(M - 8 * bi, 8) { bulk C[a + 8 * bi, 32 * bk] = Cs[a, 0] count 32 exactly min(K - 32 * bk, 32) }

A test bounds the index of one loop, or depends on none: then it is a predicate. Rows that are contiguous in both memories form
one run. The engine checks no bounds, so each run begins and ends, at every size, at a multiple of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import product
from math import prod

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr, maximum, minimum
from texpr.affine.facts import Known
from texpr.ir import kernel as k
from texpr.ir.value import Index, Load, Op, Value, walk
from texpr.ir.value.types import BOOL, I64
from texpr.isa.engine import CHUNK
from texpr.lowering.engine.box_copy import BoxCopy
from texpr.lowering.engine.holes import follows
from texpr.presburger.formula import Ge
from texpr.relation.conditions import Condition, condition
from texpr.relation.facts import in_loop, known
from texpr.schedule.edits import staged_by
from texpr.support.diagnostic import Limitation, limitation
from texpr.support.record import Record, replace


class Bounds(Record):
    """The indices of a loop for which its tests hold: at least each of `lows`, less than each of `highs`."""

    lows: tuple[Expr, ...]
    highs: tuple[Expr, ...]

    @property
    def low(self) -> Expr:
        """The first index."""
        return maximum(*self.lows)

    @property
    def high(self) -> Expr:
        """One more than the last index."""
        return minimum(*self.highs)

    @property
    def count(self) -> Expr:
        """The number of indices; it may be negative if there are none."""
        return self.high - self.low

    @property
    def is_whole(self) -> bool:
        """Whether all indices of the loop satisfy the tests."""
        return self.lows == (ZERO,) and len(self.highs) == 1 and self.highs[0].is_constant


class Clipped(Record):
    """The part of a region that is copied, a box: `asked` has to hold, and `bounds` are the indices of each dimension."""

    asked: tuple[Value, ...]
    bounds: tuple[Bounds, ...]
    known: Known

    def fits(self, bounds: Bounds, least: int) -> bool:
        """Whether there are provably at least so many indices."""
        return all(self.known.nonnegative(high - low - least) for low, high in product(bounds.lows, bounds.highs))

    def exactly(self, step: BoxCopy) -> Expr | None:
        """The number of bytes, if it is not the whole region; else None."""
        if all(each.is_whole for each in self.bounds):
            return None
        counts = (b.count if self.fits(b, 0) else maximum(b.count, ZERO) for b in self.bounds)
        return prod(counts, start=expr(step.boxes.size))


def clipped(step: BoxCopy, facts: Sequence[Expr], sizes: Collection[Sym]) -> Clipped:
    """The part of a step's region for which its tests hold, given `facts`. Raises Limitation if it is no box."""
    own = [(sym, expr(extent)) for sym, extent in zip(step.loops, step.boxes.extent, strict=True) if sym is not None]
    every = (*facts, *(fact for sym, extent in own for fact in in_loop(sym, extent)))
    lows: dict[Sym, list[Expr]] = {sym: [] for sym, _ in own}
    highs: dict[Sym, list[Expr]] = {sym: [] for sym, _ in own}
    asked: list[Value] = []
    if step.tested.fill is not None:
        raise limitation("E0916", step.span, "a copy without a map fills nothing", offers=staged_by(step.span, "tma", "ld"))
    for test in dict.fromkeys(step.tested.tests):
        if follows(test, every, sizes):
            continue
        if any(isinstance(part, Load) for part in walk(test)):
            raise _no_box(step)
        match tuple(k.value_symbols(test) & step.syms), condition(test):
            case (), _:
                asked.append(test)
            case (sym,), Condition(Ge(value), True) if (slope := _slope(value, sym)) is not None:
                rest = value - expr(sym) * slope
                (highs if slope < 0 else lows)[sym].append(rest + 1 if slope < 0 else -rest)
            case _:
                raise _no_box(step)
    here = known(facts)
    found: list[Bounds] = []
    for sym, extent in zip(step.loops, step.boxes.extent, strict=True):
        low = [e for e in lows.get(sym, ()) if not here.nonnegative(-e)] if sym is not None else []
        high = [e for e in highs.get(sym, ()) if not here.nonnegative(e - extent)] if sym is not None else []
        found.append(Bounds((ZERO, *low), (expr(extent), *high)))
    return Clipped(tuple(asked), tuple(found), here)


def _slope(value: Expr, sym: Sym) -> int | None:
    """The coefficient of a symbol in a value, if it is 1 or −1, else None."""
    slope = next((c for monomial, c in value.terms if monomial == (sym,)), 0)
    return slope if abs(slope) == 1 and sym not in (value - expr(sym) * slope).syms() else None


def _no_box(step: BoxCopy) -> Limitation:
    reason = f"the part of `{step.tensor.buffer.name}` that is copied is no box of it"
    return limitation("E0916", step.span, reason, offers=staged_by(step.span, "ld"))


class _Run(Record):
    """The dimensions of a region from `first` on as one run of at most `most` elements: `bounds` are the indices of the first
    dimension, each of `unit` elements."""

    first: int
    most: int
    bounds: Bounds
    unit: int


def starts(step: BoxCopy, ends: tuple[Load, Load], what: Clipped, barrier: Load | None) -> tuple[k.Stmt, ...]:
    """Starts the copies between `ends`, corresponding elements of the tile and of the tensor in the kernel's memory.

    With a barrier they are loads, and complete there; without one they are stores, and reduce as the step does.
    """
    run = _joined(step, ends, what)
    lows = dict(zip(step.loops[run.first :], what.bounds[run.first :], strict=True))
    begins = {sym: bounds.low for sym, bounds in lows.items() if sym is not None}
    tile, tensor = (replace(end, index=tuple(e.substitute(begins) for e in end.index)) for end in ends)
    _require_chunks(step, (tile, tensor), run, what.known)
    length = run.bounds.count * run.unit
    if length.is_constant and length.constant <= 0:
        return ()
    exactly, most = (None, length.constant) if length.is_constant else (length, run.most)
    target, source = (tensor, tile) if barrier is None else (tile, tensor)
    body: tuple[k.Stmt, ...] = (k.CopyBulk(target, source, most, barrier, step.reduce, exactly, span=step.span),)
    if exactly is not None and not what.fits(run.bounds, 1):
        body = (k.If(Op("lt", (Index(ZERO, I64), Index(length, I64)), BOOL), body, span=step.span),)
    outer = zip(step.loops[: run.first], what.bounds[: run.first], strict=True)
    for sym, bounds in reversed(tuple(outer)):
        if sym is not None:
            body = (k.For(sym, bounds.low, bounds.high, body, ONE, "serial", span=step.span),)
    return body


def _joined(step: BoxCopy, ends: tuple[Load, Load], what: Clipped) -> _Run:
    """The most dimensions, from the innermost on, that are contiguous in both memories."""
    if any(_grown(end, step.loops[-1]) is not ONE for end in ends):
        reason = f"elements of a row of `{step.tile.buffer.name}` are no neighbours in memory"
        raise limitation("E0916", step.span, reason, help="rows of its memory may be padded, but not rearranged")
    first = len(step.loops) - 1
    most, unit = step.boxes.extent[first], 1
    while first and all(each.is_whole for each in what.bounds[first:]):
        sym = step.loops[first - 1]
        if sym is not None and any(_grown(end, sym) is not expr(most) for end in ends):
            break
        first -= 1
        most, unit = most * step.boxes.extent[first], most
    return _Run(first, most, what.bounds[first], unit)


def _grown(end: Load, sym: Sym | None) -> Expr:
    """The stride of an index in memory, in elements."""
    if sym is None:
        return ONE
    on = replace(end, index=tuple(e.substitute({sym: expr(sym) + 1}) for e in end.index))
    return on.offset - end.offset


def _require_chunks(step: BoxCopy, begin: tuple[Load, Load], run: _Run, facts: Known) -> None:
    """Refuses runs that are not proved to begin and end at multiples of 16 bytes."""
    size = step.boxes.size
    for end in begin:
        place = end.offset
        if not facts.multiple(place * size, CHUNK):
            reason = f"runs of `{end.buffer.name}` need not begin at multiples of {CHUNK} bytes: {place} elements"
            raise limitation("E0916", step.span, reason, offers=staged_by(step.span, "ld"))
    for bound in (*run.bounds.lows, *run.bounds.highs):
        if not facts.multiple(bound * run.unit * size, CHUNK):
            reason = f"runs of `{step.tensor.buffer.name}` need not end with {CHUNK} bytes: at {bound} elements"
            raise limitation("E0916", step.span, reason, offers=staged_by(step.span, "tma", "ld"))


def names(ends: tuple[Load, Load]) -> Iterator[Load]:
    """The elements of tables that select rows."""
    for end in ends:
        for _, meaning in end.data:
            yield from (node for node in walk(meaning) if isinstance(node, Load))
