"""The proof of a plan by tags that are searched for, or known; where it is open, with what numbers say."""

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
    """What is to be proved of a plan, the tags that were found, and the proof by them, which anyone may repeat."""

    asked: Question
    tags: Tags
    proof: Proof


def certified(asked: Question, plan: k.Plan, *known: Tags) -> Certificate:
    """The proof of `plan`, that it does what its program says, with the tags that it is by; where it is open, with what is
    wrong at some numbers, if that is found.

    `known`: tags that may do, as they did for the same in other texts; else they are searched for.
    """
    found = list[Certificate]()
    for tags in known:
        with suppress(ValueError, LookupError):  # where they are of something else
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
    """The same, but no event does a statement in part: a register's first value may be there for nobody instead."""
    events = tuple(None if isinstance(tag, Statement) and tag.partial else tag for tag in tags.events)
    return replace(tags, events=events)


def _by(asked: Question, plan: k.Plan, tags: Tags) -> Certificate:
    return Certificate(asked, tags, prove(asked, plan, tags))


def _left(found: Certificate) -> tuple[int, ...]:
    """How much is refused, and how much open; nothing where all is proved."""
    counts = tuple(len(found.proof.of(verdict)) for verdict in (Verdict.REFUSED, Verdict.UNDECIDED))
    return counts if any(counts) else ()


def proved(function: ir.Function, plan: k.Plan) -> Proof:
    """The proof of `plan`, that it does what `function`, laid out and legal, says, for who ships nothing."""
    return certified(question(function, plan), plan).proof
