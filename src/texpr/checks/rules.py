"""The rules, in the order of their run; and how what stays undecided gets a second chance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from texpr.affine.expr import Sym
from texpr.checks.bounds import bounds
from texpr.checks.coverage import coverage
from texpr.checks.extents import divisors, extents, satisfiable, targets
from texpr.checks.independence import independence
from texpr.checks.integers import integers
from texpr.checks.structure import assumptions, fully, reductions, roles
from texpr.checks.subject import Subject
from texpr.ir.program import Function
from texpr.ir.rewrite import specialize
from texpr.presburger.formula import compare, holds
from texpr.support.diagnostic import Diagnostic
from texpr.support.span import Span

Rule = Callable[[Subject], Iterator[Diagnostic]]

RULES: tuple[Rule, ...] = (
    satisfiable,  # first: where no sizes exist, all else holds vacuously
    roles,
    assumptions,
    fully,
    reductions,
    extents,
    divisors,
    bounds,
    targets,
    independence,
    coverage,
    integers,
)

_TRIALS = ((2, 3, 5, 4, 7), (1, 1, 1, 1, 1), (3, 2, 4, 5, 2), (4, 4, 4, 4, 4), (0, 1, 2, 3, 4))
"""Sizes, in order of appearance, at which an undecided rule is asked again: there products are constants."""


def check(function: Function) -> tuple[Diagnostic, ...]:
    """What is wrong with `function` (E04) and what cannot be decided (E05), in the order of the text.

    With none, every property holds for all sizes that `where` admits. An E05 never means that the program is wrong.
    """
    subject = Subject(function)
    found: list[Diagnostic] = []
    for rule in RULES:
        diagnostics = list(rule(subject))
        if any(d.code.startswith("E05") for d in diagnostics):
            diagnostics = _second_chance(rule, function, diagnostics)
        found.extend(diagnostics)
    once = {(d.code, _place(d.span), d.message): d for d in reversed(found)}
    return tuple(sorted(reversed(once.values()), key=lambda d: _place(d.span)))


def faults(function: Function) -> Iterator[Diagnostic]:
    """What is surely wrong with `function`, which a schedule made: not what cannot be decided, nor iterations that meet, which
    those of a copy by an engine may."""
    subject = Subject(function)
    for rule in (extents, divisors, bounds, coverage, integers):
        yield from (found for found in rule(subject) if found.code.startswith("E04"))


def _second_chance(rule: Rule, function: Function, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The findings, each undecided one replaced by an error at the same place that small sizes prove, if they do."""
    proved: dict[tuple[int, int], Diagnostic] = {}
    for sizes in _trials(function):
        if all(d.code.startswith("E04") or _place(d.span) in proved for d in diagnostics):
            break
        try:
            fixed = specialize(function, sizes)
        except ZeroDivisionError:  # a size that divides in an index, though perhaps never where it is zero
            continue
        for found in rule(Subject(fixed, sizes)):
            if found.code.startswith("E04"):
                proved.setdefault(_place(found.span), found)
    return [proved.get(_place(d.span), d) if d.code.startswith("E05") else d for d in diagnostics]


def _place(span: Span | None) -> tuple[int, int]:
    return (-1, -1) if span is None else (span.start, span.end)


def _trials(function: Function) -> Iterator[dict[Sym, int]]:
    """Small sizes that `where` admits; consts keep their defaults where they have one."""
    names = (*function.sizes, *(sym for sym, _ in function.consts))
    defaults = {sym: value for sym, value in function.consts if value is not None}
    for trial in _TRIALS:
        sizes = {name: trial[at % len(trial)] for at, name in enumerate(names)} | defaults
        if all(holds(compare(c.op, c.left, c.right), sizes) for c in function.where):
            yield sizes
