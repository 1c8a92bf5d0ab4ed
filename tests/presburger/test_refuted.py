"""What is quickly refuted has no point: compared with the exact solver, and with a walk over a box."""

import random
from itertools import pairwise

import pytest

from texpr.affine.expr import Expr, Sym, expr
from texpr.presburger.formula import Eq, Formula, Ge, compare, conj, disj, holds
from texpr.presburger.isl.sets import Set
from texpr.presburger.solve.omega import refuted

NAMES = [Sym(name) for name in "abcde"]


def some_expr(rng: random.Random, depth: int = 2) -> Expr:
    total = expr(rng.randint(-6, 6))
    for _ in range(rng.randint(1, 3)):
        atom: Expr = expr(rng.choice(NAMES))
        if depth and rng.random() < 0.25:
            inner = some_expr(rng, depth - 1)
            divisor = rng.choice([2, 3, 4])
            atom = rng.choice([inner // divisor, inner % divisor])
        total = total + atom * rng.choice([-4, -2, -1, 1, 1, 2, 4])
    return total


def some_formula(rng: random.Random, depth: int = 2) -> Formula:
    if depth and rng.random() < 0.4:
        parts = [some_formula(rng, depth - 1) for _ in range(rng.randint(1, 3))]
        return rng.choice([conj, disj])(parts)
    return rng.choice([Eq, Ge, Ge])(some_expr(rng))


def some_facts(seed: int) -> list[Formula]:
    rng = random.Random(seed)
    facts = [some_formula(rng) for _ in range(rng.randint(2, 6))]
    for sym in NAMES[: rng.randint(0, 5)]:
        facts += [compare(">=", sym, 0), compare("<", sym, rng.randint(1, 5))]
    return facts


def test_what_is_refuted_is_empty() -> None:
    found = missed = 0
    for seed in range(1500):
        facts = some_facts(seed)
        empty = Set.of((), conj(facts)).is_empty()
        if refuted(facts):
            assert empty, seed
            found += 1
        else:
            missed += empty
    assert found > 300  # so that the comparison says something
    assert missed < 0.25 * found


def test_a_point_is_never_refuted() -> None:
    rng = random.Random(1)
    kept = 0
    for seed in range(1500):
        facts = some_facts(seed)
        point = {sym: rng.randint(0, 3) for sym in NAMES}
        if all(holds(fact, point) for fact in facts):
            kept += 1
            assert not refuted(facts), seed
    assert kept > 10


@pytest.mark.parametrize("width", [2, 3, 16])
def test_digits_are_unique(width: int) -> None:
    """b · width + t determines b and t where 0 ≤ t < width."""
    b, c, t, u = (Sym(name) for name in "bctu")
    bounds = [compare(op, s, n) for s in (t, u) for op, n in ((">=", 0), ("<", width))]
    same = Eq(expr(b) * width + t - expr(c) * width - u)
    assert refuted([*bounds, same, compare("!=", b, c)])
    assert refuted([*bounds, same, compare("!=", t, u)])
    assert not refuted([*bounds[2:], same, compare("!=", t, u)])


def test_products_are_unknowns_of_their_own() -> None:
    n, i, j = (Sym(name) for name in "nij")
    assert refuted([Ge(expr(n) * i - 1), Ge(-(expr(n) * i))])
    assert not refuted([Ge(expr(n) * i - 1), Ge(-(expr(n) * j))])


def test_choices_that_do_not_matter_do_not_multiply() -> None:
    """Twenty choices have a million ways to be made; the contradiction rests on one of them alone."""
    others = [Sym(f"s{n}") for n in range(20)]
    beside = [disj((compare("<", s, t), compare(">", s, expr(t) + 1))) for s, t in pairwise(others)]
    a, b, c, d, _ = NAMES
    matters = disj((compare(">", a, expr(b) + 2), compare("<", a, expr(b) - 2)))
    near = [compare("<=", expr(a) + d, expr(b) + c), compare(">=", expr(a) + d, expr(b) + c), Eq(expr(c) - d)]
    assert refuted([*beside, matters, *near])
    assert not refuted([*beside, matters, *near[:2]])
