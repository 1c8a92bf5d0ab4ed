"""The language page shows programs that are legal and run, and wrong ones that are refused as it says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from texpr.cli.arrays import make_arrays
from texpr.frontend import parse
from texpr.interp import run
from texpr.ir.program import Program
from texpr.ordered import check
from texpr.support.diagnostic import TexprError

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
BLOCKS = [
    pytest.param(found.group(1), found.group(2), id=found.group(2).split("fn ")[1].split("(")[0])
    for found in re.finditer(
        r"^```te(?: error=(E\d{4}))?\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
]
SIZE = 5


def codes(text: str) -> tuple[str, ...]:
    """The codes of everything wrong with `text`."""
    try:
        return tuple(found.code for function in parse(text).functions for found in check(function))
    except TexprError as wrong:
        return tuple(found.code for found in wrong.diagnostics)


def run_all(program: Program) -> None:
    """Run every function on small random arrays."""
    for function in program.functions:
        sizes = {sym.name: SIZE for sym in function.sizes}
        words = {param.name: "random" for param in function.params}
        arrays, known = make_arrays(function, words, sizes, seed=0)
        for result in run(function, arrays, known).values():
            assert not np.isnan(np.asarray(result, np.float64)).any()


def test_the_page_has_its_blocks() -> None:
    assert len(BLOCKS) > 15
    assert sum(block.values[0] is not None for block in BLOCKS) >= 4


@pytest.mark.parametrize(("code", "text"), BLOCKS)
def test_block(code: str | None, text: str) -> None:
    assert codes(text) == (() if code is None else (code,))
    if code is None:
        run_all(parse(text))
