"""Application of a schedule, directive by directive; each is proved or refused, and the result is a plain function again."""

from __future__ import annotations

from difflib import get_close_matches

from texpr.ir import program as ir
from texpr.ir.program.instances import numbered
from texpr.ir.program.marks import Dependent, LaunchBounds
from texpr.ir.program.rewrite import with_blocks
from texpr.isa.target import Target
from texpr.schedule.call import Call
from texpr.schedule.edits import words
from texpr.schedule.joint.computed import told
from texpr.schedule.joint.family import chained
from texpr.schedule.joint.instructed import instructed
from texpr.schedule.pragmas import in_place
from texpr.schedule.rewrite.alternated import alternated
from texpr.schedule.rewrite.materialise import Materialised, materialise
from texpr.schedule.rewrite.partition import partitioned
from texpr.schedule.rewrite.ring import pipelined
from texpr.schedule.rewrite.skipped import ended, skipped
from texpr.schedule.rules import RULES
from texpr.schedule.state import State
from texpr.schedule.tree import loops
from texpr.schedule.turns.overlap import overlapped
from texpr.support.diagnostic import Note, error, limitation
from texpr.support.record import replace
from texpr.support.span import Span


def start(function: ir.Function, target: Target) -> State:
    """The state of a checked function before any directive."""
    return State(numbered(function), target)


def follow(state: State, directive: ir.Directive) -> State:
    """`state` after one directive. Raises TexprError or Limitation, with the directive's span, where it is refused."""
    rule = RULES.get(directive.name)
    if rule is None:
        near = get_close_matches(directive.name, RULES, n=3, cutoff=0.7)
        start = directive.span.start
        place = Span(directive.span.source, start, start + len(directive.name))
        offers = tuple(offer for each in near for offer in words(place, f"did you mean `{each}`?", each))
        hint = f"the directives are {', '.join(RULES)}"
        raise error("E0901", directive.span, f"there is no directive `{directive.name}`", help=hint, offers=offers)
    return rule.apply(Call(rule, directive, state))


def followed(function: ir.Function, schedule: ir.Schedule | None, target: Target) -> State:
    """`function` after every directive of `schedule`, in order, and then those that its loops have as pragmas."""
    bare, own = in_place(function, target)
    state = start(bare, target)
    for directive in schedule.directives if schedule is not None else ():
        state = follow(state, directive)
    for pragma in own:
        _require_loop(state, pragma)
        state = follow(state, pragma)
    return state


def _require_loop(state: State, pragma: ir.Directive) -> None:
    """The loop with the pragma still exists after the schedule."""
    name = str(pragma.args[0].value).removesuffix("'0")
    if all(loop.sym.name != name for loop in loops(state.function.body)):
        reason = f"the schedule has made other loops of `{name}`, so this pragma has none"
        raise error("E0903", pragma.span, reason, help="a pragma holds for a loop that the schedule leaves as it is")


def apply_schedule(function: ir.Function, schedule: ir.Schedule | None, target: Target) -> Materialised | None:
    """`function` with `schedule` and its pragmas applied for `target`; None where there is neither.

    Raises TexprError or Limitation at the directive that is refused.
    """
    if schedule is None and not in_place(function, target)[1]:
        return None
    _require_free(function, schedule)
    return laid_out(followed(function, schedule, target))


def _require_free(function: ir.Function, schedule: ir.Schedule | None) -> None:
    """No lanes signal each other by barriers of the text, which a schedule would have to keep."""
    signal = next((s for s in ir.walk(function.body) if isinstance(s, ir.Instruction) and s.signal is not None), None)
    if signal is not None:
        told = f"lanes of `{function.name}` signal each other by barriers, and no schedule of such a function is proved yet"
        help = "its `fully par` is mapped as it is written; let another function have what a schedule is for"
        where = function.span if schedule is None else schedule.span
        raise limitation("E0914", where, told, Note("they do here", signal.span), help=help)


def laid_out(state: State) -> Materialised:
    """The plain program of `state`, with the marks for mapping and lowering."""
    made = materialise(state)
    ringed = chained(alternated(told(pipelined(overlapped(ended(made.function))), state.target)), state.target)
    function = _in_order(partitioned(skipped(instructed(ringed, state.target))))
    if state.min_blocks:
        function = replace(function, directives=(*function.directives, LaunchBounds(state.min_blocks)))
    if not state.dependent:
        function = replace(function, directives=(*function.directives, Dependent(False)))
    return replace(made, function=function)


def _in_order(function: ir.Function) -> ir.Function:
    """`function`, whose `seq`s are in the order that they have: no clause says `scan`, as nothing is left to choose, or names a
    sum that a copy is made of now."""

    def of(stmt: ir.Stmt) -> ir.Stmt:
        made = with_blocks(stmt, tuple(tuple(map(of, block)) for block in ir.blocks(stmt)))
        if not isinstance(made, ir.Seq) or not (made.scan or made.reduce):
            return made
        updates = (s for s in ir.walk(made.body) if isinstance(s, ir.Bind) and s.update is not None)
        updated = {target.buffer for each in updates for target in each.targets}
        return replace(made, scan=(), reduce=tuple(buffer for buffer in made.reduce if buffer in updated))

    return replace(function, body=tuple(map(of, function.body)))
