"""What tensor cores make of sums: the bound of each record against a simulation, and what a record says as text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product as product_of

import ml_dtypes
import numpy as np
import pytest
from tests.isa.tensor_cores import DIGITS, LEAST, product

from texpr.isa import rounding
from texpr.isa.registry import INSTRUCTIONS
from texpr.isa.rounding import Rounding
from texpr.support.record import replace

DTYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
LARGEST = {"f8e4m3": 256.0, "f8e5m2": 2.0**12, "f16": 2.0**12}

Case = tuple[list[float], list[float], float]

KINDS = {
    (each.operands[0].dtype, each.operands[-1].dtype, each.rounding)
    for each in INSTRUCTIONS.values()
    if each.rounding is not None
}
"""The types and roundings that there are."""


def of_type(values: list[float], dtype: str) -> list[float]:
    """The nearest numbers of the type."""
    if dtype in ("tf32", "f32"):
        bits = np.asarray(values, np.float32).view(np.uint32)
        return list((bits >> 13 << 13).view(np.float32).astype(float)) if dtype == "tf32" else values
    return [float(each) for each in np.asarray(values).astype(DTYPES[dtype])]


def drawn(rng: random.Random, of: str, length: int, kind: str) -> Case:
    """Random factors of one element, and what it starts with."""
    span = 3 if of.startswith("f8") else 6
    if kind == "normal":
        a, b = ([rng.gauss(0, 1) for _ in range(length)] for _ in range(2))
        return of_type(a, of), of_type(b, of), 0.0
    if kind == "positive":
        a, b = ([rng.uniform(0.5, 1) for _ in range(length)] for _ in range(2))
        return of_type(a, of), of_type(b, of), 0.0
    if kind == "wide":
        a, b = (
            [rng.choice((-1, 1)) * rng.uniform(1, 2) * 2.0 ** rng.randint(-span, span) for _ in range(length)] for _ in "ab"
        )
        return of_type(a, of), of_type(b, of), rng.choice((0.0, 2.0 ** rng.randint(-8, 8)))
    if kind == "cancelling":
        a, b = ([rng.uniform(1, 2) for _ in range(length)] for _ in range(2))
        a, b = of_type(a, of), of_type(b, of)
        half = length // 2
        return [*a[:half], *(-each for each in a[:half])], [*b[:half], *b[:half]], 0.0
    if kind == "zeros":
        large = 2.0**100 if of in ("bf16", "tf32") else 2.0**4
        a, b = ([rng.choice((0.0, each)) for _ in range(length)] for each in (large, rng.choice((large, 1 / large))))
        return of_type(a, of), of_type(b, of), float(np.float32(rng.uniform(0, 2.0**-20))) if of in ("bf16", "tf32") else 0.0
    assert kind == "small"
    least = 2.0 ** max(LEAST[of], -20)
    a, b = ([rng.choice((-1, 1)) * rng.uniform(0, 4) * least for _ in range(length)] for _ in range(2))
    return of_type(a, of), of_type(b, of), 0.0


def adversarial(of: str, length: int, rounds: Rounding) -> Iterator[Case]:
    """A large start, and products that are nearly what a step cuts off, or what the rounding after it does."""
    most, start = 2 - 2.0 ** -DIGITS[of], 2.0 ** (rounds.aligned if not rounds.nearest else 10)
    for sign, power, below in product_of((1, -1), (-1, 0, 1), (1, 2, 3)):
        factor = 2.0**power
        yield of_type([sign * most * factor] * length, of), of_type([factor] * length, of), 2.0 ** (2 * power - below) * start
        yield (
            of_type([sign * most * factor] * length, of),
            of_type([most * factor] * length, of),
            2.0 ** (2 * power - below) * start,
        )
    swallowed = 2.0 ** -(rounds.kept + 1) / rounds.products
    yield of_type([swallowed * 2.0**6 * most / 2] * length, of), of_type([2.0**-6] * length, of), 1.0


def cases(of: str, rounds: Rounding, seed: int = 0, length: int = 256) -> Iterator[Case]:
    """All of them."""
    rng = random.Random(seed)
    for kind in ("normal", "positive", "wide", "cancelling", "small", "zeros"):
        for _ in range(6):
            yield drawn(rng, of, length, kind)
    yield from adversarial(of, length, rounds)


def part(case: Case, of: str, into: str, rounds: Rounding, said: Rounding) -> float:
    """What a simulated unit of `rounds` loses, relative to what `said` allows."""
    a, b, c = case
    into = "f16" if into == "f16" else "f32"
    steps = {"products": rounds.products, "aligned": rounds.aligned, "kept": rounds.kept, "nearest": rounds.nearest}
    found = product(a, b, c, of, into, **steps)
    exact = Fraction(c) + sum((Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)), Fraction(0))
    least = 2.0 ** LEAST[of]
    one, other = ([max(abs(x), least) if x else 2.0**-126 for x in each] for each in (a, b))
    magnitude = sum(x * y for x, y in zip(one, other, strict=True))
    return float(abs(found - exact)) / said.bound(len(a), magnitude, c, 2.0 ** LEAST[into])


@pytest.mark.parametrize(("of", "into", "rounds"), sorted(KINDS, key=str), ids=lambda each: str(each).split("(")[0])
def test_bounds_hold_and_are_near(of: str, into: str, rounds: Rounding) -> None:
    worst = max(part(case, of, into, rounds, rounds) for case in cases(of, rounds))
    assert 0.01 < worst <= 1


def test_later_machines_lose_less() -> None:
    """Hopper and Blackwell do `mma.sync` in longer steps, of which more bits are kept."""
    for of, into, rounds in sorted(KINDS, key=str):
        if rounds.aligned == 24:
            later = replace(rounds, products=2 * rounds.products, aligned=25)
            assert max(part(case, of, into, later, rounds) for case in cases(of, later)) <= 1


@pytest.mark.parametrize(("of", "into", "rounds"), sorted(KINDS, key=str), ids=lambda each: str(each).split("(")[0])
def test_a_record_that_promises_too_much_is_found(of: str, into: str, rounds: Rounding) -> None:
    """Two more bits than there are, of what decides."""
    planted = replace(rounds, kept=rounds.kept + 2) if rounds.nearest else replace(rounds, aligned=rounds.aligned + 2)
    assert max(part(case, of, into, rounds, planted) for case in cases(of, rounds)) > 1


@pytest.mark.parametrize(("of", "into", "rounds"), sorted(KINDS, key=str), ids=lambda each: str(each).split("(")[0])
def test_whole_numbers_are_exact_below_a_limit(of: str, into: str, rounds: Rounding) -> None:
    rng, limit = random.Random(1), rounds.exact_below
    most = {"f8e4m3": 8, "f8e5m2": 4}.get(of, 32)
    steps = {"products": rounds.products, "aligned": rounds.aligned, "kept": rounds.kept, "nearest": rounds.nearest}
    for length in (rounds.products, 3 * rounds.products):
        for _ in range(20):
            a, b = ([float(rng.randint(-most, most)) for _ in range(length)] for _ in range(2))
            total = sum(abs(x * y) for x, y in zip(a, b, strict=True))
            if total >= limit:
                continue
            start = float(rng.choice((-1, 1)) * (limit - 1 - int(total)))
            exact = start + sum(x * y for x, y in zip(a, b, strict=True))
            assert product(a, b, start, of, into, **steps) == exact
    ones = [1.0] + [0.0] * (rounds.products - 1)
    beyond = [product(ones, ones, sign * float(limit + odd), of, into, **steps) for sign in (1, -1) for odd in (0, 2)]
    assert any(
        each != sign * (limit + odd) + 1 for each, (sign, odd) in zip(beyond, ((1, 0), (1, 2), (-1, 0), (-1, 2)), strict=True)
    )


def test_integers_are_exact_and_f64_is_rounded_as_ieee_says() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 64, 512))
    told = INSTRUCTIONS["mma_m8n8k4_f64_f64"].relative(512)
    assert told is not None and 0 < told < 1e-12
    total = np.zeros(64)
    for k in range(512):
        total += a[:, k] * b[:, k]
    for row in range(64):
        exact = sum((Fraction(x) * Fraction(y) for x, y in zip(a[row], b[row], strict=True)), Fraction(0))
        assert abs(Fraction(total[row]) - exact) <= Fraction(told * float(np.abs(a[row] * b[row]).sum()))
    assert {each.relative(1 << 20) for each in INSTRUCTIONS.values() if each.operands and each.operands[-1].dtype == "i32"} <= {
        0.0,
        None,
    }
    assert INSTRUCTIONS["mma_m16n8k32_i32_i8"].relative(64) == 0.0


def test_every_floating_sum_has_a_rounding_or_is_ieee() -> None:
    sums = [each for each in INSTRUCTIONS.values() if "reduce(" in each.meaning and each.operands[-1].dtype[0] == "f"]
    assert len(sums) > 60
    for each in sums:
        assert (each.rounding is not None) != ("#ieee" in each.meaning)
        assert each.rounding is None or (
            each.rounding.source and rounding.read(each.rounding.text) == replace(each.rounding, source="")
        )


@pytest.mark.parametrize(
    "text", ["", "aligned 24", "aligned 0, products 8, truncated 23", "aligned 24, products 8, upward 23",
             "aligned 24, products 8, truncated 99", "aligned 24, products 2000, truncated 23",
             "aligned ²4, products 8, truncated 23"],
)  # fmt: skip
def test_what_is_no_rounding(text: str) -> None:
    assert rounding.read(text) is None


def test_more_terms_lose_more() -> None:
    rounds = Rounding(8, 24, 23)
    lost = [rounds.relative(products) for products in range(0, 4096, 8)]
    assert lost[0] == 0 and lost == sorted(lost) and lost[1] < lost[-1] < 1e-3
    assert rounds.bound(0, 1.0) == 0.0 and rounds.bound(8, 0.0) > 0
