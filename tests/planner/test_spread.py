"""Few and long rows, and few results of long sums: parts of sums by all blocks, and then the sums; the same results, proved."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.planner.programs import agrees, blocks, built, function
from tests.planner.test_phases import planned, said

from texpr.driver import lower
from texpr.ir.program.selection import AUTO
from texpr.ir.proof import Verdict
from texpr.planner.strategies import divided_products, divided_tiles, spread
from texpr.planner.sums import divided
from texpr.proof.schedule import faithful

ROWS = """
fn rows(X: f32[M, N]): (f32[M], f32[M]) {
    new y: f32[M]
    new z: f32[M]
    par M |i| {
        new total: f32 = 0.0
        new top: f32 = -inf
        par N |j| reduce(total) { total += X[i, j] }
        let twice = total + total
        par N |j| reduce(top) { top max= X[i, j] - twice }
        y[i] = twice
        z[i] = top
    }
    return (y, z)
}
"""

PLANES = """
fn planes(X: i32[B, M, P, N]): i32[B, M, P, N] {
    new Y: i32[B, M, P, N]
    par B |b| { par M |i| {
        new total: i32
        total = 3
        par P, N |p, j| reduce(total) { total += X[b, i, p, j] }
        par P, N |p, j| { Y[b, i, p, j] = X[b, i, p, j] - total }
    } }
    return Y
}
"""

PRODUCT = """
fn product(A: TYPE[M, K], B: TYPE[K, N], c: f32[N]): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| {
        new t: f32 = 0.0
        seq K |k| reduce(t) { t += A[i, k] * B[k, j] }
        C[i, j] = max(t + c[j], 0.0)
    } }
    return C
}
"""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Limits by which parts pay at sizes that the emulator runs in no time."""
    built.cache_clear()
    monkeypatch.setattr(spread, "CHUNK", 64)
    monkeypatch.setattr(spread, "CHUNKS", 2)
    monkeypatch.setattr(divided, "LEAST", 64)
    monkeypatch.setattr(divided, "EVEN", 64)
    monkeypatch.setattr(divided_products, "LAUNCH", 0.0)
    monkeypatch.setattr(divided_tiles, "LAUNCH", 0.0)
    yield
    built.cache_clear()


def is_kept(text: str, sizes: dict[str, int]) -> bool:
    """Whether the schedules are proved."""
    made = lower(function(text), "sm_90a", sizes, schedule=AUTO)
    found = [faithful(each.written, each.function) for each in (made, made.wide) if each is not None and each.written]
    return bool(found) and not any(proof.of(verdict) for proof in found for verdict in (Verdict.REFUSED, Verdict.UNDECIDED))


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (ROWS, {"M": 3, "N": 500}),
        (ROWS, {"M": 1, "N": 128}),
        (ROWS, {"M": 0, "N": 150}),
        (PLANES, {"B": 2, "M": 3, "P": 5, "N": 33}),
        (PLANES, {"B": 1, "M": 2, "P": 1, "N": 130}),
        (PLANES, {"B": 1, "M": 2, "P": 2, "N": 67}),
    ],
)
def test_rows_are_spread(text: str, sizes: dict[str, int]) -> None:
    made = built(text, tuple(sizes.items()))
    rows = sizes["M"] * sizes.get("B", 1)
    assert made.schedule is not None
    assert sum(each.name == "partial" for each in made.schedule.directives) == (2 if text is ROWS else 1)
    assert not rows or max(blocks(made, {})) >= rows
    agrees(text, sizes, seed=1, fix=True)
    assert is_kept(text, sizes)


def test_rows_that_fill_a_machine_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    many = lower(function(ROWS), "sm_90a", {"M": spread.FEW, "N": 8192}, schedule=AUTO)
    assert many.schedule is None or not any(each.name == "partial" for each in many.schedule.directives)
    short = lower(function(ROWS), "sm_90a", {"M": 2, "N": 127}, schedule=AUTO)
    assert short.schedule is None or not any(each.name == "partial" for each in short.schedule.directives)
    assert not any(each.startswith("partial") for each in said(planned(ROWS)) + said(planned(ROWS, "cpu")))


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("sizes", [{"M": 16, "N": 32, "K": 512}, {"M": 21, "N": 19, "K": 256}, {"M": 16, "N": 64, "K": 448}])
def test_sums_of_products_are_divided(dtype: str, sizes: dict[str, int]) -> None:
    text = PRODUCT.replace("TYPE", dtype)
    made = built(text, tuple(sizes.items()))
    assert made.schedule is not None
    names = [each.name for each in made.schedule.directives]
    assert "partial" in names
    assert ("mma" in names) is (dtype == "bf16")
    agrees(text, sizes, seed=1, fix=True)
    assert is_kept(text, sizes)


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_sums_of_which_there_are_enough_are_not(dtype: str) -> None:
    for sizes in ({"M": 4096, "N": 4096, "K": 4096}, {}):
        made = lower(function(PRODUCT.replace("TYPE", dtype)), "sm_90a", sizes, schedule=AUTO)
        assert made.schedule is not None
        assert not any(each.name == "partial" for each in made.schedule.directives)
