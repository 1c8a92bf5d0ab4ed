"""The rules, in the order in which they run; and the second attempt at undecided findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from texpr.checks.bounds import bounds
from texpr.checks.coverage import coverage
from texpr.checks.extents import divisors, extents, satisfiable, targets
from texpr.checks.independence import independence
from texpr.checks.integers import integers
from texpr.checks.offers import Trials, trials
from texpr.checks.structure import assumptions, fully, reductions, roles, running_values
from texpr.checks.subject import Subject
from texpr.ir.program import Function
from texpr.ir.program.rewrite import specialize
from texpr.support.diagnostic import Diagnostic
from texpr.support.span import Span

Rule = Callable[[Subject], Iterator[Diagnostic]]

RULES: tuple[Rule, ...] = (
    satisfiable,  # first: where no sizes exist, all else holds vacuously
    roles,
    assumptions,
    fully,
    reductions,
    running_values,
    extents,
    divisors,
    bounds,
    targets,
    independence,
    coverage,
    integers,
)


def check(function: Function) -> tuple[Diagnostic, ...]:
    """The errors of `function` (E04) and its undecided properties (E05), in textual order.

    If there are none, every property holds for all sizes that `where` admits. An E05 never means that the program is wrong.
    """
    subject = Subject(function)
    trials = Trials(function)
    found: list[Diagnostic] = []
    for rule in RULES:
        diagnostics = list(rule(subject))
        if any(d.code.startswith("E05") for d in diagnostics):
            diagnostics = _second_chance(rule, function, diagnostics)
        found.extend(trials.tried(each, lambda changed, rule=rule: _found(rule, changed)) for each in diagnostics)
    once = {(d.code, _place(d.span), d.message): d for d in reversed(found)}
    return tuple(sorted(reversed(once.values()), key=lambda d: _place(d.span)))


def _found(rule: Rule, function: Function) -> list[Diagnostic]:
    """The findings of a rule after the second attempt at undecided ones; and the refusals of a promise or a `reduce`."""
    subject = Subject(function)
    others = (other for other in (satisfiable, reductions) if other is not rule)
    diagnostics = [*rule(subject), *(found for other in others for found in other(subject))]
    return _second_chance(rule, function, diagnostics) if any(d.code.startswith("E05") for d in diagnostics) else diagnostics


def faults(function: Function, kept: bool = False) -> Iterator[Diagnostic]:
    """The certain errors of `function`, which a schedule made: without undecided properties, and without dependent
    iterations, which are allowed for a copy by an engine.

    `kept`: it is proved that it computes what the legal program before its schedule does. Then what it reads was written: each
    read sees an element that the legal one reads, and each statement is executed.
    """
    subject = Subject(function)
    for rule in (extents, divisors, bounds, integers, *(() if kept else (coverage,))):
        yield from (found for found in rule(subject) if found.code.startswith("E04"))


def _second_chance(rule: Rule, function: Function, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The findings, with each undecided one replaced by an error at the same place that is found at small sizes, if there is
    one."""
    proved: dict[tuple[int, int], Diagnostic] = {}
    for sizes in trials(function):
        if all(d.code.startswith("E04") or _place(d.span) in proved for d in diagnostics):
            break
        try:
            fixed = specialize(function, sizes)
        except ZeroDivisionError:  # a size that divides in an index, though perhaps not where it is zero
            continue
        for found in rule(Subject(fixed, sizes)):
            if found.code.startswith("E04"):
                proved.setdefault(_place(found.span), found)
    return [proved.get(_place(d.span), d) if d.code.startswith("E05") else d for d in diagnostics]


def _place(span: Span | None) -> tuple[int, int]:
    return (-1, -1) if span is None else (span.start, span.end)
