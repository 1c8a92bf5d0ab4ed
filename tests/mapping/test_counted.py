"""What σ is said to cost is what the emulator counts when the whole program runs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.emulated import module, run_plan
from tests.mapping.brute import Subject, im2col, matmul, permute, strided

from texpr.backends.cuda import print_kernels
from texpr.frontend import parse
from texpr.interp import run
from texpr.interp.arguments import shape_of
from texpr.interp.dtypes import numpy_dtype
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.support.record import as_dict

SUBJECTS = (
    permute((1, 0), (64, 96)),
    permute((1, 0), (67, 101)),
    permute((2, 1, 0), (33, 5, 18), "f64"),
    permute((2, 4, 0, 3, 1), (2, 17, 3, 2, 31), "f16"),
    permute((0, 1), (100, 7)),
    permute((2, 0, 1), (31, 37, 3), "u8"),
    strided(1001, 3),
    im2col(11, 30, 3),
    matmul("nt", 33, 21, 5),
    matmul("nn", 64, 64, 4, "f64"),
)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: f"{s.name} {s.shape}")
def test_sectors_and_requests_are_what_is_counted(subject: Subject) -> None:
    function = parse(subject.text).functions[0]
    plan, notes = lower(function, resolve("sm_90a"))
    (solved,) = notes[-1].solved
    arrays = {
        b.name: np.arange(np.prod(shape_of(b, {}))).reshape(shape_of(b, {})).astype(numpy_dtype(b.dtype))
        for b in function.params
    }
    emulated = module(print_kernels(plan))
    emulated.clear_counts()
    done = run_plan(function, plan, arrays, count=True)
    assert done.reports == []
    (found,) = emulated.counts().values()
    counts = as_dict(found)
    said = solved.solution.cost
    for name, part in (("sectors", said.sectors), ("lines", said.lines), ("requests", said.requests)):
        assert counts[f"global_load_{name}"] + counts[f"global_store_{name}"] == part, name
    meant = run(function, arrays)
    assert all(np.array_equal(done.arrays[name], wanted) for name, wanted in meant.items())
