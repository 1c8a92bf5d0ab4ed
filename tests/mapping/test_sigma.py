"""σ is never beaten: by no bijection where all can be tried, by no box and no permutation of digits where there are many."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from tests.mapping.brute import (
    Ints,
    Machine,
    Subject,
    best_of_all,
    bias,
    blocked,
    by_bits,
    by_boxes,
    convolution,
    gathered,
    im2col,
    matmul,
    narrow,
    of_box,
    of_digits,
    permute,
    stencil,
    strided,
    weighted,
)
from tests.steps import growth, pairs

from texpr.affine.expr import Sym
from texpr.driver import lower
from texpr.frontend import parse
from texpr.ir import program as ir
from texpr.isa.memories import Coalescing
from texpr.mapping.bands import band
from texpr.mapping.cost.digits import Digits
from texpr.mapping.cost.least import least, together
from texpr.mapping.cost.streams import Band, Stream, band_of
from texpr.mapping.cost.warps import Warps
from texpr.mapping.solve import Solution, solve
from texpr.support.record import replace

TINY = Machine(lanes=4, sector=8, line=16)
"""A warp of 4 lanes, so that every bijection can be tried; a sector is two f32."""

REAL = Machine()


def taken(subject: Subject, machine: Machine) -> Band:
    """What the solver sees of `subject`."""
    (par,) = (s for s in parse(subject.text).functions[0].body if isinstance(s, ir.Par))
    loops, body = band(par)
    found = band_of(loops, body, {})
    return replace(found, request=Coalescing(machine.lanes, machine.sector, machine.line))


def solved(subject: Subject, machine: Machine, free: bool = True) -> tuple[Band, Solution]:
    found = taken(subject, machine)
    shape = by_shape(found, machine.lanes)
    return found, solve(found, 2 * machine.lanes, shape, free)


def by_shape(found: Band, lanes: int) -> Digits:
    """The innermost loop along the lanes."""
    last = len(found.loops) - 1
    return ((last, 2 * lanes),) if last == 0 else ((last, lanes), (last - 1, 2))


SMALL = (
    permute((0, 1), (4, 4)),
    permute((1, 0), (4, 4)),
    permute((1, 0), (2, 8)),
    permute((2, 1, 0), (2, 2, 4)),
    permute((1, 0, 2), (2, 4, 2)),
    permute((1, 0), (4, 4), "f16"),
    permute((1, 0), (4, 2), "f64"),
    permute((1, 0), (4, 4), "u8"),
    strided(12, 2),
    strided(8, 3),
    matmul("nn", 4, 4, 1),
    matmul("nt", 4, 4, 2),
    matmul("tn", 4, 4, 2),
    matmul("tt", 4, 4, 2),
    bias(4, 4),
    blocked(2, 4),
    permute((4, 3, 2, 1, 0), (2, 1, 2, 2, 2)),
    permute((2, 4, 0, 3, 1), (2, 2, 2, 1, 2), "f16"),
    permute((1, 0), (4, 4), "f8e4m3"),
    permute((1, 0), (4, 4), "f8e5m2"),
    permute((1, 0), (4, 4), "bf16"),
    convolution(3, 3, 2, 2, 4),
    convolution(3, 3, 2, 1, 4, "f16"),
    narrow(8, 2, "f64"),
    narrow(4, 4, "u8"),
)
RAGGED = (
    permute((1, 0), (3, 5)),
    permute((0, 1), (5, 3)),
    stencil(5, 5),
    permute((0, 1), (3, 3)),
    im2col(3, 3, 2),
    convolution(3, 3, 2, 2, 3),
    convolution(3, 4, 2, 1, 2, "f64"),
    gathered(4, 4, 1),
    gathered(5, 2, 2, "f16"),
    narrow(7, 2, "f8e5m2"),
    strided(13, 3, "f16"),
)


@pytest.mark.parametrize("subject", SMALL, ids=lambda s: s.name)
def test_no_bijection_is_better(subject: Subject) -> None:
    _, found = solved(subject, TINY)
    assert found.cost.weighted == best_of_all(subject, TINY)
    assert found.least.sectors <= best_of_all(subject, TINY, by_sectors=True)


@pytest.mark.parametrize("subject", (*SMALL, *RAGGED), ids=lambda s: s.name)
def test_the_bound_is_below_every_bijection_and_the_gap_is_no_less_than_it_says(subject: Subject) -> None:
    found = solved(subject, TINY)[1]
    best = best_of_all(subject, TINY)
    assert found.least.weighted <= best
    assert found.least.idling <= found.least.weighted
    assert found.cost.weighted <= best * max(Fraction(1), found.gap)


BITS = (
    permute((0, 1), (32, 32)),
    permute((1, 0), (32, 64)),
    permute((2, 1, 0), (8, 4, 32)),
    permute((2, 0, 1), (8, 8, 16)),
    permute((2, 4, 0, 3, 1), (2, 8, 4, 2, 8), "f16"),
    permute((4, 3, 2, 1, 0), (4, 4, 4, 4, 4)),
    permute((1, 0), (32, 32), "f64"),
    permute((1, 0), (64, 32), "f16"),
    permute((1, 0), (32, 64), "f8e4m3"),
    blocked(16, 4),
    strided(512, 3),
    matmul("nn", 32, 32, 8),
    matmul("nt", 32, 32, 8),
    matmul("tn", 32, 32, 8),
    matmul("nn", 32, 32, 16, "bf16"),
    bias(32, 32),
    permute((1, 0), (32, 32), "f8e5m2"),
    permute((1, 0), (32, 32), "bf16"),
    convolution(10, 10, 3, 2, 16),
    convolution(9, 17, 2, 4, 8, "bf16"),
    gathered(64, 16, 3),
)


@pytest.mark.parametrize("subject", BITS, ids=lambda s: s.name)
def test_no_choice_of_bits_is_better(subject: Subject) -> None:
    assert solved(subject, REAL)[1].cost.weighted == by_bits(subject, REAL)


MANY = (
    permute((0, 1), (33, 37)),
    permute((1, 0), (31, 43)),
    permute((2, 1, 0), (7, 5, 11)),
    permute((1, 0), (67, 19), "f64"),
    permute((1, 0), (29, 41), "u8"),
    permute((0, 1), (100, 3)),
    permute((0, 1), (64, 7), "f16"),
    permute((1, 2, 0), (3, 17, 16), "u8"),
    permute((2, 0, 1), (16, 17, 3), "u8"),
    im2col(9, 18, 3),
    im2col(8, 12, 5, "f16"),
    stencil(18, 35),
    strided(101, 5, "f64"),
    matmul("nn", 17, 23, 5),
    matmul("nt", 33, 9, 7),
    matmul("tn", 21, 40, 3, "f16"),
    bias(13, 47),
    convolution(9, 11, 3, 2, 21),
    convolution(8, 8, 3, 3, 13, "f16"),
    convolution(7, 9, 2, 1, 5, "f64"),
    gathered(37, 19, 4, "f64"),
    gathered(53, 7, 5, "f8e4m3"),
    narrow(211, 5, "f8e5m2"),
    narrow(97, 3, "f64"),
)


@pytest.mark.parametrize("subject", MANY, ids=lambda s: s.name)
def test_no_box_is_better_and_counts_are_exact(subject: Subject) -> None:
    found = solved(subject, REAL)[1]
    assert found.cost.weighted <= by_boxes(subject, REAL)
    for digits, cost in (*found.front, (found.digits, found.cost)):
        said = (cost.sectors, cost.lines, cost.requests)
        assert said == of_digits(subject, digits, REAL), digits
    assert not found.cut
    assert found.cost.weighted >= found.least.idling


@pytest.mark.parametrize("subject", BITS[:12], ids=lambda s: s.name)
def test_digits_in_any_order_are_counted_exactly(subject: Subject) -> None:
    """Blocks of all kinds of digits, whether or not their first ones make a warp."""
    rank = len(subject.shape)
    found = taken(subject, REAL)
    for digits in (((0, 3), (rank - 1, 22)), ((rank - 1, 5), (0, 7), (rank - 1, 2)), ((0, 2), (rank - 1, 16), (0, 4))):
        cost = Warps(found).cost(digits)
        assert (cost.sectors, cost.lines, cost.requests) == of_digits(subject, digits, REAL), digits


def test_the_oracles_agree_with_each_other() -> None:
    subject = permute((1, 0), (32, 32))
    assert weighted(of_box(subject, (4, 8), REAL)) == weighted(of_digits(subject, ((1, 8), (0, 4)), REAL)) == 32 * 86
    assert by_boxes(subject, REAL) >= by_bits(subject, REAL)


def test_a_wrong_count_would_be_seen() -> None:
    """Each of the solver's parts planted wrong: an address, an extent, an alignment, how often."""
    subject = im2col(9, 18, 3)
    right = taken(subject, REAL)
    digits = ((3, 3), (2, 3), (1, 16))
    want = of_digits(subject, digits, REAL)
    read, write = right.streams
    wrong = (
        replace(right, streams=(replace(read, steps=(*read.steps[:-1], 8)), write)),
        replace(right, streams=(replace(read, first=4), write)),
        replace(right, streams=(replace(read, times=2), write)),
        replace(right, extents=(6, *right.extents[1:])),
        replace(right, request=Coalescing(32, 32, 64)),
    )
    for each in (right, *wrong):
        cost = Warps(each).cost(digits)
        assert ((cost.sectors, cost.lines, cost.requests) == want) is (each is right)


