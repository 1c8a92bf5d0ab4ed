"""The table of docs/theory/mapping.md is what is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.mapping.programs import PROGRAMS, SCHEDULED

from references import FOLDER
from texpr.driver import lower as lower_function
from texpr.explain.sigma import sigma
from texpr.frontend import parse
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.mapping import solve
from texpr.mapping.cost import least, rows, warps
from texpr.mapping.cost.weights import INSTRUCTIONS, TABLE, WEIGHTS, Weights
from texpr.mapping.nest import Solved
from texpr.mapping.sigma import forget

PAGE = Path(__file__).parents[2] / "docs" / "theory" / "mapping.md"


def found(text: str) -> Solved:
    """What the solver says of the last band of a program; `bench/parts.py` measures how long that takes."""
    function = parse(text).functions[0]
    forget()
    least.together.cache_clear()
    if function.schedules:
        notes = lower_function(function, "sm_90a", schedule=function.schedules[0]).notes
    else:
        _, notes = lower(function, resolve("sm_90a"))
    solved = notes[-1].solved[-1]
    assert solved.solution.certificate
    return solved


def cells(name: str, said: dict[str, Any]) -> list[str]:
    certificate = said["certificate"].replace("globally optimal", "optimal")
    parts = ("least", "sectors", "by_phi", "by_shape", "lines", "conflicts", "arithmetic")
    numbers = [said[part] for part in parts]
    return [name, " · ".join(said["lanes"]), *("" if n is None else f"{n:g}" for n in numbers), certificate]


HEAD = "program · threads, fastest first · least · σ · φ · by shape · lines · conflicts · arithmetic · certificate"


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


def placed(page: str, name: str, made: str) -> str:
    """`page` with a table between two of its comments."""
    start, end = f"<!-- {name} -->", "<!-- end -->" if name == "table" else f"<!-- end of {name} -->"
    before, rest = page.split(start)
    return f"{before}{start}\n{made}\n{end}{rest.split(end, 1)[1]}"


def test_the_table(golden: Callable[[Path, str], None]) -> None:
    lines: list[list[str]] = []
    for name, text in {**PROGRAMS, **SCHEDULED}.items():
        solved = found(text)
        assert not solved.solution.cut, name
        lines.append(cells(name, sigma(solved)))
    golden(PAGE, placed(PAGE.read_text(encoding="utf-8"), "table", table(HEAD.split(" · "), lines)))


def test_each_weight_has_a_source(golden: Callable[[Path, str], None]) -> None:
    lines = [[each.part, str(each.value), each.says, each.source] for each in TABLE]
    assert {each.value for each in TABLE} == {*WEIGHTS, *INSTRUCTIONS} and all(each.source for each in TABLE)
    golden(
        PAGE,
        placed(PAGE.read_text(encoding="utf-8"), "weights", table(["of one", "weighs", "what is said of it", "source"], lines)),
    )


OTHERS = (Weights(4, 1, 1, 4), Weights(3, 3, 1, 4), Weights(10, 1, 1, 4), Weights(10, 4, 1, 4), Weights(3, 1, 1, 4))
HANG = {"bias", "matmul NN", "convolution 3 × 3"}


def test_few_mappings_hang_on_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within what sources say; the page names those that do."""
    programs = [name for name in PROGRAMS if name not in ("reversal of 12 axes of 4", "im2col 3 × 3")]
    taken = {name: found(PROGRAMS[name]).solution.digits for name in programs}
    changed: set[str] = set()
    for weights in OTHERS:
        for room in (solve, least, rows, warps):
            monkeypatch.setattr(room, "WEIGHTS", weights)
        solve._fewest.cache_clear()
        changed |= {name for name in programs if found(PROGRAMS[name]).solution.digits != taken[name]}
    monkeypatch.undo()
    solve._fewest.cache_clear()
    forget()
    assert changed == HANG


def test_known_answers() -> None:
    """Sectors that were counted by hand, or by trying everything, before there was a solver."""
    known = {"transpose f32": 12, "matmul NN": 4, "matmul TN": 2, "matmul NT": 12, "3-D reversal": 12, "copy": 8}
    for name, sectors in known.items():
        assert sigma(found(PROGRAMS[name]))["sectors"] == pytest.approx(sectors, abs=0.01), name


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
