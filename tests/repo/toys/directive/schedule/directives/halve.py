"""`halve(i) -> (h, t)`: the two halves of a loop, the first one larger by one where its extent is odd."""

from __future__ import annotations

from texpr.affine.expr import expr
from texpr.schedule.call import Call, Rule
from texpr.schedule.directives.split import halves
from texpr.schedule.rewrite.shape import free_loop
from texpr.schedule.state import State


def _apply(call: Call) -> State:
    call.expect(1)
    return halves(call, free_loop(call, call.plain[0], copying=True), expr(2), parts=True)[0]


RULE = Rule("halve", "halve(LOOP) -> (HALF, INDEX)", _apply)
