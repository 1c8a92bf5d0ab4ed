"""Streams: rows that groups of lanes read in successive iterations, with the element that the first lane reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.ir.kernel import For, If, Stmt, declared, memory
from texpr.ir.value import Load
from texpr.support.record import replace


def streams(groups: For) -> Iterator[tuple[For, Load, bool]]:
    """For each row that lanes read in the body of `groups`: the loop over lanes, the element of its first lane, and whether it
    is read unconditionally; otherwise it may be out of bounds."""
    inside = declared(groups.body)
    for lanes, start in _rows(groups.body):
        for load in dict.fromkeys(memory(lanes.body)[0]):
            first = replace(load, index=tuple(e.substitute({**start, lanes.sym: lanes.lo}) for e in load.index))
            known = not any(e.syms() & inside for e in first.index)
            if known and _is_row(load, groups, lanes):
                yield lanes, first, not any(isinstance(stmt, If) for stmt in lanes.body)


def _rows(body: Iterable[Stmt]) -> Iterator[tuple[For, dict[Sym, Expr]]]:
    """The loops over lanes in `body`, for each iteration of unrolled loops around them: streams that are read side by side."""
    for loop in body:
        if isinstance(loop, For) and loop.hi.is_constant and loop.kind == "simd":
            yield loop, {}
        elif isinstance(loop, For) and loop.hi.is_constant and loop.lo == ZERO and loop.kind == "unroll":
            for turn in range(0, loop.hi.constant, loop.step.constant):
                yield from ((lanes, {loop.sym: expr(turn), **start}) for lanes, start in _rows(loop.body))


def _is_row(load: Load, groups: For, lanes: For) -> bool:
    """Whether neighbouring lanes, and successive groups, access neighbouring elements."""
    if not load.index or load.data or load.buffer.strides is not None:
        return False
    return _moves(load, lanes.sym) == ONE and _moves(load, groups.sym) == lanes.hi


def _moves(load: Load, sym: Sym) -> Expr | None:
    """The distance in a row between the elements for successive values of `sym`, if no other index changes."""
    *outer, last = (e.substitute({sym: sym + ONE}) - e for e in load.index)
    return last if all(step == ZERO for step in outer) else None
