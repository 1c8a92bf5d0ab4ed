"""Descriptions of faults for users, also of those in another process, from which they are sent as plain data."""

from __future__ import annotations

import json
import os
import traceback
from typing import Any

from texpr.support.diagnostic import CompilerBug, Diagnostic, Limitation, Note, TexprError
from texpr.support.span import NOWHERE, Source, Span


class Elsewhere(CompilerBug):
    """A fault of the compiler in a worker process: its description, its place in our code, its traceback."""

    def __init__(self, what: str, where: str, trace: str):
        self.what, self.where, self.trace = what, where, trace
        super().__init__(what)
        self.add_note(trace)


def told_of(fault: Exception) -> tuple[str, str]:
    """The description of a fault of the compiler, and its place."""
    if isinstance(fault, Elsewhere):
        return fault.what, fault.where
    return f"{type(fault).__name__}: {fault}" if str(fault) else type(fault).__name__, innermost(fault)


def innermost(fault: BaseException) -> str:
    """The innermost place in our own code in the traceback of `fault`: file and line, without the path to the installation."""
    place = "texpr"
    trace = fault.__traceback__
    while trace is not None:
        _, found, inside = trace.tb_frame.f_code.co_filename.replace(os.sep, "/").rpartition("/texpr/")
        if found:
            place = f"texpr/{inside}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def packed(fault: Exception) -> bytes:
    """`fault` as bytes."""
    match fault:
        case TexprError():
            kind = "limitation" if isinstance(fault, Limitation) else "error"
            data: dict[str, Any] = {"kind": kind, "diagnostics": [_diagnostic(found) for found in fault.diagnostics]}
        case MemoryError():
            data = {"kind": "memory"}
        case _:
            what, where = told_of(fault)
            data = {"kind": "bug", "what": what, "where": where, "trace": "".join(traceback.format_exception(fault))}
    return json.dumps(data).encode()


def unpacked(data: bytes) -> Exception:
    """The fault encoded by `packed`."""
    found: dict[str, Any] = json.loads(data)
    match found["kind"]:
        case "error":
            return TexprError([_restored(each) for each in found["diagnostics"]])
        case "limitation":
            return Limitation([_restored(each) for each in found["diagnostics"]])
        case "memory":
            return MemoryError()
        case _:
            return Elsewhere(found["what"], found["where"], found["trace"])


def _diagnostic(found: Diagnostic) -> dict[str, Any]:
    notes = [[note.text, _place(note.span)] for note in found.notes]
    return {"code": found.code, "at": _place(found.span), "message": found.message, "notes": notes, "help": found.help}


def _place(span: Span | None) -> list[Any] | None:
    return None if span is None else [span.source.name, span.source.text, span.start, span.end]


def _restored(data: dict[str, Any]) -> Diagnostic:
    notes = tuple(Note(text, _span(place)) for text, place in data["notes"])
    return Diagnostic(data["code"], _span(data["at"]), data["message"], notes, data["help"])


def _span(place: list[Any] | None) -> Span | None:
    if place is None:
        return None
    name, text, start, end = place
    source = Source(name, text)
    return NOWHERE if source == NOWHERE.source else Span(source, start, end)
