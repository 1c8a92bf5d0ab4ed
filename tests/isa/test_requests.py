"""The one model of what a memory does for a request, against byte by byte, and against what the emulator counts elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

import texpr
from texpr.isa import requests
from texpr.isa.requests import bank_rounds, busy, conflicts, row_bytes, windows


@pytest.mark.parametrize(
    ("step", "width", "further"),
    [
        (4, 4, 0),
        (128, 4, 31),
        (132, 4, 0),
        (0, 4, 0),
        (2, 2, 0),
        (8, 8, 0),
        (128, 8, 30),
        (16, 16, 0),
        (32, 16, 4),
        (64, 16, 12),
    ],
)
def test_lanes_that_are_as_far_apart(step: int, width: int, further: int) -> None:
    """32 lanes, `step` bytes from one to the next. Those of 8 bytes are served in halves, of 16 in quarters."""
    lanes = [step * lane for lane in range(32)]
    assert conflicts(lanes, width) == further, [*busy(lanes, width)]
    assert bank_rounds(lanes, width) - further == max(1, width // 4)


def byte_by_byte(lanes: list[int | None], width: int, banks: int) -> int:
    """Each part of the lanes takes as many rounds as some bank has words, and one word's bytes are given at once."""
    together = banks * 4 // max(4, width)
    total = 0
    for first in range(0, len(lanes), together):
        words: set[int] = set()
        for at in lanes[first : first + together]:
            words |= set() if at is None else {byte // 4 for byte in range(at, at + width)}
        total += max((sum(word % banks == bank for word in words) for bank in range(banks)), default=0)
        total -= (len(words) + banks - 1) // banks
    return total


def disagreements(seeds: range) -> int:
    """For how many random requests the model says something else."""
    found = 0
    for seed in seeds:
        random = Random(seed)
        width, banks = random.choice((1, 2, 4, 8, 16)), random.choice((8, 16, 32))
        lanes = [random.choice((None, *(width * random.randrange(200) for _ in range(4)))) for _ in range(32)]
        found += conflicts(lanes, width, banks) != byte_by_byte(lanes, width, banks)
    return found


def test_random_requests() -> None:
    assert disagreements(range(300)) == 0


def test_a_model_that_serves_all_lanes_at_once_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = requests._served
    monkeypatch.setattr(requests, "_served", lambda lanes, width, banks, word: right(lanes, word, banks, word))
    assert disagreements(range(300)) > 50


def test_sectors() -> None:
    assert windows([0, 4, 31, 32], 32) == {0, 1}
    assert windows([24], 32, 16) == {0, 1}
    starts = [row_bytes(40, 4, 32, begins_even=False)] * 8
    assert sum(starts) == 32 * sum(len(windows(range(first, first + 40, 4), 32)) for first in range(0, 32, 4))
    assert row_bytes(40, 4, 32, begins_even=True) == 64


def test_banks_are_modelled_nowhere_else() -> None:
    sources = Path(texpr.__file__).parent
    files = {path.relative_to(sources).as_posix() for path in sources.rglob("*.py") if BANKED.search(path.read_text())}
    assert files == {"isa/requests.py"}


BANKED = re.compile(r"%\s*(\w+\.)*banks\b", re.IGNORECASE)
