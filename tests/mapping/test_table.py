"""The table of docs/theory/mapping.md is what is found."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.mapping.programs import PROGRAMS

from references import FOLDER
from texpr.driver import lower as lower_function
from texpr.explain.sigma import sigma
from texpr.frontend import parse
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.mapping.nest import Solved
from texpr.mapping.sigma import forget

PAGE = Path(__file__).parents[2] / "docs" / "theory" / "mapping.md"

SECOND = 1.0
"""No answer takes longer, on a core that others use too."""


def found(text: str) -> tuple[Solved, float]:
    """What the solver says of the last band of a program, and how long lowering took it."""
    function = parse(text).functions[0]
    forget()
    start = time.process_time()
    _, notes = lower(function, resolve("sm_90a"))
    return notes[-1].solved[-1], time.process_time() - start


def cells(name: str, said: dict[str, Any], seconds: float) -> list[str]:
    certificate = said["certificate"].replace("globally optimal", "optimal")
    spent = "< 0.1 s" if seconds < 0.1 else "< 1 s"
    numbers = [said["least"], said["sectors"], said["by_phi"], said["by_shape"], said["lines"]]
    return [name, " · ".join(said["lanes"]), *("" if n is None else f"{n:g}" for n in numbers), certificate, spent]


def test_the_table(golden: Callable[[Path, str], None], request: pytest.FixtureRequest) -> None:
    head = ["program", "threads, fastest first", "least", "σ", "φ", "by shape", "lines", "certificate", "time"]
    rows: list[list[str]] = []
    for name, text in PROGRAMS.items():
        solved, seconds = found(text)
        assert seconds < SECOND, name
        assert not solved.solution.cut, name
        rows.append(cells(name, sigma(solved), seconds))
    text = PAGE.read_text(encoding="utf-8")
    start, end = text.index("<!-- table -->"), text.index("<!-- end -->")
    lines = [head, ["---"] * len(head), *rows]
    if not request.config.getoption("--update-golden"):
        old = [line.strip("| ").split(" | ") for line in text[start:end].splitlines()[1:]]
        assert [line[:-1] for line in old[2:]] == [line[:-1] for line in rows]
        return
    made = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    golden(PAGE, f"{text[:start]}<!-- table -->\n{made}\n{text[end:]}")


def test_known_answers() -> None:
    """Sectors that were counted by hand, or by trying everything, before there was a solver."""
    known = {"transpose f32": 12, "matmul NN": 4, "matmul TN": 2, "matmul NT": 12, "3-D reversal": 12, "copy": 8}
    for name, sectors in known.items():
        assert sigma(found(PROGRAMS[name])[0])["sectors"] == pytest.approx(sectors, abs=0.01), name


def test_nothing_is_below_the_bounds() -> None:
    """In every band of the gallery: what is found costs what a bound allows; and where sizes are small, however they come."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.te"))]
    texts += [text.replace("M % 32 == 0", "M % 32 == 0, M <= 32") for text in PROGRAMS.values()]
    for text in texts:
        for function in parse(text).functions:
            if any(default is None for _, default in function.consts):
                continue
            for note in lower_function(function, "sm_90a").notes:
                for each in note.solved:
                    cost, bound = each.solution.cost, each.solution.least
                    assert cost.weighted >= bound.idling, function.name
                    if all(extent is None for extent in each.band.extents):
                        assert cost.sectors >= bound.sectors, function.name
