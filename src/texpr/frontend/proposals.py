"""Helps that propose a change of the text: tried before they are given, and left out where they do not help."""

from __future__ import annotations

from collections.abc import Callable

from texpr.support.diagnostic import Diagnostic, TexprError, edited
from texpr.support.record import replace

MOST_READ = 200_000
"""Characters that are read to try the helps of one text; those of further errors are left out."""


def tried(raised: TexprError, read: Callable[[str], object]) -> TexprError:
    """The same error, its helps kept where they do without a finding at its place, with which `read` reads a text.

    Of a change it is asked only that its own finding goes: the others may stay.
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
    """Whether the text is without that finding: none of its code where it was, and none before it that was not there."""
    try:
        read(text)
    except TexprError as raised:
        assert found.span is not None
        place = range(found.span.start, found.span.end + 1)
        return not any(d.code == found.code and d.span is not None and d.span.start in place for d in raised.diagnostics)
    return True
