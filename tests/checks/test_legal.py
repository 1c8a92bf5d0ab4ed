"""Legal programs: nothing is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from texpr.checks import check
from texpr.frontend import parse
from texpr.ir.program import Function

HERE = Path(__file__)
EXAMPLES = sorted((HERE.parents[2] / "examples").glob("*.te"))


def functions() -> dict[str, Function]:
    files = [HERE.with_name("right.te"), *EXAMPLES]
    return {f"{path.stem}.{f.name}": f for path in files for f in parse(path.read_text(encoding="utf-8"), path.name).functions}


LEGAL = functions()


@pytest.mark.parametrize("name", LEGAL)
def test_legal_programs_are_accepted(name: str) -> None:
    assert check(LEGAL[name]) == ()


def test_the_gallery_is_there() -> None:
    assert len(EXAMPLES) >= 15
