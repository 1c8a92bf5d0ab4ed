"""Reductions in two stages: chunks of a loop, each into an element of its own, and a loop that combines these.

    par n |i| reduce(s) { s += x[i] }
    →   par n / C |b| { own = 0  par C |i| reduce(own) { own += x[C * b + i] }  parts[b] = own }
        par n / C |p| reduce(s) { s += parts[p] }

With loops `around` it, each of their iterations has its own partial values, which are computed before these loops: they lie
side by side, `parts[j, b]`, so that threads that combine them read whole lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from texpr.affine.expr import ONE, Expr, Sym, expr, minimum
from texpr.ir import program as ir
from texpr.ir.program.copies import copied
from texpr.ir.program.rewrite import Rewriter, replace_loads, substitute_block
from texpr.ir.program.updates import Accumulator, identity
from texpr.ir.value import Buffer, Load
from texpr.mapping.bands import rebuild
from texpr.schedule.tree import Body
from texpr.support.record import replace

Slot: TypeAlias = tuple[Buffer, tuple[Expr, ...]]


def split(
    loops: tuple[ir.Loop, ...],
    body: Body,
    found: tuple[Accumulator, ...],
    most: int,
    fresh: Callable[[str], str],
    around: tuple[ir.Par, ...] = (),
) -> tuple[Body, ir.Par]:
    """The statements that compute partial results of `loops` over `body`, of `most` iterations each, and the loop that
    combines them."""
    outer, *inner = loops
    chunk = _chunk(inner, most)
    blocks = (outer.extent + (chunk - 1)) // chunk
    block = Sym(fresh(f"{outer.sym.base}_block"))
    extents, others = tuple(loop.extent for loop in around), tuple(expr(loop.sym) for loop in around)
    own, partial = _buffers(found, (*extents, blocks), fresh)
    start = expr(block) * chunk
    moved = substitute_block(body, {outer.sym: start + expr(outer.sym)})
    single = chunk == 1 and all(loop.extent.is_constant for loop in inner)  # of open loops proofs ask how far they go
    part = replace(outer, extent=ONE if single else minimum(chunk, outer.extent - start), reduce=tuple(own.values()))
    rest = tuple(replace(loop, reduce=tuple(own.values())) for loop in inner)
    made: Body = (
        *(ir.New(b, span=outer.span) for b in own.values()),
        *(_start(a, own, outer) for a in found),
        *rebuild((part, *rest), _into(moved, found, own)),
        *(_store(a, own, partial, (*others, expr(block)), outer) for a in found),
    )
    if around:
        made = copied(rebuild(tuple(replace(loop, reduce=()) for loop in around), made), fresh)
    first = ir.Par(block, blocks, made, span=outer.span)
    again = Sym(fresh(f"{outer.sym.base}_part"))
    last = ir.Par(
        again,
        blocks,
        tuple(_join(a, partial, (*others, expr(again)), outer) for a in found),
        reduce=tuple(dict.fromkeys(t.buffer for a in found for t in a.targets)),
        span=outer.span,
    )
    return (*(ir.New(b, span=outer.span) for b in partial.values()), first), last


def _chunk(inner: list[ir.Loop], most: int) -> int:
    product = 1
    for loop in inner:
        if not loop.extent.is_constant:
            return 1
        product *= max(1, loop.extent.constant)
    return max(1, most // product)


def _buffers(
    found: tuple[Accumulator, ...], shape: tuple[Expr, ...], fresh: Callable[[str], str]
) -> tuple[dict[Slot, Buffer], dict[Slot, Buffer]]:
    own: dict[Slot, Buffer] = {}
    partial: dict[Slot, Buffer] = {}
    for accumulator in found:
        for target in accumulator.targets:
            slot = _slot(target)
            if slot not in own:
                base = target.buffer.name
                own[slot] = Buffer(fresh(f"{base}_block"), target.dtype, (), "local", span=target.span)
                partial[slot] = Buffer(fresh(f"{base}_parts"), target.dtype, shape, "local", span=target.span)
    return own, partial


def _slot(target: Load) -> Slot:
    return (target.buffer, target.index)


def _start(accumulator: Accumulator, own: dict[Slot, Buffer], outer: ir.Loop) -> ir.Bind:
    dtypes = [t.dtype for t in accumulator.targets]
    targets = tuple(Load(own[_slot(t)], (), span=t.span) for t in accumulator.targets)
    return ir.Bind(targets, identity(accumulator.update, dtypes), span=outer.span)


def _store(
    accumulator: Accumulator, own: dict[Slot, Buffer], partial: dict[Slot, Buffer], at: tuple[Expr, ...], outer: ir.Loop
) -> ir.Bind:
    targets = tuple(Load(partial[_slot(t)], at, span=t.span) for t in accumulator.targets)
    return ir.Bind(targets, tuple(Load(own[_slot(t)], ()) for t in accumulator.targets), span=outer.span)


def _join(accumulator: Accumulator, partial: dict[Slot, Buffer], at: tuple[Expr, ...], outer: ir.Loop) -> ir.Bind:
    update = "add" if accumulator.update == "sub" else accumulator.update
    values = tuple(Load(partial[_slot(t)], at) for t in accumulator.targets)
    return ir.Bind(accumulator.targets, values, update, outer.span)


def _into(body: Body, found: tuple[Accumulator, ...], own: dict[Slot, Buffer]) -> Body:
    """`body` with the updates of the accumulators redirected to the block's own ones."""
    slots = {_slot(t) for a in found for t in a.targets}

    def target(load: Load) -> Load:
        return Load(own[_slot(load)], (), span=load.span) if _slot(load) in slots else load

    reduced = frozenset(buffer for buffer, _ in slots)
    return Rewriter(
        value=lambda v: replace_loads(v, lambda load: target(load) if load.buffer in reduced else None), target=target
    ).block(body)
