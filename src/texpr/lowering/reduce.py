"""Team reductions: each thread's share into registers, then over lanes by exchange, then over warps through shared memory.

Before (256 threads): `par N |i| reduce(s) { s += x[i] }`. After:

    partial:  sum = 0; for (i = thread; i < N; i += 256) sum += x[i]
              sum += sum of lane ^ 16; … ^ 8; … ^ 4; … ^ 2; … ^ 1
              if (lane == 0) scratch[warp] = sum
    total:    all = scratch[0]; for (w = 1; w < 8; w++) all += scratch[w]
              s += all                                          once, or in each thread's own copy

What must stand between the halves, and before the scratch memory is used again, is found with all other barriers. The order is
fixed, so that results are the same in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.types import BOOL, I32
from texpr.ir.updates import identity
from texpr.ir.value import Buffer, Index, Literal, Load, Op, Ref, Value
from texpr.lowering.emit import MOST_UNROLLED, Emitter
from texpr.lowering.team import Leaf
from texpr.mapping.nest import Nest
from texpr.mapping.reductions import Accumulator

WARP = 32


@dataclass(slots=True)
class Reduction:
    """The registers and scratch arrays of one team reduction."""

    own: tuple[tuple[Ref, ...], ...]
    scratch: tuple[tuple[Buffer, ...], ...]
    rank: Sym | None = None


def joined(update: ir.Update) -> ir.Update:
    """How partial values join: differences were subtracted already, so their shares add."""
    return "add" if update == "sub" else update


def start(leaf: Leaf, nest: Nest, rank: Sym | None, emitter: Emitter) -> Reduction:
    """Names for a reduction's registers and, where the team is more than one warp, its scratch arrays.

    `rank`: of a block in the cluster whose blocks share the reduction; each has a part of the arrays then.
    """
    warps = expr(min(nest.team, nest.threads) // WARP)

    def ref(accumulator: Accumulator, at: int) -> Ref:
        target = accumulator.targets[at]
        return Ref(emitter.names.sym(f"{target.buffer.name.split(chr(39))[0]}_own"), target.dtype)

    def scratch(own: Ref) -> Buffer:
        shape = (warps,) if rank is None else (expr(nest.blocks), warps)
        return Buffer(emitter.names.name(f"{own.sym.name}_warps"), own.dtype, shape, "local")

    own = tuple(tuple(ref(a, at) for at in range(len(a.targets))) for a in leaf.accumulators)
    return Reduction(own, tuple(tuple(scratch(r) for r in refs) for refs in own) if nest.team > WARP else (), rank)


def partial(
    leaf: Leaf,
    reduction: Reduction,
    nest: Nest,
    thread: Expr,
    emitter: Emitter,
    spread: Callable[[ir.Par], Iterator[k.Stmt]],
) -> Iterator[k.Stmt]:
    """Each thread's share, combined over the lanes of its warp and left for the other warps."""
    assert isinstance(leaf.stmt, ir.Par)
    for accumulator, own in zip(leaf.accumulators, reduction.own, strict=True):
        start_values = identity(joined(accumulator.update), [r.dtype for r in own])
        for ref, value in zip(own, start_values, strict=True):
            yield k.Declare(ref.sym, ref.dtype, value, leaf.stmt.span)
        emitter.elements[accumulator.key] = own
    yield from spread(leaf.stmt)
    for accumulator in leaf.accumulators:
        del emitter.elements[accumulator.key]
    mask = min(nest.team, WARP) // 2
    while mask:
        yield from _exchange(leaf, reduction, mask, emitter)
        mask //= 2
    if reduction.scratch:
        own_block = () if reduction.rank is None else (expr(reduction.rank),)
        first = Op("eq", (Index(thread % WARP, I32), Literal(0, I32)), BOOL)
        stores = tuple(
            k.Store(Load(array, (*own_block, thread // WARP)), ref, leaf.stmt.span)
            for refs, arrays in zip(reduction.own, reduction.scratch, strict=True)
            for ref, array in zip(refs, arrays, strict=True)
        )
        yield k.If(first, stores, span=leaf.stmt.span)


def _exchange(leaf: Leaf, reduction: Reduction, mask: int, emitter: Emitter) -> Iterator[k.Stmt]:
    for accumulator, own in zip(leaf.accumulators, reduction.own, strict=True):
        others = tuple(Ref(emitter.names.sym(f"{r.sym.name}_xor{mask}"), r.dtype) for r in own)
        for ref, other in zip(own, others, strict=True):
            yield k.Exchange(other.sym, ref, mask, WARP, leaf.stmt.span)
        yield from emitter.join(own, joined(accumulator.update), others, _bind(accumulator, leaf))


def total(leaf: Leaf, reduction: Reduction, nest: Nest, leader: Value | None, emitter: Emitter) -> Iterator[k.Stmt]:
    """The combination over warps, and the update of the element that was reduced into. `leader`: its guard."""
    for number, accumulator in enumerate(leaf.accumulators):
        own = reduction.own[number]
        bind = _bind(accumulator, leaf)
        if reduction.scratch:
            arrays = reduction.scratch[number]
            own = tuple(Ref(emitter.names.sym(f"{r.sym.name}_all"), r.dtype) for r in own)
            for ref, array in zip(own, arrays, strict=True):
                yield k.Declare(ref.sym, ref.dtype, Load(array, tuple(ZERO for _ in array.shape)), leaf.stmt.span)
            yield from _others(leaf, own, arrays, emitter, bind, () if reduction.rank is None else (ZERO,))
            if reduction.rank is not None:
                block = emitter.names.sym("other")
                step = tuple(_others(leaf, own, arrays, emitter, bind, (expr(block),)))
                kind = "unroll" if nest.team <= MOST_UNROLLED * WARP else "serial"
                yield k.For(block, ONE, expr(nest.blocks), step, ONE, kind, span=leaf.stmt.span)
        targets = tuple(emitter.target(t) for t in accumulator.targets)
        update = tuple(emitter.join(targets, joined(accumulator.update), own, bind))
        if leaf.replicated or leader is None:
            yield from update
        else:
            yield k.If(leader, update, span=leaf.stmt.span)


def _others(
    leaf: Leaf, own: tuple[Ref, ...], arrays: tuple[Buffer, ...], emitter: Emitter, bind: ir.Bind, block: tuple[Expr, ...]
) -> Iterator[k.Stmt]:
    """The partial values of the warps of a block joined, of the first block (or the only one) but that of its first warp."""
    assert bind.update is not None
    first = ZERO if block and block[0] is not ZERO else ONE
    count = arrays[0].shape[-1]
    if first is count:
        return
    warp = emitter.names.sym("warp")
    loaded = tuple(Load(array, (*block, expr(warp))) for array in arrays)
    step = tuple(emitter.join(own, joined(bind.update), loaded, bind))
    yield k.For(warp, first, count, step, ONE, "unroll", span=leaf.stmt.span)


def _bind(accumulator: Accumulator, leaf: Leaf) -> ir.Bind:
    return ir.Bind(accumulator.targets, accumulator.targets, accumulator.update, leaf.stmt.span)
