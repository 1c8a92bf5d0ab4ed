"""Names, renamed: all places of one name and no other, or a reason why not."""

from __future__ import annotations

import pytest
from tests.editor.test_format import TEXTS
from tests.frontend.corpus import ROOT

from texpr.checks import check
from texpr.editor.answers.completion import completion
from texpr.editor.answers.hover import hover
from texpr.editor.answers.outline import folds, outline
from texpr.editor.answers.problems import problems
from texpr.editor.answers.rename import CannotRename, rename
from texpr.editor.document import Document
from texpr.editor.names import names_of
from texpr.frontend import parse_text
from texpr.frontend.tree import Fn, names_in

TEXT = """
combine larger(a: f32, b: f32): f32 identity 0.0 { return max(a, b) }

fn scaled(x: f32[n, 2 * m], const k: i32 = 2): f32[n]
    where n >= 1, k > 0
{
    new y: f32[n]
    par n |i| 'rows {
        let first = x[i, 0] * f32(k)
        y[i] = first
        par 2 * m |j| reduce(y) { y[i] larger= x[i, j] }
    }
    par n |i| { y[i] = y[i] + 1.0 }
    return y
}

fn twice(x: f32[n, 2 * m]): f32[n] where n >= 1 {
    let y = scaled(x, k=3)
    return y
}

schedule twice for cuda {
    split(rows, 4) -> (outer, inner)
    bind(outer, grid.x)
}
schedule scaled {
    split(j, 32 * k) -> (jo, ji)
    unroll(i'1, 2)
}
"""


def renamed(text: str, part: str, new: str, number: int = 0) -> str:
    """The text after the name that begins at a part of it is changed."""
    at = -1
    for _ in range(number + 1):
        at = text.index(part, at + 1)
    changes = rename(Document("t", 1, text), at, new, check)
    for change in sorted(changes, key=lambda change: change.start, reverse=True):
        text = change.made(text)
    return text


@pytest.mark.parametrize(
    ("part", "new", "places"),
    [
        ("larger", "greater", 2),
        ("scaled", "times", 3),
        ("k: i32", "factor", 5),
        ("n, 2", "rows_", 6),
        ("first = ", "head", 2),
        ("y: f32", "result", 7),
        ("rows {", "lines", 2),
        ("j| reduce", "column", 3),
        ("outer, ", "blocks", 2),
        ("jo, ", "high", 1),
    ],
)
def test_renamed(part: str, new: str, places: int) -> None:
    made = renamed(TEXT, part, new)
    old = part.split(":")[0].split("|")[0].split(" ")[0].rstrip(",").rstrip()
    assert made.count(new) - TEXT.count(new) == places
    assert len(made) - len(TEXT) == places * (len(new) - len(old))


@pytest.mark.parametrize(
    ("text", "part", "new", "why"),
    [
        (TEXT, "first = ", "x", "means something else"),
        (TEXT, "first = ", "i", "means something else"),
        (TEXT, "i| 'rows", "n", "means something else"),
        (TEXT, "i| 'rows", "row", "means something else"),  # `i'1` would be another loop
        (TEXT, "i| { y", "row", "means something else"),
        (TEXT, "scaled", "larger", "means something else"),
        (TEXT, "scaled", "exp", "built in"),
        (TEXT, "outer, ", "grid", "means something else"),
        (TEXT, "x: f32[n, 2", "par", "is not a name"),
        (TEXT, "x: f32[n, 2", "i'1", "is not a name"),
        (TEXT, "x: f32[n, 2", "", "is not a name"),
        (TEXT, "f32", "f16", "no name of this file"),
        ("fn f(x: f32) { let a = x  let b = ", "a = ", "c", "errors of syntax"),
        ("fn f(x: f32) { let a = x }\nschedule f { split(a_o, 2) }", "x: ", "a", "declared already"),
        (
            "fn f(x: f32[n]) {\n new a: f32[n]\n par n |i| { a[i] = x[i] } }\nschedule f { place(a_1, shared) }",
            "a: f",
            "b",
            "is made of it",
        ),
        (
            "fn f(x: f32[n]) {\n par n |i| { anchor x[i] }\n par n |i| { anchor x[i] } }\nschedule f { unroll(i) }",
            "i|",
            "b",
            "may mean",
        ),
        ('fn f(x: f32[n]) {\n par n |i| { anchor x[i] } }\nschedule f { unroll("i") }', "i|", "b", "may mean"),
        ('instr f(a: f32[4]) { asm "sm_80": "x {a1}, {a};"; meaning { anchor a[0] } }', "a: f32", "b", "assembler"),
    ],
)
def test_not_renamed(text: str, part: str, new: str, why: str) -> None:
    with pytest.raises(CannotRename, match=why):
        renamed(text, part, new)


@pytest.mark.parametrize("name", TEXTS)
def test_every_program(name: str) -> None:
    """Each place of a symbol has its name; each name that is used in an expression of a program is one, or is built in."""
    text = TEXTS[name]
    tree = parse_text(text)
    found = names_of(tree)
    places = [place for symbol in found.symbols for place in symbol.places]
    assert len(places) == len(set(places))
    for symbol in found.symbols:
        assert {text[start:end] for start, end in symbol.places} == {symbol.name}
        assert all(found.at(start) == (symbol, (start, end)) for start, end in symbol.places)
    starts = {start for start, _ in places}
    for item in tree.items:
        for where in item.where if isinstance(item, Fn) else ():
            assert {each.span.start for each in names_in(where)} <= starts
    document = Document("t", 1, text)
    assert [part.name.split(" ")[0] for part in outline(document)] == [
        (item.function if hasattr(item, "function") else item.name).name  # type: ignore[union-attr]
        for item in tree.items
    ]
    list(folds(document))
    for at in range(0, len(text), 37):
        hover(document, at)
        completion(document, at)


def test_names_of_a_program_are_those_of_its_elaboration() -> None:
    """A use that is not found would be left behind by a rename, which elaboration then refuses."""
    text = (ROOT / "examples" / "conv2d.te").read_text(encoding="utf-8")
    for symbol in names_of(parse_text(text)).symbols:
        made = renamed(text, text[symbol.declared[0] :][:200], f"{symbol.name}_other")
        assert problems(made, "t", check) == ()


def test_broken_texts_are_answered() -> None:
    for name in ("conv2d.te", "schedules", "scan", "language 17"):
        text = TEXTS[name]
        before = Document("t", 1, text)
        for at in range(0, len(text), 23):
            document = Document("t", 2, text[:at] + " ) { " + text[at + 2 :], before)
            for place in range(0, len(text), 61):
                hover(document, place)
                completion(document, place)
            list(outline(document))
            list(folds(document))
