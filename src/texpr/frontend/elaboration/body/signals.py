"""Barriers of the text, and what lanes do at them.

    new full: mbarrier(32)[4]        -- four barriers, of whose phases each is complete when 32 lanes have arrived
    arrive(full[k % 4])              -- this lane arrives: what it did before is known to whoever waits for the phase
    wait(full[k % 4], k / 4)         -- until phase k / 4 is complete; the first is 0, and phase -1 is complete at the start

In the sequential reading, in which all lanes do one statement after the other, they have no effect.
"""

from __future__ import annotations

from texpr.affine.expr import ONE, ZERO
from texpr.frontend.elaboration import views
from texpr.frontend.elaboration.context import Context
from texpr.frontend.elaboration.expressions import plain_index, view
from texpr.frontend.tree import Call, New
from texpr.ir.ops.phases import MOST_COUNT
from texpr.ir.program import ARRIVE, BARRIER, WAIT, Instruction, Signal
from texpr.ir.program import New as Made
from texpr.ir.value import Buffer
from texpr.ir.value.types import U64
from texpr.support.diagnostic import error

FORMS = {ARRIVE: f"`{ARRIVE}(full[s])`", WAIT: f"`{WAIT}(full[s], phase)`"}


def is_signal(ctx: Context, call: Call) -> bool:
    """Whether a call is one of `arrive` and `wait`, and of no function of the file."""
    name = call.name.name
    return name in FORMS and name not in ctx.file.fns and name not in ctx.file.instrs


def barriers(ctx: Context, statement: New) -> Made:
    """`new full: mbarrier(arrivals)[slots]`. Raises TexprError E0336."""
    form, kind = f"write `new {statement.name.name}: {BARRIER}(32)[4]`", statement.type
    if kind.arrivals is None:
        raise error("E0336", kind.span, "nothing says how many arrivals complete a phase of a barrier", help=form)
    if statement.value is not None:
        raise error("E0336", statement.value.span, "a barrier has no value: its first phase is 0, of which nothing is complete")
    count = plain_index(ctx, kind.arrivals, "the arrivals of a phase")
    shape = [plain_index(ctx, each, "the number of barriers") for each in kind.shape] or [ONE]
    if not count.is_constant or not 1 <= count.constant <= MOST_COUNT:
        reason = f"a phase is complete after 1 to {MOST_COUNT} arrivals, a number that is known when it is built, not `{count}`"
        raise error("E0336", kind.arrivals.span, reason)
    if len(shape) > 1 or not shape[0].is_constant or shape[0].constant < 1:
        reason = "barriers are one, or an array of one dimension whose extent is known when it is built"
        raise error("E0336", kind.span, reason, help=form)
    own = ctx.making.namer.unique(statement.name.name)
    buffer = Buffer(own, U64, tuple(shape), "local", span=statement.name.span)
    return Made(buffer, span=statement.span, arrivals=count.constant)


def signal(ctx: Context, call: Call) -> Instruction:
    """A use of `arrive` or `wait`. Raises TexprError E0310, E0336."""
    name, args = call.name.name, call.args
    if call.keys or len(args) != (1 if name == ARRIVE else 2):
        told = f"`{name}` is of one barrier" + (" and a phase" if name == WAIT else "")
        raise error("E0310", call.span, told, help=f"write {FORMS[name]}")
    found = view(ctx, args[0])
    if found.shape == (ONE,):
        found = views.slice_view(found, [ZERO], (), args[0].span)
    if found.shape or found.data:
        reason = "the barrier is an element, whose subscript is of loops and sizes"
        raise error("E0336", args[0].span, reason, help=f"write {FORMS[name]}")
    phase = plain_index(ctx, args[1], "a phase") if name == WAIT else None
    return Instruction(name, (), (views.element(found, (), (), args[0].span),), False, call.span, None, Signal(phase))
