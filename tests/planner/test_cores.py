"""Automatic schedules for a CPU: which nests get a panel; what is computed stays what it was; it runs in vectors."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.planner.programs import BATCHED, CONV, IN_ORDER, JACOBI, MATMUL, MATVEC, Sizes, arrays_of, built, function

import texpr
from references import EXAMPLES, FOLDER
from texpr.driver import load, lower, parse
from texpr.interp import run as interpret
from texpr.ir.program.text import print_schedule
from texpr.isa.registry import resolve
from texpr.planner.plan import plan
from texpr.planner.strategies.panels import Panel
from texpr.runtime import Kernel

CUBES = [(0, 2, 3), (2, 0, 3), (2, 3, 0), (1, 1, 1), (13, 70, 17), (260, 65, 5), (5, 65, 515)]
LAYERS = """
fn layers(X: f32[B, H, W, C], K: f32[3, 3, C, F]): f32[B, H, W, F] {
    let Z = pad(X, (0, 1, 1, 0), (0, 1, 1, 0), 0.0)
    new Y: f32[B, H, W, F]
    par B |b| { par H |p| { par W |q| { par F |f| {
        Y[b, p, q, f] = 0.0
        seq 3 |r| { seq 3 |s| { seq C |c| { Y[b, p, q, f] += Z[b, p + r, q + s, c] * K[r, s, c, f] } } }
    } } } }
    return Y
}
"""


@cache
def kernel(text: str, fixed: tuple[tuple[str, int], ...]) -> Kernel:
    return texpr.compile(function(text), "cpu", dict(fixed))


def agrees(text: str, sizes: Sizes, *, fix: bool = False) -> None:
    """What the compiled code of the automatic schedule gives is what the interpreter gives, to the bit."""
    made = kernel(text, tuple(sizes.items()) if fix else ())
    arrays = arrays_of(function(text), sizes)
    given = {p.name: np.array(arrays[p.name]) for p in function(text).params}
    returned = made(*given.values(), **({} if fix else sizes))
    names = [b.name for b in function(text).results]
    given.update(zip(names, returned if len(names) > 1 else (returned,), strict=False))
    meant = interpret(function(text), arrays, sizes)
    for name, value in meant.items():
        assert np.array_equal(np.asarray(value), np.asarray(given[name])), (name, sizes)


@pytest.mark.parametrize("sizes", CUBES)
def test_matmul(sizes: tuple[int, int, int]) -> None:
    agrees(MATMUL, dict(zip("MNK", sizes, strict=True)))


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_sums_in_order(name: str) -> None:
    for sizes in ({"M": 37, "N": 141, "K": 19}, {"M": 0, "N": 3, "K": 2}):
        agrees(IN_ORDER.replace("TYPE", name), sizes)


def test_batches_and_layers() -> None:
    agrees(BATCHED, {"B": 3, "M": 33, "N": 67, "K": 9})
    for sizes in ({"B": 2, "H": 5, "W": 9, "C": 3, "F": 70}, {"B": 1, "H": 1, "W": 1, "C": 1, "F": 1}):
        agrees(LAYERS, sizes)


def test_sizes_fixed_at_build() -> None:
    agrees(MATMUL, {"M": 260, "N": 128, "K": 64}, fix=True)
    agrees(MATMUL, {"M": 7, "N": 5, "K": 3}, fix=True)


def test_numbers_that_are_not_numbers() -> None:
    """Signs of zeros, infinities and NaN go through vectors as they go through single elements."""
    odd = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.5, 3e38], np.float32)
    a, b = np.resize(odd, (16, 16)), np.resize(odd[::-1], (16, 128))
    (meant,) = interpret(function(MATMUL), {"A": a, "B": b}, {"M": 16, "N": 128, "K": 16}).values()
    found = np.asarray(kernel(MATMUL, ())(a, b))
    assert np.array_equal(found, meant, equal_nan=True)
    signs = ~np.isnan(meant)
    assert np.array_equal(np.signbit(found[signs]), np.signbit(meant[signs]))


PANELS = {"matmul": 1, "matmul_flat": 1, "conv2d": 1}
"""Programs of the gallery that get a panel."""


@pytest.mark.parametrize("name", sorted({e.path.stem for e in EXAMPLES}))
def test_which_programs_get_a_panel(name: str) -> None:
    for found in load(FOLDER / f"{name}.te").functions:
        made = plan(found, resolve("cpu"))
        assert sum(each.candidate is not None for each in made.nests) == PANELS.get(name, 0)


@pytest.mark.parametrize("text", [JACOBI, MATVEC, CONV])
def test_what_gets_none(text: str) -> None:
    assert plan(function(text), resolve("cpu")).schedule is None


def test_the_text_of_a_plan_is_a_schedule() -> None:
    compiled = built(MATMUL, (), "cpu")
    assert compiled.schedule is not None
    (again,) = parse(f"{MATMUL}\n{print_schedule(compiled.schedule, function(MATMUL))}").functions
    pasted = lower(again, "cpu", schedule=again.schedules[0]).source
    assert [x for x in pasted.split("\n") if "//" not in x] == [x for x in compiled.source.split("\n") if "//" not in x]


BIASED = """
fn biased(A: f32[M, K], B: f32[K, N], b: f32[N]): f32[M, N] {
    new C: f32[M, N]
    par M |i| { par N |j| {
        C[i, j] = b[j]
        seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
        C[i, j] = max(C[i, j], 0.0)
    } }
    return C
}
"""


def test_what_is_read_once_a_tile_is_no_panel() -> None:
    """Nor does it change the tile: of a product with a bias, that of the product."""
    directives = {text: plan(function(text), resolve("cpu")).nests[0].candidate for text in (BIASED, MATMUL)}
    biased, plain = directives.values()
    assert isinstance(biased, Panel) and isinstance(plain, Panel)
    assert [each.buffer.name for each in biased.panels] == ["B"]
    assert (biased.rows, biased.lanes, biased.reads) == (plain.rows, plain.lanes, plain.reads)
    agrees(BIASED, {"M": 37, "N": 41, "K": 19})


def test_a_tile_of_results_is_accessed_in_vectors() -> None:
    source = built(MATMUL, (), "cpu").source
    assert any("tx_muladd_rows(tx_same(A[" in line for line in source.split("\n"))
    source = built(IN_ORDER.replace("TYPE", "f32"), (), "cpu").source
    assert "+= A[" in next(line for line in source.split("\n") if "tx_row" in line and "+=" in line)


def test_only_a_freed_sum_rounds_once() -> None:
    """1 + 2⁻¹² squared is 1 + 2⁻¹¹ + 2⁻²⁴, which f32 cannot hold: its sum with -(1 + 2⁻¹¹) says whether it was rounded."""
    a, b = np.full((9, 2), 1 + 2.0**-12, np.float32), np.full((2, 70), 1 + 2.0**-12, np.float32)
    a[:, 0], b[0] = -1 - 2.0**-11, 1
    out = np.zeros((9, 70), np.float32)
    kernel(IN_ORDER.replace("TYPE", "f32"), ())(a, b, out)
    assert np.all(out == 0)
    assert set(np.unique(np.asarray(kernel(MATMUL, ())(a, b)))) <= {0, np.float32(2.0**-24)}
