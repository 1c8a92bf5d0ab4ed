"""Schedules from Python and those of a file: how they print, and words that Python keeps for itself."""

from __future__ import annotations

import texpr

TEXT = """
fn plus(x: f32[n], y: f32[n]): f32[n] {
    new z: f32[n]
    par n |i| { z[i] = x[i] + y[i] }
    return z
}
schedule plus "tiled" for sm_90a {
    split(i, 256) -> (b, t)
    bind(b, grid.x)
    bind(t, block.x)
    stage(x, at=b, in=shared, via=tma, box=(256)) -> xs
}
schedule plus for cpu { }
"""


def test_schedules_of_a_file_print_in_a_line() -> None:
    function = texpr.parse(TEXT)["plus"]
    said = "split(i, 256) -> (b, t); bind(b, grid.x); bind(t, block.x); stage(x, at=b, in=shared, via=tma, box=(256)) -> (xs)"
    tiled, plain = map(repr, function.schedules)
    assert tiled == f'<Schedule "tiled" of plus for sm_90a: {said}>'
    assert plain == "<Schedule of plus for cpu: nothing>"
    assert repr(function) == "<Function plus(x: f32[n], y: f32[n]): z: f32[n]>"


def test_in_is_a_word_of_python() -> None:
    function = texpr.parse(TEXT)["plus"]
    made = texpr.Schedule(function, "sm_90a").split("i", 256, names=("b", "t")).bind("b", "grid.x").bind("t", "block.x")
    assert "stage(x, at=b, in=registers, via=ld, fill=weak) -> xs" in str(made.stage("x", at="b", in_="registers", name="xs"))
