"""One thread's reduction with a free order, side by side in vector lanes.

Before: `par N |i| reduce(s) { s += x[i] }`. After, with 32 lanes:

    lanes[u] = 0                                             for each lane
    for (b = 0; b < N / 32; b++)  lanes[u] += x[b * 32 + u]  in each lane at once
    for (i = N / 32 * 32; i < N; i++)  lanes[i % 32] += x[i]
    s += lanes[0] + lanes[1] + …                             in order

The lanes of several accumulators go side by side. Loops inside the reduction stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from texpr.affine.expr import ONE, ZERO, Expr, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.rewrite import substitute_block
from texpr.ir.updates import identity
from texpr.ir.value import Buffer, Load, Ref
from texpr.lowering.emit import Emitter, is_simple
from texpr.lowering.reduce import joined
from texpr.mapping.bands import band
from texpr.mapping.reductions import Accumulator, accumulators

LANES = 32


@dataclass(frozen=True, slots=True)
class _Own:
    """The lanes of one accumulator: an array of registers for each target."""

    accumulator: Accumulator
    arrays: tuple[Buffer, ...]


def reduce_in_lanes(emitter: Emitter, par: ir.Par) -> Iterator[k.Stmt]:
    """What one thread runs for `par`, a reduction of its own."""
    loops, body = band(par)
    found = accumulators(body, frozenset(b for p in loops for b in p.reduce))
    if not is_simple(body, emitter.atomics) or any(p.reduce != par.reduce for p in loops):
        yield emitter.loop(ir.Seq(par.sym, par.extent, par.body, par.reduce, span=par.span))
        return
    *outer, inner = loops
    own = tuple(_Own(a, tuple(_array(t, emitter) for t in a.targets)) for a in found)
    for each in own:
        yield from _start(each, emitter, par)
    yield from _around(tuple(outer), tuple(_run(emitter, inner, body, own)))
    for each in own:
        yield from _finish(each, emitter, par)


def _array(target: Load, emitter: Emitter) -> Buffer:
    array = Buffer(emitter.names.name(f"{target.buffer.name}_lanes"), target.dtype, (expr(LANES),), "local")
    emitter.arrays.append(k.Array(array, k.Space.LOCAL, "partial values in vector lanes"))
    return array


def _around(loops: tuple[ir.Par, ...], body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
    for loop in reversed(loops):
        body = (k.For(loop.sym, ZERO, loop.extent, body, ONE, span=loop.span),)
    return body


def _start(own: _Own, emitter: Emitter, par: ir.Par) -> Iterator[k.Stmt]:
    lane = emitter.names.sym("lane")
    values = identity(joined(own.accumulator.update), [a.dtype for a in own.arrays])
    stores = tuple(k.Store(Load(a, (expr(lane),)), v, par.span) for a, v in zip(own.arrays, values, strict=True))
    yield k.For(lane, ZERO, expr(LANES), stores, ONE, "simd", span=par.span)


def _run(emitter: Emitter, loop: ir.Par, body: tuple[ir.Stmt, ...], own: tuple[_Own, ...]) -> Iterator[k.Stmt]:
    """Whole groups of lanes, then what is left of the loop."""
    group, lane = emitter.names.sym(f"{loop.sym.base}_group"), emitter.names.sym("lane")
    whole = loop.extent // LANES
    index = expr(group) * LANES + expr(lane)
    inside = _with(emitter, substitute_block(body, {loop.sym: index}), own, expr(lane))
    lanes = k.For(lane, ZERO, expr(LANES), inside, ONE, "simd", span=loop.span)
    yield k.For(group, ZERO, whole, (lanes,), ONE, span=loop.span)
    rest = _with(emitter, body, own, expr(loop.sym) - whole * LANES)
    yield k.For(loop.sym, whole * LANES, loop.extent, rest, ONE, span=loop.span)


def _with(emitter: Emitter, body: tuple[ir.Stmt, ...], own: tuple[_Own, ...], lane: Expr) -> tuple[k.Stmt, ...]:
    """`body` with its accumulators turned to the lane's own ones."""
    for each in own:
        emitter.elements[each.accumulator.key] = tuple(Load(a, (lane,)) for a in each.arrays)
    emitted = emitter.block(body)
    for each in own:
        del emitter.elements[each.accumulator.key]
    return emitted


def _finish(own: _Own, emitter: Emitter, par: ir.Par) -> Iterator[k.Stmt]:
    bind = ir.Bind(own.accumulator.targets, own.accumulator.targets, own.accumulator.update, par.span)
    update = joined(own.accumulator.update)
    totals = tuple(Ref(emitter.names.sym(f"{a.name}_all"), a.dtype) for a in own.arrays)
    for total, array in zip(totals, own.arrays, strict=True):
        yield k.Declare(total.sym, total.dtype, Load(array, (ZERO,)), par.span)
    lane = emitter.names.sym("lane")
    step = tuple(emitter.join(totals, update, tuple(Load(a, (expr(lane),)) for a in own.arrays), bind))
    yield k.For(lane, ONE, expr(LANES), step, ONE, "unroll", span=par.span)
    targets = tuple(emitter.target(t) for t in own.accumulator.targets)
    yield from emitter.join(targets, update, totals, bind)
