"""Which line of the program a line of a form comes from.

The oracle: each statement has a number that no other has, and every form writes numbers. So a line with that number comes from
the line of the program that has it.
"""

from __future__ import annotations

import re

import pytest

from texpr.delivery import examined
from texpr.driver import Compiled, parse
from texpr.explain import form
from texpr.explore import lines
from texpr.explore.lines import Line
from texpr.support.span import Source

TEXT = """\
fn f(x: f32[n, 256]): f32[n, 256] {
    new y: f32[n, 256]
    par n |i| {
        new t: f32[256]
        new s: f32
        s = 1003.5

        par 256 |j| { t[j] = 1001.5 * x[i, j] }
        par 256 |j| reduce(s) { s += t[255 - j] * 1005.5 }
        par 256 |j| {
            y[i, j] = t[255 - j] + 1002.5 * s
        }
    }
    return y
}

schedule f "split" { split(i, 4) -> (io, ii) }
"""
NUMBER = re.compile(r"\b100\d\.5")
ORIGIN = {number: line for line, text in enumerate(TEXT.splitlines(), 1) for number in NUMBER.findall(text)}


def compiled(target: str, schedule: str) -> Compiled:
    return examined(parse(Source("f.te", TEXT))["f"], target, None, schedule)[0]


def wrong(found: tuple[Line, ...]) -> list[Line]:
    """The lines that have a number, and not its origin."""
    return [line for line in found if (numbers := NUMBER.findall(line.text)) and ORIGIN[numbers[0]] not in line.origin]


@pytest.mark.parametrize("schedule", ["none", "auto", "split"])
@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
def test_every_form_says_where_its_lines_come_from(target: str, schedule: str) -> None:
    made = compiled(target, schedule)
    forms = {
        "program": lines.laid_out(made.function),
        "steps": lines.marked(form(made, "steps")),
        "kernel": lines.marked(form(made, "kernel")),
        "source": lines.emitted(made.source),
    }
    for name, found in forms.items():
        assert set(ORIGIN) <= {number for line in found for number in NUMBER.findall(line.text)}, name
        assert wrong(found) == [], name


def test_the_oracle_sees_a_wrong_origin() -> None:
    found = lines.emitted(compiled("sm_90a", "none").source.replace("TX_AT(8)", "TX_AT(9)"))
    assert wrong(found)


def test_a_barrier_comes_from_both_ends_of_what_it_covers() -> None:
    found = [line for line in lines.marked(form(compiled("sm_90a", "none"), "kernel")) if "barrier" in line.text]
    assert [line.origin for line in found] == [(8, 9), (9,)]
    assert "covers RAW t from 8 to 9" in found[0].text


def test_what_is_outside_of_every_mark_comes_from_no_line() -> None:
    source = lines.emitted(compiled("sm_90a", "none").source)
    outside = [line for line in source if line.text.startswith(("#include", 'extern "C"', "TX_EXPORT", "}"))]
    assert len(outside) >= 4
    assert all(line.origin == () for line in outside)


def test_lines_are_counted_by_line_feeds_as_places_are() -> None:
    assert [line.text for line in lines.written("a\x0bb\u2028c\nd\r\n")] == ["a\x0bb\u2028c", "d\r"]
