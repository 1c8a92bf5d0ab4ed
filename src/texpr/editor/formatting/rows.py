"""Rows of a text, with the comments at their ends in columns."""

from __future__ import annotations

from collections.abc import Iterable

from texpr.support.record import Record

_BEFORE = 2
"""The least spaces before a comment at the end of a line."""


class Row(Record):
    """A row: its code, indented, or the column of a comment that stands alone; the comment, and the column where it was.

    `space`: the characters between the two, as it was. `blank`: a blank line comes before.
    """

    code: str
    indent: int
    comment: str | None
    column: int
    space: int
    blank: bool


def joined(rows: Iterable[Row]) -> str:
    """The text of the rows. Comments at their ends keep their distance; those in a common column get a common one again."""
    out: list[str] = []
    group: list[Row] = []
    for row in rows:
        if group and (row.blank or row.comment is None or row.column != group[0].column):
            _close(group, out)
        if row.blank:
            out.append("\n")
        if row.comment is not None and (row.code or group):
            group.append(row)
        elif row.comment is not None:
            out.append(" " * row.indent + row.comment + "\n")
        else:
            out.append(row.code + "\n")
    _close(group, out)
    return "".join(out)


def _close(group: list[Row], out: list[str]) -> None:
    least = min((row.space for row in group if row.code), default=0)
    column = max((columns(row.code) for row in group), default=0) + max(least, _BEFORE)
    out.extend(f"{row.code}{' ' * (column - columns(row.code))}{row.comment}\n" for row in group)
    group.clear()


def columns(code: str) -> int:
    """The columns of code; of code with a line end in it, those of its last line."""
    return len(code) - code.rfind("\n") - 1
