"""Hints for questions that were asked before: they make answers faster, and never others."""

import random

import pytest
from tests.presburger.test_refuted import some_facts
from tests.presburger.test_swizzles import some_facts as swizzled

from texpr.presburger.formula import Formula, conj
from texpr.presburger.isl.sets import Set
from texpr.presburger.solve import omega
from texpr.presburger.solve.hints import Hint, hinted
from texpr.presburger.solve.omega import refuted

QUESTIONS = [*map(some_facts, range(300)), *map(swizzled, range(100))]


def asked(hints: list[Hint]) -> tuple[list[bool], list[Hint]]:
    with hinted(hints) as found:
        return [refuted(facts) for facts in QUESTIONS], found.made


def unique(facts: list[Formula]) -> list[Formula]:
    return [*dict.fromkeys(facts)]


def test_cores_are_contradictory_by_themselves() -> None:
    answers, made = asked([])
    smaller = 0
    for facts, answer, (number, core) in zip(QUESTIONS, answers, made, strict=True):
        assert number == len(unique(facts))
        assert answer == (core is not None)
        if core is not None:
            assert Set.of((), conj([unique(facts)[at] for at in core])).is_empty()
            smaller += len(core) < number
    assert smaller > 50  # so that the comparison says something


def test_the_same_questions_have_the_same_answers() -> None:
    answers, made = asked([])
    again, told = asked(made)
    assert again == answers == [refuted(facts) for facts in QUESTIONS]
    assert told == made


def test_hints_are_found_where_questions_are_left_out() -> None:
    answers, made = asked([])
    rng = random.Random(0)
    for _ in range(5):
        kept = [hint for hint in made if rng.random() < 0.8]
        some, _ = asked(kept)
        assert sum(a != b for a, b in zip(some, answers, strict=True)) < len(answers) / 2


@pytest.mark.parametrize("core", [(), (0,), (0, 1)])
def test_wrong_cores_refute_nothing(core: tuple[int, ...]) -> None:
    answers, made = asked([])
    told, _ = asked([(number, core if number > 1 else found) for number, found in made])
    assert told == answers


def test_a_core_is_asked_instead_of_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    _, made = asked([])
    seen: list[int] = []
    plain = omega._core
    monkeypatch.setattr(omega, "_core", lambda facts: seen.append(len(facts)) or plain(facts))
    asked(made)
    assert seen == [len(core) for _, core in made if core is not None]
    seen.clear()
    asked([(number, None) for number, _ in made])
    assert not seen