@pytest.mark.parametrize("slack", [2, 4])
def test_a_bound_that_is_too_high_would_be_seen(slack: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: fewer iterations in a pair of windows than there are."""
    subject = permute((1, 0), (4, 4))
    best = best_of_all(subject, TINY)
    assert least(taken(subject, TINY)).weighted <= best
    monkeypatch.setattr("texpr.mapping.cost.least._fullest", lambda counts, a, b: max(1, -(-len(counts) // (4 * slack))))
    together.cache_clear()
    try:
        assert least(taken(subject, TINY)).weighted > best
    finally:
        together.cache_clear()


SHAPES = ((8,), (2, 4), (4, 2), (2, 2, 2), (3, 3), (5, 2), (2, 3, 2), (10,))


def any_band(chooser: random.Random) -> tuple[Band, Subject]:
    """A few iterations and accesses at any place, with any steps: overlapping, alike, backwards."""
    shape = chooser.choice(SHAPES)
    streams: list[Stream] = []
    arrays: list[tuple[Ints, int]] = []
    points = np.indices(shape)
    for number in range(chooser.randint(1, 3)):
        width, times = chooser.choice((1, 2, 4)), chooser.randint(1, 2)
        steps = tuple(width * chooser.choice((0, 1, 1, 2, 3, 4, 8, -1, 20)) for _ in shape)
        first = width * chooser.randint(0, 8)
        streams.append(Stream(f"x{number}", width, steps, first, times=times))
        arrays.append((first + sum((p * s for p, s in zip(points, steps, strict=True)), start=0 * points[0]), times))
    band = Band(tuple(Sym(f"i{n}") for n in range(len(shape))), shape, shape, tuple(streams), Coalescing(4, 8, 16))
    return band, Subject("any", "", shape, tuple(arrays))


def test_bounds_hold_and_counts_are_exact_for_any_accesses() -> None:
    tight = 0
    for seed in range(120):
        band, subject = any_band(random.Random(seed))
        best = best_of_all(subject, TINY)
        bound = least(band)
        assert bound.weighted <= best, seed
        assert bound.sectors <= best_of_all(subject, TINY, by_sectors=True), seed
        last = len(band.loops) - 1
        for digits in (((last, 4),), ((last, 2), (0, 2)), ((0, 3), (last, 3))):
            cost = Warps(band).cost(digits)
            assert (cost.sectors, cost.lines, cost.requests) == of_digits(subject, digits, TINY), (seed, digits)
        tight += bound.weighted == best
    assert tight > 20, "the bound says nothing"


AUTO = """fn t(A: f32[M, N]): f32[N, M] where M % 32 == 0, N % 32 == 0 {
    new B: f32[N, M]
    par N |j| { par M |i| { B[j, i] = A[i, j] } }
    return B
}
schedule t for cuda { bind(i, auto) bind(j, auto) }
"""


def test_loops_bound_to_auto_are_the_solver_s() -> None:
    function = parse(AUTO)["t"]
    (note,) = lower(function, "sm_90a", schedule=function.schedules[0]).notes
    (found,) = note.solved
    assert found.solution.certificate == "globally optimal"
    assert found.solution.cost.weighted < found.solution.shape.weighted
    assert {loop.loop: loop.threads for loop in note.loops} == {"i": 16, "j": 16}


def turned(loops: int) -> Subject:
    return permute(tuple(reversed(range(loops))), (4,) * loops)


def solving(loops: int) -> None:
    """The answer for so many loops; the array of the brute force is small beside it, and no Python."""
    solved(turned(loops), REAL)


def trying(loops: int) -> None:
    """As if every subset of loops were compared with each other."""
    solving(loops)
    pairs(2**loops, 4)


TWICE = 4.0
"""Of twice as many loops, from 5 on; of pairs of their subsets there are 1024 times as many."""


def test_ten_loops_are_solved_in_few_steps() -> None:
    """`bench/parts.py` measures how long twelve take."""
    assert growth(solving, length=5) < TWICE


def test_what_tries_every_subset_of_loops_is_found() -> None:
    assert growth(trying, length=5) > TWICE


def test_twelve_loops_are_solved_within_the_limits() -> None:
    found = solved(turned(12), REAL)[1]
    assert not found.cut
    assert found.cost.sectors * 32 == 12 * 4**12


def test_limits_of_work_are_told_and_only_weaken(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = permute((2, 4, 0, 3, 1), (2, 8, 4, 2, 8), "f16")
    whole = solved(subject, REAL)[1]
    assert whole.least.whole and not whole.cut
    together.cache_clear()
    monkeypatch.setattr("texpr.mapping.cost.least.DIFFERENCES", 3)
    monkeypatch.setattr("texpr.mapping.solve.WORK", 2)
    less = solved(subject, REAL)[1]
    together.cache_clear()
    assert less.cut and not less.least.whole
    assert less.least.weighted <= whole.least.weighted
    assert less.cost.weighted >= whole.cost.weighted
