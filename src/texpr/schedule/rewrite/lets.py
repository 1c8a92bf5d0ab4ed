"""Values that are read between two nested loops, read in the inner one instead, so that the loops are perfectly nested; and
numbers that may be read before a loop.

    par E |e| { let c = count[e]; par N |n| { … c … } }        becomes        par E |e| { par N |n| { let c = count[e]; … c …
    } }
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from texpr.ir import program as ir
from texpr.ir.program.uses import loads, written
from texpr.ir.value import Value
from texpr.presburger.formula import Ge, conj
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.questions import witness
from texpr.relation.facts import known
from texpr.schedule.stage.region import inside, subscripts, table_of
from texpr.schedule.state import State
from texpr.schedule.tree import path_to, replaced
from texpr.support.record import replace


def sunk(state: State, loop: ir.Loop) -> tuple[State, ir.Loop]:
    """The same with such values inside of `loop`, as far as its extent, and those of loops around it, do not need them; the
    loop."""
    path = path_to(state.function.body, loop) or ()
    for outer, inner in pairwise(path):
        if not isinstance(outer, ir.Par) or not isinstance(inner, ir.Par):
            continue
        outer = next(each for each in ir.walk(state.function.body) if isinstance(each, ir.Par) and each.sym is outer.sym)
        *lets, last = outer.body
        if not isinstance(last, ir.Par) or last.sym is not inner.sym or not lets:
            continue
        if all(isinstance(let, ir.Let) and _may_be_in(let, last) for let in lets):
            made = replace(outer, body=(replace(last, body=(*lets, *last.body)),))
            state = state.with_body(replaced(state.function.body, outer, lambda _, made=made: (made,)))
    return state, next(each for each in ir.walk(state.function.body) if isinstance(each, ir.Par) and each.sym is loop.sym)


def _may_be_in(let: ir.Let, loop: ir.Par) -> bool:
    """Whether a value is the same in each iteration of a loop, and does not say how many there are."""
    return let.sym not in loop.extent.syms() and not {load.buffer for load in loads(let)} & written(loop.body)


def is_there(state: State, value: Value, around: Sequence[ir.Loop]) -> bool:
    """Whether an integer may be read in an iteration of the loops `around`, whatever is executed there: an element of a
    table, at a place that these loops tell, which is shown to be inside."""
    table = table_of(value)
    if table is None:
        return False
    index = subscripts(state, table, tuple(around))
    told = {state.domain(loop).sym for loop in around} | {*state.function.sizes}
    if not {s for e in index for s in e.syms()} <= told:
        return False
    facts = inside(state, around)
    there, premises = known(facts), conj(map(Ge, facts))
    ends = (end for e, size in zip(index, table.buffer.shape, strict=True) for end in (e, size - 1 - e))
    try:
        return all(there.nonnegative(end) or witness((Ge(-end - 1),), premises) is None for end in ends)
    except Undecided:
        return False
