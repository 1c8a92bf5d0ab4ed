"""Orders of loops over merges of sizes that are known at run time alone: proved, where a merge of equal indices is equal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from numpy.typing import NDArray
from tests.schedule.laid import integers, laid, refusal, wrong

from texpr.ir import kernel as k
from texpr.presburger.formula import Formula
from texpr.schedule.rewrite import order

Inputs = tuple[dict[str, NDArray[Any]], dict[str, int]]

CONV = """
fn conv(X: f32[B, H, W, C] align(16), K: f32[3, 3, C, F]): f32[B, H - 2, W - 2, F]
    where C % 4 == 0, H >= 3, W >= 3
{
    new Y: f32[B, H - 2, W - 2, F]
    par B |b| { par H - 2 |y| { par W - 2 |x| { par F |f| {
        Y[b, y, x, f] = 0.0
        seq 3 |r| reduce(Y) { seq 3 |s| reduce(Y) { seq C |c| reduce(Y) {
            Y[b, y, x, f] += X[b, y + r, x + s, c] * K[r, s, c, f]
        } } }
    } } } }
    return Y
}"""
TILES = """
    merge(b, y) -> by  merge(by, x) -> m
    split(m, 32) -> (bm, tm)  split(f, 16) -> (bf, tf)  split(c, 16) -> (co, ci)
    reorder(bm, bf, r, s, co, tm, tf, ci)
    bind(bm, grid.y)  bind(bf, grid.x){}
    bind(tm, block.y)  bind(tf, block.x)"""
COLUMNS = "\n    stage(X, at=co, in=shared, via=im2col, fill=zero) -> Xs"
SHARED = COLUMNS.replace("im2col", "im2col, multicast=bf").replace("stage", "cluster(bf, 2)  stage")


def case(images: int, height: int, width: int, channels: int, filters: int) -> Inputs:
    arrays = {"X": integers(images, height, width, channels), "K": integers(3, 3, channels, filters, seed=1)}
    return arrays, {"B": images, "H": height, "W": width, "C": channels, "F": filters}


@pytest.mark.parametrize("stage", ["", COLUMNS, SHARED], ids=["plain", "im2col", "shared"])
def test_a_convolution_with_all_sizes_at_run_time(stage: str) -> None:
    made = laid(CONV, TILES.format(stage))
    assert any(isinstance(s, k.CopyTensor) for s in made.statements) is bool(stage)
    for sizes in ((2, 7, 9, 20, 17), (1, 3, 3, 4, 1), (0, 5, 5, 4, 2), (2, 3, 40, 4, 33)):
        assert wrong(made, *case(*sizes), (None, 0)) is None, sizes


def test_without_it_nothing_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a result whose dimensions are not those of the merge in its order: where they are, they are one dimension."""

    def nothing(*_: object) -> Iterator[Formula]:
        return iter(())

    turned = CONV.replace("f32[B, H - 2, W - 2, F]", "f32[W - 2, H - 2, B, F]").replace("Y[b, y, x, f]", "Y[x, y, b, f]")
    assert laid(turned, TILES.format(" "))
    monkeypatch.setattr(order, "same_leaves", nothing)
    text = refusal(turned, TILES.format(" "))
    assert "error[E0914]: cannot decide whether `reorder` keeps the order of accesses to `Y`" in text


RUNNING = """
fn running(x: f32[B, H, n]): f32[B, H] {
    new y: f32[B, H]
    par B |b| { par H |h| {
        y[b, h] = 0.0
        seq n |i| { seq 3 |t| { y[b, h] = 0.5 * y[b, h] + x[b, h, i] } }
    } }
    return y
}"""
"""Updates in an order that nothing frees."""


@pytest.mark.parametrize("last", ["t, i", "u, v, t"])
def test_orders_that_matter_are_refused(last: str) -> None:
    words = "merge(b, h) -> m  split(m, 8) -> (o, e)  split(i, 4) -> (u, v)\n"
    order_of = "o, e, t, u, v" if last == "t, i" else "o, u, e, t, v"
    text = refusal(RUNNING, f"{words}reorder({order_of})")
    assert "error[E0906]" in text or "error[E0914]" in text


def test_orders_that_do_not_are_proved() -> None:
    made = laid(RUNNING, "merge(b, h) -> m  split(m, 8) -> (o, e)  split(i, 4) -> (u, v)\nreorder(o, u, v, t, e)")
    for sizes in ((3, 5, 7), (1, 1, 1), (0, 4, 2), (2, 0, 3)):
        arrays = {"x": integers(*sizes)}
        assert wrong(made, arrays, dict(zip("BHn", sizes, strict=True)), (None, 0)) is None, sizes


MOVED = """
fn moved(x: f32[B, H]): f32[B + 1, H] {
    new y: f32[B + 1, H]
    par B + 1 |p| { par H |q| { y[p, q] = 0.0 } }
    seq B |b| { par H |h| { y[b + 1, h] = y[b, h] + x[b, h] } }
    return y
}"""


def test_elements_of_different_loops_are_not_taken_for_one() -> None:
    """y[b, …] and y[b + 1, …]: equal subscripts are not equal indices."""
    text = refusal(MOVED, "reorder(h, b)\nmerge(h, b) -> m  split(m, 8) -> (o, e)  reorder(e, o)")
    assert "error[" in text
