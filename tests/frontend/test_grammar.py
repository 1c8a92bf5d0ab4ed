"""The hand-written parser and the grammar accept the same texts."""

from __future__ import annotations

import re
from random import Random

import pytest
from tests.frontend.corpus import SCHEDULES, right, wrong
from tests.frontend.grammar import accepts

from texpr.frontend import parse_text
from texpr.support.diagnostic import TexprError

RIGHT = right() | {"schedules": SCHEDULES}
EVERY = RIGHT | wrong()
# What the grammar leaves out: numbers too large, nesting, parts given twice, and how many indices a loop has.
LEFT_OUT = {"E0105", "E0112"}
IN_PART = {("E0104", "bits"), ("E0102", "one index for each extent")}


def parses(text: str) -> bool | None:
    """Whether the parser has `text`; None where it says what the grammar leaves out."""
    try:
        parse_text(text)
    except TexprError as raised:
        told = [(d.code, d.message) for d in raised.diagnostics]
        unknown = [code in LEFT_OUT or any(code == c and part in message for c, part in IN_PART) for code, message in told]
        return None if any(unknown) else False
    return True


@pytest.mark.parametrize("name", RIGHT)
def test_accepted(name: str) -> None:
    assert accepts(RIGHT[name])
    assert parses(RIGHT[name])


@pytest.mark.parametrize("name", wrong())
def test_wrong_programs_alike(name: str) -> None:
    assert parses(EVERY[name]) in (None, accepts(EVERY[name]))


NEWLINE = "\n"
TOKEN = re.compile(r"--[^\n]*|\"[^\"\n]*\"|[A-Za-z_0-9']+|\s+|[^\s\w]")
EXTRA = re.findall(
    r"\S+",
    """( ) [ ] { } , : = + - * / % ** | . .. -> == < # ; 'l x f( 1 2.5 128B or not let new par seq fully static for in if else
    return anchor instr inout const where assume injective( monotone( stride( align( reduce( identity true inf max= +=""",
)


def mutate(text: str, random: Random) -> str:
    """`text` with one or two of its tokens deleted, doubled, swapped or replaced."""
    tokens = TOKEN.findall(text)
    for _ in range(random.randint(1, 2)):
        at = random.randrange(len(tokens))
        match random.randrange(4):
            case 0:
                tokens[at] = ""
            case 1:
                tokens[at] += " " + tokens[at]
            case 2:
                other = random.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case _:
                tokens[at] = f" {random.choice((*EXTRA, NEWLINE))} "
    return "".join(tokens)


def differences(rounds: int) -> tuple[list[str], int]:
    """Mutated programs on which the two differ, and how many both accepted."""
    random = Random(5)
    found: list[str] = []
    accepted = 0
    texts = [*EVERY.values(), *RIGHT.values(), *RIGHT.values()]
    for _ in range(rounds):
        text = mutate(random.choice(texts), random)
        ours, theirs = parses(text), accepts(text)
        accepted += ours is True and theirs
        if ours not in (None, theirs):
            found.append(f"-- ours: {ours}, grammar: {theirs}\n{text}")
    return found, accepted


def test_mutations_alike() -> None:
    found, accepted = differences(1000)
    assert not found, "\n".join(found[:3])
    assert 100 < accepted < 900


@pytest.mark.long
def test_many_mutations_alike() -> None:
    found, _ = differences(8_000)
    assert not found, "\n".join(found[:3])
