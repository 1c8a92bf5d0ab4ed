"""Automatic scheduling of a function: nest by nest, the cheapest candidate with all directives proved.

Strategies (`table`) propose candidates, which are applied here by rank and then by cost. If one is refused, the next is
tried; a nest without a candidate stays unchanged, and the reason is kept. The driver knows no strategy by name.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from itertools import groupby
from math import inf
from types import MappingProxyType

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.isa.target import Target
from texpr.planner.choice import Chooser
from texpr.planner.follow import Refused
from texpr.planner.nest import Forbidden, NoPlan, nests, outermost
from texpr.planner.strategy import Lowered, Proposal, Rank, Script, Strategy, Subject, Tile
from texpr.planner.sums.opening import opened
from texpr.planner.table import STRATEGIES
from texpr.schedule.apply import start
from texpr.schedule.rewrite.materialise import materialise
from texpr.schedule.state import State
from texpr.support.diagnostic import TexprError
from texpr.support.record import Mutable, Record, field, replace
from texpr.support.span import Span

ATTEMPTS = 4
"""The most candidates of a strategy that are tried for a nest."""

ALL_REFUSED = "every candidate was refused"

NOT_WANTED = "no schedule was asked for"

NOTHING: Mapping[Sym, str] = MappingProxyType({})
UNASKED: Mapping[Sym, Lowered] = MappingProxyType({})

BLAMED = {"E0918": "cluster", "E0920": "roles"}
"""The directives that lowering refuses by these codes; by others it is the last one of a candidate."""


class Chosen(Record):
    """The result for the nest at `line`: `candidate` by the model, or `reason` why it has none. `refused`: what was tried
    first; `products`: those of it that would have given products to instructions."""

    line: int
    candidate: Tile | None
    reason: str = ""
    refused: tuple[str, ...] = ()
    products: tuple[str, ...] = ()

    def but(self, refused: Iterable[str], reason: str = "") -> Chosen:
        """The same with `refused` added; the first reason is kept."""
        return replace(self, refused=(*self.refused, *refused), reason=self.reason or reason)


class Planned(Record):
    """`schedule`: None where no nest is worth one. `state`: the function after it. `failed`: why it was given up as a whole."""

    schedule: ir.Schedule | None
    nests: tuple[Chosen, ...]
    state: State
    failed: str = ""

    def without(self, reason: TexprError) -> Planned:
        """The same for a function whose schedule could be applied, but not lowered."""
        return replace(self, schedule=None, failed=given_up(reason))


Found = tuple[tuple[Chosen, ...], Script | None]
"""The results for a nest, which a strategy may have split into several, and its directives."""


def given_up(reason: TexprError) -> str:
    """The reason of a failure in one line."""
    first = reason.diagnostics[0]
    return f"{first.code}: {first.message}"


def blamed(function: ir.Function, schedule: ir.Schedule, reason: TexprError) -> Sym | None:
    """The outermost loop of the scheduled nest that could not be lowered, by the place of `reason`."""
    said, at = {_place(each.span) for each in schedule.directives}, reason.diagnostics[0].span
    for par in outermost(function.body):
        if at is not None and _place(par.span) in said and _place(at) in {_place(s.span) for s in ir.walk((par,))}:
            return par.sym
    return None


def _place(span: Span) -> tuple[int, int]:
    return span.start, span.end


def plan(
    function: ir.Function,
    target: Target,
    without: Mapping[Sym, str] = NOTHING,
    chooser: Chooser | None = None,
    in_step: Container[Sym] = (),
    lowered: Mapping[Sym, Lowered] = UNASKED,
) -> Planned:
    """The automatic schedule of `function`, which is checked, for `target`; its sizes may be fixed or not.

    `without`: outermost loops of nests that get no schedule, and why; `in_step`: of those that get no roles; `lowered`: of
    those whose candidates are only taken where that lowers them. `chooser`: picks candidates by number; then raises Refused or
    NoPlan where one of those cannot be followed.
    """
    if any(s.directives for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq)):
        return Planned(None, (), start(function, target))
    state, directives, chosen = start(function, target), list[ir.Directive](), list[Chosen]()
    opening = opened(state)
    if opening is not None:
        state, directives = opening.state, list(opening.directives)
    for par, nest in nests(state.function if opening is None else materialise(state).function):
        if par.sym in without:
            chosen.append(Chosen(par.span.line, None, f"given up: {without[par.sym]}"))
            continue
        asked = lowered.get(par.sym)
        subject = Subject(par, nest, state, is_part=opening is not None, in_step=par.sym in in_step, lowered=asked)
        found, script = _laid_out(subject if subject.is_part else _now(subject), chooser)
        chosen += found
        if script is not None:
            state = script.state
            directives += script.directives
    schedule = ir.Schedule(function.name, "automatic", target.name, tuple(directives)) if directives else None
    return Planned(schedule, tuple(chosen), state)


def _now(subject: Subject) -> Subject:
    """The nest as it is in the function now: a nest before it may have aligned a result that this one accesses, too."""
    present = next((each for each in outermost(subject.state.function.body) if each.sym is subject.par.sym), subject.par)
    if present is subject.par:
        return subject
    alone = nests(subject.state.alone(present).function)
    return next((replace(subject, par=par, nest=nest) for par, nest in alone if par is present), subject)


def _laid_out(subject: Subject, chooser: Chooser | None) -> Found:
    """One nest, by its applicable strategies, rank by rank."""
    told = Chosen(subject.line, None, str(subject.nest) if isinstance(subject.nest, NoPlan) else "")
    suitable = (each for each in STRATEGIES if each.applies(subject))
    picked = False if chooser is None else chooser.pick(subject, [each for each in STRATEGIES if each.applies(subject)])
    if picked is None:
        return (told.but((), NOT_WANTED),), None
    if not isinstance(picked, bool):
        return _Turn(subject, told, [], chooser).follow(picked) or ((told,), None)
    for _, strategies in groupby(suitable, key=lambda each: each.rank):
        turn = _Turn(subject, told, [_Asked(each, subject) for each in strategies], chooser)
        found = turn.followed()
        if found is not None:
            return found
        told = turn.told
    return (told,), None


class _Asked(Mutable, eq=False):
    """A strategy and its current candidate. `reason`: why it has none; `forbidden`: why it may not or should not have one."""

    strategy: Strategy
    subject: Subject
    refused: list[Refused] = field(default_factory=list[Refused])
    proposal: Proposal | None = None
    reason: str = ""
    forbidden: str = ""

    def __post_init__(self) -> None:
        self.ask()

    @property
    def cost(self) -> float:
        """The cost of the candidate."""
        return inf if self.proposal is None else self.proposal.cost

    def ask(self) -> None:
        """Asks for the next candidate."""
        self.proposal = None
        try:
            if len(self.refused) < ATTEMPTS:
                self.proposal = self.strategy.propose(self.subject, self.refused)
        except Forbidden as reason:
            self.forbidden = str(reason)
        except NoPlan as reason:
            self.reason = str(reason)
        else:
            self.reason = ALL_REFUSED if self.refused and self.proposal is None else ""


class _Turn(Mutable, eq=False):
    """The strategies of one rank for `subject`. `before`: the results so far; `refused`: the failures in this rank."""

    subject: Subject
    before: Chosen
    asked: list[_Asked]
    chooser: Chooser | None = None
    refused: list[str] = field(default_factory=list[str])

    @property
    def told(self) -> Chosen:
        """The result if nothing else can be applied."""
        refused = (*dict.fromkeys(each.forbidden for each in self.asked if each.forbidden), *self.refused)
        told = self.before.but(refused, next((each.reason for each in self.asked if each.reason), ""))
        is_product = any(each.strategy.rank is Rank.PRODUCT for each in self.asked)
        return replace(told, products=(*told.products, *refused)) if is_product else told

    def followed(self) -> Found | None:
        """The result of the cheapest candidate that can be applied, if there is one."""
        while (best := min(self.asked, key=lambda each: each.cost)).proposal is not None:
            try:
                found = self.lowered(self.follow(best.proposal))
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

    def follow(self, proposal: Proposal) -> Found | None:
        """The result of one candidate; None if it changes nothing. Raises Refused, or NoPlan."""
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

    def lowered(self, found: Found | None) -> Found | None:
        """A candidate that can be lowered, where that is asked. Raises Refused."""
        script = None if found is None else found[1]
        if script is not None and script.directives and self.subject.lowered is not None:
            try:
                self.subject.lowered(script.state)
            except TexprError as reason:
                name = BLAMED.get(reason.diagnostics[0].code)
                blamed = (each for each in script.directives if each.name == name)
                raise Refused(next(blamed, script.directives[-1]), reason, None) from None
        return found

    def _ended(self, script: Script) -> Lowered | None:
        """Lowers what a script makes of a state of its last part, if it is asked whether that can be lowered."""
        lowered = self.subject.lowered

        def ended(state: State) -> object:
            whole = replace(script, state=state, directives=[*script.directives], dropped=[])
            whole.finish()
            return None if lowered is None else lowered(whole.state)

        return None if lowered is None else ended

    def _parts(self, script: Script, left: Iterable[Subject]) -> Found | None:
        """The nests that a script leaves, scheduled one after the other, if one of them gets a tile, or needs none."""
        every, (*first, last) = list[Chosen](), [*left]
        for part in (*first, last):
            lowered = self.subject.lowered if part is not last else self._ended(script)
            own = replace(part, state=script.state, in_step=self.subject.in_step, lowered=lowered)
            found, more = _laid_out(own, self.chooser)
            every += found
            if more is not None:
                script.state = more.state
                script.directives += more.directives
        script.finish()
        if script.pays or any(each.candidate is not None for each in every):
            return tuple(every), script
        if len(every) == 1:  # it replaces the nest itself
            self.refused += every[0].refused
            raise NoPlan(every[0].reason)
        return None
