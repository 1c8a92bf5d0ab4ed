"""Every operation on random layouts, and on layouts of layouts: 100,000 answers in the long suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from tests.layout import laws
from tests.layout.oracle import answer, numbers, random_layout, values

from texpr.affine.expr import Sym
from texpr.layout import Layout
from texpr.layout.algebra.coalesce import coalesce
from texpr.layout.algebra.complement import complement
from texpr.layout.algebra.compose import composition
from texpr.layout.algebra.divide import logical_divide
from texpr.layout.algebra.inverse import left_inverse, nullspace, right_inverse
from texpr.layout.algebra.product import logical_product
from texpr.layout.algebra.quasi_affine import from_expressions
from texpr.layout.algebra.recast import downcast, upcast
from texpr.layout.inttuple import flatten
from texpr.layout.text import parse_layout

STRIDES = (0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24)
AT = Sym("i")


def tile(random: Random, a: Layout) -> Layout:
    """A layout of coordinates of `a`: some of its own radices, in some order."""
    sizes = [m.size for m in a.flat if isinstance(m.size, int)]
    weights = [1]
    for size in sizes:
        weights.append(weights[-1] * size)
    chosen: list[tuple[int, int]] = []
    for size, weight in zip(sizes, weights, strict=False):
        cut = random.choice([d for d in range(1, size + 1) if size % d == 0])
        if random.random() < 0.6:
            chosen.append((cut, weight * random.choice((1, size // cut))))
    random.shuffle(chosen)
    return Layout(tuple(s for s, _ in chosen), tuple(d for _, d in chosen)) if chosen else Layout(1)


def cases(random: Random) -> Iterator[tuple[str, Callable[..., Layout], tuple[Any, ...], Callable[..., bool]]]:
    a, b = random_layout(random, 96, STRIDES), random_layout(random, 24, STRIDES)
    yield "coalesce", coalesce, (a,), laws.coalesces
    yield "composition", composition, (a, b), laws.composes
    t = tile(random, a)
    yield "composition with its own radices", composition, (a, t), laws.composes
    yield "divide", logical_divide, (a, t), laws.divides
    yield "divide by any", logical_divide, (a, b), laws.divides
    small = random_layout(random, 6, (0, 1, 2, 3, 4))
    yield "product", logical_product, (b, small), laws.multiplies
    yield "complement", complement, (b, random.choice((12, 24, 48, 96, 144))), laws.complements
    yield "right inverse", right_inverse, (a,), laws.inverts_right
    yield "left inverse", left_inverse, (a,), laws.inverts_left
    yield "nullspace", nullspace, (a,), laws.nullifies
    n = random.choice((2, 3, 4, 8))
    yield "upcast", upcast, (a, n), laws.widens
    yield "downcast", downcast, (b, n), lambda b, n, d: laws.widens(d, n, b)
    yield "text", lambda a: parse_layout(str(a)), (a,), lambda a, r: a == r
    yield "expressions", _there_and_back, (a,), lambda a, r: values(a) == values(r)


def _there_and_back(a: Layout) -> Layout:
    """Through the expression of a 1-D coordinate. A last mode has no remainder, and the extent says where it ends."""
    base, found = from_expressions(a(AT), [(AT, a.size)])
    assert set(flatten(base)) <= {0}
    return found


def check(seeds: range) -> Counter[str]:
    answered: Counter[str] = Counter()
    for seed in seeds:
        for name, operation, args, law in cases(Random(seed)):
            found = answer(operation, *args)
            if found is not None:
                answered[name] += 1
                assert law(*args, found), (name, seed, *map(str, args), str(found))
    return answered


def test_random_layouts() -> None:
    answered = check(range(300))
    assert all(count > 20 for count in answered.values()), answered
    assert len(answered) == 14


@pytest.mark.long
def test_100_000_random_answers() -> None:
    answered = check(range(1000, 21000))
    assert answered.total() > 100_000, answered


def test_whatever_a_divide_gives_can_be_divided_again() -> None:
    """Tiles of tiles hold what the whole holds."""
    done = 0
    for seed in range(400):
        random = Random(seed)
        a = random_layout(random, 64, STRIDES)
        first = answer(logical_divide, a, tile(random, a))
        if first is None:
            continue
        again = answer(logical_divide, first, tile(random, first))
        if again is not None:
            done += 1
            assert sorted(numbers(again)) == sorted(numbers(a))
    assert done > 40
