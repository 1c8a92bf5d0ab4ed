"""Diagnostics as text: the caret stands below what it speaks of, whatever the line holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from texpr.support.diagnostic import Diagnostic, Note
from texpr.support.render import WIDTH, as_data, render, visible
from texpr.support.span import NOWHERE, Source, Span


def span_of(source: Source, piece: str, after: int = 0) -> Span:
    start = source.text.index(piece, after)
    return Span(source, start, start + len(piece))


SAXPY = Source("saxpy.te", "fn f(x: f32[n]): f32[n] {\n    new z: f32[n]\n    par n |i| { z[i] = a * q[i] }\n    return z\n}\n")


def test_code_place_caret_notes_and_help() -> None:
    notes = (Note("`x` is declared here", span_of(SAXPY, "x: f32[n]")), Note("names are looked up outward"))
    found = Diagnostic("E0201", span_of(SAXPY, "q[i]"), "`q` is not known", notes, "did you mean `x`?")
    assert render(found) == (
        "error[E0201]: `q` is not known\n"
        " --> saxpy.te:3:28\n"
        "  |\n"
        "3 |     par n |i| { z[i] = a * q[i] }\n"
        "  |                            ^^^^\n"
        "note: `x` is declared here\n"
        " --> saxpy.te:1:6\n"
        "  |\n"
        "1 | fn f(x: f32[n]): f32[n] {\n"
        "  |      ---------\n"
        "  = note: names are looked up outward\n"
        "  = help: did you mean `x`?\n"
    )


def test_what_is_not_an_error_is_not_called_one() -> None:
    assert render(Diagnostic("E0501", None, "cannot decide")) == "limitation[E0501]: cannot decide\n"


def test_a_node_built_in_python_has_a_name_but_no_line() -> None:
    assert render(Diagnostic("E0401", NOWHERE, "wrong")) == "error[E0401]: wrong\n --> <built>\n"


@pytest.mark.parametrize(
    ("line", "piece", "shown", "marks"),
    [
        ("\tx = 1", "x", "    x = 1", "    ^"),
        ("a\tx", "x", "a   x", "    ^"),
        ("日本 x", "x", "日本 x", "     ^"),
        ("-- 日本", "日本", "-- 日本", "   ^^^^"),
        ("e\u0301 x", "x", "e\u0301 x", "  ^"),
    ],
)
def test_the_caret_stands_below_what_is_shown(line: str, piece: str, shown: str, marks: str) -> None:
    source = Source("a.te", line)
    lines = render(Diagnostic("E0100", span_of(source, piece), "here")).splitlines()
    assert lines[3] == f"1 | {shown}"
    assert lines[4] == f"  | {marks}"


def test_the_end_of_a_file_can_be_pointed_at() -> None:
    source = Source("a.te", "fn f() {\n")
    lines = render(Diagnostic("E0100", Span(source, 9, 9), "the file ends here")).splitlines()
    assert lines[1:] == [" --> a.te:2:1", "  |", "2 |", "  | ^"]


def test_a_span_over_lines_is_marked_to_the_end_of_the_first() -> None:
    source = Source("a.te", "par n |i| {\n  x\n}")
    assert render(Diagnostic("E0100", Span(source, 0, len(source.text)), "m")).splitlines()[4] == "  | ^^^^^^^^^^^"


@given(st.integers(0, 400), st.integers(0, 400))
def test_a_long_line_is_cut_around_the_caret(before: int, after: int) -> None:
    source = Source("a.te", "x" * before + "HERE" + "y" * after)
    lines = render(Diagnostic("E0100", span_of(source, "HERE"), "m")).splitlines()
    shown, marks = lines[3][4:], lines[4][4:]
    assert len(shown) <= WIDTH + 2
    assert shown[marks.index("^") : marks.rindex("^") + 1] == "HERE"


def test_a_file_cannot_drive_the_terminal() -> None:
    source = Source("a\x1b[31m.te", "x \x1b[2J y \u202e z")
    text = render(Diagnostic("E0100", span_of(source, "y"), "\x07bell", (Note("\x1b]0;title"),), "\r"))
    assert not [char for char in text if char != "\n" and (ord(char) < 32 or char == "\u202e")]
    assert visible("a\nb") == "a\nb"


def test_as_data_is_json() -> None:
    found = Diagnostic("E0201", span_of(SAXPY, "q[i]"), "m", (Note("n", None),), None)
    data = json.loads(json.dumps(as_data(found)))
    assert data["at"] == {"file": "saxpy.te", "line": 3, "column": 28, "end_line": 3, "end_column": 32}
    assert (data["code"], data["severity"], data["notes"]) == ("E0201", "error", [{"text": "n", "at": None}])


def test_colour_marks_pieces_and_changes_no_text() -> None:
    found = Diagnostic("E0201", span_of(SAXPY, "q[i]"), "m", (Note("n"),), "h")
    painted = render(found, lambda text, style: f"<{style}>{text}</>")
    assert "<error>error[E0201]</>" in painted
    assert "<error>^^^^</>" in painted
    for style in ("error", "strong", "gutter", "note", "help"):
        painted = painted.replace(f"<{style}>", "")
    assert painted.replace("</>", "") == render(found)
