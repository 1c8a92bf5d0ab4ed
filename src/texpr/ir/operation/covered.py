"""The dependences that a wait covers, as records and as text."""

from __future__ import annotations

import json

from texpr.affine.expr import Sym
from texpr.ir.value.parse import named, option, separated
from texpr.ir.value.scanner import Scanner, is_name
from texpr.support.record import Record
from texpr.support.span import NOWHERE, Span


class Covered(Record):
    """A dependence that a barrier or wait covers: RAW, WAR or WAW; the buffer; source and sink; the loop that carries it.

    Kind RAR: a tensor core reads registers, which are not the lane's meanwhile, not even to read.
    Kind END: a block must not exit before the other blocks of its cluster have read its part of the buffer.
    """

    kind: str
    buffer: str
    source: Span
    sink: Span
    carried: Sym | None = None


def covers_text(covers: tuple[Covered, ...]) -> str:
    """The text of the dependences; empty where there are none."""
    return f"covers {', '.join(map(_text, covers))}" if covers else ""


def _text(covered: Covered) -> str:
    carried = "" if covered.carried is None else f" carried {covered.carried}"
    name = covered.buffer if is_name(covered.buffer) else json.dumps(covered.buffer)
    ends = (("from", covered.source), ("to", covered.sink))
    lines = "".join(f" {word} {span.line}" for word, span in ends if span.source is not NOWHERE.source)
    return f"{covered.kind} {name}{lines}{carried}"


def covers(scan: Scanner) -> tuple[Covered, ...]:
    """Parses the dependences, if there are any."""
    return tuple(separated(scan, _read)) if option(scan, "covers") else ()


def _read(scan: Scanner) -> Covered:
    start = scan.next.start
    kind = scan.name()
    buffer = str(json.loads(scan.take().text)) if scan.next.kind == "string" else scan.name()
    source, sink = (scan.place(scan.integer() if option(scan, word) else None, start) for word in ("from", "to"))
    return Covered(kind, buffer, source, sink, named(scan) if option(scan, "carried") else None)
