"""Tags are not believed: whatever they say, a plan with a bug is not proved, and most wrong ones make a proof fail."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.verifier.mutants import mutants
from tests.verifier.verdicts import is_proved

from texpr import driver
from texpr.affine.expr import expr
from texpr.ir import kernel as k
from texpr.ir.selection import Selected
from texpr.verifier import Question, Tags, prove, question
from texpr.verifier.tags import Joined, Leaf, Moved, Statement, Step, Tag
from texpr.witness import proved, search

EXAMPLES = Path(__file__).parents[2] / "examples"


def altered(tags: Tags, actions: int, rng: random.Random) -> Tags:
    """Tags with one thing changed: two exchanged, one dropped, another statement, other indices, a part for what is none."""
    events: list[Tag | None] = list(tags.events)
    at = rng.randrange(len(events))
    tag = events[at]
    match rng.randrange(5):
        case 0:
            other = rng.randrange(len(events))
            events[at], events[other] = events[other], events[at]
        case 1:
            events[at] = None
        case 2 if isinstance(tag, Statement | Leaf | Moved):
            events[at] = replace(tag, action=rng.randrange(actions))
        case 3 if isinstance(tag, Statement | Leaf | Moved) and tag.indices:
            changed = list(tag.indices)
            moved = rng.randrange(len(changed))
            changed[moved] = rng.choice([changed[moved] + 1, expr(0), changed[0], changed[-1] * 2])
            events[at] = replace(tag, indices=tuple(changed))
        case _:
            kinds: list[Tag] = [Step(), Joined("add"), Joined("max")]
            if isinstance(tag, Statement):
                kinds += [Leaf(tag.action, tag.indices, tag.inverse)] * 3
            if isinstance(tag, Leaf):
                kinds += [Statement(tag.action, tag.indices, tag.inverse)] * 3
            events[at] = rng.choice(kinds)
    return replace(tags, events=tuple(events))


def asked(name: str, target: str, schedule: Selected) -> Iterator[tuple[Question, k.Plan, driver.Compiled]]:
    for function in driver.load(EXAMPLES / f"{name}.te").functions:
        compiled = driver.lower(function, target, schedule=schedule)
        yield question(compiled.function, compiled.plan), compiled.plan, compiled


@pytest.mark.parametrize(
    ("name", "target", "schedule"),
    [("saxpy", "sm_90a", None), ("transpose", "sm_90a", None), ("matmul", "cpu", None), ("cholesky", "sm_90a", None),
     ("softmax", "sm_90a", None), ("matmul", "sm_90a", "auto")],
)  # fmt: skip
def test_wrong_tags_fail(name: str, target: str, schedule: Selected) -> None:
    rng = random.Random(f"{name} {target}")
    wrong = kept = 0
    for question_, plan, _ in asked(name, target, schedule):
        tags = search(question_)
        assert is_proved(prove(question_, plan, tags))
        for _ in range(12):
            other = altered(tags, len(question_.program.actions), rng)
            if other == tags:
                continue
            if is_proved(prove(question_, plan, other)):
                kept += 1  # what is said is right, too: a name for a value, or an index of a loop with one turn
            else:
                wrong += 1
    assert wrong > 2 * kept


def bugs(names: tuple[tuple[str, str], ...], turns: int) -> Iterator[tuple[str, str, bool]]:
    """Mutants, each with the tags of the right plan and with altered ones; and whether one of those was a proof."""
    rng = random.Random(7)
    for name, target in names:
        for question_, _, compiled in asked(name, target, None):
            tags = search(question_)
            for mutant in mutants(compiled.plan):
                if is_proved(proved(compiled.function, mutant.plan)):
                    continue  # it changes no result
                bad = question(compiled.function, mutant.plan)
                for turn in range(turns):
                    said = tags if turn == 0 else altered(tags, len(bad.program.actions), rng)
                    if len(said.events) == len(bad.reading.events):
                        yield name, mutant.name, is_proved(prove(bad, mutant.plan, said))


def test_no_tags_prove_a_bug() -> None:
    found = list(bugs((("saxpy", "sm_90a"), ("transpose", "sm_90a"), ("sum", "sm_90a")), 3))
    assert len(found) > 100
    assert not [each for each in found if each[2]]


@pytest.mark.long
def test_no_tags_prove_any_bug() -> None:
    found = list(bugs((("cholesky", "sm_90a"), ("softmax", "sm_90a"), ("matmul", "cpu"), ("argmax", "cpu")), 6))
    assert len(found) > 500
    assert not [each for each in found if each[2]]
