"""Bugs planted in kernels: a barrier, a wait or a commit dropped, a wait for one group too few, a guard or a loop one too long,
shared memory made each thread's own; of copies of tiles other bytes, coordinates and parities, fences and stores dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from texpr.affine.expr import ZERO, Expr, expr
from texpr.ir import kernel as k
from texpr.ir.value import Index, Op, Value
from texpr.isa.levels import Level, Space
from texpr.support.record import Record, replace


class Mutant(Record, dict=True):
    """A kernel with one bug in it. `what` tells the bug, `kind` its class."""

    kind: str
    what: str
    original: str
    kernel: k.Kernel


Change = Callable[[k.Stmt], tuple[k.Stmt, ...]]


def mutants(kernel: k.Kernel) -> Iterator[Mutant]:
    """Every bug of these classes that can be planted in `kernel`."""
    for number, (kind, what, changed) in enumerate(_changes(kernel)):
        name = f"{kernel.name}_bug{number}"
        yield Mutant(kind, f"{kernel.name}: {what}", kernel.name, replace(changed, name=name))


def _changes(kernel: k.Kernel) -> Iterator[tuple[str, str, k.Kernel]]:
    for stmt in k.walk(kernel.body):
        for kind, what, change in _changes_of(stmt):
            yield kind, what, _with(kernel, stmt, change)
    for array in kernel.arrays:
        if array.space is Space.SHARED:
            arrays = tuple(replace(a, space=Space.LOCAL) if a is array else a for a in kernel.arrays)
            yield "placement", f"{array.buffer.name} each thread's own", replace(kernel, arrays=arrays)


def _changes_of(stmt: k.Stmt) -> Iterator[tuple[str, str, Change]]:
    match stmt:
        case k.Barrier() if stmt.level is Level.CLUSTER:
            yield "barrier", f"barrier of the cluster dropped ({_covers(stmt.covers)})", lambda _: ()
            block = replace(stmt, level=Level.BLOCK)
            yield "barrier", f"barrier of the block for that of the cluster ({_covers(stmt.covers)})", lambda _: (block,)
        case k.Barrier():
            yield "barrier", f"barrier dropped ({_covers(stmt.covers)})", lambda _: ()
        case k.WaitAsync():
            yield "wait", f"wait dropped ({_covers(stmt.covers)})", lambda _: ()
            yield (
                "wait",
                f"wait for one group too few ({_covers(stmt.covers)})",
                lambda _: (replace(stmt, pending=stmt.pending + 1),),
            )
        case k.BarrierWait():
            yield "wait", f"wait for a phase dropped ({_covers(stmt.covers)})", lambda _: ()
            yield "wait", f"other phase waited for ({_covers(stmt.covers)})", lambda _: (replace(stmt, parity=1 - stmt.parity),)
        case k.WaitBulk():
            yield "wait", f"wait for stores dropped ({_covers(stmt.covers)})", lambda _: ()
        case k.Fence():
            yield "fence", f"fence {stmt.kind} at line {stmt.span.line} dropped", lambda _: ()
        case k.BarrierExpect():
            twice, half = (None, None) if stmt.exactly is None else (2 * stmt.exactly, stmt.exactly // 2)
            twice, half = replace(stmt, bytes=2 * stmt.bytes, exactly=twice), replace(stmt, bytes=stmt.bytes // 2, exactly=half)
            yield "bytes", f"twice the bytes at line {stmt.span.line}", lambda _: (twice,)
            yield "bytes", f"half the bytes at line {stmt.span.line}", lambda _: (half,)
            if stmt.exactly is not None:
                whole = replace(stmt, exactly=None)
                yield "bytes", f"bytes of all of a tile at line {stmt.span.line}", lambda _: (whole,)
        case k.BarrierArrive():
            yield "arrival", f"arrival at line {stmt.span.line} dropped", lambda _: ()
        case k.CommitAsync() | k.CommitBulk():
            yield "commit", f"commit at line {stmt.span.line} dropped", lambda _: ()
        case k.If() if (longer := _longer(stmt.condition)) is not None:
            yield "guard", f"guard at line {stmt.span.line} one too long", lambda _: (replace(stmt, condition=longer),)
        case k.For() if (rank := _rank(stmt)) is not None:
            early = replace(stmt, hi=stmt.hi - rank)
            yield "exit", f"loop {stmt.sym} at line {stmt.span.line} left early by some blocks", lambda _: (early,)
        case k.For():
            yield "loop", f"loop {stmt.sym} at line {stmt.span.line} one too long", lambda _: (replace(stmt, hi=stmt.hi + 1),)
        case k.CopyTensor() | k.StoreTensor() | k.CopyBulk():
            yield from _changes_of_copy(stmt)
        case k.BarrierInit():
            yield "made", f"barrier at line {stmt.span.line} not made", lambda _: ()
        case _:
            pass


def _changes_of_copy(stmt: k.CopyTensor | k.StoreTensor | k.CopyBulk) -> Iterator[tuple[str, str, Change]]:
    match stmt:
        case k.CopyTensor() if stmt.peers:
            fewer = replace(stmt, peers=stmt.peers[:-1])
            yield "mask", f"tile at line {stmt.span.line} for one block less", lambda _: (fewer,)
            ranks = [sym for e in stmt.target.index for sym in e.syms()]
            same = replace(stmt.target, index=tuple(e.substitute(dict.fromkeys(ranks, ZERO)) for e in stmt.target.index))
            yield (
                "share",
                f"tile at line {stmt.span.line} where another block puts its own",
                lambda _: (replace(stmt, target=same),),
            )
            moved = (stmt.at[0] + 4, *stmt.at[1:])
            yield "coordinate", f"tile at line {stmt.span.line} 4 elements on", lambda _: (replace(stmt, at=moved),)
        case k.CopyTensor() | k.StoreTensor():
            moved = (stmt.at[0] + 4, *stmt.at[1:])
            yield "coordinate", f"tile at line {stmt.span.line} 4 elements on", lambda _: (replace(stmt, at=moved),)
        case k.CopyBulk():
            less = stmt.count - 16 // stmt.source.dtype.bytes
            if stmt.exactly is not None:
                yield "length", f"run at line {stmt.span.line} in full", lambda _: (replace(stmt, exactly=None),)
            elif less:
                yield "length", f"run at line {stmt.span.line} a chunk shorter", lambda _: (replace(stmt, count=less),)
            if stmt.reduce is not None:
                yield "reduce", f"run at line {stmt.span.line} stored", lambda _: (replace(stmt, reduce=None),)
                yield "reduce", f"run at line {stmt.span.line} combined twice", lambda _: (stmt, stmt)
            elif stmt.barrier is None:
                yield "store", f"run at line {stmt.span.line} dropped", lambda _: ()
            from_there = replace(stmt.source, index=(*stmt.source.index[:-1], stmt.source.index[-1] + 4))
            yield "place", f"run at line {stmt.span.line} from 4 elements on", lambda _: (replace(stmt, source=from_there),)


def _rank(loop: k.For) -> Expr | None:
    """Which block of a cluster it is that brings its share of a tile in a loop."""
    shared = [s for s in k.walk(loop.body) if isinstance(s, k.CopyTensor) and s.peers]
    return next((expr(sym) for s in shared for e in s.target.index for sym in e.syms()), None)


def _covers(covers: tuple[k.Covered, ...]) -> str:
    return "; ".join(f"{c.kind} {c.buffer} line {c.source.line} -> {c.sink.line}" for c in covers)


def _with(kernel: k.Kernel, victim: k.Stmt, change: Change) -> k.Kernel:
    return replace(kernel, body=_block(kernel.body, victim, change))


def _block(body: tuple[k.Stmt, ...], victim: k.Stmt, change: Change) -> tuple[k.Stmt, ...]:
    return tuple(each for stmt in body for each in (change(stmt) if stmt is victim else (_inside(stmt, victim, change),)))


def _inside(stmt: k.Stmt, victim: k.Stmt, change: Change) -> k.Stmt:
    match stmt:
        case k.For():
            return replace(stmt, body=_block(stmt.body, victim, change))
        case k.If():
            then, orelse = _block(stmt.then, victim, change), _block(stmt.orelse, victim, change)
            return replace(stmt, then=then, orelse=orelse)
        case _:
            return stmt


def _longer(condition: Value) -> Value | None:
    """The condition with its first strict upper bound of an index one higher."""
    match condition:
        case Op("and", (one, other)):
            changed = _longer(one)
            return None if changed is None else replace(condition, args=(changed, other))
        case Op("lt", (Index(), Index(bound) as right)):
            return replace(condition, args=(condition.args[0], replace(right, expr=bound + expr(1))))
        case _:
            return None
