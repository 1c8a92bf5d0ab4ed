"""Reductions into elements that depend on the reduced index, or where the text requests it: each update is an atomic.

par n |i| reduce(h) { h[at[i]] += 1 }   →   par n |i| #atomic { h[at[i]] += 1 }
"""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.program.marked import atomic, is_atomic, mark
from texpr.ir.program.marks import Tensor
from texpr.ir.program.updates import Accumulator, may_meet
from texpr.mapping.bands import rebuild
from texpr.mapping.reductions.way import Case, Rank, Way, serial
from texpr.schedule.tree import Body


def _applies(case: Case) -> bool:
    return not case.is_invariant and all(may_be_atomic(a, case.reducing, case.body) for a in case.found)


def _make(case: Case) -> Body:
    return rebuild(case.plain, rebuild(tuple(map(atomic, case.reducing)), serial(case.body)))


def may_be_atomic(accumulator: Accumulator, reducing: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...]) -> bool:
    """Whether there is an atomic operation for the update, whose order the text frees."""
    update, dtype = accumulator.update, accumulator.targets[0].dtype
    asked = any(is_atomic(loop) for loop in reducing)
    if len(accumulator.targets) != 1 or not may_meet(update, dtype, asked):
        return False
    if _is_engine_s(accumulator, body):
        return True
    return dtype.bits >= 32 and (dtype.is_integer or (update in ("add", "sub") and dtype.name != "tf32"))


def _is_engine_s(accumulator: Accumulator, body: tuple[ir.Stmt, ...]) -> bool:
    """Whether the tensor memory accelerator performs every such update; it supports more types than threads do."""
    copies = [s for s in ir.walk(body) if isinstance(s, ir.Par) and mark(s, Tensor)]
    inside = {id(s) for copy in copies for s in ir.walk(copy.body)}
    binds = (s for s in ir.walk(body) if isinstance(s, ir.Bind) and s.targets[0].buffer is accumulator.targets[0].buffer)
    return all(id(s) in inside for s in binds)


WAY = Way(Rank.ATOMIC, _applies, _make)
