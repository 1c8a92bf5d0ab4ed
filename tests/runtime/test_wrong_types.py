"""The functions of `texpr` say what they take when given something else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import texpr as package
from texpr.driver import parse

SCALE = "fn scale(x: f32[n]): f32[n] { new y: f32[n] par n |i| { y[i] = 2.0 * x[i] } return y }"
FUNCTION = parse(SCALE).functions[0]
texpr: Any = package

WRONG: tuple[tuple[Callable[[], object], str], ...] = (
    (lambda: texpr.compile("scale"), "function must be one of a program's, such as .* not 'scale' of type str"),
    (lambda: texpr.compile(parse(SCALE)), "function must be one of a program's, .* of type Program"),
    (lambda: texpr.compile(FUNCTION, 5), "target must be a name such as 'cpu' or 'sm_90a', not 5 of type int"),
    (lambda: texpr.compile(FUNCTION, sizes=["n"]), r"sizes must be a mapping .*, not \['n'\] of type list"),
    (lambda: texpr.build("scale", "cpu", "out"), "function must be one of a program's"),
    (lambda: texpr.build(5, "cpu", "out"), "function must be one of a program's, .* not 5 of type int"),
    (lambda: texpr.build(FUNCTION, 5, "out"), "target must be a name"),
    (lambda: texpr.parse(5), "source must be the text of a program, not 5 of type int"),
    (lambda: texpr.parse(SCALE, [1]), "consts must be a mapping"),
    (lambda: texpr.load(None), "path must name a file, not None of type NoneType"),
)


@pytest.mark.parametrize("at", range(len(WRONG)))
def test_a_wrong_type_is_named(at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, told = WRONG[at]
    with pytest.raises(TypeError, match=told):
        call()
