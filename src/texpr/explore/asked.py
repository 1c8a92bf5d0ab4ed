"""What a reader asks to see, from data that anybody may have sent: checked, and limited in size."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from texpr.ir.program.selection import AUTO
from texpr.support.record import Record

LARGEST_TEXT = 256 * 1024
"""The characters of a program that a page takes: a hundred times those of a large kernel."""

LONGEST_WORD = 200
"""The characters of a name, and of all sizes together."""

TARGET = "sm_90a"
"""The target of a page that names none, as of `texpr explain`."""

_SIZE = re.compile(r"([A-Za-z_]\w{0,99})\s*=\s*(\d[\d_]{0,18})", re.ASCII)


class Unasked(Exception):
    """Data that is no question; the message says why."""


class Asked(Record):
    """A text, which of its functions, for which target, by which schedule, at which sizes. `function`: empty for the first."""

    text: str
    name: str = "program.te"
    function: str = ""
    target: str = TARGET
    schedule: str = AUTO
    sizes: tuple[tuple[str, int], ...] = ()


def asked_of(data: object) -> tuple[Asked, str]:
    """The question in decoded JSON, and the pane that it asks for. Raises Unasked."""
    if not isinstance(data, dict):
        raise Unasked("a question is an object")
    given = cast("Mapping[object, object]", data)
    text = _text(given, "text", "", LARGEST_TEXT)
    words = {key: _text(given, key, default, LONGEST_WORD) for key, default in _WORDS.items()}
    sizes = sizes_of(words.pop("sizes"))
    pane = words.pop("pane")
    return Asked(text, sizes=sizes, **{key: word or _WORDS[key] for key, word in words.items()}), pane


_WORDS = {"name": "program.te", "function": "", "target": TARGET, "schedule": AUTO, "sizes": "", "pane": "program"}


def _text(given: Mapping[object, object], key: str, default: str, most: int) -> str:
    value = given.get(key, default)
    if not isinstance(value, str):
        raise Unasked(f"`{key}` is a text")
    if len(value) > most:
        raise Unasked(f"`{key}` has {len(value)} characters; a page takes {most}")
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise Unasked(f"`{key}` is no text: it has halves of characters")
    return value


def sizes_of(text: str) -> tuple[tuple[str, int], ...]:
    """The sizes in a text such as `n=1000, K=64`. Raises Unasked."""
    found: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in re.split(r"[,;\n]|\s+(?=[A-Za-z_])", text))):
        match = _SIZE.fullmatch(part)
        if match is None:
            raise Unasked(f"sizes are written as `n=1000, K=64`; `{part[:40]}` is no size")
        found[match[1]] = int(match[2].replace("_", ""))
    return tuple(found.items())
