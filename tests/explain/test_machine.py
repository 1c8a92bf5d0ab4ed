"""Machine code line by line: every instruction once, where it comes from, and no more than the kernel asks.

The oracle of places: each line multiplies by a number of its own, which the instructions that do it have in them.
"""

from __future__ import annotations

import re
import struct

import pytest

from texpr.delivery import examined
from texpr.driver import parse
from texpr.explain.data import Data
from texpr.explain.kernels import built
from texpr.explain.machine import machine_code
from texpr.explain.speed import speed
from texpr.support.span import Source
from texpr.toolchain.machine import this_machine

TEXT = """\
fn f(x: f32[n]): f32[n] {
    new y: f32[n]
    par n |i| {
        let a = x[i] * 1003.5
        let b = sqrt(a) * 1005.5
        y[i] = b * b +
            1007.5
    }
    return y
}
"""
NUMBERS = {1003.5: 4, 1005.5: 5, 1007.5: 6}


@pytest.fixture(scope="module")
def found() -> tuple[Data, Data]:
    compiled = examined(parse(Source("folder/f.te", TEXT))["f"], "sm_90a", {"n": 1 << 20}, "none")[0]
    resources, text = built(compiled, this_machine())
    assert text is not None
    told = speed(compiled, text, resources)
    assert told is not None
    (kernel,) = machine_code(compiled, text, resources)
    return kernel, told["kernels"][kernel["kernel"]]["code"]


def test_an_instruction_is_of_the_line_whose_number_it_has(found: tuple[Data, Data]) -> None:
    kernel, _ = found
    said: dict[float, set[int]] = {}
    for each in kernel["code"]:
        for number in NUMBERS:
            bits = struct.unpack("<I", struct.pack("<f", number))[0]
            if f"{number:g}" in re.split(r"[ ,]+", each["text"]) or f"{bits:#x}" in each["text"].lower():
                said.setdefault(number, set()).add(each["line"])
    assert said == {number: {line} for number, line in NUMBERS.items()}


def test_every_instruction_is_counted_in_one_line(found: tuple[Data, Data]) -> None:
    kernel, _ = found
    assert sum(each["instructions"] for each in kernel["lines"].values()) == len(kernel["code"])
    assert {each["line"] for each in kernel["code"]} == set(kernel["lines"])
    assert set(kernel["lines"]) <= {0, *range(1, TEXT.count("\n") + 1)}


def test_no_line_alone_asks_more_of_a_unit_than_all_together(found: tuple[Data, Data]) -> None:
    kernel, whole = found
    issue = whole["units_us"]["issue"]
    alone = [each["us"] for each in kernel["lines"].values()]
    assert kernel["whole"]
    assert max(alone) <= max(us for unit, us in whole["units_us"].items() if unit not in ("dram", "l2")) + 1e-9
    assert sum(alone) >= issue - 1e-9
