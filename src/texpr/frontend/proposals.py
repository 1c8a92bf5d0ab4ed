"""Helps that propose a change of the text: tried before they are given, and dropped where they do not help."""

from __future__ import annotations

from collections.abc import Callable

from texpr.support.diagnostic import Diagnostic, TexprError, edited
from texpr.support.record import replace

MOST_READ = 200_000
"""The characters that are parsed to try the helps of one text; later errors get none."""


def tried(raised: TexprError, read: Callable[[str], object]) -> TexprError:
    """The same error, with its helps kept only where the changed text, parsed by `read`, lacks its finding.

    A change must remove its own finding only: others may stay.
    """
    kept: list[Diagnostic] = []
    left = MOST_READ
    for found in raised.diagnostics:
        text = edited(found)
        if text is not None:
            left -= len(text)
            helps = left >= 0 and _helps(found, text, read)
            found = found if helps else replace(found, help=None, fix=None)
        kept.append(found)
    return type(raised)(kept)


def _helps(found: Diagnostic, text: str, read: Callable[[str], object]) -> bool:
    """Whether the finding is gone: none of its code at its place, and no new one before it."""
    try:
        read(text)
    except TexprError as raised:
        assert found.span is not None
        place = range(found.span.start, found.span.end + 1)
        return not any(d.code == found.code and d.span is not None and d.span.start in place for d in raised.diagnostics)
    return True
