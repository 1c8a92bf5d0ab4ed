"""The vectorised run and the traced one are two executions of one meaning: random programs, bit for bit."""

from __future__ import annotations

import warnings
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.interp.random_programs import data, draw, features

from texpr.interp import run
from texpr.interp.trace import trace
from texpr.ir.program import Function
from texpr.support.diagnostic import TexprError

FATAL = {"E0720", "E0721", "E0724", "E0726"}


def compare(f: Function, arguments: dict[str, np.ndarray]) -> str:
    """Compare both; "legal", "refused" (both stop for the same reason) or "dependent" (no meaning)."""
    traced = trace(f, arguments)
    codes = {finding.code for finding in traced.findings}
    if "E0723" in codes:
        return "dependent"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if codes:
            with pytest.raises(TexprError) as caught:
                run(f, arguments)
            assert {d.code for d in caught.value.diagnostics} <= codes
            return "refused"
        found = run(f, arguments)
    for name, want in traced.outputs.items():
        np.testing.assert_array_equal(found[name], want, err_msg=name)
    return "legal"


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(0, 4), st.integers(0, 4))
def test_random_programs_agree(seed: int, n: int, m: int):
    random = Random(seed)
    compare(draw(random), data(random, n, m))


def survey(seeds: range, n: int, m: int) -> tuple[Counter[str], Counter[str]]:
    outcomes: Counter[str] = Counter()
    legal: Counter[str] = Counter()
    for seed in seeds:
        random = Random(seed)
        f = draw(random)
        outcome = compare(f, data(random, n, m))
        outcomes[outcome] += 1
        if outcome == "legal":
            legal.update(features(f))
    return outcomes, legal


def check_survey(outcomes: Counter[str], legal: Counter[str]) -> None:
    total = outcomes.total()
    assert outcomes["legal"] >= total * 0.25 and outcomes["refused"] >= total * 0.02, outcomes
    nested = {"par in par", "combiner meets", "reduce over several statements", "local of an iteration"}
    kinds = {"Par", "Seq", "New", "Let", "If", *nested}
    assert all(legal[kind] >= total * 0.01 for kind in kinds), legal


def test_the_random_programs_are_not_trivial():
    check_survey(*survey(range(60), 3, 4))


@pytest.mark.long
def test_many_random_programs_agree(monkeypatch: pytest.MonkeyPatch):
    check_survey(*survey(range(1000, 4000), 4, 3))
    monkeypatch.setattr("texpr.interp.meeting.LANES", 3)
    monkeypatch.setattr("texpr.interp.meeting.NOTING", 2)
    monkeypatch.setattr("texpr.interp.vector._BYTES", 16)
    check_survey(*survey(range(4000, 5500), 3, 3))
