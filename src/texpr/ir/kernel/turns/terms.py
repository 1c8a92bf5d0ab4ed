"""How many terms an instruction adds up in its own arithmetic before its sum begins anew, as the kernel's text shows it.

for ko … {
    for r in 0..64 { part[r] = 0.0 }                                                       every register
    for ki in 0..4 { start instr m64n128k32 …, part[0] 64 update }                         4 · 32 terms
    for r in 0..64 { acc[r] = acc[r] + part[r] }
}

Turns of a loop that says which registers are meant add to others each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import TypeAlias

from texpr.affine.expr import Sym
from texpr.ir.kernel import For, Kernel, Operation, Plan, Stmt, blocks, kernels, walk
from texpr.ir.value import Buffer, Literal

MOST = 1 << 12
"""The most stores that are looked at to see that every register is zero, and the most writes to see which are added to."""

Register: TypeAlias = tuple[int, ...]
"""The subscripts of a register in its array."""


def terms(plan: Plan) -> dict[str, int]:
    """By instruction, the most terms of a sum of its own; none where that is not shown of each of its uses."""
    found = dict[str, int | None]()
    for each in plan.versions:
        for kernel in kernels(each.steps):
            uses = list(_uses(kernel, kernel.body, ()))
            whole: dict[int, Counter[Register]] = {}
            for _, start, counts in uses:
                whole.setdefault(start, Counter()).update(counts)
            for name, start, _ in uses:
                before, count = found.get(name, 0), max(whole[start].values(), default=0) if start else None
                found[name] = None if before is None or count is None else max(before, count)
    return {name: count for name, count in found.items() if count is not None}


def _uses(
    kernel: Kernel, body: Sequence[Stmt], around: tuple[tuple[Stmt, Sequence[Stmt]], ...]
) -> Iterator[tuple[str, int, Counter[Register]]]:
    """Each use of an instruction below, where its sum began, and its terms since, by register; `around`: the statements around,
    each with those before it, the outermost first."""
    for at, stmt in enumerate(body):
        way = (*around, (stmt, body[:at]))
        if isinstance(stmt, Operation):
            if stmt.together in kernel.instr_of:
                yield stmt.together, *_terms(kernel.instr_of[stmt.together].sums, stmt, way)
        else:
            for block in blocks(stmt):
                yield from _uses(kernel, block, way)


def _terms(count: int, use: Operation, way: Sequence[tuple[Stmt, Sequence[Stmt]]]) -> tuple[int, Counter[Register]]:
    """Which statement made what a use sums up zero, by a number, and the terms that the use, of `count`, adds to each register
    since; 0 and none if they are not known."""
    sums, told, turns = {load.buffer for load in use.writes}, _named(use), dict[Sym, range]()
    for stmt, before in reversed(way):
        if isinstance(stmt, For):
            trips = stmt.hi - stmt.lo
            if not trips.is_constant or not stmt.step.is_constant or stmt.step.constant != 1:
                return 0, Counter()
            if stmt.sym in told and stmt.lo.is_constant:
                turns[stmt.sym] = range(stmt.lo.constant, stmt.hi.constant)
            else:
                count *= max(trips.constant, 1)
        starts = [_start(buffer, before) for buffer in sums]
        if sums and len(starts) == 1 and starts[0] is not None:
            few = prod(map(len, turns.values())) * len(use.writes) <= MOST
            return (id(starts[0]), _counted(count, use, turns)) if few and turns.keys() == told else (0, Counter())
    return 0, Counter()


def _named(use: Operation) -> frozenset[Sym]:
    """What says which registers a use writes."""
    return frozenset(sym for load in use.writes for e in load.index for sym in e.syms())


def _counted(count: int, use: Operation, turns: Mapping[Sym, range]) -> Counter[Register]:
    """The terms of each register, of `count` for each of these turns."""
    found = Counter[Register]()
    for values in product(*turns.values()):
        at = dict(zip(turns, values, strict=True))
        found.update({tuple(e.evaluate(at) for e in load.index): count for load in use.writes})
    return found


def _start(buffer: Buffer, before: Sequence[Stmt]) -> Stmt | None:
    """The statement that makes all of some registers zero, if nothing writes them behind it."""
    writing = [stmt for stmt in before if _writes(stmt, buffer)]
    return writing[-1] if writing and _makes_zero(writing[-1], buffer) else None


def _writes(stmt: Stmt, buffer: Buffer) -> bool:
    return any(load.buffer is buffer for each in walk((stmt,)) if isinstance(each, Operation) for load in each.writes)


def _makes_zero(stmt: Stmt, buffer: Buffer) -> bool:
    loops = list[For]()
    while isinstance(stmt, For) and len(stmt.body) == 1:
        loops.append(stmt)
        (stmt,) = stmt.body
    if not isinstance(stmt, Operation) or stmt.reads or len(stmt.writes) != 1 or len(stmt.computed) != 1:
        return False
    (target,), (value,) = stmt.writes, stmt.computed
    if target.buffer is not buffer or target.data:
        return False
    ranges = [(loop.sym, loop.lo, loop.hi) for loop in loops if loop.step.is_constant and loop.step.constant == 1]
    constant = len(ranges) == len(loops) and all(lo.is_constant and hi.is_constant for _, lo, hi in ranges)
    is_zero = isinstance(value, Literal) and value.value == 0
    if not (constant and is_zero and all(e.is_constant for e in buffer.shape)):
        return False
    spans = [range(lo.constant, hi.constant) for _, lo, hi in ranges]
    known = {sym for sym, _, _ in ranges}
    if prod(map(len, spans)) > MOST or not {s for e in target.index for s in e.syms()} <= known:
        return False
    syms: list[Sym] = [sym for sym, _, _ in ranges]
    made = {tuple(e.evaluate(dict(zip(syms, at, strict=True))) for e in target.index) for at in product(*spans)}
    return len(made) == prod(e.constant for e in buffer.shape)
