"""What is quickly refuted has no point: compared with the exact solver, and with a walk over a box."""

import random
from itertools import pairwise

import pytest

from texpr.affine.expr import Expr, Sym, expr
from texpr.presburger.formula import TRUE, Eq, Formula, Ge, among, compare, conj, differ, disj, holds
from texpr.presburger.isl.sets import Set
from texpr.presburger.questions import is_refuted_by_equations
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


def test_what_equations_refute_is_empty() -> None:
    """Digits apart, symbols put in, and what comes of that simplified: never of what has a point."""
    found = 0
    for seed in range(1500):
        facts = some_facts(seed)
        if is_refuted_by_equations(facts, TRUE):
            assert Set.of((), conj(facts)).is_empty(), seed
            found += 1
    assert found > 300


LANE, ROW, COLUMN, OTHER = (Sym(name) for name in ("lane", "row", "column", "other"))


def registers(scale: int) -> list[Formula]:
    """An element of a tile of 16 × 8 by row and column, and by lane and register as a fragment of `mma.m16n8` has it, of which
    one in 2 · `scale` columns is wrong."""
    within = [compare(">=", sym, 0) for sym in (LANE, ROW, COLUMN, OTHER)]
    within += [compare("<", sym, end) for sym, end in ((LANE, 32), (ROW, 16), (COLUMN, 8), (OTHER, 4))]
    same = [Eq(expr(ROW) - expr(LANE) // 4 - 8 * (expr(OTHER) // 2)), Eq(expr(COLUMN) - 2 * (expr(LANE) % 4) - expr(OTHER) % 2)]
    place = (4 * (expr(ROW) % 8) + expr(COLUMN) // 2, 2 * (expr(ROW) // 8) + expr(COLUMN) % scale)
    return [*within, *same, differ((expr(LANE), expr(OTHER)), place)]


@pytest.mark.parametrize(("scale", "is_right"), [(2, True), (4, False), (1, False)])
def test_the_place_of_an_element_follows_by_its_digits(scale: int, is_right: bool) -> None:
    assert is_refuted_by_equations(registers(scale), TRUE) is is_right
    assert Set.of((), conj(registers(scale))).is_empty() is is_right


@pytest.mark.parametrize("numbers", [[], [3], [4, 1, 2], [0, 1, 5, 6, 7, 9]])
def test_one_of_some_numbers(numbers: list[int]) -> None:
    X, Y = Sym("x"), Sym("y")
    formula = among(expr(X), [*map(expr, numbers), expr(Y) - 1])
    for x in range(-2, 12):
        for y in (-20, x + 1):
            assert holds(formula, {X: x, Y: y}) is (x in numbers or x == y - 1)
