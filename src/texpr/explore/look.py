"""The compiler's answer to a question: what is wrong with the program, and what it becomes."""

from __future__ import annotations

from texpr.artifact import Shown
from texpr.delivery import examined
from texpr.driver import Compiled, check, lower
from texpr.explore.asked import Asked
from texpr.ir.program import Function, Program
from texpr.ir.program.selection import AUTO, NONE, select_schedule
from texpr.isa.registry import resolve
from texpr.sizes import own
from texpr.sources import program_of
from texpr.support.diagnostic import Diagnostic, Limitation, TexprError
from texpr.support.faults import told_of
from texpr.support.record import Record, replace
from texpr.support.span import Source

UNDECIDED = ("E0508", "E0509")
"""Refusals of what was compiled, and could not be proved."""


class Look(Record, eq=False):
    """What is known, as far as the compiler came. `proof`: the texts that an artifact ships, with their proof; None where
    nothing was proved. `fault`: what was the compiler's own fault, and where."""

    asked: Asked
    program: Program | None = None
    function: Function | None = None
    problems: tuple[Diagnostic, ...] = ()
    compiled: Compiled | None = None
    proof: Shown | None = None
    fault: tuple[str, str] | None = None

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the program's functions."""
        return () if self.program is None else tuple(function.name for function in self.program.functions)

    @property
    def schedules(self) -> tuple[str, ...]:
        """The names of schedules that may be chosen."""
        written = () if self.function is None else self.function.schedules
        return (AUTO, NONE, *(schedule.name for schedule in written if schedule.name is not None))


def look(asked: Asked) -> Look:
    """The answer to a question. No exception escapes but those that end a process."""
    seen = Look(asked)
    try:
        program, sizes = program_of(Source(asked.name, asked.text), dict(asked.sizes))
        seen = replace(seen, program=program)
        if not program.functions:
            return seen
        named = next((each for each in program.functions if each.name == asked.function), program.functions[0])
        seen = replace(seen, function=named, problems=check(program))
        return seen if seen.problems else _compiled(seen, named, sizes)
    except TexprError as wrong:
        return replace(seen, problems=wrong.diagnostics)
    except MemoryError:
        told = Diagnostic("E0859", None, "there is not enough memory for this", help="use smaller sizes")
        return replace(seen, problems=(told,))
    except Exception as fault:
        return replace(seen, fault=told_of(fault))


def _compiled(seen: Look, function: Function, sizes: dict[str, int]) -> Look:
    asked = seen.asked
    try:
        compiled, proof = examined(function, asked.target, sizes, asked.schedule)
        return replace(seen, compiled=compiled, proof=proof)
    except Limitation as wrong:
        if wrong.diagnostics[0].code not in UNDECIDED:
            raise
        chosen = select_schedule(function, asked.schedule, resolve(asked.target))
        compiled = lower(function, asked.target, own(function, sizes), schedule=chosen)
        return replace(seen, compiled=compiled, problems=wrong.diagnostics)
