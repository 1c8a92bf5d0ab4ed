"""Instructions that are one update, as one step: a use is that update, in a loop whose mark says the same.

par n |i| reduce(y) #atomic(grid, relaxed) { red_add_f32_relaxed_gpu(x[i], y[at[i]]) }      y[at[i]] += x[i]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from texpr.frontend.tree import Instr
from texpr.ir import program
from texpr.ir.program.marked import Atomicity, atomic_binds
from texpr.support.diagnostic import Diagnostic, error
from texpr.support.record import Record
from texpr.support.span import Span

EFFECT = "one step at "
"""What the effect of such an instruction begins with: a scope and an order follow."""


class OneStep(Record, eq=False):
    """A use of the instruction `name`: its update, and whose step it is."""

    bind: program.Bind
    name: str
    how: Atomicity
    span: Span


def one_step(instr: Instr, made: Sequence[program.Stmt], span: Span) -> OneStep | None:
    """The use of an instruction whose meaning is `made`; None for any other."""
    said = next((effect for effect in instr.effects if effect.startswith(EFFECT)), None)
    bind = made[0] if len(made) == 1 else None
    if said is None or not isinstance(bind, program.Bind) or bind.update is None or len(bind.targets) != 1:
        return None
    scope, _, order = (word.strip() for word in said.removeprefix(EFFECT).partition(","))
    return OneStep(bind, instr.name.name, Atomicity(scope, order), span)


def unlike(uses: Sequence[OneStep], body: tuple[program.Stmt, ...]) -> Iterator[Diagnostic]:
    """E0335 for each use that no loop marks so: elsewhere its update might be done otherwise."""
    found: Mapping[program.Bind, Atomicity] = atomic_binds((), body) if uses else dict[program.Bind, Atomicity]()
    for use in uses:
        if found.get(use.bind) != use.how:
            y, words = use.bind.targets[0].buffer.name, f"#atomic({use.how.scope}, {use.how.order})"
            reason = f"`{use.name}` updates `{y}` as `{words}` says, and no loop around has that with a `reduce` of it"
            help = f"write `par … reduce({y}) {words} {{ … }}` around it" if use.how.scope in Atomicity.WORDS else None
            yield from error("E0335", use.span, reason, help=help).diagnostics
