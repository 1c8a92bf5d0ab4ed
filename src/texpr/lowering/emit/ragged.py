"""Guards for surplus blocks of a cluster: they execute no iteration, but take part in barriers.

t = x[i]; barrier; y[i] = t      →      t = i < n ? x[i] : 0; barrier; if (i < n) y[i] = t
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from texpr.ir import kernel as k
from texpr.ir.value import Literal, Load, Op, Value, walk
from texpr.support.record import replace


def only_where(runs: Value | None, made: Iterable[k.Stmt]) -> Iterator[k.Stmt]:
    """The statements under the guard `runs`."""
    body = tuple(made)
    if runs is None or not body:
        yield from body
    else:
        yield k.If(runs, body, uniform=True, span=body[0].span)


def each_where(runs: Value, made: Iterable[k.Stmt]) -> Iterator[k.Stmt]:
    """The guarded statements, with declarations kept for later ones, as 0 if the guard is false; barriers are not guarded."""
    run: list[k.Stmt] = []
    made = tuple(made)
    assigned = k.reassigned(made)
    for stmt in made:
        match stmt:
            case k.Declare() if _loads(stmt.value) and stmt.sym in assigned:
                yield from only_where(runs, run)
                zero, value = k.postponed(stmt)
                run[:] = [value]
                yield zero
            case k.Declare():
                yield from only_where(runs, run)
                run.clear()
                lazy = Op("select", (runs, stmt.value, Literal(0, stmt.dtype)), stmt.dtype)
                yield replace(stmt, value=lazy if _loads(stmt.value) else stmt.value)
            case k.Operation() if stmt.meets is not None:
                yield from only_where(runs, run)
                run.clear()
                yield stmt
            case k.For() if any(isinstance(inner, k.Operation) and inner.meets for inner in stmt.body):
                yield from only_where(runs, run)
                run.clear()
                yield stmt
            case k.Operation(assigns=(_, *_)) if not run and not any(map(_loads, stmt.values)):
                yield stmt  # such registers are only used under the guard
            case _:
                run.append(stmt)
    yield from only_where(runs, run)


def _loads(value: Value) -> bool:
    return any(isinstance(part, Load) for part in walk(value))
