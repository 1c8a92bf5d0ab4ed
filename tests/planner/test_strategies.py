"""The driver, with made-up strategies: by rank, then by cost; what is refused gives way; what is in vain is left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
from tests.planner.programs import MATMUL, function

from texpr.ir.program.text import print_directive
from texpr.isa.registry import resolve
from texpr.planner import plan as driver
from texpr.planner import strategies
from texpr.planner.follow import Refused
from texpr.planner.nest import NoPlan
from texpr.planner.plan import ALL_REFUSED, ATTEMPTS, Chosen, plan
from texpr.planner.strategy import Proposal, Rank, Script, Strategy, Subject
from texpr.planner.table import STRATEGIES
from texpr.support.record import Record, replace


class Told(Record):
    """A tile that is only a name."""

    name: str

    def data(self) -> dict[str, Any]:
        return {"tile": {self.name: 1}}


class Says(Script, kw_only=True):
    """Splits `i` by `size`; 0 is refused. `parts`: nests that it leaves."""

    size: int
    parts: tuple[Subject, ...] = ()

    def run(self) -> Sequence[Subject]:
        self.must("split", "i", self.size, results=self.fresh("i", "o", "t"))
        return self.parts


def says(
    subject: Subject, size: int, cost: float = 0.0, tile: str = "", said: str = "", parts: tuple[Subject, ...] = ()
) -> Proposal:
    script = Says(subject.state, subject.span, size=size, parts=parts)
    return Proposal(script, cost, Told(tile) if tile else None, said)


def strategy(
    rank: Rank,
    propose: Callable[[Subject, Sequence[Refused]], Proposal | None],
    applies: Callable[[Subject], bool] = lambda _: True,
) -> Strategy:
    return Strategy(rank, applies, propose)


def chosen(monkeypatch: pytest.MonkeyPatch, *table: Strategy) -> tuple[Chosen, list[str]]:
    """What becomes of a matrix product, and the directives for it."""
    monkeypatch.setattr(driver, "STRATEGIES", table)
    made = plan(function(MATMUL), resolve("sm_90a"))
    (found,) = made.nests
    return found, [] if made.schedule is None else [print_directive(each) for each in made.schedule.directives]


def test_the_table_is_in_the_order_of_ranks() -> None:
    assert [each.rank for each in STRATEGIES] == sorted(each.rank for each in STRATEGIES)
    assert {each.rank for each in STRATEGIES} == {*Rank}


def test_the_cheaper_of_one_rank_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    dear = strategy(Rank.TILE, lambda subject, _: says(subject, 4, 2.0, "dear"))
    cheap = strategy(Rank.TILE, lambda subject, _: says(subject, 8, 1.0, "cheap"))
    for table in ((dear, cheap), (cheap, dear)):
        found, said = chosen(monkeypatch, *table)
        assert (found.candidate, said) == (Told("cheap"), ["split(i, 8) -> (i_o, i_t)"])


def test_a_rank_goes_before_a_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    first = strategy(Rank.TILE, lambda subject, _: says(subject, 4, 2.0, "first"))
    later = strategy(Rank.TURN, lambda subject, _: says(subject, 8, 1.0, "later"))
    assert chosen(monkeypatch, first, later)[0].candidate == Told("first")
    never = replace(first, applies=lambda _: False)
    assert chosen(monkeypatch, never, later)[0].candidate == Told("later")


def test_what_is_refused_gives_way_to_the_next_best_of_any_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = strategy(Rank.TILE, lambda subject, refused: says(subject, 4 if refused else 0, 1.0 + 2 * len(refused), "first"))
    other = strategy(Rank.TILE, lambda subject, refused: None if refused else says(subject, 8, 2.0, "other"))
    found, said = chosen(monkeypatch, sizes, other)
    assert (found.candidate, said) == (Told("other"), ["split(i, 8) -> (i_o, i_t)"])
    assert [each[:11] for each in found.refused] == ["split(i, 0)"]
    found, said = chosen(monkeypatch, sizes)
    assert (found.candidate, said, found.reason) == (Told("first"), ["split(i, 4) -> (i_o, i_t)"], "")


def test_attempts_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def propose(subject: Subject, refused: Sequence[Refused]) -> Proposal:
        assert len(asked) < 2 * ATTEMPTS
        asked.append(len(refused))
        return says(subject, 0)

    found, said = chosen(monkeypatch, strategy(Rank.TILE, propose))
    assert asked == [*range(ATTEMPTS)]
    assert (found.candidate, found.reason, len(found.refused), said) == (None, ALL_REFUSED, ATTEMPTS, [])


def test_the_first_reason_stands_and_what_is_no_tile_is_told_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: Subject, __: Sequence[Refused]) -> Proposal:
        raise NoPlan("no tile fits")

    def fails(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
        return None if refused else says(subject, 0)

    failing, said = strategy(Rank.CLUSTER, fails), strategy(Rank.TURN, lambda subject, _: says(subject, 4, said="cut"))
    found, directives = chosen(monkeypatch, strategy(Rank.TILE, none), failing, said)
    assert (found.candidate, found.reason, len(found.refused)) == (None, "no tile fits; cut", 1)
    assert directives == ["split(i, 4) -> (i_o, i_t)"]


@pytest.mark.parametrize("tile", ["", "inner"])
def test_a_nest_is_rewritten_for_the_sake_of_a_tile_alone(monkeypatch: pytest.MonkeyPatch, tile: str) -> None:
    """What another strategy does not finish is left out, with its reason and what was refused."""

    def rewrites(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
        return None if refused else says(subject, 4, parts=(replace(subject, tiles_only=True),))

    def finishes(subject: Subject, refused: Sequence[Refused]) -> Proposal | None:
        if refused:
            raise NoPlan("no tile of it is legal")
        script = Says(subject.state, subject.span, size=0)
        if tile:
            script = Split(subject.state, subject.span)
        return Proposal(script, tile=Told(tile))

    first = strategy(Rank.TILE, rewrites, lambda subject: not subject.tiles_only)
    second = strategy(Rank.TILE, finishes, lambda subject: subject.tiles_only)
    found, said = chosen(monkeypatch, first, second)
    if tile:
        assert (found.candidate, found.reason, found.refused) == (Told(tile), "", ())
        assert said == ["split(i, 4) -> (i_o, i_t)", "split(i_t, 2) -> (i_t_o, i_t_t)"]
    else:
        assert (found.candidate, found.reason, len(found.refused)) == (None, "no tile of it is legal", 1)
        assert said == []


class Split(Script, kw_only=True):
    """Splits what the first one made."""

    def run(self) -> Sequence[Subject]:
        self.must("split", "i_t", 2, results=self.fresh("i_t", "o", "t"))
        return ()


def test_the_page_lists_every_strategy() -> None:
    page = (Path(__file__).parents[2] / "docs" / "schedules.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| (\w+) \| `(\w+)` \| ", page, re.MULTILINE)
    names = (module.name for module in iter_modules(strategies.__path__))
    ranks = {name: import_module(f"{strategies.__name__}.{name}").STRATEGY.rank for name in names}
    assert {name: rank for rank, name in told} == {name: rank.name.lower() for name, rank in ranks.items()}
    assert [Rank[rank.upper()] for rank, _ in told] == sorted(ranks.values())
