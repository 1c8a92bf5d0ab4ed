"""What a page shows of a program: all of it, what is wrong with it, or what failed; and it is never silent."""

from __future__ import annotations

import re

import pytest
from tests.explore.test_html import HOSTILE, Reader

from texpr.explore import panes
from texpr.explore.answer import answer
from texpr.explore.asked import Asked
from texpr.explore.look import look
from texpr.explore.panes import PANES
from texpr.support.diagnostic import CompilerBug, Diagnostic, Limitation

SAXPY = """\
fn saxpy(a: f32, x: f32[n], y: f32[n]): f32[n] {
    new z: f32[n]
    par n |i| { z[i] = a * x[i] + y[i] }
    return z
}
"""
OTHER = "\nfn other(x: f32[4]): f32[4] {\n    new z: f32[4]\n    par 4 |i| { z[i] = x[3 - i] }\n    return z\n}\n"


def shown(text: str, pane: str, **asked: str) -> str:
    return answer(look(Asked(text, "saxpy.te", **asked)), pane)["html"]


@pytest.mark.parametrize("pane", [name for name in PANES if name != "machine"])
@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
def test_every_pane_of_a_program_has_something_to_say(pane: str, target: str) -> None:
    said = answer(look(Asked(SAXPY, "saxpy.te", target=target, sizes=(("n", 1000),))), pane)
    assert said["ok"]
    assert "legal, and proved" in said["problems"]
    found = Reader(said["html"])
    assert len(found.text) > 20 or "svg" in {tag for tag, _ in found.tags}
    assert "internal error" not in found.text


@pytest.mark.parametrize(
    ("pane", "words"),
    [
        ("program", "par n |i|"),
        ("steps", "steps saxpy_z of saxpy"),
        ("kernel", "kernel saxpy_z"),
        ("source", "__global__ void __launch_bounds__"),
        ("proof", "the plan does what the program says"),
        ("decisions", "saxpy_z"),
        ("layout", "no directive changes how a buffer of `saxpy` lies in memory"),
        ("mapping", "who owns what depends on sizes that are open"),
        ("tma", "copies nothing by TMA"),
    ],
)
def test_a_pane_shows_its_form(pane: str, words: str) -> None:
    assert words in Reader(shown(SAXPY, pane)).text


def test_machine_code_is_shown_by_lines_where_it_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Reader(shown(SAXPY, "machine"))
    assert "bound alone" in found.text and "z[i] = a * x[i] + y[i]" in found.text and "EXIT" in found.text
    assert any(tag == "meter" for tag, _ in found.tags)
    assert "up to its compiler" in shown(SAXPY, "machine", target="cpu")
    monkeypatch.setattr(panes, "built", lambda compiled, machine: ({}, None))
    assert "pip install" in shown(SAXPY, "machine")


def test_lines_of_a_form_are_lit_by_their_origin() -> None:
    assert re.search(r'data-o="3"[^>]*><span class="n">\d+</span> +z\[', shown(SAXPY, "kernel"))


def test_proofs_are_lit_by_the_line_of_the_program_not_of_the_plan() -> None:
    origins = {names["data-o"] for _, names in Reader(shown(SAXPY, "proof")).tags if "data-o" in names}
    assert origins == {"3"}


def test_what_is_wrong_is_shown_with_its_place() -> None:
    said = answer(look(Asked(SAXPY.replace("x[i]", "q[i]"), "saxpy.te")), "kernel")
    assert not said["ok"]
    assert "error[E0201]" in said["problems"] and "saxpy.te:3:28" in said["problems"]
    assert [(mark["code"], mark["at"]["line"], mark["at"]["column"]) for mark in said["marks"]] == [("E0201", 3, 28)]
    assert "see what is wrong" in said["html"]


@pytest.mark.parametrize("text", ["", "-- nothing", "fn", "\0", "x" * 1000, "(" * 5000, "\n" * 5000, *HOSTILE])
def test_any_text_has_an_answer(text: str) -> None:
    said = answer(look(Asked(text)), "program")
    tags = {tag for tag, _ in Reader(said["problems"] + said["html"]).tags}
    assert tags <= {"p", "pre", "div", "span", "strong"}
    assert "internal error" not in said["problems"]


def test_names_from_a_question_are_shown_as_texts() -> None:
    for name in HOSTILE:
        said = answer(look(Asked(SAXPY, name, target=name, schedule=name, function=name)), name)
        assert {tag for tag, _ in Reader(said["problems"] + said["html"]).tags} <= {"p", "pre"}
        assert "E0580" in said["problems"]


def test_the_function_is_the_one_that_was_asked_for_or_the_first() -> None:
    both = SAXPY + OTHER
    assert answer(look(Asked(both)), "program")["functions"] == ["saxpy", "other"]
    assert "x[-i + 3]" in Reader(shown(both, "kernel", function="other")).text
    assert "kernel saxpy_z" in Reader(shown(both, "kernel", function="gone")).text


def test_what_cannot_be_proved_is_shown_beside_what_it_became(monkeypatch: pytest.MonkeyPatch) -> None:
    def undecided(*_: object) -> None:
        raise Limitation([Diagnostic("E0508", None, "cannot prove it")])

    monkeypatch.setattr("texpr.explore.look.examined", undecided)
    seen = look(Asked(SAXPY))
    assert "E0508" in answer(seen, "kernel")["problems"]
    assert "kernel saxpy_z" in Reader(answer(seen, "kernel")["html"]).text
    assert "not all of it could be proved" in answer(seen, "proof")["html"]


def test_a_fault_of_the_compiler_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise CompilerBug("planted <b>")

    monkeypatch.setattr("texpr.explore.look.examined", fails)
    said = answer(look(Asked(SAXPY)), "kernel")
    assert "internal error: CompilerBug: planted &lt;b&gt;" in said["problems"]
    assert "a fault of texpr, not of your program" in said["problems"]


def test_a_fault_in_one_pane_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(text: str) -> None:
        raise ZeroDivisionError("planted")

    seen = look(Asked(SAXPY))
    monkeypatch.setattr(panes.lines, "emitted", fails)
    assert "internal error: ZeroDivisionError: planted" in answer(seen, "source")["html"]
    assert "kernel saxpy_z" in Reader(answer(seen, "kernel")["html"]).text
