"""The width of a line of text, without access to a font.

Pictures name generic families only, so the reader's machine chooses the face. The widths here are those of DejaVu Sans and
DejaVu Sans Mono, the widest of the common choices: text in any other face is narrower, and fits its box.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from texpr.support.record import Record

_SANS = (
    *(318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636, 636),
    *(636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787),
    *(603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635),
    *(634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838),
)
"""The advance of the characters from space to tilde, in thousandths of the size."""

_MONO = 602
_OTHER = 838  # an upper bound for letters with accents, arrows and mathematical signs
_WIDE = 1204  # for full-width characters and pictographs, with a margin
_BOLD = 1.12  # an upper bound for the bold face, on average over a word


class Font(Record):
    """A face and size. `name` is its class in the style sheet; `size` is in pixels."""

    name: str
    size: float
    mono: bool = False
    bold: bool = False
    italic: bool = False


NAME = Font("name", 14, mono=True)
TITLE = Font("title", 13)
KEPT = Font("kept", 12, mono=True, bold=True)
REMOVED = Font("removed", 12, mono=True)
REASON = Font("reason", 11, italic=True)
CELL = Font("cell", 13, mono=True)
SMALL = Font("small", 12, mono=True)
CAPTION = Font("caption", 13)

FONTS = (NAME, TITLE, KEPT, REMOVED, REASON, CELL, SMALL, CAPTION)


@lru_cache(maxsize=4096)
def width(text: str, font: Font) -> float:
    """An upper bound of the width of `text`, in pixels."""
    units = sum(_advance(character, font.mono) for character in text)
    return units * font.size / 1000 * (_BOLD if font.bold and not font.mono else 1)


def _advance(character: str, mono: bool) -> int:
    code = ord(character)
    if code < 127:
        return _MONO if mono else _SANS[max(code - 32, 0)]
    if unicodedata.combining(character):
        return 0
    if unicodedata.east_asian_width(character) in "WF":
        return _WIDE
    return _MONO if mono else _OTHER


def printable(text: str) -> str:
    """`text` with characters that have no glyph, change the writing direction, or are not allowed in XML replaced by U+FFFD."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c in "\t\r\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def fit(text: str, limit: int) -> str:
    """`text` abbreviated in the middle to `limit` characters."""
    if len(text) <= limit:
        return text
    head = limit // 2
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"
