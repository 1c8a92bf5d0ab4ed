"""Intervals and polynomials of sizes, by which most integers are shown to fit their width."""

from __future__ import annotations

import random
from itertools import product

from texpr.affine.expr import Atom, Expr, Sym, expr, maximum, minimum, xor
from texpr.proof.plan import spans
from texpr.support.limits import LARGEST_SIZE


def random_value(rng: random.Random, names: list[Sym], depth: int) -> Expr:
    """An index expression of these symbols."""
    if depth == 0 or rng.random() < 0.2:
        return expr(rng.choice(names)) if rng.random() < 0.7 else expr(rng.choice([-3, 0, 1, 7, 64, 2**20]))
    a, b = random_value(rng, names, depth - 1), random_value(rng, names, depth - 1)
    match rng.randrange(8):
        case 0:
            return a + b
        case 1:
            return a - b
        case 2:
            return a * b if len(a.terms) * len(b.terms) < 6 else a
        case 3:
            return a // (b if b is not expr(0) else expr(3))
        case 4:
            return a % (b if b is not expr(0) else expr(3))
        case 5:
            return minimum(a, b)
        case 6:
            return maximum(a, b)
        case _:
            return xor(a, b, rng.choice([1, 4]))


def test_ranges_and_polynomials_hold_at_every_point_tried() -> None:
    """`spans` against numbers: intervals, and polynomials of sizes, hold where the expression has a value."""
    rng = random.Random(5)
    n, m, i, d = (Sym(name) for name in "nmid")
    tried = bounded = 0
    for _ in range(4000):
        value = random_value(rng, [n, m, i, d], 3)
        ends: dict[Sym | Atom, spans.Ends] = {n: (0, LARGEST_SIZE), m: (0, LARGEST_SIZE), i: (0, LARGEST_SIZE - 1), d: (-9, 9)}
        tops = {n: (expr(n), 1), m: (expr(m), 1), i: (expr(n) - 1, 1)}
        known = spans.Spans(ends, tops)
        (low, high), top = known.ends_of(value), known.above(value)
        for _ in range(6):
            point = {
                n: rng.choice([1, 2, 5, 1000, LARGEST_SIZE]),
                m: rng.choice([0, 1, 3, LARGEST_SIZE]),
                d: rng.randint(-9, 9),
            }
            point[i] = rng.choice([0, point[n] - 1, rng.randrange(point[n])])
            try:
                number = value.evaluate(point)
            except ZeroDivisionError:
                continue
            tried += 1
            assert low <= number <= high, (str(value), point)
            if top is not None:
                bounded += 1
                assert number <= top.evaluate(point), (str(value), str(top), point)
    assert tried > 5000 and bounded > 1000


def test_a_polynomial_keeps_to_a_bound_that_is_as_great_at_all_sizes() -> None:
    """Random ones, against all small sizes at which the bound holds; sizes of 0 among them."""
    rng, kept = random.Random(0), 0
    n, m = expr(Sym("n")), expr(Sym("m"))

    def power(base: Expr, count: int) -> Expr:
        return base if count == 1 else base * power(base, count - 1) if count else expr(1)

    for _ in range(4000):
        terms = [
            [(rng.randrange(4), rng.randrange(3), rng.choice([1, 1, 2, 5, 60])) for _ in range(rng.randrange(1, 4))]
            for _ in "12"
        ]
        value, bound = (sum((power(n, a) * power(m, b) * c for a, b, c in each), expr(0)) for each in terms)
        most = rng.choice([0, 3, 50])
        if spans.keeps_to(value, bound, most):
            kept += 1
            for here in product(range(7), repeat=2):
                sizes = dict(zip((Sym("n"), Sym("m")), here, strict=True))
                if bound.evaluate(sizes) <= most:
                    assert value.evaluate(sizes) <= most, (value, bound, most, here)
    assert kept > 200
    assert not spans.keeps_to(n, n * m, 3) and not spans.keeps_to(n * n * 2, n * n * n, 7)


def test_a_block_begins_within_what_blocks_share() -> None:
    """x − d · b is at least 1 for each block b of ⌈x / d⌉, whatever product x is; for one more it is not."""
    x, d, b = expr(Sym("n")) * Sym("m") * Sym("k"), 64, Sym("b")
    for blocks, least in (((x + 63) // d, 1), ((x + 64) // d, 0), ((x + 127) // d, -63)):
        known = spans.Spans()
        for size in "nmk":
            known.learn(Sym(size), (0, LARGEST_SIZE), (expr(Sym(size)), 1))
        known.learn(b, (0, 2**60), known.top_of(blocks - 1))
        assert known.ends_of(x - expr(b) * d)[0] == least
