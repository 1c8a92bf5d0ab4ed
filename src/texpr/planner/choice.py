"""Candidates of a nest by number, for a search that measures them instead of trusting a cost.

Where strategies compete for a nest is a *point of choice*. A plan without picks takes the first candidate that is not refused,
rank by rank and in each by cost. A pick asks for another one: it is followed, or its refusal is the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from texpr.planner.nest import Forbidden, NoPlan
from texpr.planner.strategy import Proposal, Strategy, Subject
from texpr.support.record import Mutable, Record, field

MOST = 40
"""The most candidates of one strategy at a point."""

AS_PLANNED = "what the compiler takes by itself"
NONE = "no schedule: the default mapping"


class Point(Record):
    """A point of choice. `name`: `nest.LINE`, with a number where a line has several. `candidates`: a description of each, by
    its number; 0 is what a plan takes without picks, the last one leaves the nest as it is."""

    name: str
    candidates: tuple[str, ...]


class Chooser(Mutable, eq=False):
    """The `picks` of one plan by the names of points; those not named are 0. `points`: what the plan has come to so far."""

    picks: Mapping[str, int]
    points: list[Point] = field(default_factory=list[Point])

    def pick(self, subject: Subject, strategies: Sequence[Strategy]) -> Proposal | bool | None:
        """The proposal that is asked for; None for none at all, False to go on as without picks.

        Raises NoPlan where the number is that of no candidate.
        """
        found = tuple(candidates(subject, strategies))
        if not found:
            return False
        named = f"nest.{subject.line}"
        before = sum(each.name == named or each.name.startswith(f"{named}.") for each in self.points)
        name = f"{named}.{before + 1}" if before else named
        others = found[1:]  # the first one is what is taken by itself, if it is not refused
        self.points.append(Point(name, (AS_PLANNED, *map(described, others), NONE)))
        wanted = self.picks.get(name, 0)
        if not 0 <= wanted < len(others) + 2:
            raise NoPlan(f"`{name}` has {len(others) + 2} candidates, and no number {wanted}")
        if wanted == 0:
            return False
        return others[wanted - 1] if wanted <= len(others) else None


def candidates(subject: Subject, strategies: Sequence[Strategy]) -> Iterator[Proposal]:
    """All that strategies propose for a nest: rank by rank what they would propose by themselves, then the others, by cost."""
    for rank in dict.fromkeys(each.rank for each in strategies):
        found = [_of(each, subject) for each in strategies if each.rank is rank]
        for several in ((p for own in found for p in own[:1]), (p for own in found for p in own[1:])):
            yield from sorted(several, key=lambda each: each.cost)


def _of(strategy: Strategy, subject: Subject) -> list[Proposal]:
    """What a strategy proposes by itself, and what else it could, no two described alike."""
    try:
        first = strategy.propose(subject, ())
    except (Forbidden, NoPlan):
        return []
    if first is None:
        return []
    found = {described(first): first}
    for each in strategy.others(subject):
        if len(found) > MOST:
            break
        found.setdefault(described(each), each)
    return [*found.values()]


def described(proposal: Proposal) -> str:
    """A candidate in one line: its strategy's script, and its tile, if it has one."""
    kind = type(proposal.script).__name__.removesuffix("Script").lower()
    if proposal.tile is None:
        return proposal.said or kind
    data = proposal.tile.data()
    parts = [_sizes(data["tile"])]
    for key, text in (("own", "{} a thread"), ("warp", "{} a team")):
        sizes = {name: size for name, size in data.get(key, {}).items() if size > 1}
        parts += [text.format(_sizes(sizes))] if sizes else []
    if data.get("cluster", [1]) != [1] * len(data.get("cluster", [1])):
        parts.append(f"clusters of {' × '.join(map(str, data['cluster']))}")
    parts += [f"by {data['instruction']}, {data['stages']} stages"] if "instruction" in data else []
    return f"{kind}: {', '.join(parts)}"


def _sizes(sizes: Mapping[str, int]) -> str:
    return " × ".join(f"{size} {name}" for name, size in sizes.items())
