"""`docs/accepted.md` says which programs each target accepts today, and for which sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import pytest

from texpr import driver
from texpr.ir.program import Function
from texpr.ir.program.selection import AUTO, Selected
from texpr.isa.registry import resolve
from texpr.support.diagnostic import TexprError

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "accepted.md"
FOLDERS = {
    "The gallery": "examples",
    "Scheduled programs": "examples/scheduled",
    "Everyday programs": "tests/proof/plan/everyday",
}
TARGETS = ("cpu", "sm_90a")
FIXED = {"scheduled/softmax.te": {"N": 1024}, "scheduled/softmax_long.te": {"N": 65536}}
"""Sizes of programs whose schedules are for fixed ones."""

HEAD = """# What is accepted

Programs of the gallery, those with schedules, and kernels of users, as `texpr build` takes them, by each schedule that fits
or, where there is none, by that which the compiler finds. `yes`: built for every size
up to 2³¹ − 2¹⁶. A bound is what a launcher asks of sizes besides, so that index arithmetic fits 64 bits; sizes beyond it are
refused with a status, and no machine of today gets through so many elements. `tests/repo/test_accepted.py` writes this page.
"""


def programs(folder: str) -> Iterator[tuple[str, Function, Mapping[str, int]]]:
    """The functions of the files of a folder, with what the page calls them, and what is fixed."""
    for file in sorted((ROOT / folder).glob("*.te")):
        functions = driver.load(file).functions
        for function in functions:
            fixed = FIXED.get(f"{file.parent.name}/{file.name}", {})
            name = file.stem if len(functions) == 1 else f"{file.stem}, `{function.name}`"
            yield "".join((name, *(f", {size} = {value}" for size, value in fixed.items()))), function, fixed


def verdict(function: Function, target: str, fixed: Mapping[str, int]) -> str:
    """Whether a target accepts a function, and the bounds on sizes that its launcher checks, by each schedule that fits."""
    targets = (target, resolve(target).family, None)
    fitting = [schedule for schedule in function.schedules if schedule.target in targets] or [AUTO]
    return "; ".join(dict.fromkeys(by_schedule(function, target, fixed, schedule) for schedule in fitting))


def by_schedule(function: Function, target: str, fixed: Mapping[str, int], schedule: Selected) -> str:
    """The same by one schedule, or by that which the compiler finds."""
    try:
        bounds = driver.lower(function, target, fixed, schedule=schedule).plan.bounds
    except TexprError as problem:
        return problem.diagnostics[0].code
    power = {2**bits: f"2^{bits}" for bits in (31, 62, 63)}
    asked = (f"`{b.left} {b.op} {power.get(b.right.constant, b.right.constant)}`" for b in bounds)
    return "; ".join(asked) or "yes"


def rows(folder: str, every: int = 1) -> Iterator[str]:
    """A row of the table for each program, or for one of so many."""
    for name, function, fixed in islice(programs(folder), 0, None, every):
        yield " | ".join(("", name, *(verdict(function, target, fixed) for target in TARGETS), "")).strip()


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, folder in FOLDERS.items():
        head = " | ".join(("", "program", *TARGETS, "")).strip()
        parts.append("\n".join((f"## {title}", "", head, "|---" * (1 + len(TARGETS)) + "|", *rows(folder), "")))
    return "\n".join(parts)


def test_rows_of_the_page_are_what_is_accepted() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    made = [row for folder in FOLDERS.values() for row in rows(folder, every=20)]
    assert len(made) > 4 and not [row for row in made if row not in lines]


@pytest.mark.long
def test_the_page_is_what_is_accepted(golden: Callable[[Path, str], None]) -> None:
    """That a program is refused that was not before is no reason to write it anew."""
    made = page()
    assert "| E0" not in made
    golden(PAGE, made)
