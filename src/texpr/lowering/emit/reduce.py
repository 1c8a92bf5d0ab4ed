"""Team reductions: a partial sum in registers of each thread, combined over lanes by exchanges, then over warps in shared
memory.

Before (256 threads): `par N |i| reduce(s) { s += x[i] }`. After:

    partial:  sum = 0; for (i = thread; i < N; i += 256) sum += x[i]
              for (step = 0; step < 5; step++) sum += sum of lane ^ (16 >> step)
              if (lane == 0) scratch[warp] = sum
    total:    all = scratch[0]; for (w = 1; w < 8; w++) all += scratch[w]
              s += all                                          once, or in each thread's own copy

Barriers between the halves, and before the scratch memory is used again, are placed with all others. The order of the sum is
fixed, so that results are reproducible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.updates import Accumulator, identity
from texpr.ir.steps import Reduction, Steps
from texpr.ir.steps.work import Half
from texpr.ir.value import Buffer, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.types import BOOL, I32
from texpr.lowering.emit.emitter import Emitter


def joined(update: ir.Update) -> ir.Update:
    """The update that combines partial sums: partial differences are added."""
    return "add" if update == "sub" else update


def partial(
    par: ir.Par,
    half: Half,
    reduction: Reduction,
    steps: Steps,
    thread: Expr,
    emitter: Emitter,
    spread: Callable[[ir.Par], Iterator[k.Stmt]],
) -> Iterator[k.Stmt]:
    """The partial sum of each thread, combined over the lanes of its warp and stored for the other warps."""
    for accumulator, own in zip(half.accumulators, reduction.own, strict=True):
        start_values = identity(joined(accumulator.update), [r.dtype for r in own])
        for ref, value in zip(own, start_values, strict=True):
            yield k.let(ref.sym, value, par.span)
        emitter.elements[accumulator.key] = own
    yield from spread(par)
    for accumulator in half.accumulators:
        del emitter.elements[accumulator.key]
    if steps.team > 1:
        yield _lanes(par, half, reduction, steps, emitter)
    if reduction.warps:
        yield _left(par, reduction.own, reduction.warps, (thread // steps.warp,), thread % steps.warp)
    elif steps.rank is not None:
        yield _left(par, reduction.own, reduction.blocks, (expr(steps.rank), ZERO), thread)


def _left(
    par: ir.Par, own: tuple[tuple[Ref, ...], ...], scratch: tuple[tuple[Buffer, ...], ...], at: tuple[Expr, ...], number: Expr
) -> k.If:
    """The first of some threads stores their partial sums; `number`: the index of these threads."""
    pairs = ((ref, array) for refs, arrays in zip(own, scratch, strict=True) for ref, array in zip(refs, arrays, strict=True))
    stores = tuple(k.assign(Load(array, at), ref, par.span) for ref, array in pairs)
    return k.If(Op("eq", (Index(number, I32), Literal(0, I32)), BOOL), stores, span=par.span)


def middle(par: ir.Par, half: Half, reduction: Reduction, rank: Sym, thread: Expr, emitter: Emitter) -> Iterator[k.Stmt]:
    """The combination over the warps of a block, stored for the other blocks of the cluster."""
    every: list[tuple[Ref, ...]] = []
    for accumulator, own, arrays in zip(half.accumulators, reduction.own, reduction.warps, strict=True):
        found = tuple(Ref(emitter.names.sym(f"{r.sym.name}_block"), r.dtype) for r in own)
        yield from _joined(par, found, arrays, emitter, _bind(accumulator, par))
        every.append(found)
    yield _left(par, tuple(every), reduction.blocks, (expr(rank), ZERO), thread)


def _lanes(par: ir.Par, half: Half, reduction: Reduction, steps: Steps, emitter: Emitter) -> k.For:
    """The butterfly over the lanes of a warp: with the lane at half the distance, then a quarter, down to 1."""
    lanes = min(steps.team, steps.warp)
    step, body = emitter.names.sym("step"), list[k.Stmt]()
    every = [tuple(Ref(emitter.names.sym(f"{r.sym.name}_other"), r.dtype) for r in own) for own in reduction.own]
    for own, others in zip(reduction.own, every, strict=True):
        pairs = zip(own, others, strict=True)
        body += (k.Exchange(other.sym, ref, lanes // 2, steps.warp, span=par.span, shift=expr(step)) for ref, other in pairs)
    for accumulator, own, others in zip(half.accumulators, reduction.own, every, strict=True):
        body += emitter.join(own, joined(accumulator.update), others, _bind(accumulator, par))
    turns = lanes.bit_length() - 1
    return k.For(step, ZERO, expr(turns), tuple(body), ONE, "unroll", span=par.span)


def total(par: ir.Par, half: Half, reduction: Reduction, leader: Value, emitter: Emitter) -> Iterator[k.Stmt]:
    """The combination over warps, and the update of the element that is reduced into. `leader`: its guard."""
    for number, accumulator in enumerate(half.accumulators):
        own = reduction.own[number]
        bind = _bind(accumulator, par)
        if reduction.warps or reduction.blocks:
            arrays = (reduction.blocks or reduction.warps)[number]
            own = tuple(Ref(emitter.names.sym(f"{r.sym.name}_all"), r.dtype) for r in own)
            yield from _joined(par, own, arrays, emitter, bind)
        targets = tuple(emitter.target(t) for t in accumulator.targets)
        update = tuple(emitter.join(targets, joined(accumulator.update), own, bind))
        if half.replicated:
            yield from update
        else:
            yield k.If(leader, update, span=par.span)


def _joined(par: ir.Par, own: tuple[Ref, ...], arrays: tuple[Buffer, ...], emitter: Emitter, bind: ir.Bind) -> Iterator[k.Stmt]:
    """New registers `own`: the partial sums of warps, or blocks, in scratch arrays, combined."""
    assert bind.update is not None
    rest = tuple(ZERO for _ in arrays[0].shape[1:])
    for ref, array in zip(own, arrays, strict=True):
        yield k.let(ref.sym, Load(array, (ZERO, *rest)), par.span)
    other = emitter.names.sym("other" if rest else "warp")
    loaded = tuple(Load(array, (expr(other), *rest)) for array in arrays)
    step = tuple(emitter.join(own, joined(bind.update), loaded, bind))
    yield k.For(other, ONE, arrays[0].shape[0], step, ONE, "unroll", span=par.span)


def _bind(accumulator: Accumulator, par: ir.Par) -> ir.Bind:
    return ir.Bind(accumulator.targets, accumulator.targets, accumulator.update, par.span)
