"""The proof of a plan by known or searched tags; where it is undecided, with counter-examples by numbers."""

from __future__ import annotations

from contextlib import suppress

from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.proof.tags import Statement
from texpr.proof.plan import Proof, Question, Tags, Verdict, prove, question
from texpr.proof.search.search import search
from texpr.proof.search.trial import trials
from texpr.support.record import Record, replace


class Certificate(Record):
    """The claim about a plan, the tags, and the proof by them, which can be repeated."""

    asked: Question
    tags: Tags
    proof: Proof


def certified(asked: Question, plan: k.Plan, *known: Tags) -> Certificate:
    """The proof that `plan` implements its program, with its tags; if it is undecided, with a counter-example by numbers, if
    one is found.

    `known`: tags to be tried first, such as those of the same plan with other texts; otherwise tags are searched.
    """
    found = list[Certificate]()
    for tags in known:
        with suppress(ValueError, LookupError):  # where they are of another plan
            found.append(_by(asked, plan, tags))
        if found and not _left(found[-1]):
            return found[-1]
    found.append(_by(asked, plan, search(asked)))
    if _left(found[-1]) and (plainer := _without_parts(found[-1].tags)) != found[-1].tags:
        found.append(_by(asked, plan, plainer))
    best = min(found, key=_left)
    if best.proof.of(Verdict.UNDECIDED) and not best.proof.of(Verdict.REFUSED):
        tried = (*best.proof.obligations, *trials(asked))
        best = replace(best, proof=replace(best.proof, obligations=tried))
    return best


def _without_parts(tags: Tags) -> Tags:
    """The tags without partial statements: the initial value of a register may be unused instead."""
    events = tuple(None if isinstance(tag, Statement) and tag.partial else tag for tag in tags.events)
    return replace(tags, events=events)


def _by(asked: Question, plan: k.Plan, tags: Tags) -> Certificate:
    return Certificate(asked, tags, prove(asked, plan, tags))


def _left(found: Certificate) -> tuple[int, ...]:
    """The numbers of refused and of undecided obligations; empty if all are proved."""
    counts = tuple(len(found.proof.of(verdict)) for verdict in (Verdict.REFUSED, Verdict.UNDECIDED))
    return counts if any(counts) else ()


def proved(function: ir.Function, plan: k.Plan) -> Proof:
    """The proof that `plan` implements `function`, scheduled and legal, for uses without an artifact."""
    return certified(question(function, plan), plan).proof
