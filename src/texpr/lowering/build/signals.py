"""Barriers of the text: lanes of a `fully par` arrive and wait at them by themselves, and nothing else orders its parts.

    new full: mbarrier(32)[4]       →    array shared full: u64[4] barrier     init full[0], 32; …  fence init; barrier block
    arrive(full[k % 4])             →    mbarrier arrive full[k % 4]
    wait(full[k % 4], k / 4)        →    mbarrier wait full[k % 4] parity k / 4 % 2 phase k / 4

On a CPU lanes do one part after the other, so barriers are nothing there.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.ops.phases import awaited, initialised
from texpr.ir.program.rewrite import with_blocks
from texpr.isa.cuda import TMA
from texpr.isa.target import Target
from texpr.support.diagnostic import limitation
from texpr.support.record import replace


def signalled(stmt: ir.Instruction, signal: ir.Signal) -> k.Operation:
    """What a lane executes. Of a phase the parity says enough: which two it may be is proved (`proof.plan.rings`)."""
    (barrier,) = stmt.operands
    if signal.phase is None:
        return k.BarrierArrive(barrier, span=stmt.span)
    return awaited(barrier, signal.phase, stmt.span)


def arrays(body: tuple[ir.Stmt, ...]) -> Iterator[k.Array]:
    """The shared memory of barriers."""
    for new in _news(body):
        told = "lane arrives" if new.arrivals == 1 else "lanes arrive"
        yield k.Array(new.buffer, k.Space.SHARED, f"{new.arrivals} {told} in a phase", barrier=True)


def made(body: tuple[ir.Stmt, ...]) -> tuple[tuple[k.Stmt, ...], tuple[k.Covered, ...]]:
    """The operations that make them, and the dependences that the barrier behind these covers."""
    news = [*_news(body)]
    covers = tuple(k.Covered("RAW", new.buffer.name, new.span, new.span) for new in news)
    return tuple(each for new in news for each in initialised(new.buffer, new.arrivals, new.span)), covers


def _news(body: tuple[ir.Stmt, ...]) -> Iterator[ir.New]:
    yield from (stmt for stmt in ir.walk(body) if isinstance(stmt, ir.New) and stmt.arrivals)


def supported(function: ir.Function, target: Target) -> ir.Function:
    """The function; raises Limitation E0541 where it has barriers, and `target` has none."""
    new = next(_news(function.body), None)
    if new is not None and TMA not in target.features:
        told = f"threads of {target.name} do not wait at barriers in shared memory"
        raise limitation("E0541", new.span, told, help="targets from sm_90 on have them; on a CPU lanes need none")
    return function


def without(function: ir.Function) -> ir.Function:
    """The function without barriers, for a machine on which the parts of a `fully par` are done one after the other."""
    return replace(function, body=_block(function.body)) if next(_news(function.body), None) is not None else function


def _block(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    found: list[ir.Stmt] = []
    for stmt in body:
        signal = isinstance(stmt, ir.Instruction) and stmt.signal is not None
        if not signal and not (isinstance(stmt, ir.New) and stmt.arrivals):
            found.append(with_blocks(stmt, tuple(_block(block) for block in ir.blocks(stmt))))
    return tuple(found)
