"""What every program with instructions keeps: its text, and the text of its plan, read back as what was printed."""

from __future__ import annotations

from tests.ir.steps_text import check as made_of_steps

from texpr.driver import Compiled
from texpr.frontend import parse
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program.text import print_program
from texpr.ir.value.structure import same


def reads_back(text: str, made: Compiled) -> bool:
    """Whether a program, and the plan that is made of it, are the same after they were printed and parsed."""
    program = parse(text, "case.te")
    printed = print_program(program)
    again = parse(printed, "again.te")
    made_of_steps(made.plan, made.notes)
    kept = same(program, again) and print_program(again) == printed
    return kept and same(parse_plan(plan_text(made.plan)), made.plan)
