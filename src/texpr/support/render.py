"""Diagnostics as text and as data.

error[E0201]: `q` is not a name here
 --> saxpy.te:4:32
  |
4 |     par n |i| { z[i] = a * q[i] + y[i] }
  |                            ^
  = help: did you mean `x`?
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import TypeAlias

from texpr.support.codes import TITLES
from texpr.support.diagnostic import Diagnostic
from texpr.support.span import Span

Paint: TypeAlias = Callable[[str, str], str]
"""A function that colours text: `paint(text, style)`; styles are "error", "limitation", "note", "help", "gutter" and
"strong"."""

TAB = 4
WIDTH = 120
"""Longer source lines are clipped."""


def plain(text: str, style: str) -> str:
    """No colour."""
    return text


def severity(diagnostic: Diagnostic) -> str:
    """ "limitation" for undecided or unsupported programs (E05), "error" for everything else."""
    return "limitation" if diagnostic.code.startswith("E05") else "error"


def render(diagnostic: Diagnostic, paint: Paint = plain) -> str:
    """The diagnostic as lines of text, with a final line end."""
    kind = severity(diagnostic)
    spans = [span for span in (diagnostic.span, *(note.span for note in diagnostic.notes)) if span and span.source.text]
    margin = max((len(str(span.line)) for span in spans), default=1)
    message = visible(diagnostic.message)
    lines = [paint(f"{kind}[{diagnostic.code}]", kind) + paint(f": {message}", "strong")]
    if diagnostic.span is not None:
        lines += _place(diagnostic.span, "^", kind, margin, paint)
    bullet = " " * (margin + 1) + paint("=", "gutter")
    for note in diagnostic.notes:
        if note.span is None or not note.span.source.text:
            lines.append(f"{bullet} {paint('note', 'note')}: {visible(note.text)}")
        else:
            lines.append(f"{paint('note', 'note')}: {visible(note.text)}")
            lines += _place(note.span, "-", "note", margin, paint)
    if diagnostic.help is not None:
        lines.append(f"{bullet} {paint('help', 'help')}: {visible(diagnostic.help)}")
    return "\n".join(lines) + "\n"


def as_data(diagnostic: Diagnostic) -> dict[str, object]:
    """The diagnostic as JSON data; lines and columns count from 1, an end is exclusive."""
    return {
        "code": diagnostic.code,
        "title": TITLES.get(diagnostic.code, ""),
        "severity": severity(diagnostic),
        "message": diagnostic.message,
        "at": _span_data(diagnostic.span),
        "notes": [{"text": note.text, "at": _span_data(note.span)} for note in diagnostic.notes],
        "help": diagnostic.help,
    }


def _span_data(span: Span | None) -> dict[str, object] | None:
    if span is None or not span.source.text:
        return None
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    return {"file": span.source.name, "line": line, "column": column, "end_line": end_line, "end_column": end_column}


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def visible(text: str) -> str:
    """`text` with control characters replaced by their pictures, so that a file cannot drive the reader's terminal."""
    return "".join(_picture(char) for char in text)


def _picture(char: str) -> str:
    if char == "\n":
        return char
    category = unicodedata.category(char)
    if category in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return chr(0x2400 + ord(char)) if ord(char) < 0x20 else "\ufffd"
    return char


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _laid_out(line: str) -> tuple[str, list[int]]:
    """The line as displayed, tabs expanded, and the column of each of its characters (and of its end)."""
    shown: list[str] = []
    starts: list[int] = []
    at = 0
    for char in line:
        starts.append(at)
        piece = " " * (TAB - at % TAB) if char == "\t" else _picture(char)
        shown.append(piece)
        at += len(piece) if char == "\t" else _columns(piece)
    return "".join(shown), [*starts, at]


def _place(span: Span, mark: str, style: str, margin: int, paint: Paint) -> list[str]:
    """The location line and, if there is source text, the line with the span underlined."""
    arrow = " " * margin + paint("-->", "gutter") + " "
    if not span.source.text:
        return [arrow + visible(span.source.name)]
    number, column = span.source.position(span.start)
    line = span.source.line(number)
    stop = min(column - 1 + max(span.end - span.start, 1), max(len(line), column))
    shown, mark_line = _underlined(line, column - 1, stop, mark)
    gutter = " " * (margin + 1) + paint("|", "gutter")
    numbered = paint(f"{number:>{margin}} |", "gutter")
    return [arrow + visible(str(span)), gutter, f"{numbered} {shown}".rstrip(), f"{gutter} {_painted(mark_line, style, paint)}"]


def _underlined(line: str, start: int, stop: int, mark: str) -> tuple[str, str]:
    """The line as displayed and the line of marks below characters `start:stop`; a long line is clipped around them."""
    if len(line) > WIDTH:
        low = max(0, min(start - WIDTH // 3, len(line) - WIDTH))
        high = min(len(line), low + WIDTH)
        before, after = "…" if low else "", "…" if high < len(line) else ""
        line = before + line[low:high] + after
        start, stop = start - low + len(before), min(stop - low + len(before), len(line))
    shown, starts = _laid_out(line)
    starts += [starts[-1] + 1]
    first, last = starts[min(start, len(line))], starts[min(stop, len(line))]
    return shown, " " * first + mark * max(last - first, 1)


def _painted(marks: str, style: str, paint: Paint) -> str:
    blank = len(marks) - len(marks.lstrip())
    return marks[:blank] + paint(marks[blank:], style)
