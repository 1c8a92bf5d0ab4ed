"""Choices that a filling copy makes already: what a view pads with is in the holes of what is staged of it.

Before: par 64 |j| { … s[j] += q[d] * select(64 * kb + j < L, Ks[j, d], 0.0) }     After: … s[j] += q[d] * Ks[j, d]
"""

from __future__ import annotations

from texpr.domain.correctness.holes import same_fill
from texpr.ir import program as ir
from texpr.ir.program.rewrite import map_value
from texpr.ir.value import Cast, Literal, Load, Op, Value
from texpr.schedule.holes.fills import derived
from texpr.schedule.rewrite.materialise import is_filled
from texpr.schedule.state import State
from texpr.schedule.tree import path_to, replaced
from texpr.support.record import replace


def unselected(state: State, loop: ir.Loop) -> State:
    """`state`, where a `select` in `loop` between what a copy brought and the fill of its holes is what it brought.

    par 64 |j| { … s[j] += q[d] * select(64 * kb + j < L, Ks[j, d], 0.0) }      Ks[j, d], which is 0 wherever that fails
    """

    def bare(stmt: ir.Bind, path: tuple[ir.Loop, ...]) -> ir.Bind:
        def leaf(node: Value) -> Value | None:
            match node:
                case Op("select", (test, (Load() | Cast(Load())) as arm, Literal(value))) if same_fill(value, 0):
                    load = arm.arg if isinstance(arm, Cast) else arm
                    filled = isinstance(load, Load) and same_fill(fills.get(load.buffer.name, 1), value)
                    return arm if filled and isinstance(load, Load) and is_filled(state, path, load, test) else None
                case _:
                    return None

        return replace(stmt, values=tuple(map_value(value, leaf) for value in stmt.values))

    state = derived(state, loop)
    fills = {staged.name: staged.fill for staged in state.staged if staged.fill is not None}
    for stmt in [s for s in ir.walk(loop.body) if isinstance(s, ir.Bind) and fills]:
        path = tuple(s for s in path_to(state.function.body, stmt) or () if isinstance(s, ir.Par | ir.Seq))
        made = bare(stmt, path)
        if any(new is not old for new, old in zip(made.values, stmt.values, strict=True)):
            state = state.with_body(replaced(state.function.body, stmt, lambda _, made=made: (made,)))
    return state
