"""`pipeline(ko, stages=3)`: what is staged at ko is prefetched two iterations ahead, into a ring of three slots.

Before: seq E |ko| { new As; copy As; … As[…] … }
After:  new As: [3, …]
        seq E + 2 |ko| { if ko < E { copy As[ko % 3] }  if ko >= 2 { … As[(ko - 2) % 3, …] … of iteration ko − 2 } }

With `lag=1` a slot is filled again two turns after its use, and so one turn less ahead: what reads it may still be under way
in the turn behind, as a product of a warpgroup is.

The buffers are those that `stage` put into the iterations and that are only copied in; or those named: any `new` of an
iteration whose writers write nothing else. Proved: what fills a slot reads nothing that one of the iterations in between
writes; or refused (`texpr.schedule.rewrite.ring`). The rewrite is made at the end of the schedule, so copies may still be
vectorized.
"""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.program.marked import level_of, mark, marked
from texpr.ir.program.marks import Pipeline
from texpr.ir.program.uses import loads
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import Offers, key_of, left_out, said
from texpr.schedule.rewrite.materialise import materialise
from texpr.schedule.rewrite.ring import fills_of, pipelined
from texpr.schedule.rewrite.shape import free_loop
from texpr.schedule.state import State
from texpr.schedule.tree import exactly, replaced
from texpr.support.diagnostic import Edit, Note, Proposal, TexprError
from texpr.support.record import replace

MOST = 8
"""The most slots of a ring."""


def _apply(call: Call) -> State:
    call.expect(1, 17, keys=("stages", "lag"))
    call.no_results()
    asked = call.key("stages")
    if asked is None:
        raise call.wrong("needs `stages=N`: how many slots a ring has")
    stages = call.number(asked, 2)
    if stages > MOST:
        raise call.wrong(f"makes rings of at most {MOST} slots, not {stages}", asked)
    lag = 0 if (argument := call.key("lag")) is None else call.number(argument, 0)
    if lag > stages - 2:
        reason = f"fills a slot at least one turn ahead, and with {stages} slots and lag={lag} it would not"
        raise call.wrong(
            reason, argument, call.instead(f"ask for lag={stages - 2}", lambda said: said.having("lag", stages - 2))
        )
    _require_in_order(call, call.loop(call.plain[0]))
    loop = free_loop(call, call.plain[0])
    names = _named(call, loop) if len(call.plain) > 1 else _staged(call, loop)
    made = marked(loop, Pipeline(stages, names, lag, span=call.directive.span))
    state = call.state.with_body(replaced(call.state.function.body, loop, lambda _: (made,)))
    try:
        pipelined(materialise(state.alone(made)).function)
    except TexprError as raised:
        found = [replace(d, proposals=_fewer(call, stages)) for d in raised.diagnostics]
        raise type(raised)(found) from None
    return state.with_ring(names, stages, lag)


def _fewer(call: Call, stages: int) -> Offers:
    """The offers of fewer slots, the most first, and of no pipeline."""
    fewer = (
        offer
        for each in range(stages - 1, 1, -1)
        for offer in call.instead(f"ask for stages={each}", lambda said, each=each: said.having("stages", each))
    )
    return (*fewer, *left_out(call.directive.span))


def _in_one(call: Call, first: Pipeline | None) -> Offers:
    """The offer to name all prefetched buffers in the first of two directives."""
    own, other = said(call.directive.span), None if first is None else said(first.span)
    if first is None or own is None or other is None:
        return ()
    named = tuple(dict.fromkeys((*(a for a in (*other.args, *own.args) if key_of(a) is None),)))
    new = replace(other, args=(*named, *(a for a in other.args if key_of(a) is not None)))
    place = first.span.to(call.directive.span)
    between = place.source.text[first.span.end : call.directive.span.start].rstrip()
    words = f"name all that it copies ahead in one: `{new}`"
    return (Proposal(words, Edit(f"{between.lstrip()}  {new}" if between.strip() else str(new), place)),)


def _others(call: Call, argument: ir.Argument) -> Offers:
    """The offer to remove one of the buffers, and the directive, where it is the only one."""
    name = str(argument.value)
    rest = call.instead(f"leave `{name}` out", lambda said: replace(said, args=tuple(a for a in said.args if a != name)))
    return (*(rest if len(call.plain) > 2 else ()), *left_out(call.directive.span))


def _stage_first(call: Call, loop: ir.Loop) -> Offers:
    """The offers to stage the buffers that the loop reads."""
    at, function = exactly(loop.sym.name, call.state.function.body), call.state.function
    read = dict.fromkeys(b.name for stmt in ir.walk(loop.body) for load in loads(stmt) for b in (load.buffer,))
    own = {b.name for b in function.params}
    each = (f"stage({name}, at={at}, in=shared, via=cp_async)" for name in read if name in own)
    return tuple(offer for new in each for offer in call.before("stage what is only read first: %", new))


def _require_in_order(call: Call, loop: ir.Loop) -> None:
    level = level_of(loop)
    if level is not None or (isinstance(loop, ir.Par) and loop.fully):
        shared = f"shared out over `{level}`" if level else "lanes (`fully par`)"
        reason = f"the iterations of `{loop.sym.base}` are {shared}, so none comes before another"
        slots = "slots are for iterations that come in order, of a `seq` or a `par` that is bound to nothing"
        offers = left_out(call.directive.span, f"leave it out; {slots}")
        raise call.refuse("E0909", reason, at=call.plain[0], offers=offers)
    if mark(loop, Pipeline):
        help = "one directive names all that a loop copies ahead"
        offers = _in_one(call, mark(loop, Pipeline))
        raise call.refuse("E0905", f"`{loop.sym.base}` is pipelined already", at=call.plain[0], help=help, offers=offers)


def _named(call: Call, loop: ir.Loop) -> tuple[str, ...]:
    names = tuple(call.buffer(argument).name for argument in call.plain[1:])
    found = {new.buffer.name for new in fills_of(loop, names)}
    for argument, name in zip(call.plain[1:], names, strict=True):
        if name not in found:
            reason = f"`{name}` is no `new` of an iteration of `{loop.sym.base}` that statements of their own fill"
            raise call.refuse(
                "E0912",
                reason,
                at=argument,
                help="only what copies alone write can be copied ahead",
                offers=_others(call, argument),
            )
    return tuple(dict.fromkeys(names))


def _staged(call: Call, loop: ir.Loop) -> tuple[str, ...]:
    """The buffers staged at the loop that its iterations do not write otherwise."""
    here = tuple(s.name for s in call.state.staged if s.at == loop.sym.base and not s.copied_out)
    found = tuple(new.buffer.name for new in fills_of(loop, here))
    if not found:
        kept = next((s for s in loop.body if isinstance(s, ir.New) and s.buffer.name in here), None)
        notes = () if kept is None else (Note(f"an iteration itself writes `{kept.buffer.name}`", kept.span),)
        reason = f"nothing is copied in at the start of an iteration of `{loop.sym.base}`"
        raise call.refuse(
            "E0912", reason, *notes, at=call.plain[0], offers=(*_stage_first(call, loop), *left_out(call.directive.span))
        )
    return found


RULE = Rule("pipeline", "pipeline(LOOP, stages=N, lag=N) or pipeline(LOOP, BUFFER, …, stages=N, lag=N)", _apply)
