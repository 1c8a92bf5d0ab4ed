"""What `make peers` compares: each problem is a legal program, whose sizes are given, and some peer has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.common.compared import CASES

from texpr.checks import check
from texpr.cli.program import read_program

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results" / "peers.json"


@pytest.mark.parametrize("name", CASES)
def test_a_program_is_legal_and_every_size_is_given(name: str) -> None:
    case = CASES[name]
    program, sizes = read_program(ROOT / case.file, dict(case.sizes))
    function = program[case.function]
    assert {sym.name for sym in function.sizes} == sizes.keys()
    assert check(function) == ()


def test_what_is_kept_is_of_these_problems() -> None:
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))["problems"]
    assert kept.keys() == CASES.keys()
    for name, found in kept.items():
        assert found["sizes"] == CASES[name].sizes and found["peers"], name
        assert found["ours"]["spilled_bytes"] == 0, name
