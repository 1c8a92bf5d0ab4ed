"""Places as editors count them, and what a change does to them."""

from __future__ import annotations

from random import Random

import pytest

from texpr.editor.positions import Moved, Positions

TEXT = "a𝔽b\r\né\rΣ𝔽\n\nlast\u2028x\x0cy"


@pytest.mark.parametrize(("encoding", "columns"), [("utf-8", [0, 1, 5, 6]), ("utf-16", [0, 1, 3, 4]), ("utf-32", [0, 1, 2, 3])])
def test_columns(encoding: str, columns: list[int]) -> None:
    positions = Positions(TEXT, encoding)
    assert [positions.position(at) for at in range(4)] == [(0, column) for column in columns]
    assert positions.position(TEXT.index("é")) == (1, 0)
    assert positions.position(TEXT.index("Σ")) == (2, 0)
    assert positions.position(len(TEXT))[0] == 4
    for at in range(len(TEXT)):
        if TEXT[at] != "\n" or TEXT[at - 1] != "\r":  # between the two of a line end there is no place
            assert positions.offset(*positions.position(at)) == at


def test_what_is_out_of_range() -> None:
    positions = Positions(TEXT)
    assert positions.offset(-1, 0) == 0
    assert positions.offset(99, 0) == len(TEXT)
    assert positions.offset(0, 99) == 3
    assert positions.offset(0, 2) == 1  # in the middle of a character
    assert positions.offset(3, 5) == TEXT.index("last") - 1
    assert positions.position(-5) == (0, 0)
    assert positions.position(99) == positions.end()
    assert Positions("").position(0) == (0, 0)
    assert Positions("", "utf-7").encoding == "utf-16"


def test_random_changes() -> None:
    for seed in range(200):
        random = Random(seed)
        old = "".join(random.choice("ab\n c") for _ in range(random.randrange(60)))
        new = old
        for _ in range(random.randrange(3)):
            start = random.randrange(len(new) + 1)
            end = min(len(new), start + random.randrange(5))
            new = new[:start] + "".join(random.choice("xy\n") for _ in range(random.randrange(5))) + new[end:]
        moved = Moved(old, new)
        for at in range(len(old)):
            to, after = moved.forth(at), moved.forth(at + 1)
            if to is not None and after == to + 1:
                assert old[at] == new[to] or new[to] in "xy\n"  # what is replaced keeps its ends
        for at in range(len(new)):
            to, after = moved.back(at), moved.back(at + 1)
            if to is not None and after == to + 1:
                assert old[to] == new[at] or new[at] in "xy\n"


def test_what_is_between_two_changes_is_found() -> None:
    old = "".join(f"line {k}\n" for k in range(20))
    new = old.replace("line 3\n", "other\n\n").replace("line 15", "lines 15")
    moved = Moved(old, new)
    assert moved.forth(old.index("line 7")) == new.index("line 7")
    assert moved.back(new.index("line 19")) == old.index("line 19")
    assert moved.forth(old.index("line 3\n") + 2) is None
