"""What `bench/times.py` times: each case is one that can be read, with a schedule that is there, beside one that is known."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from bench.common.on_card import data, schedule_of
from bench.common.timed import IN_ORDER, cases
from bench.common.torch_problems import PEERS

from texpr.ir.program.selection import AUTO

CASES = {case.name: case for case in cases()}
SMALL = {"n": 65, "M": 5, "N": 7, "K": 3, "V": 9, "D": 4, "bins": 3}


def test_names_are_of_one_case() -> None:
    assert max(Counter(case.name for case in cases()).values()) == 1
    assert {case.peer for case in CASES.values()} - PEERS.keys() <= {"", "state-space", "argmax", "linear", "attention-paged"}
    assert PEERS.keys() <= CASES.keys()


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.kind == "ladder" and name.endswith("4096")])
def test_schedules_are_there(name: str) -> None:
    case = CASES[name]
    found = schedule_of(case, case.read(), "sm_90a")
    assert not isinstance(found, str) and found is not None and found.name == case.schedule


def test_in_order_is_without_overlap() -> None:
    case = CASES["attention-64-64-in-order"]
    assert case.schedule == IN_ORDER and CASES["attention-64-64"].schedule == AUTO
    found = schedule_of(case, case.read(), "sm_90a")
    assert not isinstance(found, str) and found is not None
    assert "overlap" not in {each.name for each in found.directives}


@pytest.mark.parametrize("name", ["embedding", "histogram", "divergence", "cholesky", "product-f8", "dropout"])
def test_data_are_what_a_program_assumes(name: str) -> None:
    function = CASES[name].read()
    sizes = {size.name: SMALL.get(size.name, 6) for size in function.sizes} | {"bins": 3}
    made = {p.name: data(function, p, sizes, np.random.default_rng(0)) for p in function.params}
    if name == "embedding":
        assert made["at"].min() >= 0 and made["at"].max() < sizes["V"]
    if name == "divergence":
        assert min(made[each].min() for each in "PQ") > 0
    if name == "cholesky":
        assert np.linalg.eigvalsh(made["A"] + np.swapaxes(made["A"], 1, 2)).min() > 0
    assert all(array.shape == tuple(made[name].shape) for name, array in made.items())
