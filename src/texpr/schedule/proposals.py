"""Helps for a schedule that propose a change of the text: tried before they are given.

A refusal offers changes, best first (`Diagnostic.proposals`). Each is made in the text, which is parsed, checked and
scheduled again; the first by which the refused directive succeeds is given. Where none does, the help stays advice, or is
dropped.
"""

from __future__ import annotations

from collections.abc import Callable

from texpr.checks import check
from texpr.frontend import parse
from texpr.ir.program import Function, Schedule
from texpr.schedule.directives.place import SPACES
from texpr.schedule.edits import instead, left_out, said
from texpr.support.diagnostic import Diagnostic, Edit, Proposal, TexprError, edited
from texpr.support.record import replace
from texpr.support.span import NOWHERE

Follow = Callable[[Function, Schedule | None], object]
"""Schedules a function up to the stage at which something was refused. Raises TexprError."""

MOST_TRIED = 8
"""The most changes tried for one refusal; further ones are dropped."""


def tried(raised: TexprError, function: Function, schedule: Schedule | None, follow: Follow) -> TexprError:
    """The same error, with the first working proposal of each finding as its help."""
    every = [_placed_otherwise(found, schedule) for found in raised.diagnostics]
    if not any(found.proposals for found in every):
        return raised
    return type(raised)([_tried(found, function, schedule, follow) for found in every])


def _placed_otherwise(found: Diagnostic, schedule: Schedule | None) -> Diagnostic:
    """A refusal of a placement, with the offers of other placements, and of none."""
    if schedule is None or found.code != "E0913" or found.span is None or found.proposals:
        return found
    for each in schedule.directives:
        new, own = f"new {each.args[0].value}:" if each.name == "place" and each.args else "", said(each.span)
        if new and own is not None and found.span.text.startswith(new):
            spaces = [space for space in SPACES if space != own.args[-1]]
            other = (o for s in spaces for o in instead(each.span, "place it otherwise: %", lambda d, s=s: d.plain(1, s)))
            return replace(found, proposals=(*other, *left_out(each.span, "leave it to the compiler")))
    return found


def _tried(found: Diagnostic, function: Function, schedule: Schedule | None, follow: Follow) -> Diagnostic:
    bare = replace(found, proposals=())
    if found.proposals and _left(bare, _text(bare, Proposal("", Edit("…"))), function, schedule, follow) == _same(bare):
        for proposal in found.proposals[:MOST_TRIED]:
            helped = replace(bare, help=proposal.text, fix=proposal.fix)
            if _helps(helped, _text(bare, proposal), function, schedule, follow):
                return helped
    return bare


def _same(found: Diagnostic) -> tuple[tuple[str, str], int] | None:
    return None if found.span is None else ((found.code, found.message), found.span.start)


def _text(found: Diagnostic, proposal: Proposal) -> str:
    return edited(replace(found, fix=proposal.fix)) or ""


def _left(
    found: Diagnostic, text: str, function: Function, schedule: Schedule | None, follow: Follow
) -> tuple[tuple[str, str], int] | None:
    """The first refusal of a text, and its place; None where there is none. An illegal program is refused at its start."""
    assert found.span is not None
    try:
        again = {each.name: each for each in parse(text, found.span.source.name).functions}[function.name]
        if not {each.message for each in check(again)} <= {each.message for each in check(function)}:
            return ("", ""), -1
        follow(again, _counterpart(function, schedule, again))
    except TexprError as problem:
        first = problem.diagnostics[0]
        is_known = first.code.startswith("E09") and first.span is not None and first.span is not NOWHERE
        return (first.code, first.message), first.span.start if is_known and first.span else -1
    except (KeyError, IndexError):  # functions or schedules that were not made from this text
        return ("", ""), -1
    return None


def _counterpart(function: Function, schedule: Schedule | None, again: Function) -> Schedule | None:
    """The schedule of the new function with the number of the one that was applied."""
    if schedule is None:
        return None
    numbers = [n for n, each in enumerate(function.schedules) if each is schedule]
    return again.schedules[numbers[0]] if numbers else schedule


def _helps(found: Diagnostic, text: str, function: Function, schedule: Schedule | None, follow: Follow) -> bool:
    """Whether the changed text is accepted, or refused only after what was refused before.

    A promise added before it settles one condition; another one may then fail at the same place.
    """
    left = _left(found, text, function, schedule, follow) if text else (("", ""), -1)
    if left is None:
        return True
    assert isinstance(found.fix, Edit) and found.span is not None
    moved = len(text) - len(found.span.source.text)
    place = found.fix.span or found.span
    if place.end <= found.span.start and left[0] != (found.code, found.message):
        return left[1] >= found.span.start + moved
    return left[1] >= max(found.span.end, place.end) + moved
