"""Loops are cut at the radices of accesses where that is cheaper, and mean the same."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.emulated import results, run_plan

from texpr.driver import lower
from texpr.explain.sigma import sigma
from texpr.frontend import parse
from texpr.interp import run

TEXTS = {
    "a transpose of what lies flat": (
        "(a: i32[4096]): i32[4096] { new y: i32[4096] par 4096 |x| { y[x] = a[x % 64 * 64 + x / 64] } return y }",
        {},
        12.0,
    ),
    "ragged": (
        "(a: i32[64, 64]): i32[4000] { new y: i32[4000] par 4000 |x| { y[x] = a[x % 64, x / 64] } return y }",
        {},
        12.06,
    ),
    "a size as radix": (
        """(a: i32[M, N]): i32[M * N] where M >= 1, N >= 1, M % 32 == 0, N % 32 == 0 {
            new y: i32[M * N]
            par M * N |x| { y[x] = a[x % M, x / M] }
            return y
        }""",
        {"M": 96, "N": 64},
        12.0,
    ),
    "only arithmetic is less": (
        """(a: i32[M, N], b: i32[M, N]): i32[M * N] where M >= 1, N >= 1, N % 32 == 0 {
            new y: i32[M * N]
            par M * N |x| { y[x] = a[x / N, x % N] - b[x / N, x % N] }
            return y
        }""",
        {"M": 5, "N": 64},
        12.0,
    ),
    "three digits": (
        """(a: i32[8, 8, n]): i32[64 * n] {
            new y: i32[64 * n]
            par 64 * n |x| { y[x] = a[x % 8, x / 8 % 8, x / 64] }
            return y
        }""",
        {"n": 5},
        None,
    ),
    "beside another loop": (
        """(a: i32[W, 300]): i32[W, 300] {
            new y: i32[W, 300]
            par W |w| { par 300 |c| { y[w, c] = a[w, c % 20 * 15 + c / 20] } }
            return y
        }""",
        {"W": 3},
        None,
    ),
    "an index that is read": (
        "(a: i32[33, 32]): i32[1024] { new y: i32[1024] par 1024 |x| { y[x] = a[x % 32, x / 32] + i32(x) } return y }",
        {},
        None,
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_loop_that_is_cut_means_the_same(name: str) -> None:
    text, sizes, sectors = TEXTS[name]
    function = parse(f"fn f{text}").functions[0]
    compiled = lower(function, "sm_90a")
    (note,) = compiled.notes
    assert len(note.loops) > name.count("another loop") + 1, "nothing was cut"
    if sectors is not None:
        assert sigma(note.solved[-1])["sectors"] == sectors
    shape = tuple(e.evaluate({s: sizes[s.name] for s in function.sizes}) for e in function.params[0].shape)
    array = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    arrays = {b.name: array * n for n, b in enumerate(function.params, 1)}
    meant = run(function, arrays, sizes)
    for seed in (None, 1, 2):
        done = run_plan(compiled.function, compiled.plan, arrays, sizes, seed=seed)
        assert done.reports == []
        assert np.array_equal(results(compiled.function, done)["y"], meant["y"])


WHOLE = ("y[x] = a[x / 4]", "y[x] = a[x / 64]", "y[x] = a[(x + 1) / 2]", "y[x] = a[x / 64 * 64 + x % 64]")


@pytest.mark.parametrize("text", WHOLE)
def test_a_loop_stays_whole_where_a_cut_gains_nothing(text: str) -> None:
    function = parse(f"fn f(a: i32[4096]): i32[4096] {{ new y: i32[4096] par 4096 |x| {{ {text} }} return y }}").functions[0]
    (note,) = lower(function, "sm_90a").notes
    assert [loop.loop for loop in note.loops] == ["x"]
