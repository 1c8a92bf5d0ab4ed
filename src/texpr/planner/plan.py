"""The schedule of a function that has none: nest by nest, the cheapest candidate that every directive of is proved.

Strategies (`table`) propose candidates; here they are followed, by rank and then by cost. One that is refused gives way to the
next; a nest without any stays as it is, and the reason is kept. Nothing is known here of any strategy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from math import inf
from types import MappingProxyType

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.isa.target import Target
from texpr.planner.follow import Refused
from texpr.planner.nest import NoPlan, nests, outermost
from texpr.planner.strategy import Proposal, Script, Strategy, Subject, Tile
from texpr.planner.table import STRATEGIES
from texpr.schedule.apply import start
from texpr.schedule.state import State
from texpr.support.diagnostic import TexprError
from texpr.support.record import Mutable, Record, field, replace
from texpr.support.span import Span

ATTEMPTS = 4
"""Candidates of a strategy that are tried for a nest, at most."""

ALL_REFUSED = "every candidate was refused"

NOTHING: Mapping[Sym, str] = MappingProxyType({})


class Chosen(Record):
    """What became of the nest at `line`: `candidate` by model, or `reason` why it has none. `refused`: what was tried first."""

    line: int
    candidate: Tile | None
    reason: str = ""
    refused: tuple[str, ...] = ()

    def but(self, refused: Iterable[str], reason: str = "") -> Chosen:
        """The same after more was refused; the first reason stands."""
        return replace(self, refused=(*self.refused, *refused), reason=self.reason or reason)


class Planned(Record):
    """`schedule`: None where no nest is worth one. `state`: the function after it. `failed`: why it was given up as a whole."""

    schedule: ir.Schedule | None
    nests: tuple[Chosen, ...]
    state: State
    failed: str = ""

    def without(self, reason: TexprError) -> Planned:
        """The same for a function whose schedule could be followed, but not lowered."""
        return replace(self, schedule=None, failed=given_up(reason))


Found = tuple[tuple[Chosen, ...], Script | None]
"""What became of a nest, which a strategy may have cut into several, and the directives for it."""


def given_up(reason: TexprError) -> str:
    """Why something was, in one line."""
    first = reason.diagnostics[0]
    return f"{first.code}: {first.message}"


def blamed(function: ir.Function, schedule: ir.Schedule, reason: TexprError) -> Sym | None:
    """The outermost loop of a nest that `schedule` says something of, and that could not be lowered by `reason`."""
    said, at = {_place(each.span) for each in schedule.directives}, reason.diagnostics[0].span
    for par in outermost(function.body):
        if at is not None and _place(par.span) in said and _place(at) in {_place(s.span) for s in ir.walk((par,))}:
            return par.sym
    return None


def _place(span: Span) -> tuple[int, int]:
    return span.start, span.end


def plan(function: ir.Function, target: Target, without: Mapping[Sym, str] = NOTHING) -> Planned:
    """The automatic schedule of `function`, a checked one with its sizes as far fixed as they are, for `target`.

    `without`: outermost loops of nests that shall have none, and why.
    """
    if any(s.directives for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq)):
        return Planned(None, (), start(function, target))
    state, directives, chosen = start(function, target), list[ir.Directive](), list[Chosen]()
    for par, nest in nests(state.function):
        if par.sym in without:
            chosen.append(Chosen(par.span.line, None, f"given up: {without[par.sym]}"))
            continue
        found, script = _laid_out(Subject(par, nest, state))
        chosen += found
        if script is not None:
            state = script.state
            directives += script.directives
    schedule = ir.Schedule(function.name, "automatic", target.name, tuple(directives)) if directives else None
    return Planned(schedule, tuple(chosen), state)


def _laid_out(subject: Subject) -> Found:
    """One nest, by the strategies that are for it, rank by rank."""
    told = Chosen(subject.line, None, str(subject.nest) if isinstance(subject.nest, NoPlan) else "")
    suitable = (each for each in STRATEGIES if each.applies(subject))
    for _, strategies in groupby(suitable, key=lambda each: each.rank):
        turn = _Turn(subject, told, [_Asked(each, subject) for each in strategies])
        found = turn.followed()
        if found is not None:
            return found
        told = turn.told
    return (told,), None


class _Asked(Mutable, eq=False):
    """A strategy, and the candidate that it has left. `reason`: why it has none."""

    strategy: Strategy
    subject: Subject
    refused: list[Refused] = field(default_factory=list[Refused])
    proposal: Proposal | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        self.ask()

    @property
    def cost(self) -> float:
        """Of the candidate."""
        return inf if self.proposal is None else self.proposal.cost

    def ask(self) -> None:
        """Asks for the next candidate."""
        self.proposal = None
        try:
            if len(self.refused) < ATTEMPTS:
                self.proposal = self.strategy.propose(self.subject, self.refused)
        except NoPlan as reason:
            self.reason = str(reason)
        else:
            self.reason = ALL_REFUSED if self.refused and self.proposal is None else ""


class _Turn(Mutable, eq=False):
    """Strategies of one rank for `subject`. `before`: what became of it until now; `refused`: what failed in this turn."""

    subject: Subject
    before: Chosen
    asked: list[_Asked]
    refused: list[str] = field(default_factory=list[str])

    @property
    def told(self) -> Chosen:
        """What became of it if nothing else can be followed."""
        return self.before.but(self.refused, next((each.reason for each in self.asked if each.reason), ""))

    def followed(self) -> Found | None:
        """The cheapest candidate that can be followed, if one can."""
        while (best := min(self.asked, key=lambda each: each.cost)).proposal is not None:
            try:
                found = self._follow(best.proposal)
            except Refused as reason:
                best.refused.append(reason)
                self.refused.append(str(reason))
                best.ask()
            except NoPlan as reason:
                best.proposal, best.reason = None, str(reason)
            else:
                if found is not None:
                    return found
                best.proposal = None
        return None

    def _follow(self, proposal: Proposal) -> Found | None:
        """What becomes of the nest by one candidate; None where that is nothing. Raises Refused, or NoPlan."""
        script = proposal.script
        left = script.run()
        if left:
            return self._parts(script, left)
        if not script.directives:
            self.refused += script.dropped
            return None
        told = self.told.but(script.dropped)
        reason = "" if proposal.tile else "; ".join(filter(None, (told.reason, proposal.said)))
        return (replace(told, candidate=proposal.tile, reason=reason),), script

    def _parts(self, script: Script, left: Iterable[Subject]) -> Found | None:
        """The nests that a script leaves, laid out one after the other, if one of them gets a tile."""
        every = list[Chosen]()
        for part in left:
            found, more = _laid_out(replace(part, state=script.state))
            every += found
            if more is not None:
                script.state = more.state
                script.directives += more.directives
        if any(each.candidate is not None for each in every):
            return tuple(every), script
        if len(every) == 1:  # it stands for the nest itself
            self.refused += every[0].refused
            raise NoPlan(every[0].reason)
        return None
