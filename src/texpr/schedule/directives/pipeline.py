"""`pipeline(ko, stages=3)`: what is staged at ko is copied two iterations ahead, into a ring of three slots.

Before: seq E |ko| { new As; copy As; … As[…] … }
After:  new As: [3, …]
        seq E + 2 |ko| { if ko < E { copy As[ko % 3] }  if ko >= 2 { … As[(ko - 2) % 3, …] … of iteration ko − 2 } }

The buffers are those that `stage` has put into the iterations and that it only copies in; or those named: any `new` of an
iteration that statements fill which write nothing else. Proved: what fills a slot reads nothing that one of the iterations
between writes; or refused (`texpr.schedule.ring`). It is made when the schedule ends, so copies may still be vectorized.
"""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.marked import level_of, mark, marked
from texpr.ir.marks import Pipeline
from texpr.schedule.call import Call, Rule
from texpr.schedule.materialise import materialise
from texpr.schedule.ring import fills_of, pipelined
from texpr.schedule.shape import free_loop
from texpr.schedule.state import State
from texpr.schedule.tree import replaced
from texpr.support.diagnostic import Note

MOST = 8
"""Slots of the longest ring."""


def _apply(call: Call) -> State:
    call.expect(1, 17, keys=("stages",))
    call.no_results()
    asked = call.key("stages")
    if asked is None:
        raise call.wrong("needs `stages=N`: how many slots a ring has")
    stages = call.number(asked, 2)
    if stages > MOST:
        raise call.wrong(f"makes rings of at most {MOST} slots, not {stages}", asked)
    _require_in_order(call, call.loop(call.plain[0]))
    loop = free_loop(call, call.plain[0])
    names = _named(call, loop) if len(call.plain) > 1 else _staged(call, loop)
    made = marked(loop, Pipeline(stages, names, span=call.directive.span))
    state = call.state.with_body(replaced(call.state.function.body, loop, lambda _: (made,)))
    pipelined(materialise(state.alone(made)).function)
    return state.with_ring(names, stages)


def _require_in_order(call: Call, loop: ir.Loop) -> None:
    level = level_of(loop)
    if level is not None or (isinstance(loop, ir.Par) and loop.fully):
        shared = f"shared out over `{level}`" if level else "lanes (`fully par`)"
        reason = f"the iterations of `{loop.sym.base}` are {shared}, so none comes before another"
        raise call.refuse("E0909", reason, at=call.plain[0], help="pipeline a `seq`, or a `par` that is bound to nothing")
    if mark(loop, Pipeline):
        help = f"name all that it copies ahead in one: pipeline({loop.sym.base}, BUFFER, BUFFER, stages=N)"
        raise call.refuse("E0905", f"`{loop.sym.base}` is pipelined already", at=call.plain[0], help=help)


def _named(call: Call, loop: ir.Loop) -> tuple[str, ...]:
    names = tuple(call.buffer(argument).name for argument in call.plain[1:])
    found = {new.buffer.name for new in fills_of(loop, names)}
    for argument, name in zip(call.plain[1:], names, strict=True):
        if name not in found:
            reason = f"`{name}` is no `new` of an iteration of `{loop.sym.base}` that statements of their own fill"
            raise call.refuse("E0912", reason, at=argument, help="name what only copies write, or stage it at that loop")
    return tuple(dict.fromkeys(names))


def _staged(call: Call, loop: ir.Loop) -> tuple[str, ...]:
    """What was staged at the loop, but for what its iterations write themselves."""
    here = tuple(s.name for s in call.state.staged if s.at == loop.sym.base and not s.copied_out)
    found = tuple(new.buffer.name for new in fills_of(loop, here))
    if not found:
        kept = next((s for s in loop.body if isinstance(s, ir.New) and s.buffer.name in here), None)
        notes = () if kept is None else (Note(f"an iteration itself writes `{kept.buffer.name}`", kept.span),)
        reason = f"nothing is copied in at the start of an iteration of `{loop.sym.base}`"
        help = f"stage what is only read first: stage(BUFFER, at={loop.sym.base}, in=shared, via=cp_async)"
        raise call.refuse("E0912", reason, *notes, at=call.plain[0], help=help)
    return found


RULE = Rule("pipeline", "pipeline(LOOP, stages=N) or pipeline(LOOP, BUFFER, …, stages=N)", _apply)
