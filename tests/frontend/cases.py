"""Test data: a file of cases, each a name, a program, and what is expected of it.

[case name]
program
---
expected
"""

from __future__ import annotations

from pathlib import Path

from texpr.support.record import Record

HERE = Path(__file__).parent


class Case(Record):
    """One case; `file` and `name` say where it is kept."""

    file: Path
    name: str
    source: str
    expected: str


def read(name: str) -> list[Case]:
    """The cases of a file of this folder."""
    file = HERE / name
    found: list[Case] = []
    for block in file.read_text(encoding="utf-8").split("[case ")[1:]:
        title, _, rest = block.partition("]\n")
        source, _, expected = rest.partition("---\n")
        found.append(Case(file, title, source, expected.rstrip("\n") + "\n"))
    assert len({case.name for case in found}) == len(found), "two cases of one name"
    return found


def renew(case: Case, actual: str) -> None:
    """Write what was produced in place of what was expected."""
    text = case.file.read_text(encoding="utf-8")
    before, mark, after = text.partition(f"[case {case.name}]\n{case.source}---\n")
    _, more, others = after.partition("\n[case ")
    case.file.write_text(f"{before}{mark}{actual.rstrip()}\n{more}{others}", encoding="utf-8")
