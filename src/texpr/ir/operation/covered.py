"""Why a wait is there: dependences, as records and as text."""

from __future__ import annotations

import json

from texpr.affine.expr import Sym
from texpr.ir.value.parse import named, option, separated
from texpr.ir.value.scanner import Scanner, is_name
from texpr.support.record import Record
from texpr.support.span import NOWHERE, Span


class Covered(Record):
    """A dependence that a barrier is there for: RAW, WAR or WAW; on which buffer; its ends; the loop that carries it.

    END: a block has a part of the buffer, and ends only when others of its cluster have read that.
    """

    kind: str
    buffer: str
    source: Span
    sink: Span
    carried: Sym | None = None


def covers_text(covers: tuple[Covered, ...]) -> str:
    """Why a wait is there; empty where nothing is said."""
    return f"covers {', '.join(map(_text, covers))}" if covers else ""


def _text(covered: Covered) -> str:
    carried = "" if covered.carried is None else f" carried {covered.carried}"
    name = covered.buffer if is_name(covered.buffer) else json.dumps(covered.buffer)
    ends = (("from", covered.source), ("to", covered.sink))
    lines = "".join(f" {word} {span.line}" for word, span in ends if span.source is not NOWHERE.source)
    return f"{covered.kind} {name}{lines}{carried}"


def covers(scan: Scanner) -> tuple[Covered, ...]:
    """Why a wait is there, where anything is said."""
    return tuple(separated(scan, _read)) if option(scan, "covers") else ()


def _read(scan: Scanner) -> Covered:
    start = scan.next.start
    kind = scan.name()
    buffer = str(json.loads(scan.take().text)) if scan.next.kind == "string" else scan.name()
    source, sink = (scan.place(scan.integer() if option(scan, word) else None, start) for word in ("from", "to"))
    return Covered(kind, buffer, source, sink, named(scan) if option(scan, "carried") else None)
