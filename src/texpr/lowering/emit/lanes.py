"""One thread's reduction with a free order, by vector lanes.

Before: `par N |i| reduce(s) { s += x[i] }`. After, with 32 lanes:

    lanes[u] = 0                                             for each lane
    for (b = 0; b < N / 32; b++)  lanes[u] += x[b * 32 + u]  in each lane at once
    for (i = N / 32 * 32; i < N; i++)  lanes[i - N / 32 * 32] += x[i]
    s += lanes[0] + lanes[1] + …                             in order

If memory bandwidth is the limit, long parts of the loop are read as four concurrent streams, each with lanes of its own, as a
core has more reads in flight for several streams than for one: on two cores of a Xeon, a sum of 256 MiB took 5.8 ms in four
streams of 16 KiB and 6.2 ms in one with huge pages, and 8.4 and 10.8 ms without.

The lanes of several accumulators are in one loop. Loops inside the reduction are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from texpr.affine.expr import ONE, ZERO, Expr, Min, expr, maximum
from texpr.affine.ranges import bounds
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.rewrite import substitute_block
from texpr.ir.program.updates import Accumulator, accumulators, identity
from texpr.ir.steps import Vectors
from texpr.ir.value import Buffer, Load, Op, Ref, walk
from texpr.ir.value.operators import OPS
from texpr.lowering.emit.emitter import Emitter, is_simple
from texpr.lowering.emit.reduce import joined
from texpr.mapping.bands import band
from texpr.relation.facts import known
from texpr.support.limits import LARGEST_SIZE
from texpr.support.record import Record

STREAMS, GROUPS = 4, 256
"""The number of concurrent streams, and the groups of lanes in each part of a stream."""


class _Own(Record):
    """The lanes of one accumulator: an array of registers for each target."""

    accumulator: Accumulator
    arrays: tuple[Buffer, ...]


class _Shape(Record):
    """The number of concurrent streams, and the lanes of each."""

    streams: int
    lanes: int

    @property
    def all(self) -> int:
        """The lanes of all streams."""
        return self.streams * self.lanes


def in_lanes(around: Callable[[ir.Stmt], Iterable[Expr]], vectors: Vectors) -> Callable[[Emitter, ir.Par], Iterator[k.Stmt]]:
    """The emission of a reduction within one thread. `around`: expressions that are non-negative where a loop begins."""
    return partial(_reduce, around, vectors)


def _reduce(around: Callable[[ir.Stmt], Iterable[Expr]], vectors: Vectors, emitter: Emitter, par: ir.Par) -> Iterator[k.Stmt]:
    loops, body = band(par)
    found = accumulators(body, frozenset(b for p in loops for b in p.reduce))
    if not is_simple(body, emitter.atomics) or any(p.reduce != par.reduce for p in loops):
        yield emitter.loop(ir.Seq(par.sym, par.extent, par.body, par.reduce, span=par.span))
        return
    *outer, inner = loops
    shape = _shape(inner, body, found, vectors)
    own = tuple(_Own(a, tuple(_array(t, shape, emitter) for t in a.targets)) for a in found)
    for each in own:
        yield from _start(each, shape, emitter, par)
    extent, facts = inner.extent, known(around(inner))
    ends = atom.args if isinstance(atom := extent.as_atom, Min) else (extent,)
    if not all(map(facts.nonnegative, ends)):  # an empty loop has no parts, though starts are rounded down
        extent = maximum(extent, ZERO)
    yield from _around(tuple(outer), tuple(_run(emitter, inner, extent, body, own, shape)))
    for each in own:
        yield from _finish(each, shape, emitter, par)


def _shape(loop: ir.Par, body: tuple[ir.Stmt, ...], found: tuple[Accumulator, ...], vectors: Vectors) -> _Shape:
    """Several streams if little is computed with the loaded data, and the loop is long enough.

    A loop of unknown length must allow several parts, which excludes loops over the partial sums of blocks. The lanes of one of
    several streams are a cache line.
    """
    ops = (node for stmt in ir.walk(body) for value in ir.values(stmt) for node in walk(value) if isinstance(node, Op))
    single = vectors.lanes
    lanes = min(single, vectors.line // max(t.dtype.bytes for a in found for t in a.targets))
    _, most = bounds(loop.extent, dict.fromkeys(loop.extent.syms(), (0, LARGEST_SIZE)))
    long = most is None or most >= STREAMS * GROUPS * lanes * (1 if loop.extent.is_constant else STREAMS)
    return _Shape(STREAMS, lanes) if long and all(OPS[op.name].exact for op in ops) else _Shape(1, single)


def _array(target: Load, shape: _Shape, emitter: Emitter) -> Buffer:
    array = Buffer(emitter.names.name(f"{target.buffer.name}_lanes"), target.dtype, (expr(shape.all),), "local")
    emitter.arrays.append(k.Array(array, k.Space.LOCAL, "partial values in vector lanes"))
    return array


def _around(loops: tuple[ir.Par, ...], body: tuple[k.Stmt, ...]) -> tuple[k.Stmt, ...]:
    for loop in reversed(loops):
        body = (k.For(loop.sym, ZERO, loop.extent, body, ONE, span=loop.span),)
    return body


def _start(own: _Own, shape: _Shape, emitter: Emitter, par: ir.Par) -> Iterator[k.Stmt]:
    lane = emitter.names.sym("lane")
    values = identity(joined(own.accumulator.update), [a.dtype for a in own.arrays])
    stores = tuple(k.assign(Load(a, (expr(lane),)), v, par.span) for a, v in zip(own.arrays, values, strict=True))
    yield k.For(lane, ZERO, expr(shape.all), stores, ONE, "simd", span=par.span)


def _run(
    emitter: Emitter, loop: ir.Par, extent: Expr, body: tuple[ir.Stmt, ...], own: tuple[_Own, ...], shape: _Shape
) -> Iterator[k.Stmt]:
    """Whole parts of all streams, then whole groups of one stream's lanes, then the remaining iterations."""
    done = ZERO
    if shape.streams > 1:
        stretch, group, stream = (emitter.names.sym(f"{loop.sym.base}_{name}") for name in ("stretch", "group", "stream"))
        length = GROUPS * shape.lanes
        first = (expr(stretch) * shape.streams * GROUPS + expr(group)) * shape.lanes + expr(stream) * length
        inside = _group(emitter, loop, body, own, shape, first, expr(stream) * shape.lanes)
        streams = k.For(stream, ZERO, expr(shape.streams), (inside,), ONE, "unroll", span=loop.span)
        groups = k.For(group, ZERO, expr(GROUPS), (streams,), ONE, span=loop.span)
        count = extent // (shape.streams * length)
        yield k.For(stretch, ZERO, count, (groups,), ONE, span=loop.span)
        done = count * (shape.streams * length)
    group, whole = emitter.names.sym(f"{loop.sym.base}_group"), extent // shape.lanes
    inside = _group(emitter, loop, body, own, shape, expr(group) * shape.lanes, ZERO)
    yield k.For(group, done // shape.lanes, whole, (inside,), ONE, span=loop.span)
    rest = _with(emitter, body, own, expr(loop.sym) - whole * shape.lanes)
    yield k.For(loop.sym, whole * shape.lanes, extent, rest, ONE, span=loop.span)


def _group(
    emitter: Emitter, loop: ir.Par, body: tuple[ir.Stmt, ...], own: tuple[_Own, ...], shape: _Shape, first: Expr, beside: Expr
) -> k.For:
    """One group of a stream's lanes, from iteration `first` on. `beside`: the lanes of earlier streams."""
    lane = emitter.names.sym("lane")
    inside = _with(emitter, substitute_block(body, {loop.sym: first + expr(lane)}), own, expr(lane) + beside)
    return k.For(lane, ZERO, expr(shape.lanes), inside, ONE, "simd", span=loop.span)


def _with(emitter: Emitter, body: tuple[ir.Stmt, ...], own: tuple[_Own, ...], lane: Expr) -> tuple[k.Stmt, ...]:
    """`body` with its accumulators replaced by those of the lane."""
    for each in own:
        emitter.elements[each.accumulator.key] = tuple(Load(a, (lane,)) for a in each.arrays)
    emitted = emitter.block(body)
    for each in own:
        del emitter.elements[each.accumulator.key]
    return emitted


def _finish(own: _Own, shape: _Shape, emitter: Emitter, par: ir.Par) -> Iterator[k.Stmt]:
    bind = ir.Bind(own.accumulator.targets, own.accumulator.targets, own.accumulator.update, par.span)
    update = joined(own.accumulator.update)
    totals = tuple(Ref(emitter.names.sym(f"{a.name}_all"), a.dtype) for a in own.arrays)
    for total, array in zip(totals, own.arrays, strict=True):
        yield k.let(total.sym, Load(array, (ZERO,)), par.span)
    lane = emitter.names.sym("lane")
    step = tuple(emitter.join(totals, update, tuple(Load(a, (expr(lane),)) for a in own.arrays), bind))
    yield k.For(lane, ONE, expr(shape.all), step, ONE, "unroll", span=par.span)
    targets = tuple(emitter.target(t) for t in own.accumulator.targets)
    yield from emitter.join(targets, update, totals, bind)
