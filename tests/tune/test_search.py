"""The loop of a search, by made-up measurements: what is tried, what is kept, what is made again."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError
from tests.tune.programs import Made, least_at, problem, space, study

from texpr.support.diagnostic import TexprError
from texpr.tune import study as study_module
from texpr.tune.outcome import INTERRUPTED, MEASURED, REFUSED, Outcome
from texpr.tune.report import best, default, different, report
from texpr.tune.search import search
from texpr.tune.study import Study, is_gone, owner


def run(kept: Study, crew: Made, most: int = 100) -> list[int]:
    """The tiles that are measured, in order."""
    search(kept, problem(), crew, most, lambda _: None)
    assert crew.closed
    return [point["tile"] for point in crew.points]


def test_a_small_space_is_measured_whole_and_the_default_first(tmp_path: Path) -> None:
    kept = study(tmp_path, space(*range(10, 16)), problem())
    tried = run(kept, Made(least_at(13)))
    assert (tried[0], sorted(tried)) == (10, [*range(10, 16)])
    found = best(kept.trials())
    assert found is not None and (found.point, found.value) == ({"tile": 13}, 0.0)


def test_what_is_refused_costs_its_trial_and_its_reason_is_kept(tmp_path: Path) -> None:
    of = space(*range(10, 16))
    kept = study(tmp_path, of, problem())
    run(kept, Made(least_at(13)))
    data = report(problem(), of, kept.name, kept.trials(), "")
    assert (data["measured"], data["refused"], data["failed"], data["points"]) == (5, 1, 0, 6)
    (refused,) = [each for each in data["trials"] if each["state"] == REFUSED]
    assert (refused["point"], refused["code"], refused["reason"]) == ({"tile": 14}, "E0911", "no vectors of 14")


def test_no_point_of_a_large_space_is_measured_twice(tmp_path: Path) -> None:
    kept = study(tmp_path, space(*range(1, 25)), problem())
    tried = run(kept, Made(least_at(33), count=3), most=9)
    assert (len(tried), len(set(tried)), tried.count(1)) == (9, 9, 1)
    assert len(different(kept.trials(), kept.space)) == 9


def test_a_search_goes_on_where_another_one_ended(tmp_path: Path) -> None:
    of = space(*range(10, 16))
    first = run(study(tmp_path, of, problem()), Made(least_at(13)), most=4)
    then = run(study(tmp_path, of, problem()), Made(least_at(13)))
    assert (len(first), sorted(first + then)) == (4, [*range(10, 16)])
    assert run(study(tmp_path, of, problem()), Made(least_at(13))) == []
    assert len(run(study(tmp_path, of, problem(n=7)), Made(least_at(13)))) == 6  # another problem in the same file


def test_what_an_interrupt_cuts_off_is_made_again(tmp_path: Path) -> None:
    of = space(*range(10, 16))

    def value(point: dict[str, int]) -> Outcome:
        if point["tile"] != 10:
            raise KeyboardInterrupt
        return Outcome(MEASURED, 1.0)

    crew = Made(value, count=3)
    with pytest.raises(KeyboardInterrupt):
        run(study(tmp_path, of, problem()), crew)
    assert crew.closed
    kept = study(tmp_path, of, problem())
    cut_off = {read for read, state in states(kept) if state == INTERRUPTED}
    assert len(cut_off) >= 2
    tried = run(kept, Made(least_at(13)))
    assert set(tried[: len(cut_off)]) == cut_off and sorted(tried) == sorted(
        {*range(10, 16)} - {t.point["tile"] for t in first(kept)}
    )


def states(kept: Study) -> list[tuple[int, str]]:
    every = kept._study.get_trials()  # pyright: ignore[reportPrivateUsage]
    return [(each.params["tile"], each.user_attrs["outcome"]["state"]) for each in every if "outcome" in each.user_attrs]


def first(kept: Study) -> list[study_module.Trial]:
    """The trials of before: that of the default, which alone gave 1."""
    return [each for each in kept.trials() if each.outcome.value == 1.0 and each.point["tile"] == 10]


def test_what_a_process_left_that_is_no_more_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = space(10, 11, 12)
    kept = study(tmp_path, of, problem())
    kept.begin({"tile": 12})  # by this process, which lives
    assert run(study(tmp_path, of, problem()), Made(least_at(11)), most=1) == [10]
    monkeypatch.setattr(study_module, "is_gone", lambda owner: True)
    again = study(tmp_path, of, problem())
    assert run(again, Made(least_at(11))) == [12, 11]


def test_processes_are_told_apart() -> None:
    host, number, began = owner().split()
    assert not is_gone(owner())
    assert is_gone(f"{host} {number} {int(began) - 1}")  # the number was used again
    assert is_gone(f"{host} 4194305 1")
    assert not is_gone(f"elsewhere {number} 1")
    assert is_gone("")


def test_the_default_is_told_also_where_it_is_refused(tmp_path: Path) -> None:
    of = space(14, 15)
    kept = study(tmp_path, of, problem())
    run(kept, Made(least_at(15)))
    found = default(kept.trials(), of)
    assert found is not None and found.outcome.state == REFUSED


def test_what_waits_in_the_storage_disturbs_no_search(tmp_path: Path) -> None:
    """Points that somebody asked for, as by Optuna's dashboard, or that an older release left there when it was stopped."""
    of = space(*range(10, 16))
    kept = study(tmp_path, of, problem())
    for tile in (12, 12, 15):
        kept._study.enqueue_trial({"tile": tile})  # pyright: ignore[reportPrivateUsage]
    assert sorted(run(kept, Made(least_at(13)))) == [*range(10, 16)]
    assert best(kept.trials()) is not None and sorted(run(study(tmp_path, of, problem()), Made(least_at(13)))) == []


def test_searches_at_once_share_their_points(tmp_path: Path) -> None:
    """What one is at no other one begins; what one measured no other one measures."""
    of, others = space(*range(10, 16)), []

    def value(point: dict[str, int]) -> Outcome:
        others.append(run(study(tmp_path, of, problem()), Made(least_at(13))))
        return least_at(13)(point)

    assert run(study(tmp_path, of, problem()), Made(value)) == [10]
    assert [sorted(each) for each in others] == [[*range(11, 16)]]


@pytest.mark.parametrize(("faults", "opened"), [(2, True), (9, False)])
def test_tables_that_another_search_makes_at_this_moment(
    faults: int, opened: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two searches that begin at once both find an empty database."""
    whole, left = study_module.optuna.storages.RDBStorage, [IntegrityError("create", {}, Exception("there is one"))] * faults

    class Disturbed(whole):
        def __init__(self, url: str):
            if left:
                raise left.pop()
            super().__init__(url)

    monkeypatch.setattr(study_module.optuna.storages, "RDBStorage", Disturbed)
    monkeypatch.setattr(study_module.time, "sleep", lambda _: None)
    if opened:
        assert run(study(tmp_path, space(1, 2), problem()), Made(least_at(2))) == [1, 2]
    else:
        with pytest.raises(TexprError, match="there is one"):
            study(tmp_path, space(1, 2), problem())
