"""The intermediate forms of a function, as text, to inspect each pass by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from texpr.driver import Compiled
from texpr.ir.kernel.text import plan_text
from texpr.ir.program.text import print_function
from texpr.ir.steps.text import steps_text


def _program(compiled: Compiled) -> str:
    """The program after its schedule."""
    return print_function(compiled.function)


def _steps(compiled: Compiled) -> str:
    """The steps of each kernel."""
    return "\n".join(steps_text(notes.steps) for notes in compiled.notes)


def _kernel(compiled: Compiled) -> str:
    """The plan: steps of the host, and kernels."""
    return plan_text(compiled.plan)


FORMS: Mapping[str, Callable[[Compiled], str]] = {
    "program": _program,
    "steps": _steps,
    "kernel": _kernel,
    "source": lambda compiled: compiled.source,
}
"""The printer of each form, in the order of the passes."""


def form(compiled: Compiled, name: str) -> str:
    """One of the forms of `compiled`, by its name in `FORMS`; then that of its wide plan, if it has one."""
    own = FORMS[name](compiled)
    return own if compiled.wide is None or name == "source" else f"{own.rstrip()}\n\n{form(compiled.wide, name)}"
