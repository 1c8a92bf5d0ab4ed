"""The fill that a staged buffer's holes need, derived from the updates that read it.

    seq 32 |ki| { acc += As[ti, ki] * Bs[ki, tj] }        computed in holes, too: zero in As and in Bs
    seq 32 |ki| { best max= xs[ki] }                      −∞, or the least integer
    seq 32 |ki| { acc += f32(As[ti, ki]) * f32(a_s[ti]) }  one in a_s, of f8e8m0, which has no zero: As has

A `stage` without `fill=` is open: its copy then fills with that value. It is never nan, which is neutral for no update: `max`
and `min` propagate it. So the tensor memory accelerator, which fills with zero or nan, serves sums only.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.ir import program as ir
from texpr.ir.program.rewrite import with_blocks
from texpr.ir.program.updates import neutral
from texpr.ir.program.uses import loads
from texpr.ir.value import Cast, Literal, Load
from texpr.ir.value.types import F8E8M0
from texpr.schedule.state import Staged, State
from texpr.schedule.tree import Body
from texpr.support.record import replace
from texpr.tma.correctness import fill_of
from texpr.tma.elements import Fill

BY_ENGINE = ("tma", "im2col", "gather4")
"""The `via=` of copies that fill with zero or nan only."""


def required(stmt: ir.Stmt, load: Load) -> int | float | None:
    """The value of an element read by an update for which the update is the identity; None where there is no single one."""
    if not isinstance(stmt, ir.Bind) or not isinstance(stmt.update, str) or len(stmt.targets) != 1:
        return None
    (target,), (value,) = stmt.targets, stmt.values
    wanted = neutral(stmt.update, target.dtype)
    if load.dtype == F8E8M0:  # a scale of what is zero: there is no zero of its type
        return 1 if wanted == 0 else None
    alone = value is load or (isinstance(value, Cast) and value.arg is load)
    return wanted if alone or wanted == 0 else None


def derived(state: State, loop: ir.Loop) -> State:
    """`state`, with open copies that fill as the holes of `loop` require."""
    for staged in state.staged:
        if not staged.is_open:
            continue
        wanted = {
            required(stmt, load) for stmt in ir.walk(loop.body) for load in loads(stmt) if load.buffer.name == staged.name
        }
        (value,) = wanted if len(wanted) == 1 else (None,)
        if value is not None and can_fill(staged.via, value):
            state = _filled(state, staged, value)
    return state


def can_fill(via: str, value: int | float) -> bool:
    """Whether such copies can fill with a number."""
    return via not in BY_ENGINE or fill_of(value) is Fill.ZERO


def _filled(state: State, staged: Staged, value: int | float) -> State:
    every = tuple(replace(each, fill=value, is_open=False) if each is staged else each for each in state.staged)
    body = tuple(_with_fill(state.function.body, staged.name, value))
    return replace(state.with_body(body), staged=every)


def _with_fill(body: Body, name: str, value: int | float) -> Iterator[ir.Stmt]:
    for stmt in body:
        match stmt:
            case ir.If(_, (ir.Bind((Load() as target,)) as bind,), ()) if target.buffer.name == name and bind.update is None:
                yield replace(stmt, orelse=(replace(bind, values=(Literal(value, target.dtype),)),))
            case _:
                yield with_blocks(stmt, tuple(tuple(_with_fill(block, name, value)) for block in ir.blocks(stmt)))
