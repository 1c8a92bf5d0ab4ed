"""Which programs each target accepts, and for which sizes: writes `docs/accepted.md`. `python bench/accepted.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from texpr import driver
from texpr.ir.program import Function
from texpr.support.diagnostic import Limitation, TexprError

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "accepted.md"
FOLDERS = {
    "The gallery": "examples",
    "Scheduled programs": "examples/scheduled",
    "Everyday programs": "tests/verifier/everyday",
}
TARGETS = ("cpu", "sm_90a")

HEAD = """# What is accepted

Programs of the gallery, those with schedules, and kernels of users, as `texpr build` takes them. `yes`: built for every size
up to 2³¹ − 2¹⁶. A bound is what a launcher asks of sizes besides, so that index arithmetic fits 64 bits; sizes beyond it are
refused with a status, and no memory of today holds arrays of them. `python bench/accepted.py` writes this page.
"""


def programs(folder: str) -> Iterator[tuple[str, Function]]:
    """The functions of the files of a folder, with what the page calls them."""
    for file in sorted((ROOT / folder).glob("*.te")):
        functions = driver.load(file).functions
        for function in functions:
            yield (file.stem if len(functions) == 1 else f"{file.stem}, `{function.name}`"), function


def verdict(function: Function, target: str) -> str:
    """Whether a target accepts a function, and the bounds on sizes that its launcher checks."""
    try:
        bounds = driver.lower(function, target).plan.bounds
    except (TexprError, Limitation) as problem:
        return problem.diagnostics[0].code
    power = {2**bits: f"2^{bits}" for bits in (31, 62, 63)}
    asked = (f"`{b.left} {b.op} {power.get(b.right.constant, b.right.constant)}`" for b in bounds)
    return "; ".join(asked) or "yes"


def rows(folder: str) -> Iterator[str]:
    """A row of the table for each program."""
    for name, function in programs(folder):
        yield " | ".join(("", name, *(verdict(function, target) for target in TARGETS), "")).strip()


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, folder in FOLDERS.items():
        head = " | ".join(("", "program", *TARGETS, "")).strip()
        parts.append("\n".join((f"## {title}", "", head, "|---" * (1 + len(TARGETS)) + "|", *rows(folder), "")))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
