"""Loops whose iterations meet, cut into one for each statement: the same numbers, deeper loops, more threads."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from tests.proof.plan.verdicts import open_of
from tests.schedule.laid import laid, wrong

from texpr.checks import check
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import program as ir
from texpr.ir.program import verify as program_verify
from texpr.isa.target import Reductions
from texpr.mapping.reductions import fission
from texpr.mapping.reductions.arrange import arrange
from texpr.proof.search import proved
from texpr.support.diagnostic import TexprError

HEAD = """combine far(a: i32, b: i32): i32 identity 0 { return max(abs(a), abs(b)) }
fn f(x: i32[n, m], at: i32[n], inout h: i32[4], inout g: i32[4], inout s: i32[4, m], inout r: i32[4, m], inout w: i32[n])
    where m >= 2 and m <= 4
    assume at in 0..4
"""

STATEMENTS = (
    "h[at[i]] far= x[i, 0] + 1",
    "h[(at[i] + 1) % 4] += 2",
    "g[at[i]] += i32(i) + w[i]",
    "g[p] far= 3",
    "w[i] = x[i, 0] - 1",
    "w[i] += 7",
    "par m |j| reduce(s) { s[at[i], j] far= x[i, j] }",
    "par m |j| { s[p, j] += x[i, j] * w[i] }",
    "par m |j| { s[p, j] far= x[i, j] + w[i] }",
    "par m |j| reduce(r) { if x[i, j] > q { r[p, j] far= x[i, j] } }",
    "seq m |j| { r[p, j] -= x[i, j] }",
    "if q > 0 { h[p] far= q  par m |j| reduce(r) { r[p, j] += 1 } }",
    "if at[i] < 2 { g[p] far= 5 } else { g[0] far= 1 }",
    "par m |j| reduce(w, s) { w[i] += x[i, j]  s[p, j] far= 1 }",
    "par at[i] |j| reduce(g) { g[j] far= x[i, 0] }",
)


def _program(seed: int) -> str:
    """A loop around statements, some of which touch what others write."""
    chooser = random.Random(seed)
    body = "  ".join(chooser.sample(STATEMENTS, chooser.choice([1, 2, 2, 3])))
    if chooser.random() < 0.6:
        body = f"if {chooser.choice(['q > 0', 'at[i] != 3 and q < 6', 'w[i] > 0'])} {{ {body} }}"
    meets = [name for name in "hgsr" if f"{name}[" in body]
    return f"{HEAD}{{\n par n |i| reduce({', '.join(meets)}) {{ let p = at[i]  let q = x[i, 1]  {body} }}\n}}"


def _given(seed: int, n: int, m: int) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(seed)
    drawn = {"x": (n, m), "h": (4,), "g": (4,), "s": (4, m), "r": (4, m), "w": (n,)}
    found = {name: numbers.integers(-9, 10, shape).astype(np.int32) for name, shape in drawn.items()}
    return found | {"at": numbers.integers(0, 4, n).astype(np.int32)}


def _programs() -> dict[str, ir.Function]:
    """Those that are legal."""
    found: dict[str, ir.Function] = {}
    for seed in range(400):
        try:
            (function,) = parse(_program(seed)).functions
        except TexprError:
            continue
        if not check(function):
            found[_program(seed)] = function
    return found


def _same(before: ir.Function, after: ir.Function) -> bool:
    for n, m in ((0, 3), (1, 2), (6, 3), (19, 4)):
        want, got = (interpret(each, _given(n, n, m)) for each in (before, after))
        if any(not np.array_equal(got[name], want[name]) for name in want):
            return False
    return True


def test_it_means_the_same() -> None:
    loops: Counter[int] = Counter()
    for text, before in _programs().items():
        after = arrange(before, Reductions(4096))
        program_verify.verify(ir.Program((after,)))
        assert _same(before, after), text
        loops[sum(isinstance(s, ir.Par | ir.Seq) for s in after.body)] += 1
    assert loops[1] > 30 and loops[2] > 30 and loops[3] > 5, loops


def test_a_test_that_is_asked_anew_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fission, "_are_alike", lambda *_: True)  # pyright: ignore[reportUnknownLambdaType]
    assert any(not _same(before, arrange(before, Reductions(4096))) for before in _programs().values())


ROWS = """
fn f(x: f32[n, d], at: i32[n], inout sum: f32[k, d], inout count: i32[k]) {
    par n |i| reduce(sum, count) {
        if at[i] >= 0 and at[i] < k {
            count[at[i]] += 1
            par d |j| reduce(sum) { sum[at[i], j] += x[i, j] }
        }
    }
}"""
"""Rows that data choose, if they choose any, and how many."""


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_rows_have_threads_for_their_columns_and_counts_are_atomic(target: str) -> None:
    made = laid(ROWS, "", target)
    assert len(made.plan.steps) == 2
    assert open_of(proved(made.function, made.plan)) == []
    if target != "cpu":
        assert "atomicAdd" in made.text and made.text.count("blockIdx") >= 2
        for n, d, k in ((0, 3, 2), (40, 5, 3), (7, 300, 1)):
            arrays = {
                "x": np.arange(n * d, dtype=np.float32).reshape(n, d) % 7,
                "at": (np.arange(n) % (k + 2) - 1).astype(np.int32),
            }
            arrays |= {"sum": np.ones((k, d), np.float32), "count": np.zeros(k, np.int32)}
            assert wrong(made, arrays, {"n": n, "d": d, "k": k}) is None
